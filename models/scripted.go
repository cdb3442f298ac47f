package models

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	wordLimit = 32 // bytes of a word that still come as one chunk
	memory    = 64 // prompts that a scripted model remembers
)

// Open returns a model that follows the script. Its tokens are its own pieces:
// a word with the white space before it.
func (s *Script) Open(opts Options) Model {
	name := s.Name
	if name == "" {
		name = "script"
	}
	return &scripted{script: s, name: name, ref: "script:" + name, opts: opts.withDefaults()}
}

// openScript opens a script's file. Without a name of its own its file gives it
// one: results of two scripts are never taken for those of one model.
func openScript(path string, opts Options) (Model, error) {
	s, err := LoadScript(path)
	if err != nil {
		return nil, err
	}
	m := s.Open(opts).(*scripted)
	m.ref = "script:" + path
	if s.Name == "" {
		m.name = "script:" + filepath.Base(filepath.ToSlash(path))
	}
	return m, nil
}

// scripted is a Script as a model. What it remembers of earlier prompts plays
// the part of a server's cache.
type scripted struct {
	script    *Script
	name, ref string
	opts      Options

	mu     sync.Mutex
	served []servedPrompt // the most recent last
}

type servedPrompt struct {
	prompt string
	order  int // index of the ordered turn that comes after it
	turn   int // index into Turns
	cache  string
}

// Stream implements Model.
func (m *scripted) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	prompt, err := scriptPrompt(req.Prompt)
	if err == nil {
		err = checkSchema(req.Schema)
	}
	if err != nil {
		return fail(err)
	}
	return func(yield func(Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Chunk{}, err)
			return
		}
		pieces := len(words(prompt))
		if m.script.Context > 0 && pieces >= m.script.Context {
			yield(Chunk{}, &OverflowError{PromptTokens: Known(pieces), Context: Known(m.script.Context)})
			return
		}
		turn, reused, ok := m.next(prompt)
		if !ok {
			yield(Chunk{}, &ServerError{Server: "script", Message: "the script has no turn for this prompt"})
			return
		}
		// A turn that is cut short need not be a whole value.
		if whole := turn.Error == "" && (turn.Finish == "" || turn.Finish == FinishStop); whole && len(req.Schema) > 0 {
			if err := followsSchema(turn.Text, req.Schema); err != nil {
				yield(Chunk{}, err)
				return
			}
		}
		p := &performance{
			scripted: m, ctx: ctx, turn: turn, prompt: prompt, began: time.Now(),
			usage: Usage{Prompt: Known(pieces), Reused: Known(reused), Evaluated: Known(pieces - reused), Generated: Known(0)},
		}
		p.play(req, yield)
		m.remember(prompt, p.sent.String())
	}
}

// scriptPrompt joins the prompt. In process nothing needs to be UTF-8.
func scriptPrompt(prompt []Segment) (string, error) {
	var b strings.Builder
	for _, s := range prompt {
		b.WriteString(s.Text)
	}
	if b.Len() == 0 {
		return "", &PromptError{Reason: "it is empty"}
	}
	return b.String(), nil
}

// next chooses the turn for a prompt and counts the pieces that it shares with
// an earlier one.
func (m *scripted) next(prompt string) (turn ScriptTurn, reused int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var (
		order int // how many ordered turns have been served for this prompt
		again = -1
		long  = -1
		same  int // bytes in common with a cached prompt
	)
	for _, s := range m.served {
		same = max(same, commonPrefix(prompt, s.cache))
		switch {
		case s.prompt == prompt:
			again, long, order = s.turn, len(s.prompt), s.order
		case len(s.prompt) > long && strings.HasPrefix(prompt, s.prompt):
			again, long, order = -1, len(s.prompt), s.order
		}
	}
	chosen := again
	if chosen < 0 {
		chosen, order = m.choose(prompt, order)
	}
	if chosen < 0 {
		return ScriptTurn{}, 0, false
	}
	m.served = append(m.served, servedPrompt{prompt: prompt, order: order, turn: chosen, cache: prompt})
	if len(m.served) > memory {
		m.served = m.served[1:]
	}
	// The last piece of a prompt is always computed, as on a real server.
	reused = min(len(words(prompt[:same])), len(words(prompt))-1)
	return m.script.Turns[chosen], reused, true
}

// choose finds the turn for a new prompt: by its end, else the next in order.
func (m *scripted) choose(prompt string, order int) (chosen, after int) {
	chosen = -1
	for i, t := range m.script.Turns {
		if t.After == "" || !strings.HasSuffix(prompt, t.After) {
			continue
		}
		if chosen < 0 || len(t.After) > len(m.script.Turns[chosen].After) {
			chosen = i
		}
	}
	if chosen >= 0 {
		return chosen, order
	}
	n := 0
	for i, t := range m.script.Turns {
		if t.After != "" {
			continue
		}
		if n == order {
			return i, order + 1
		}
		n++
	}
	return -1, order
}

// remember puts what was generated into the cache of its prompt.
func (m *scripted) remember(prompt, generated string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(m.served) - 1; i >= 0; i-- {
		if m.served[i].prompt == prompt {
			m.served[i].cache = prompt + generated
			return
		}
	}
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// A performance is one stream of a scripted model.
type performance struct {
	*scripted
	ctx    context.Context // of this stream, which is one call
	turn   ScriptTurn
	prompt string
	usage  Usage
	began  time.Time
	first  time.Duration
	sent   strings.Builder
}

// play yields the turn, with the request's own limits applied as a server does.
func (p *performance) play(req Request, yield func(Chunk, error) bool) {
	text, stopped := cutAtStop(p.turn.Text, req.Stop)
	finish := p.turn.Finish
	if finish == "" || stopped {
		finish = FinishStop
	}
	for _, piece := range p.pieces(text) {
		n := p.usage.Generated.N
		switch {
		case req.MaxTokens > 0 && n >= req.MaxTokens:
			p.end(FinishLength, yield)
			return
		case p.script.Context > 0 && p.usage.Prompt.N+n >= p.script.Context:
			p.end(FinishContext, yield)
			return
		}
		if err := p.wait(time.Duration(p.turn.Delay)); err != nil {
			yield(Chunk{}, err)
			return
		}
		if n == 0 {
			p.first = time.Since(p.began)
		}
		p.sent.WriteString(piece)
		p.usage.Generated = Known(n + 1)
		usage := p.usage
		if !yield(Chunk{Text: piece, Usage: &usage}, nil) {
			return
		}
	}
	if stopped {
		p.end(finish, yield)
		return
	}
	p.fault(finish, yield)
}

// fault ends a turn that has no stop string: as the script says.
func (p *performance) fault(finish Finish, yield func(Chunk, error) bool) {
	switch p.turn.Error {
	case scriptCut:
		yield(Chunk{}, &CutError{Bytes: p.sent.Len(), Tokens: p.usage.Generated.N, Err: io.ErrUnexpectedEOF})
	case scriptServer:
		yield(Chunk{}, &ServerError{Server: "script", Message: "the script says so"})
	case scriptStall:
		yield(Chunk{}, p.stall())
	default:
		p.end(finish, yield)
	}
}

// stall waits as long as the limit on silence allows.
func (p *performance) stall() error {
	stall := &StallError{Phase: StallBetweenTokens, Limit: p.opts.BetweenTokens}
	if p.usage.Generated.N == 0 {
		stall = &StallError{Phase: StallFirstToken, Limit: p.opts.FirstToken}
	}
	if stall.Limit < 0 {
		<-p.ctx.Done()
		return p.ctx.Err()
	}
	if err := p.wait(stall.Limit); err != nil {
		return err
	}
	return stall
}

func (p *performance) end(f Finish, yield func(Chunk, error) bool) {
	if err := p.ctx.Err(); err != nil {
		yield(Chunk{}, err)
		return
	}
	total := time.Since(p.began)
	yield(Chunk{Final: &Final{Finish: f, Usage: p.usage, Timings: Timings{
		Generation: total - p.first, FirstToken: p.first, Total: total,
	}}}, nil)
}

// wait sleeps for d, and gives the context's error if that ends first.
func (p *performance) wait(d time.Duration) error {
	if d <= 0 {
		return p.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// pieces cuts the text as the turn says.
func (p *performance) pieces(text string) []string {
	if p.turn.Chunk == 0 {
		return words(text)
	}
	var out []string
	for len(text) > p.turn.Chunk {
		out = append(out, text[:p.turn.Chunk])
		text = text[p.turn.Chunk:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// cutAtStop cuts text at the first of the stop strings.
func cutAtStop(text string, stops []string) (string, bool) {
	end := -1
	for _, s := range stops {
		if i := strings.Index(text, s); s != "" && i >= 0 && (end < 0 || i < end) {
			end = i
		}
	}
	if end < 0 {
		return text, false
	}
	return text[:end], true
}

// words cuts a text into words, each with the white space before it; a long
// word is cut between characters. White space at the end is a word.
func words(s string) []string {
	var out []string
	for s != "" {
		end, inWord := 0, false
		for end < len(s) && end < wordLimit {
			r, size := utf8.DecodeRuneInString(s[end:])
			if unicode.IsSpace(r) && inWord {
				break
			}
			inWord = inWord || !unicode.IsSpace(r)
			end += size
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// Describe implements Describer.
func (m *scripted) Describe(context.Context) (Info, error) {
	info := Info{Ref: m.ref, Server: "script", Model: m.name, Slots: Known(memory)}
	if m.script.Context > 0 {
		info.Context = Known(m.script.Context)
	}
	return info, nil
}

// List implements Lister.
func (m *scripted) List(context.Context) ([]Listed, error) {
	return []Listed{{Name: m.name, Detail: fmt.Sprintf("%d turns", len(m.script.Turns))}}, nil
}
