package endtoend

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A watcher sees each prompt of a conversation on its way to a model, and what
// the server says that it cost.
type watcher struct {
	models.Model
	speller  models.Speller
	spelling *models.Spelling // as speller tells it
	requests []watched
}

// A watched is one request: its prompt, and what came.
type watched struct {
	text  string
	ids   []int // nil where it was text
	wrote string
	gave  []int
	usage models.Usage
}

func (w *watcher) Spelling(ctx context.Context) (*models.Spelling, error) {
	s, err := w.speller.Spelling(ctx)
	w.spelling = s
	return s, err
}

func (w *watcher) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		var r watched
		whole := true
		for _, s := range req.Prompt {
			r.text += s.Text
			r.ids = append(r.ids, s.Tokens...)
			whole = whole && len(s.Tokens) > 0
		}
		if !whole {
			r.ids = nil
		}
		defer func() { w.requests = append(w.requests, r) }()
		for c, err := range w.Model.Stream(ctx, req) {
			r.wrote += c.Text
			r.gave = append(r.gave, c.Tokens...)
			if c.Usage != nil {
				r.usage = *c.Usage
			}
			if c.Final != nil {
				r.usage = c.Final.Usage
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// common is the length of the common beginning of two lists.
func common(a, b []int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// check compares each prompt with the one before it: it begins with it, byte
// for byte and id for id, goes on with what the model wrote as far as it was
// kept, and costs what was appended. ahead is how many tokens the server may
// have read on before it noticed that it was halted. It gives the number of
// comparisons.
func (w *watcher) check(t *testing.T, ahead int) int {
	t.Helper()
	for i, r := range w.requests[1:] {
		last := w.requests[i]
		rest, ok := strings.CutPrefix(r.text, last.text)
		if !ok {
			t.Errorf("prompt %d does not begin with the last one:\n%s", i+2, r.text)
			continue
		}
		kept := 0
		for kept < len(rest) && kept < len(last.wrote) && rest[kept] == last.wrote[kept] {
			kept++
		}
		if kept == 0 {
			t.Errorf("prompt %d does not go on with what was written, %q, but with %q", i+2, last.wrote, rest)
		}
		if w.spelling == nil || !w.spelling.IDs {
			continue
		}
		switch {
		case len(r.ids) == 0 || len(last.ids) == 0:
			t.Errorf("prompt %d was not sent as ids", i+2)
		case !slices.Equal(r.ids[:min(len(last.ids), len(r.ids))], last.ids):
			t.Errorf("the ids of prompt %d do not begin with the last ones", i+2)
		case !r.usage.Evaluated.Known || !last.usage.Generated.Known:
			t.Errorf("prompt %d: the server does not tell what it evaluated", i+2)
		default:
			// The last token that was drawn has never been read.
			read := min(common(r.ids[len(last.ids):], last.gave), last.usage.Generated.N-1)
			if appended := len(r.ids) - len(last.ids) - read; r.usage.Evaluated.N > appended || r.usage.Evaluated.N < appended-ahead || r.usage.Prompt.N != len(r.ids) {
				t.Errorf("prompt %d of %d tokens (%d as the server counts): %d evaluated, %d appended", i+2, len(r.ids), r.usage.Prompt.N, r.usage.Evaluated.N, appended)
			}
		}
	}
	return len(w.requests) - 1
}

// A talk is what a conversation is made of.
type talk struct {
	formats   []*template.Format // taken by turns
	tools     *tools.Set
	questions []string
}

// sampleTalk is about the sample documents.
func sampleTalk(t *testing.T) talk {
	t.Helper()
	w := talk{tools: sampleTools(t)}
	for _, name := range learned {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		w.formats = append(w.formats, f)
	}
	for _, q := range sample.Questions() {
		w.questions = append(w.questions, q.Question)
	}
	return w
}

// converse asks questions, one after the other in one conversation, until the
// model has had four turns.
func (k talk) converse(t *testing.T, m models.Model, number int) *watcher {
	t.Helper()
	w := &watcher{Model: m}
	if l, ok := m.(*lasting); ok {
		m = l.Model
	}
	w.speller = m.(models.Speller)
	format := k.formats[number%len(k.formats)]
	greedy := 0.0
	r := &runner.Runner{
		Model: w, Format: format, Tools: k.tools, Context: 4096,
		Session:  fmt.Sprintf("%s-%d", format.Name, number),
		Limits:   runner.Limits{Turns: 4, TurnTokens: 300},
		Sampling: models.Sampling{Temperature: &greedy},
	}
	task := runner.Task{}
	for turns := 0; turns < 4; number += 7 {
		task.Question = k.questions[number%len(k.questions)]
		for ev, err := range r.Run(t.Context(), task) {
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := ev.(runner.Ended); ok {
				turns += end.Turns
				task.Ledger = end.Ledger
			}
		}
	}
	return w
}

var conversations = flag.Int("conversations", 0, "conversations for TestPrefixOn…; 0 is 20 where make test asks, else 8, and 3 on Ollama")

// runs is how many conversations are looked at.
func runs() int {
	switch {
	case *conversations > 0:
		return *conversations
	case ollamatest.Required():
		return 20
	}
	return 8
}

// Each prompt begins with the last one and costs what was appended, on the
// model inside.
func TestPrefixOnBuiltin(t *testing.T) {
	m, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compared, k := 0, sampleTalk(t)
	for i := range runs() {
		compared += k.converse(t, m, i).check(t, 0)
	}
	t.Logf("%d prompts that go on with another, %d conversations", compared, runs())
}

// The same on Ollama, which takes text.
func TestPrefixOnOllama(t *testing.T) {
	s, n := ollamatest.Start(t), 3 // it may stop answering after many halted streams
	if *conversations > 0 {
		n = *conversations
	}
	m := &lasting{t: t, server: s, name: "prefix", file: builtinFile}
	m.open("prefix")
	compared, k := 0, sampleTalk(t)
	for i := range n {
		compared += k.converse(t, m, i).check(t, 0)
	}
	t.Logf("%d prompts that go on with another, %d conversations", compared, n)
}

// The same on llama-server, which takes ids. It reads on by a token before it
// notices that it was halted.
func TestPrefixOnLlamaServer(t *testing.T) {
	url := ollamatest.LlamaServer(t, builtinFile, "-c", "4096", "-np", "1")
	k := sampleTalk(t)
	if *record {
		tape := &tape{}
		url, k = tape.keep(t, url), tape.listen(t, k)
		defer tape.save(t)
	}
	m, err := models.Open("llamacpp:"+url, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range runs() {
		compared += k.converse(t, m, i).check(t, 1)
	}
	t.Logf("%d prompts that go on with another, %d conversations", compared, runs())
}

// The same on what llama-server answered when it was recorded, with the formats
// and the tools' results of that day.
func TestPrefixOnRecording(t *testing.T) {
	url, k, n := loadTape(t).play(t)
	m, err := models.Open("llamacpp:"+url, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range n {
		compared += k.converse(t, m, i).check(t, 1)
	}
	if compared < 3*n {
		t.Errorf("%d prompts that go on with another in %d conversations", compared, n)
	}
	t.Logf("%d prompts that go on with another, %d conversations", compared, n)
}
