package template

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Open renders the beginning of the prompt, up to and with the words that open
// the model's turn. The error is a *FormatError, or says which tool's
// parameters are not JSON.
func (f *Format) Open(o Opening) ([]Part, error) {
	r := newRenderer()
	data := openingData{
		System: o.System, Question: r.hide(o.Question, FromUser), Tools: slices.Clone(o.Tools),
		Date: o.Date, MaxCalls: o.MaxCalls, Values: o.Values,
		Texts: map[string]hidden{},
	}
	for name, text := range o.Texts {
		data.Texts[name] = r.hide(text, FromTool)
	}
	if data.System == "" {
		data.System = f.System
	}
	if data.MaxCalls == 0 {
		data.MaxCalls = f.MaxCalls
	}
	for i := range data.Tools {
		t := &data.Tools[i]
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
		}
		if _, err := pythonJSON(t.Parameters); err != nil {
			return nil, fmt.Errorf("parameters of tool %q: %w", t.Name, err)
		}
	}
	return r.render(f, "prompt", data)
}

// Continue renders what stands between two generations. The error is a
// *FormatError.
func (f *Format) Continue(c Continuation) ([]Part, error) {
	r := newRenderer()
	data := continuationData{
		Note: r.hide(c.Note, FromRunner), Question: r.hide(c.Question, FromUser),
		Open: c.Open, InThink: c.InThink,
	}
	for _, res := range c.Results {
		data.Results = append(data.Results, resultData{
			Name: r.hide(res.Name, FromTool), Content: r.hide(res.Content, FromTool), Error: res.Error, ID: res.ID,
		})
	}
	return r.render(f, "continue", data)
}

// StartsInThink reports whether the generation after c begins inside the
// thinking part. For the first generation it is f.Think.Opened.
func (f *Format) StartsInThink(c Continuation) bool {
	if f.Think.Continues && c.Note == "" && c.Question == "" {
		return c.InThink
	}
	return f.Think.Opened
}

// Force gives the note that asks for the final answer without more calls.
// reason is a clause in trusted words, such as "the limit of 5 calls is
// reached", or empty.
func (f *Format) Force(reason string) (string, error) {
	return f.words("force", wordsData{Reason: reason})
}

// Nudge gives the note for a turn that leads nowhere: NoCallNoAnswer,
// CallInThink, RepeatedCall, or what else was wrong with it.
func (f *Format) Nudge(kind ProblemKind) (string, error) {
	return f.words("nudge", wordsData{Kind: kind})
}

// Problem gives what the model is told in place of a tool's result about a
// call that is not as it should be. tools are the names of the tools that
// there are.
func (f *Format) Problem(p Problem, tools []string) (string, error) {
	return f.words("problem", wordsData{Kind: p.Kind, Message: p.Message, Tools: tools})
}

func (f *Format) words(block string, data wordsData) (string, error) {
	var b strings.Builder
	if err := f.blocks.ExecuteTemplate(&b, block, data); err != nil {
		return "", blockError(f.Name, err)
	}
	return strings.TrimSpace(b.String()), nil
}

// What blocks see. The fields are those of Opening, Continuation and Result.
type (
	openingData struct {
		System   string
		Question hidden
		Tools    []Tool
		Date     string
		MaxCalls int
		Values   map[string]string
		Texts    map[string]hidden
	}
	continuationData struct {
		Results       []resultData
		Note          hidden
		Question      hidden
		Open, InThink bool
	}
	resultData struct {
		Name, Content hidden
		Error         bool
		ID            string
	}
	wordsData struct {
		Reason  string
		Kind    ProblemKind
		Message string
		Tools   []string
	}
)

// A hidden stands for a string that must not pass through the template engine:
// a placeholder "KEY:index:operations;". The key is drawn for each rendering
// from 128 random bits, so nothing that was written before can contain it, and
// it is cut out again before anyone sees it. An empty string stays empty, so
// that blocks can test for it.
type hidden string

// then gives the placeholder with one more operation, done when it is replaced.
func (h hidden) then(op string) hidden {
	if h == "" {
		return h
	}
	return h[:len(h)-1] + hidden(op) + ";"
}

// The operations on hidden strings, and on others at once.
const (
	opJSON = "j"
	opTrim = "t"
)

type renderer struct {
	key    string
	hidden []Part
}

func newRenderer() *renderer { return &renderer{key: rand.Text()} }

func (r *renderer) hide(text string, from Source) hidden {
	if text == "" {
		return ""
	}
	r.hidden = append(r.hidden, Part{text, from})
	return hidden(fmt.Sprintf("%s:%d:;", r.key, len(r.hidden)-1))
}

func (r *renderer) render(f *Format, block string, data any) ([]Part, error) {
	var b strings.Builder
	if err := f.blocks.ExecuteTemplate(&b, block, data); err != nil {
		return nil, blockError(f.Name, err)
	}
	parts, ok := r.cut(b.String())
	if !ok {
		return nil, f.inBlock(block, "an untrusted string is cut or changed, it can only be printed whole")
	}
	return parts, nil
}

// cut divides the output at the placeholders and puts the strings back.
func (r *renderer) cut(out string) (parts []Part, ok bool) {
	for {
		before, rest, found := strings.Cut(out, r.key+":")
		parts = appendPart(parts, Part{before, FromTemplate})
		if !found {
			return parts, true
		}
		number, rest, ok1 := strings.Cut(rest, ":")
		ops, rest, ok2 := strings.Cut(rest, ";")
		i, err := strconv.Atoi(number)
		if !ok1 || !ok2 || err != nil || i < 0 || i >= len(r.hidden) {
			return nil, false
		}
		p := r.hidden[i]
		for _, op := range ops {
			switch string(op) {
			case opJSON:
				p.Text = pythonString(p.Text)
			case opTrim:
				p.Text = strings.TrimSpace(p.Text)
			default:
				return nil, false
			}
		}
		parts = appendPart(parts, p)
		out = rest
	}
}

func appendPart(parts []Part, p Part) []Part {
	if p.Text == "" {
		return parts
	}
	if n := len(parts); n > 0 && parts[n-1].Source == p.Source {
		parts[n-1].Text += p.Text
		return parts
	}
	return append(parts, p)
}
