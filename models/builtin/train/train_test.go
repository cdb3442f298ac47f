package train

import (
	"context"
	"encoding/json"
	"io/fs"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
	"stopgap/tools/corpus"
)

// An actor writes what a sample says the model writes: a request, a turn.
type actor struct {
	turns []string
	next  int
}

func (a *actor) Stream(context.Context, models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		if a.next == len(a.turns) {
			yield(models.Chunk{}, context.Canceled)
			return
		}
		text := a.turns[a.next]
		a.next++
		if yield(models.Chunk{Text: text}, nil) {
			yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop}}, nil)
		}
	}
}

// A prop is a tool that gives what a sample says it gives.
type prop struct {
	template.Tool
	results *[]string
}

func (p prop) Spec() tools.Spec {
	return tools.Spec{Name: p.Name, Description: p.Description, Parameters: p.Parameters}
}

func (p prop) Run(context.Context, json.RawMessage) (string, error) {
	r := (*p.results)[0]
	*p.results = (*p.results)[1:]
	return r, nil
}

// TestSamplesAreRuns plays samples through the real runner: its ledger is the
// sample, byte for byte, so what is learned is what is met.
func TestSamplesAreRuns(t *testing.T) {
	questions := 0
	for number := range uint64(160) {
		p := &play{writer: &writer{Rand: rand.New(rand.NewPCG(5, number))}}
		p.format, _ = load(Formats[number%4])
		p.finder = p.writer.finder()
		searches := p.format.Name == "search-r1"
		if searches {
			p.finder = finder{realTools[0], "query"}
		}
		list, exchanges := p.scene(1, searches)
		o := p.opening(list, exchanges[0].question)
		o.MaxCalls = 0 // a limit of the runner's too
		sample, err := p.write(o, exchanges, false)
		if err != nil {
			t.Fatal(err)
		}
		got, asked := perform(t, p, o, sample, exchanges)
		questions += asked
		end := endOf(p.format) // a server does not show it, or the format strips it
		if want := strings.TrimSuffix(sample.text(), end); strings.TrimSuffix(got, end) != want {
			t.Fatalf("sample %d, %s: the ledger is\n%q\nand the sample\n%q", number, p.format.Name, got, want)
		}
	}
	if questions < 160 {
		t.Errorf("only %d questions were played", questions)
	}
}

func (s Sample) text() string {
	var b strings.Builder
	for _, g := range s.Segments {
		b.WriteString(g.Text)
	}
	return b.String()
}

// perform runs the questions of a sample one after the other.
func perform(t *testing.T, p *play, o template.Opening, s Sample, exchanges []exchange) (ledger string, asked int) {
	t.Helper()
	var results []string
	for _, ex := range exchanges {
		for _, st := range ex.steps {
			results = append(results, st.response)
		}
	}
	var props []tools.Tool
	for _, tool := range o.Tools {
		props = append(props, prop{tool, &results})
	}
	set, err := tools.NewSet(props, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var turns []string
	for i, g := range s.Segments {
		if g.Learn && i > 0 && s.Segments[i-1].Learn {
			turns[len(turns)-1] += g.Text // the stop that ends the turn
		} else if g.Learn {
			turns = append(turns, g.Text)
		}
	}
	r := runner.Runner{Model: &actor{turns: turns}, Format: p.format, Tools: set}
	var out runner.Outcome
	for _, ex := range exchanges {
		task := runner.Task{Question: ex.question, System: o.System, Date: o.Date, Ledger: out.Ledger}
		for e, err := range r.Run(context.Background(), task) {
			if err != nil {
				t.Fatalf("%s: %v", ex.question, err)
			}
			if e, ok := e.(runner.Ended); ok {
				out = e.Outcome
			}
		}
		if strings.TrimSpace(out.Answer) != ex.answer {
			t.Fatalf("%q: the run's answer is %q, the sample's %q", ex.question, out.Answer, ex.answer)
		}
		asked++
	}
	return out.Ledger.Text(), asked
}

func TestDrawsAreStable(t *testing.T) {
	for number := range uint64(40) {
		d := Draw{Seed: 3, Number: number, Hard: 0.7}
		a, err := Write(d)
		b, err2 := Write(d)
		if err != nil || err2 != nil || a.text() != b.text() {
			t.Fatalf("sample %d: %v, %v, or two texts", number, err, err2)
		}
		d.Number += 4
		if c, _ := Write(d); c.text() == a.text() {
			t.Fatalf("samples %d and %d are the same", number, d.Number)
		}
	}
}

// TestExamIsHeldOut: no word of the exam's lists and no syllable of its names
// is one of the training's.
func TestExamIsHeldOut(t *testing.T) {
	for name, list := range map[string][]string{"nouns": nouns, "deeds": deeds, "acts": acts, "kinds": kinds, "events": events} {
		exam, training := half(list, true), half(list, false)
		if len(exam) < 5 {
			t.Errorf("%s: only %v", name, exam)
		}
		for _, w := range exam {
			if slices.Contains(training, w) {
				t.Errorf("%s: %q is in both halves", name, w)
			}
		}
	}
	seen := map[string]bool{}
	w := &writer{Rand: rand.New(rand.NewPCG(1, 1))}
	for range 20000 {
		seen[w.syllable(w.chance(0.3))] = true
	}
	w.exam = true
	for range 20000 {
		if s := w.syllable(w.chance(0.3)); seen[s] {
			t.Fatalf("the syllable %q is in both halves", s)
		}
	}
}

// TestExamCanBePassed: the real search finds the documents that answers cite
// when it is asked as the model should ask, and shows the line that holds the
// answer; and where nothing tells the answer, it stands in no document.
func TestExamCanBePassed(t *testing.T) {
	found, asked := 0, 0
	for number := range uint64(75) {
		kind := Kinds[number%3]
		q := Ask(1, number, kind)
		if q.Answer == Unknown {
			continue
		}
		answer, id, _ := strings.Cut(strings.TrimSuffix(q.Answer, "]"), " [")
		text, err := fs.ReadFile(q.Files, id)
		if err != nil || !strings.Contains(string(text), answer) {
			t.Fatalf("%q: %q is not told by %s: %s", q.Text, answer, id, text)
		}
		if kind != OneHop {
			continue
		}
		x, err := corpus.Open(context.Background(), corpus.Config{FS: q.Files, Path: "exam"})
		if err != nil {
			t.Fatal(err)
		}
		hits, err := x.Search(context.Background(), []string{q.Text}, corpus.DefaultHits)
		if err != nil {
			t.Fatal(err)
		}
		asked++
		for _, h := range hits[0].Hits {
			if h.ID == id && strings.Contains(h.Snippet, answer) {
				found++
				break
			}
		}
		x.Close()
	}
	if found < asked*97/100 || asked < 20 {
		t.Errorf("the search found the document of %d of %d questions", found, asked)
	}
}
