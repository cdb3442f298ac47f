package endtoend

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/models"
	"stopgap/tools"
	"stopgap/tools/corpus"
)

// A lasting model is one of Ollama that is made anew when it stops answering.
// About once in 250 requests that a client ends, Ollama 0.17.4's runner of the
// model never begins the next one: its log tells of the request and nothing
// else. That is not what these tests are about. A model under another name has
// a runner of its own.
type lasting struct {
	models.Model
	t       testing.TB
	server  *ollamatest.Server
	name    string
	file    string
	renewed int
}

// mostRenewals is how often a model may stop answering.
const mostRenewals = 5

// model gives the script to Ollama as a model file and opens it.
func model(t testing.TB, s *ollamatest.Server, name string, turns []automaton.Turn, opts automaton.Options) *lasting {
	t.Helper()
	m := &lasting{t: t, server: s, name: name, file: modelFile(t, turns, opts)}
	m.open(name)
	return m
}

func (m *lasting) open(name string) {
	m.t.Helper()
	m.server.Create(m.t, name, m.file, nil)
	var err error
	m.Model, err = models.Open("ollama:"+name, models.Options{OllamaHost: m.server.URL, ContextSize: 8192, FirstToken: 30 * time.Second})
	if err != nil {
		m.t.Fatal(err)
	}
}

// another makes the file another one: Ollama has a process for each file, however
// many models there are of it, and that one hangs.
func (m *lasting) another() {
	m.t.Helper()
	content, err := os.ReadFile(m.file)
	if err != nil {
		m.t.Fatal(err)
	}
	m.file = filepath.Join(m.t.TempDir(), "model.gguf")
	if err := os.WriteFile(m.file, append(content, make([]byte, 32)...), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// Stream implements models.Model.
func (m *lasting) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		for m.stream(ctx, req, yield) {
			m.renewed++
			m.t.Logf("model %s stopped answering: made anew", m.name)
			m.another()
			m.open(fmt.Sprintf("%s-%d", m.name, m.renewed))
		}
	}
}

// stream passes one stream on. It reports whether the request has to be sent
// again: nothing came.
func (m *lasting) stream(ctx context.Context, req models.Request, yield func(models.Chunk, error) bool) (again bool) {
	for c, err := range m.Model.Stream(ctx, req) {
		var stall *models.StallError
		if errors.As(err, &stall) && stall.Phase == models.StallFirstToken && m.renewed < mostRenewals {
			return true
		}
		if !yield(c, err) {
			return false
		}
	}
	return false
}

// sampleTools search the sample documents.
func sampleTools(t testing.TB) *tools.Set {
	t.Helper()
	x, err := corpus.Open(context.Background(), corpus.Config{Path: "the sample documents", FS: sample.Documents()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	set, err := tools.NewSet(x.Tools(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A textual model takes prompts as text. An automaton reads the end of a result
// and the words of the format behind it as one token, which never forms where
// text from others is spelled out.
type textual struct{ models.Model }
