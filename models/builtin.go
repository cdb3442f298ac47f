package models

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"stopgap/models/builtin"
	"stopgap/models/tokenizer"
)

// A builtinModel is one that runs in this process.
type builtinModel struct {
	ref  string
	load func() (*builtin.Model, error)
	opts Options

	spelling learned[*Spelling]
}

const builtinKind = "builtin"

// openBuiltin opens the embedded model, which is loaded when it is first asked
// something, or a file, which is loaded here.
func openBuiltin(path string, opts Options) (Model, error) {
	if path == "" {
		return &builtinModel{ref: builtinKind, load: builtin.Embedded, opts: opts}, nil
	}
	m, err := builtin.Open(path)
	if err != nil {
		return nil, err
	}
	return &builtinModel{ref: builtinKind + ":" + path, load: func() (*builtin.Model, error) { return m, nil }, opts: opts}, nil
}

// Stream implements Model. Control tokens show only where Preserve lists them,
// as on llama-server. Sampling options that are nil are zero, which takes the
// likeliest token; with a temperature they are llama-server's.
func (m *builtinModel) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	if err := checkSchema(req.Schema); err != nil {
		return fail(err)
	}
	if len(req.Schema) > 0 {
		return fail(&UnsupportedError{Server: builtinKind, What: "a JSON schema"})
	}
	return func(yield func(Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Chunk{}, err)
			return
		}
		s := &builtinStream{req: req, began: time.Now(), yield: yield}
		if err := m.stream(ctx, s); err != nil {
			yield(Chunk{}, err)
		}
	}
}

func (m *builtinModel) stream(ctx context.Context, s *builtinStream) error {
	model, err := m.load()
	if err != nil {
		return err
	}
	s.tokenizer = model.Tokenizer()
	s.timings.Load = time.Since(s.began)
	prompt, err := builtinPrompt(s.req.Prompt, s.tokenizer)
	if err != nil {
		return err
	}
	for step, err := range model.Generate(ctx, builtin.Request{
		Prompt: prompt, MaxTokens: s.req.MaxTokens, Context: m.opts.ContextSize,
		Sampling: s.req.Sampling.builtin(), Session: s.req.Session,
	}) {
		if err != nil {
			return builtinError(err)
		}
		if !s.step(step) {
			return nil
		}
	}
	return nil
}

// builtinError gives the package's own error of one of the engine.
func builtinError(err error) error {
	var over *builtin.OverflowError
	switch {
	case errors.As(err, &over):
		return &OverflowError{PromptTokens: Known(over.Prompt), Context: Known(over.Context)}
	case errors.Is(err, builtin.ErrEmpty):
		return &PromptError{Reason: "it is empty"}
	}
	return err
}

// builtinPrompt gives the ids of a prompt. Neighbouring texts are joined, so that
// they are cut into tokens as they were when the last one was not there.
func builtinPrompt(prompt []Segment, t *tokenizer.Tokenizer) ([]int, error) {
	var ids []int
	var text strings.Builder
	flush := func() {
		ids = append(ids, t.Encode(text.String(), true)...)
		text.Reset()
	}
	for _, s := range prompt {
		if len(s.Tokens) == 0 {
			text.WriteString(s.Text)
			continue
		}
		flush()
		for _, id := range s.Tokens {
			if err := checkID(id, t.Len()); err != nil {
				return nil, err
			}
		}
		ids = append(ids, s.Tokens...)
	}
	flush()
	if bos, add := t.BOS(); add && len(ids) > 0 && ids[0] != bos {
		ids = append([]int{bos}, ids...)
	}
	if len(ids) == 0 {
		return nil, &PromptError{Reason: "it is empty"}
	}
	return ids, nil
}

// builtin gives the options as the engine takes them.
func (s Sampling) builtin() builtin.Sampling {
	out := builtin.Sampling{
		TopK: value(s.TopK, 40), TopP: value(s.TopP, 0.95), MinP: value(s.MinP, 0.05),
		Temperature: value(s.Temperature, 0), PresencePenalty: value(s.PresencePenalty, 0), RepeatPenalty: value(s.RepeatPenalty, 1),
		Seed: rand.Uint64(),
	}
	if s.Seed != nil && *s.Seed >= 0 { // -1 is any
		out.Seed = uint64(*s.Seed)
	}
	return out
}

func value[T any](p *T, or T) T {
	if p == nil {
		return or
	}
	return *p
}

// A builtinStream turns the steps of one generation into chunks.
type builtinStream struct {
	req       Request
	tokenizer *tokenizer.Tokenizer
	yield     func(Chunk, error) bool
	held      string // text that may be the beginning of a stop string
	began     time.Time
	timings   Timings
}

// step passes one step on and reports whether there is more to come.
func (s *builtinStream) step(step builtin.Step) bool {
	usage := Usage{
		Prompt: Known(step.Usage.Prompt), Evaluated: Known(step.Usage.Evaluated),
		Reused: Known(step.Usage.Reused), Generated: Known(step.Usage.Generated),
	}
	if step.Token < 0 {
		done := step.Usage.Reused + step.Usage.Evaluated
		return s.yield(Chunk{Progress: &Progress{Phase: Reading, Done: done, Total: step.Usage.Prompt}, Usage: &usage}, nil)
	}
	since := time.Since(s.began)
	if step.Usage.Generated == 1 {
		s.timings.FirstToken, s.timings.Prompt = since, since-s.timings.Load
	}
	s.timings.Total, s.timings.Generation = since, since-s.timings.FirstToken

	c := Chunk{Text: s.show(step.Token), Tokens: []int{step.Token}, Usage: &usage}
	stopped := false
	if len(s.req.Stop) > 0 {
		c.Tokens = nil // what is held back or cut off is not what the ids spell
		s.held += c.Text
		c.Text, stopped = s.release(step.End != 0)
	} else if step.End == builtin.Stop && c.Text == "" {
		c.Tokens = nil
	}
	if (c.Text != "" || c.Tokens != nil) && !s.yield(c, nil) {
		return false
	}
	finish := map[builtin.End]Finish{builtin.Stop: FinishStop, builtin.Length: FinishLength, builtin.Context: FinishContext}[step.End]
	if stopped {
		finish = FinishStop
	}
	if finish != "" {
		s.yield(Chunk{Final: &Final{Finish: finish, Usage: usage, Timings: s.timings}}, nil)
	}
	return finish == ""
}

// show is the text of a token, nothing for one that is hidden.
func (s *builtinStream) show(id int) string {
	text := string(s.tokenizer.Bytes(id))
	if s.tokenizer.Type(id) != tokenizer.Control && !s.tokenizer.EOG(id) {
		return text
	}
	for _, p := range s.req.Preserve {
		if p == text {
			return text
		}
	}
	return ""
}

// release gives the text that is no part of a stop string, and whether one is
// complete. At the end nothing is held back any more.
func (s *builtinStream) release(end bool) (text string, stopped bool) {
	if text, stopped = cutAtStop(s.held, s.req.Stop); stopped {
		return text, true
	}
	keep := 0
	for _, stop := range s.req.Stop {
		for n := min(len(stop)-1, len(s.held)); n > keep && !end; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				keep = n
			}
		}
	}
	text, s.held = s.held[:len(s.held)-keep], s.held[len(s.held)-keep:]
	return text, false
}

// Describe implements Describer.
func (m *builtinModel) Describe(context.Context) (Info, error) {
	model, err := m.load()
	if err != nil {
		return Info{}, err
	}
	about := model.About()
	limit := about.Context
	if m.opts.ContextSize > 0 {
		limit = min(limit, m.opts.ContextSize)
	}
	return Info{
		Ref: m.ref, Model: m.name(about), Server: builtinKind + " " + describe(about),
		Context: Known(limit), Trained: Known(about.Context),
	}, nil
}

// describe says what a model is in a few words: "qwen3 2.4M".
func describe(a builtin.About) string {
	return fmt.Sprintf("%s %.1fM", a.Architecture, millions(a))
}

func millions(a builtin.About) float64 { return float64(a.Parameters) / 1e6 }

func (m *builtinModel) name(about builtin.About) string {
	if path, ok := strings.CutPrefix(m.ref, builtinKind+":"); ok {
		return filepath.Base(path)
	}
	return about.Name
}

// List implements Lister.
func (m *builtinModel) List(context.Context) ([]Listed, error) {
	model, err := m.load()
	if err != nil {
		return nil, err
	}
	about := model.About()
	return []Listed{{Name: m.name(about), Size: about.Size, Detail: describe(about)}}, nil
}

// Tokenize implements Tokenizer.
func (m *builtinModel) Tokenize(_ context.Context, text string) ([]Token, error) {
	model, err := m.load()
	if err != nil {
		return nil, err
	}
	t := model.Tokenizer()
	tokens := []Token{}
	for _, id := range t.Encode(text, true) {
		tokens = append(tokens, Token{ID: id, Piece: string(t.Bytes(id))})
	}
	return tokens, nil
}

// Score implements Scorer. The values are those of 32-bit logits.
func (m *builtinModel) Score(ctx context.Context, prompt []Segment, text string) ([]Scored, error) {
	model, err := m.load()
	if err != nil {
		return nil, err
	}
	tokens, err := m.Tokenize(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, ctx.Err()
	}
	before, err := builtinPrompt(prompt, model.Tokenizer())
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(tokens))
	for i, t := range tokens {
		ids[i] = t.ID
	}
	logprobs, err := model.Score(ctx, before, ids)
	if err != nil {
		return nil, builtinError(err)
	}
	scored := make([]Scored, len(tokens))
	for i, t := range tokens {
		scored[i] = Scored{Token: t, LogProb: logprobs[i]}
	}
	return scored, nil
}

// findBuiltin is what discovery ends with.
func findBuiltin() Finding {
	model, err := builtin.Embedded()
	if err != nil {
		return Finding{Server: builtinKind, Err: err}
	}
	about := model.About()
	return Finding{
		Server: builtinKind, Ref: builtinKind,
		Why:    fmt.Sprintf("%.1fM parameters, a demonstration that only knows how to search", millions(about)),
		Models: []Listed{{Name: about.Name, Size: about.Size, Detail: describe(about)}},
	}
}
