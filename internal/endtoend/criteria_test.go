package endtoend

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

// eight are criteria of eight kinds that end a text, and a ninth that reports.
func eight(think template.Think) []stopping.Criterion {
	answer := stopping.Scope{Open: think.Open, Close: think.Close, Outside: true, StartsInside: think.Opened}
	return []stopping.Criterion{
		{Name: "literal", Literal: "\nObservation:", Strip: true},
		{Name: "call", Regex: `<tool_call>\s*(?<call>\{.*?\})\s*</tool_call>`, Captures: stopping.Nearest, Action: stopping.Call},
		{Name: "lookbehind", Regex: `(?<=\nVerdict: )(?:yes|no)[.!]`, Scope: answer, Action: stopping.Finish},
		{Name: "backreference", Regex: `(?<q>['"])The end(?<tail>.{0,20}?)\k<q>`, StripGroup: "tail"},
		{Name: "lookahead", Regex: `\bHalt\b(?=[^!?]*\bhere\b)[^!]*!`, Scope: answer},
		{Name: "repetition", Repetition: &stopping.Repetition{Min: 8, Max: 64, Count: 3}, Strip: true},
		{Name: "json", JSON: true, Scope: answer, Action: stopping.Finish},
		{Name: "sentences", Sentences: 32},
		{Name: "citation", Regex: `\((?<source>[\w-]+\.md)\)`, Action: stopping.Notify},
	}
}

// thought and reply come close to each criterion and complete none: the thought
// after the tag that the prompt has opened, the reply outside of it.
const (
	thought = `The question is about a harbour, so the tables come first (tide-tables.md).
The Observation: of one pilot stands inside a line, and
Observations: is a longer word. To call a tool I would write <tool_call> and then its JSON and then </tool_call>, as
<tool_call>
{"action": "search", "action_input": {"query": "a slip"}}
</tool call> with a slip in the last tag. Verdict: yes. But that is inside a line, and
Verdict:  no. has two spaces,
Verdict: no. is not outside. One says 'The end" and another one "The end of the long northern pier". Halt the boats here!
{"depth": [4, 7], "note": "not outside: }"} and over and over the bar (tide tables.md).
An object that begins here { ends too late.
</think>

`
	reply = `} The mole has no [1} and the pilots told me (the-pilots.md) to wait. Halt at once! Halting the boats here! Asphalt lies here! Halt, where? Not here!
港口的水深是七米🙂，涨潮时更深。真的吗？！! Tick and tock, tick and tock, tick and tack, 'The end", "The ending of every table in the harbour's office".
Verdict: yes, has a comma. My verdict: no. Some lines say it all (the-lantern.md), some (the lantern) say none`
)

// An ending is a text in which a criterion is the first to fire: the match
// follows the near misses and before, and kept of it stays.
type ending struct {
	criterion           string
	before, match, kept string
	thinking            bool // it stands in the thought
}

var endings = []ending{
	{criterion: "literal", before: ".", match: "\nObservation:"},
	{criterion: "call", match: "<tool_call>\n{\"action\": \"measure\", \"action_input\": {\"place\": \"pier\"}}\n</tool_call>",
		kept: "<tool_call>\n{\"action\": \"measure\", \"action_input\": {\"place\": \"pier\"}}\n</tool_call>", thinking: true},
	{criterion: "lookbehind", before: ".\nVerdict: ", match: "yes.", kept: "yes."},
	{criterion: "backreference", before: ", and it says ", match: `"The end, or nearly"`, kept: `"The end`},
	{criterion: "lookahead", before: ": ", match: "Halt the search right here, pilot!", kept: "Halt the search right here, pilot!"},
	{criterion: "repetition", before: ":\n", match: "over the bar and back, over the bar and back, over the bar and back, "},
	{criterion: "json", before: " as JSON:\n", match: `{"answer": {"depth": "7 m }"}, "tides": [1, 2]}`, kept: `{"answer": {"depth": "7 m }"}, "tides": [1, 2]}`},
	{criterion: "sentences", before: ". It rises! It falls. Does it turn? It does. It does not... At noon! At six. It is high. It is low", match: ". ", kept: ". "},
	{}, // the model ends it
}

// text is what the model writes when nobody stops it: behind the match come all
// others. Without a criterion it is what completes none.
func (e ending) text() string {
	if e.criterion == "" {
		return thought + reply
	}
	head, rest := e.head()
	for _, other := range endings {
		if other != e {
			rest += " Then (the-log.md) the rest" + other.before + other.match
		}
	}
	return head + e.match + rest + " And so on and so forth for ever."
}

// head is the text up to the match, rest what completes nothing.
func (e ending) head() (head, rest string) {
	if e.thinking {
		opened, closed, _ := strings.Cut(thought, "An object")
		return opened + e.before, "\nAn object" + closed + reply
	}
	return thought + reply + e.before, ""
}

func (e ending) String() string {
	if e.criterion == "" {
		return "none"
	}
	return e.criterion
}

// thinking is a format whose prompt opens the thinking part, as qwq, and
// leaves all criteria to the test.
func thinking(t testing.TB) *template.Format {
	t.Helper()
	f, err := template.Compile("thinking", []byte("extends: qwq\nstops: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// begins is the end of its prompts.
const begins = "<|im_start|>assistant\n<think>\n"

// A listener is a model of which only the first stream counts. It notes the
// texts that come.
type listener struct {
	models.Model
	began bool
	texts []string
}

var errSecond = errors.New("this model writes one turn")

func (l *listener) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		if l.began {
			yield(models.Chunk{}, errSecond)
			return
		}
		l.began = true
		for c, err := range l.Model.Stream(ctx, req) {
			if c.Text != "" {
				l.texts = append(l.texts, c.Text)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// A turn is what can be seen of the first turn of a run.
type turn struct {
	shown   string
	noticed []runner.Noticed
	stopped *runner.Stopped
	ledger  *runner.Ledger
}

// firstTurn runs the loop with the eight criteria.
func firstTurn(t testing.TB, m *listener) (got turn) {
	t.Helper()
	f := thinking(t)
	r := &runner.Runner{Model: m, Format: f, Criteria: eight(f.Think), Context: 8192}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	for ev, err := range r.Run(ctx, runner.Task{Question: "How deep is the harbour?"}) {
		if err != nil && !errors.Is(err, errSecond) {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case runner.Text:
			got.shown += ev.Text
		case runner.Noticed:
			if got.stopped != nil {
				t.Errorf("%+v comes after the stop", ev)
			}
			got.noticed = append(got.noticed, ev)
		case runner.Stopped:
			got.stopped = &ev
		case runner.Ended:
			got.ledger = ev.Outcome.Ledger
		}
	}
	if got.stopped == nil {
		t.Fatal("the turn did not end")
	}
	return got
}

// kept is what the ledger has of the first turn.
func (got turn) kept() string {
	kept := ""
	for _, s := range got.ledger.Segments() {
		switch {
		case s.Source == template.FromModel:
			kept += s.Text
		case kept != "":
			return kept
		}
	}
	return kept
}

// halts runs the loop on a model that writes the ending's text, and compares
// all that can be seen of the turn with the definition.
func (e ending) halts(t *testing.T, m models.Model, want verdict) {
	t.Helper()
	text, heard := e.text(), &listener{Model: m}
	got := firstTurn(t, heard)
	if got.shown != want.keep(text) {
		t.Errorf("shown\n%q\nwant\n%q", got.shown, want.keep(text))
	}
	if got.kept() != want.keep(text) {
		t.Errorf("the ledger has\n%q\nwant\n%q", got.kept(), want.keep(text))
	}
	var noticed []runner.Noticed
	for _, f := range want.reports {
		noticed = append(noticed, runner.Noticed{Turn: 1, Criterion: f.criterion, MatchStart: f.start, MatchEnd: f.end})
	}
	if !slices.Equal(got.noticed, noticed) || len(noticed) == 0 {
		t.Errorf("noticed %+v, want %+v", got.noticed, noticed)
	}
	heard.check(t, text, want.stop, got.stopped)
	// The same cuts again, for what a run does not show: groups and tallies.
	listen(t, heard.again(), eight(thinking(t).Think)).agrees(t, text, want)
}

// again yields what came.
func (l *listener) again() iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		for _, s := range l.texts {
			if !yield(models.Chunk{Text: s}, nil) {
				return
			}
		}
	}
}

// defined is what the definition says, which must be what the ending is made
// for.
func (e ending) defined(t *testing.T) verdict {
	t.Helper()
	v := define(t, eight(thinking(t).Think), e.text())
	if (v.stop == nil) != (e.criterion == "") {
		t.Fatalf("%s, in the text for %s", v, e)
	}
	if v.stop == nil {
		return v
	}
	head, _ := e.head()
	start, end, keep := len(head), len(head)+len(e.match), len(head)+len(e.kept)
	if s := v.stop; s.criterion != e.criterion || s.start != start || s.end != end || s.keep != keep {
		t.Fatalf("%s, in the text for %s at [%d,%d), keep %d", v, e, start, end, keep)
	}
	return v
}

// check compares the end of the stream with the definition: it is left at the
// first chunk that has the last byte of the match.
func (l *listener) check(t *testing.T, text string, want *firing, got *runner.Stopped) {
	t.Helper()
	chunks := l.texts
	received := strings.Join(chunks, "")
	if want == nil {
		if received != text || got.Criterion != "" || got.Finish != models.FinishStop || got.KeepEnd != len(text) {
			t.Errorf("stopped %+v after %q, want the model's own end", *got, received)
		}
		return
	}
	last := len(received) - len(chunks[len(chunks)-1])
	if !strings.HasPrefix(text, received) || last >= want.end || len(received) < want.end {
		t.Errorf("the stream was left after %q, whose last chunk begins at %d; the match ends at %d", received, last, want.end)
	}
	if got.Criterion != want.criterion || got.MatchStart != want.start || got.MatchEnd != want.end || got.KeepEnd != want.keep ||
		got.Discarded != len(received)-want.end || got.Pieces != len(chunks) {
		t.Errorf("stopped %+v after %d bytes in %d chunks, want %+v", *got, len(received), len(chunks), *want)
	}
}

// script is an ending as what a model file says.
func (e ending) script() []automaton.Turn { return []automaton.Turn{{After: begins, Text: e.text()}} }

// On a real Ollama each criterion halts the generation where the definition
// says, with all others beside it.
func TestCriteria(t *testing.T) {
	for _, e := range endings {
		t.Run(e.String(), func(t *testing.T) {
			m := model(t, ollamatest.Shared(t), "criteria-"+e.String(), e.script(), automaton.Options{})
			e.halts(t, m, e.defined(t))
		})
	}
}

// The same on llama-server, which tells the tokens.
func TestCriteriaOnLlamaServer(t *testing.T) {
	for _, e := range endings {
		t.Run(e.String(), func(t *testing.T) {
			e.halts(t, llama(t, modelFile(t, e.script(), automaton.Options{})), e.defined(t))
		})
	}
}

// llama starts a llama-server.
func llama(t *testing.T, gguf string) models.Model {
	t.Helper()
	m, err := models.Open("llamacpp:"+ollamatest.LlamaServer(t, gguf, "-c", "8192", "-np", "1"), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The same in process, cut in words, in bytes and not at all.
func TestCriteriaOnScript(t *testing.T) {
	for _, e := range endings {
		want := e.defined(t)
		for _, chunk := range []int{0, 1, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", e, chunk), func(t *testing.T) {
				e.halts(t, written(e.text(), chunk), want)
			})
		}
	}
}

// written is a model in process that writes a text in chunks of so many bytes.
func written(text string, chunk int) models.Model {
	s := models.Script{Turns: []models.ScriptTurn{{Text: text, Chunk: chunk}}}
	return s.Open(models.Options{})
}

// What fires when the one that is the first is not there: the text has a match
// for each.
func TestCriteriaOneByOne(t *testing.T) {
	e, criteria := endings[1], eight(thinking(t).Think)
	names := oneByOne(t, written(e.text(), 3), e.text(), criteria)
	if len(names) != len(criteria)-1 || names[0] != e.criterion {
		t.Errorf("%q fired", names)
	}
}
