package export

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A scribe is a model that writes what it is told to, token by token, and knows
// what it has written.
type scribe struct {
	*vocabulary
	texts  []string // one a request
	ids    bool     // it takes and gives ids
	cut    map[int]int
	finish models.Finish
	asked  []models.Request
	wrote  [][]models.Token // one a request, as far as it was read
}

// Stream implements models.Model.
func (m *scribe) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		n := len(m.asked)
		m.asked, m.wrote = append(m.asked, req), append(m.wrote, nil)
		if n >= len(m.texts) {
			yield(models.Chunk{}, errors.New("asked for more than there is"))
			return
		}
		for _, t := range m.tokens(m.texts[n], true) {
			if limit, ok := m.cut[n]; ok && len(m.wrote[n]) == limit {
				yield(models.Chunk{}, &models.CutError{Bytes: 1})
				return
			}
			c := models.Chunk{Text: t.Piece}
			if m.ids {
				c.Tokens = []int{t.ID}
			}
			m.wrote[n] = append(m.wrote[n], t)
			if !yield(c, nil) {
				return
			}
		}
		finish := m.finish
		if finish == "" {
			finish = models.FinishStop
		}
		yield(models.Chunk{Final: &models.Final{Finish: finish}}, nil)
	}
}

// A speller is a scribe whose prompts are ids.
type speller struct{ *scribe }

// Spelling implements models.Speller.
func (m speller) Spelling(context.Context) (*models.Spelling, error) {
	return &models.Spelling{Special: m.special, Complete: true, IDs: true, Exact: true, Encode: func(_ context.Context, text string, special bool) ([]models.Token, error) {
		return m.tokens(text, special), nil
	}}, nil
}

// model is the scribe with the abilities that it has.
func (m *scribe) model() models.Model {
	if m.ids {
		return speller{m}
	}
	return m
}

// A vocabulary cuts text into tokens of three bytes, and special ones.
type vocabulary struct {
	special []string
	pieces  []string
	known   map[string]int
}

func newVocabulary(special ...string) *vocabulary {
	return &vocabulary{special: special, known: map[string]int{}}
}

func (v *vocabulary) tokens(text string, special bool) []models.Token {
	var out []models.Token
	for len(text) > 0 {
		n := min(3, len(text))
		key := ""
		if i := strings.IndexAny(text[1:], "<[") + 1; i > 0 && i < n {
			n = i
		}
		for _, s := range v.special {
			if special && strings.HasPrefix(text, s) {
				n, key = len(s), "special "
			}
		}
		key += text[:n]
		id, ok := v.known[key]
		if !ok {
			id = len(v.pieces)
			v.known[key], v.pieces = id, append(v.pieces, text[:n])
		}
		out, text = append(out, models.Token{ID: id, Piece: text[:n]}), text[n:]
	}
	return out
}

// Encode implements Tokenizer.
func (v *vocabulary) Encode(text string, special bool) []int {
	var out []int
	for _, t := range v.tokens(text, special) {
		out = append(out, t.ID)
	}
	return out
}

// Bytes implements Tokenizer.
func (v *vocabulary) Bytes(id int) []byte { return []byte(v.pieces[id]) }

// A hand is a tool that answers with what it was asked.
type hand struct {
	name, parameter string
}

func (h hand) Spec() tools.Spec {
	return tools.Spec{Name: h.name, Description: "Looks <it> up.",
		Parameters: json.RawMessage(`{"type": "object", "properties": {"` + h.parameter + `": {"type": "string"}}, "required": ["` + h.parameter + `"]}`)}
}

func (h hand) Run(_ context.Context, args json.RawMessage) (string, error) {
	return "It says: größer than " + string(args) + " <|im_end|>", nil
}

func load(t testing.TB, name string) *template.Format {
	t.Helper()
	f, err := template.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func set(t testing.TB, list ...tools.Tool) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(list, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A journal is a file on its way.
type journal struct {
	*testing.T
	path   string
	w      *trace.Writer
	ledger *runner.Ledger // of the run before
	system string
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.trace")
	w, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return &journal{T: t, path: path, w: w, system: "Be brief."}
}

// ask makes a run, which continues the one before where it is told to.
func (j *journal) ask(r *runner.Runner, question string, more bool) []runner.Event {
	j.Helper()
	text, err := template.Shipped(r.Format.Name)
	if err != nil {
		j.Fatal(err)
	}
	if !more {
		j.ledger = nil
	}
	var out []runner.Event
	task := runner.Task{Question: question, System: j.system, Date: "2026-01-02", Ledger: j.ledger}
	for ev, err := range j.w.Run(j.Context(), trace.About{Version: "test", Model: "scribe", Format: r.Format.Name, Text: text}, r, task) {
		if err != nil {
			continue // Ended has told it
		}
		out = append(out, ev)
		if ended, ok := ev.(runner.Ended); ok {
			j.ledger = ended.Ledger
		}
	}
	return out
}

// runs are those of the journal, which ends here.
func (j *journal) runs() []trace.Run {
	j.Helper()
	if err := j.w.Close(); err != nil {
		j.Fatal(err)
	}
	runs, err := trace.ReadFile(j.path)
	if err != nil {
		j.Fatal(err)
	}
	return runs
}

// A decoded line is any of them.
type decoded struct {
	Text     string
	Spans    [][2]int
	InputIDs []int `json:"input_ids"`
	Labels   []int
	LossMask []int `json:"loss_mask"`
	Messages []Message
	Tools    []Tool
	Metadata *Metadata
}

// exported are the lines of runs, and what became of them.
func exported(t *testing.T, runs []trace.Run, opts Options) ([]decoded, Counts) {
	t.Helper()
	e := &Exporter{Options: opts}
	var out []decoded
	err := e.Journal(t.Context(), "runs.trace", runs, func(line []byte) error {
		var d decoded
		dec := json.NewDecoder(strings.NewReader(string(line)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&d); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, e.Counts
}

// one is the only line of runs.
func one(t *testing.T, runs []trace.Run, opts Options) decoded {
	t.Helper()
	lines, counts := exported(t, runs, opts)
	if len(lines) != 1 {
		t.Fatalf("%d lines, %+v", len(lines), counts)
	}
	return lines[0]
}

// loss joins what counts of a line.
func (d decoded) loss() string {
	var b strings.Builder
	chars := []rune(d.Text)
	for _, s := range d.Spans {
		b.WriteString(string(chars[s[0]:s[1]]))
	}
	return b.String()
}

// marked is the text with marks around what counts.
func (d decoded) marked() string {
	chars, at := []rune(d.Text), 0
	var b strings.Builder
	for _, s := range d.Spans {
		b.WriteString(string(chars[at:s[0]]) + "⟦" + string(chars[s[0]:s[1]]) + "⟧")
		at = s[1]
	}
	return b.String() + string(chars[at:])
}

// counted are the ids that count.
func (d decoded) counted() []int {
	var out []int
	for i, label := range d.Labels {
		if label != ignored {
			out = append(out, d.InputIDs[i])
		}
	}
	return out
}

// spelled is what ids spell.
func (v *vocabulary) spelled(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(v.Bytes(id))
	}
	return b.String()
}

// kept is what the ledger keeps of each turn, and how it ended.
func kept(events []runner.Event) (texts []string, stops []runner.Stopped) {
	text := ""
	for _, ev := range events {
		switch ev := ev.(type) {
		case runner.Text:
			text += ev.Text
		case runner.Stopped:
			texts, stops, text = append(texts, text), append(stops, ev), ""
		}
	}
	return texts, stops
}

// whole are the first tokens that lie within the first bytes of what was
// streamed.
func whole(tokens []models.Token, bytes int) []int {
	var out []int
	for _, t := range tokens {
		if bytes -= len(t.Piece); bytes < 0 {
			break
		}
		out = append(out, t.ID)
	}
	return out
}

// endToken is the format's own token at the end of a turn, "" for none.
func endToken(f *template.Format) string {
	for _, s := range f.Stops {
		if s.Means == template.MeansEnd && slices.Contains(f.Reserved.Strings, s.Literal) {
			return s.Literal
		}
	}
	return ""
}
