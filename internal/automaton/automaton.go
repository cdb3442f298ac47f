package automaton

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Qwen's special tokens, by the names and types that its models give them.
const (
	endOfText   = "<|endoftext|>"
	startOfTurn = "<|im_start|>"
	endOfTurn   = "<|im_end|>"
)

var (
	controlTokens = []string{endOfText, startOfTurn, endOfTurn}
	userTokens    = []string{"<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"}
)

// Lost is what the model writes after a prompt at whose end no turn begins.
const Lost = "[no turn of the script begins after this prompt]"

// A tokenType is a value of tokenizer.ggml.token_type.
type tokenType int32

const (
	typeNormal      tokenType = 1
	typeControl     tokenType = 3
	typeUserDefined tokenType = 4
)

// maxTokens bounds the vocabulary: four matrices are as wide and as high as
// it, so that this many tokens make a file of about 128 MiB.
const maxTokens = 4096

// An Automaton is a script as tokens and the order in which they follow one
// another. It is immutable.
type Automaton struct {
	tokens []token
	next   []int   // the token that follows, for each token
	turns  [][]int // the tokens of each turn's text
	end    int     // the end-of-generation token
}

type token struct {
	text string // as it is read and rendered
	typ  tokenType
}

// Compile cuts the script's texts into tokens and says which follows which.
// Its errors wrap ErrScript.
func Compile(s Script) (*Automaton, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	a := &Automaton{tokens: vocabulary(s)}
	ids := make(map[string]int, len(a.tokens))
	taken := make(map[string]bool, len(a.tokens))
	for id, t := range a.tokens {
		ids[t.text] = id
		// A special token may be said once. A byte is left to the prompts:
		// one that ends in it must not lead into the middle of a turn.
		taken[t.text] = !slices.Contains(userTokens, t.text)
	}
	for _, t := range s.Turns {
		taken[t.After] = true
	}
	a.end = ids[endOfTurn]
	add := func(text string) int {
		id, ok := ids[text]
		if !ok {
			id = len(a.tokens)
			ids[text] = id
			a.tokens = append(a.tokens, token{text, typeNormal})
		}
		return id
	}

	follow := map[int]int{}
	for i, t := range s.Turns {
		pieces, ok := splitPieces(t.Text, userTokens, taken)
		if !ok {
			return nil, fmt.Errorf("%w: all of turn %d is said elsewhere (%.60q); change a word", ErrScript, i+1, t.Text)
		}
		turn := make([]int, len(pieces))
		last := ids[t.After]
		for j, p := range pieces {
			turn[j] = add(p)
			follow[last] = turn[j]
			last = turn[j]
		}
		follow[last] = a.end
		if t.Finish == FinishLength {
			follow[last] = turn[0]
		}
		a.turns = append(a.turns, turn)
	}
	for _, w := range s.Words {
		add(w)
	}
	lost := add(Lost)
	follow[lost] = a.end
	if len(a.tokens) > maxTokens {
		return nil, fmt.Errorf("%w: it needs %d tokens, and a file holds %d; shorten the texts", ErrScript, len(a.tokens), maxTokens)
	}
	a.next = make([]int, len(a.tokens))
	for id := range a.next {
		n, ok := follow[id]
		if !ok {
			n = lost
		}
		a.next[id] = n
	}
	return a, nil
}

// Size is the number of tokens of the vocabulary.
func (a *Automaton) Size() int { return len(a.tokens) }

// Pieces is the text of a turn, counted from zero, as the tokens that the
// model generates. The end-of-generation token is not among them.
func (a *Automaton) Pieces(turn int) []string {
	pieces := make([]string, len(a.turns[turn]))
	for i, id := range a.turns[turn] {
		pieces[i] = a.tokens[id].text
	}
	return pieces
}

// vocabulary is everything that a prompt is read as: the special tokens, the
// beginnings of the turns, the bytes and the result of the one merge.
//
// Ollama's engine looks for special tokens in the order of the vocabulary,
// llama.cpp for longer ones first. They stand here from long to short, and
// both servers read a prompt alike.
func vocabulary(s Script) []token {
	var tokens []token
	for _, c := range controlTokens {
		tokens = append(tokens, token{c, typeControl})
	}
	for _, u := range userTokens {
		tokens = append(tokens, token{u, typeUserDefined})
	}
	for _, t := range s.Turns {
		if !slices.ContainsFunc(tokens, func(k token) bool { return k.text == t.After }) {
			tokens = append(tokens, token{t.After, typeUserDefined})
		}
	}
	slices.SortStableFunc(tokens, func(x, y token) int { return cmp.Compare(len(y.text), len(x.text)) })
	for b := range 256 {
		text := string([]byte{byte(b)})
		if !slices.ContainsFunc(tokens, func(k token) bool { return k.text == text }) {
			tokens = append(tokens, token{text, typeNormal})
		}
	}
	return append(tokens, token{mergeLeft + mergeRight, typeNormal})
}

// The one merge of the tokenizer; llama.cpp refuses a file without any.
const mergeLeft, mergeRight = " ", " "

// Spell gives the text of a normal token in the alphabet of byte-level BPE,
// where each byte is a printable character (the table of GPT-2's encoder).
func Spell(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		r := rune(c)
		switch {
		case r <= 0x20:
			r += 0x100
		case r >= 0x7f && r <= 0xa0:
			r += 0xa2
		case r == 0xad:
			r = 0x143
		}
		b.WriteRune(r)
	}
	return b.String()
}
