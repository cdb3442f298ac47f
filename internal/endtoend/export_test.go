package endtoend

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/export"
	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
	"stopgap/template"
)

// What Ollama streamed is what an export counts, and the ids that its vocabulary
// gives are as many as it read itself, prompt by prompt.
func TestExportOnOllama(t *testing.T) {
	s := ollamatest.Start(t)
	m := &lasting{t: t, server: s, name: "export", file: builtinFile}
	m.open("export")
	w := &watcher{Model: m, speller: m.Model.(models.Speller)}
	vocabulary, err := m.Model.(models.VocabularyTeller).Vocabulary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs, ledger := journalOf(t, w)

	var text struct {
		Text  string
		Spans [][2]int
	}
	exportLine(t, runs, export.Options{To: export.Text}, &text)
	if text.Text != ledger.Text() {
		t.Errorf("the text is\n%q\nthe ledger's is\n%q", text.Text, ledger.Text())
	}
	loss, runes := "", []rune(text.Text)
	for _, span := range text.Spans {
		loss += string(runes[span[0]:span[1]])
	}
	if want := w.kept(t, ledger); loss != want || want == "" {
		t.Errorf("what counts is\n%q\nstreamed was\n%q", loss, want)
	}

	var ids struct {
		InputIDs []int `json:"input_ids"`
		Labels   []int
	}
	exportLine(t, runs, export.Options{To: export.IDs, Tokenizer: vocabulary}, &ids)
	if got := spelled(vocabulary, ids.InputIDs); got != text.Text {
		t.Errorf("the ids spell\n%q\nthe text is\n%q", got, text.Text)
	}
	var counted []int
	for i, label := range ids.Labels {
		if label >= 0 {
			counted = append(counted, ids.InputIDs[i])
		}
	}
	if got := spelled(vocabulary, counted); got != loss {
		t.Errorf("the ids that count spell\n%q\nthe text that counts is\n%q", got, loss)
	}
	for i, r := range w.requests {
		if n := len(vocabulary.Encode(r.text, true)); !r.usage.Prompt.Known || n != r.usage.Prompt.N {
			t.Errorf("prompt %d has %d ids, Ollama counts %v", i+1, n, r.usage.Prompt)
		}
	}

	var talk struct{ Messages []export.Message }
	exportLine(t, runs, export.Options{To: export.Messages}, &talk)
	if n := len(talk.Messages); n < 6 || talk.Messages[0].Role != models.RoleUser || len(talk.Messages[1].Calls) == 0 || talk.Messages[2].Role != models.RoleTool {
		t.Errorf("messages: %+v", talk.Messages)
	}
}

// journalOf asks two questions in one conversation and gives its journal.
func journalOf(t *testing.T, m models.Model) ([]trace.Run, *runner.Ledger) {
	t.Helper()
	text, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "runs.trace")
	journal, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	format, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	greedy := 0.0
	r := &runner.Runner{
		Model: m, Format: format, Tools: sampleTools(t), Context: 4096,
		Limits:   runner.Limits{Turns: 4, TurnTokens: 300},
		Sampling: models.Sampling{Temperature: &greedy},
	}
	var ledger *runner.Ledger
	for _, q := range sample.Questions()[:2] {
		task := runner.Task{Question: q.Question, Date: "2026-01-02", Ledger: ledger}
		for ev, err := range journal.Run(t.Context(), trace.About{Version: "test", Model: "ollama:export", Format: "qwen", Text: text}, r, task) {
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := ev.(runner.Ended); ok {
				ledger = end.Ledger
			}
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return runs, ledger
}

// exportLine exports the one line that a conversation is.
func exportLine(t *testing.T, runs []trace.Run, o export.Options, into any) {
	t.Helper()
	e := &export.Exporter{Options: o}
	lines := 0
	err := e.Journal(t.Context(), "runs.trace", runs, func(line []byte) error {
		lines++
		return json.Unmarshal(line, into)
	})
	if err != nil || lines != 1 {
		t.Fatalf("%d lines as %s, %v, %+v", lines, o.To, err, e.Counts)
	}
}

// kept is what the model streamed, as far as it stands in the conversation.
func (w *watcher) kept(t *testing.T, ledger *runner.Ledger) string {
	t.Helper()
	var out strings.Builder
	for i, r := range w.requests {
		next := ledger.Text()
		if i+1 < len(w.requests) {
			next = w.requests[i+1].text
		}
		rest, ok := strings.CutPrefix(next, r.text)
		if !ok {
			t.Fatalf("what follows prompt %d does not begin with it", i+1)
		}
		n := 0
		for n < min(len(rest), len(r.wrote)) && rest[n] == r.wrote[n] {
			n++
		}
		out.WriteString(rest[:n])
	}
	return out.String()
}

func spelled(v *tokenizer.Tokenizer, ids []int) string {
	var out strings.Builder
	for _, id := range ids {
		out.Write(v.Bytes(id))
	}
	return out.String()
}
