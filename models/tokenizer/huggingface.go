package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// FromJSON reads a tokenizer.json of Hugging Face's tokenizers. Where it is no
// byte-level BPE, or has a part that is not known here, Hugging Face's library
// reads it, if it is linked; else that is an *UnsupportedError. A broken file
// gives a *FormatError.
func FromJSON(data []byte) (*Tokenizer, error) {
	var f jsonFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, &FormatError{"not a tokenizer.json", err}
	}
	t, err := f.tokenizer()
	var unsupported *UnsupportedError
	if errors.As(err, &unsupported) {
		return fromLibrary(data, &f, unsupported)
	}
	return t, err
}

// A jsonFile is a tokenizer.json, as far as it is read here.
type jsonFile struct {
	Added         []jsonAdded `json:"added_tokens"`
	Normalizer    *jsonPart   `json:"normalizer"`
	PreTokenizer  *jsonPart   `json:"pre_tokenizer"`
	PostProcessor *jsonPart   `json:"post_processor"`
	Decoder       *jsonPart   `json:"decoder"`
	Model         jsonModel   `json:"model"`
}

type jsonAdded struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// A jsonPart is a step of one of the four chains around the model. A sequence
// has steps of its own.
type jsonPart struct {
	Type          string     `json:"type"`
	Normalizers   []jsonPart `json:"normalizers"`
	PreTokenizers []jsonPart `json:"pretokenizers"`
	Processors    []jsonPart `json:"processors"`
	Decoders      []jsonPart `json:"decoders"`

	Pattern          struct{ Regex *string } `json:"pattern"` // Split
	Behavior         string                  `json:"behavior"`
	Invert           bool                    `json:"invert"`
	IndividualDigits bool                    `json:"individual_digits"` // Digits
	AddPrefixSpace   bool                    `json:"add_prefix_space"`  // ByteLevel
	UseRegex         *bool                   `json:"use_regex"`         // absent means true
	Single           json.RawMessage         `json:"single"`            // TemplateProcessing, for one text
}

// steps gives a chain as a flat list.
func (p *jsonPart) steps() []jsonPart {
	if p == nil {
		return nil
	}
	if p.Type != "Sequence" {
		return []jsonPart{*p}
	}
	var flat []jsonPart
	for _, inner := range slices.Concat(p.Normalizers, p.PreTokenizers, p.Processors, p.Decoders) {
		flat = append(flat, inner.steps()...)
	}
	return flat
}

type jsonModel struct {
	Type         string          `json:"type"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       []jsonMerge     `json:"merges"`
	Dropout      float64         `json:"dropout"`
	UnknownToken string          `json:"unk_token"`
	FuseUnknown  bool            `json:"fuse_unk"`
	Prefix       string          `json:"continuing_subword_prefix"`
	Suffix       string          `json:"end_of_word_suffix"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
}

// A jsonMerge is a list of two tokens, or a text with a space between them.
type jsonMerge [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *jsonMerge) UnmarshalJSON(data []byte) error {
	var list []string
	if data[0] == '[' {
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	} else {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		list = strings.Split(text, " ")
	}
	if len(list) != 2 || list[0] == "" || list[1] == "" {
		return fmt.Errorf("the merge %s is no pair", data)
	}
	*m = jsonMerge(list)
	return nil
}

// tokenizer reads byte-level BPE.
func (f *jsonFile) tokenizer() (*Tokenizer, error) {
	v, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	if err := f.Model.byteLevel(); err != nil {
		return nil, err
	}
	compose, err := composes(f.Normalizer)
	if err != nil {
		return nil, err
	}
	if v.pre.steps, err = splits(f.PreTokenizer); err != nil {
		return nil, err
	}
	v.pre.ignoreMerges = f.Model.IgnoreMerges
	for _, m := range f.Model.Merges {
		v.merges = append(v.merges, m)
	}
	t, e, err := v.tokenizer()
	if err != nil {
		return nil, err
	}
	e.compose = compose
	return t, f.complete(t, e)
}

// byteLevel refuses models that are no plain BPE.
func (m *jsonModel) byteLevel() error {
	what := ""
	switch {
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil):
		what = fmt.Sprintf("a model of the type %q", m.Type)
	case m.ByteFallback:
		what = "BPE that falls back to bytes (SentencePiece)"
	case m.Prefix != "" || m.Suffix != "":
		what = "BPE with marks inside or at the end of words"
	case m.Dropout != 0:
		what = "BPE with dropout"
	default:
		return nil
	}
	return &UnsupportedError{What: what}
}

// composes reports whether the normalizer is NFC; none is fine.
func composes(normalizer *jsonPart) (bool, error) {
	steps := normalizer.steps()
	for _, s := range steps {
		if s.Type != "NFC" {
			return false, &UnsupportedError{What: fmt.Sprintf("the normalizer %q", s.Type)}
		}
	}
	return len(steps) > 0, nil
}

// splits gives the expressions of a pre-tokenizer, whose last step is
// ByteLevel.
func splits(preTokenizer *jsonPart) ([]string, error) {
	steps := preTokenizer.steps()
	if len(steps) == 0 || steps[len(steps)-1].Type != "ByteLevel" {
		return nil, &UnsupportedError{What: "a pre-tokenizer that is not byte-level at its end"}
	}
	var expressions []string
	for i, s := range steps {
		expression, ok := s.expression(i == len(steps)-1)
		if !ok {
			return nil, &UnsupportedError{What: fmt.Sprintf("the pre-tokenizer's step %d, %s,", i+1, s.Type)}
		}
		if expression != "" {
			expressions = append(expressions, expression)
		}
	}
	return expressions, nil
}

// expression gives what a step of a pre-tokenizer matches.
func (p *jsonPart) expression(last bool) (string, bool) {
	switch p.Type {
	case "Split":
		if p.Pattern.Regex != nil && p.Behavior == "Isolated" && !p.Invert {
			return known(*p.Pattern.Regex)
		}
	case "Digits":
		if p.IndividualDigits {
			return digit, true
		}
		return digits, true
	case "Punctuation":
		switch p.Behavior {
		case "Isolated", "":
			return punctuation, true
		case "Contiguous":
			return punctuation + "+", true
		}
	case "ByteLevel":
		if last && !p.AddPrefixSpace {
			if p.UseRegex == nil || *p.UseRegex {
				return gpt2, true
			}
			return "", true
		}
	}
	return "", false
}

// complete tells the encoder of the added tokens.
func (f *jsonFile) complete(t *Tokenizer, e *bpe) error {
	for _, a := range f.Added {
		switch {
		case a.Content == "":
		case a.SingleWord:
			return &UnsupportedError{What: fmt.Sprintf("the token %q, which is recognised as a word only,", a.Content)}
		case a.Normalized && e.compose:
			e.normalized = e.normalized.add(norm.NFC.String(a.Content), int32(a.ID), trim{a.LStrip, a.RStrip})
		default:
			e.special = e.special.add(a.Content, int32(a.ID), trim{a.LStrip, a.RStrip})
		}
	}
	unknown, ok := t.Lookup(f.Model.UnknownToken)
	if !ok {
		return nil
	}
	for b, id := range e.octets {
		if id < 0 && f.Model.FuseUnknown {
			return &UnsupportedError{What: "byte-level BPE without all bytes, and one token for any number of them,"}
		}
		if id < 0 {
			e.octets[b] = int32(unknown)
		}
	}
	return nil
}

// vocabulary reads the tokens of any kind of model, and of those added to it.
func (f *jsonFile) vocabulary() (*vocabulary, error) {
	ids, err := f.Model.ids()
	if err != nil {
		return nil, err
	}
	v := &vocabulary{bos: -1}
	limit := 2*(len(ids)+len(f.Added)) + 1<<10 // a vocabulary may have holes
	place := func(id int, token string, typ Type) error {
		switch {
		case id < 0 || id >= limit:
			return broken("token %q has the id %d, in a vocabulary of %d", token, id, len(ids))
		case id >= len(v.tokens):
			more := id + 1 - len(v.tokens)
			v.tokens, v.types = append(v.tokens, make([]string, more)...), append(v.types, make([]Type, more)...)
		case v.types[id] != 0 && v.tokens[id] != token:
			return broken("the tokens %q and %q have the same id, %d", v.tokens[id], token, id)
		}
		v.tokens[id], v.types[id] = token, typ
		return nil
	}
	for token, id := range ids {
		if err := place(id, token, Normal); err != nil {
			return nil, err
		}
	}
	for _, a := range f.Added {
		typ := UserDefined
		if a.Special {
			typ = Control
		}
		if a.Content == "" {
			continue
		}
		if err := place(a.ID, a.Content, typ); err != nil {
			return nil, err
		}
	}
	if len(v.tokens) == 0 {
		return nil, broken("there are no tokens")
	}
	f.begin(v)
	return v, nil
}

// ids reads the vocabulary of the model: a map, or for Unigram a list of tokens
// with their scores.
func (m *jsonModel) ids() (map[string]int, error) {
	var ids map[string]int
	if len(m.Vocab) == 0 || m.Vocab[0] != '[' {
		if err := json.Unmarshal(m.Vocab, &ids); err != nil {
			return nil, &FormatError{"not a tokenizer.json: its vocabulary", err}
		}
		return ids, nil
	}
	var list [][]any
	if err := json.Unmarshal(m.Vocab, &list); err != nil {
		return nil, &FormatError{"not a tokenizer.json: its vocabulary", err}
	}
	ids = make(map[string]int, len(list))
	for id, entry := range list {
		if len(entry) > 0 {
			if token, ok := entry[0].(string); ok {
				ids[token] = id
			}
		}
	}
	if len(ids) != len(list) {
		return nil, broken("its vocabulary has a token twice, or none in a place")
	}
	return ids, nil
}

// begin finds the token that the post-processor puts in front of a text.
func (f *jsonFile) begin(v *vocabulary) {
	for _, p := range f.PostProcessor.steps() {
		var template []struct{ SpecialToken struct{ ID string } }
		if p.Type != "TemplateProcessing" || json.Unmarshal(p.Single, &template) != nil || len(template) == 0 {
			continue
		}
		if id := slices.Index(v.tokens, template[0].SpecialToken.ID); id >= 0 && v.types[id] != 0 {
			v.bos, v.addBOS = id, true
		}
	}
}
