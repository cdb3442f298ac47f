package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// raw are the formats whose prompts are rendered here.
func raw(t *testing.T) []*template.Format {
	t.Helper()
	var out []*template.Format
	for _, name := range template.Names() {
		if f := load(t, name); f.Opening == template.OpenOwn {
			out = append(out, f)
		}
	}
	if len(out) < 16 {
		t.Fatalf("only %d formats", len(out))
	}
	return out
}

// callOf is a call of the format, and the tool that it is of.
func callOf(f *template.Format) (template.Call, hand) {
	h := hand{"search", "query"}
	for _, tag := range f.Call.Tags {
		if tag.Text != "" {
			h = hand{tag.Tag, tag.Text}
			break
		}
	}
	return template.Call{Name: h.name, Arguments: json.RawMessage(`{"` + h.parameter + `": "größer"}`)}, h
}

// script is what a model writes in a run with a call, and in a next question.
// shown says that it spells the end of its answers.
func script(t *testing.T, f *template.Format, shown bool) []string {
	t.Helper()
	call, _ := callOf(f)
	inThink := f.Think.Opened
	var out []string
	for _, turn := range []template.Turn{
		{Think: "Look it up.", Calls: []template.Call{call}}, {Think: "Now – I know.", Answer: "Größe <7>.", Answered: true},
		{Think: "Again.", Answer: "Yes.", Answered: true},
	} {
		if f.Think.Open == "" {
			turn.Think = ""
		}
		turn.InThink = inThink && f.Think.Calls && len(turn.Calls) > 0
		text, err := f.Write(turn, inThink)
		if err != nil {
			t.Fatal(err)
		}
		next := template.Continuation{InThink: f.Parse(text, template.Reading{InThink: inThink}).InThink}
		if turn.Answered {
			next.Question = "x"
		}
		inThink = f.StartsInThink(next)
		switch end := endToken(f); {
		case shown && end != "":
			text += end
		case len(turn.Calls) > 0: // a halt cuts it, in the middle of a token
			text += "\nObservation: I make it up."
		}
		out = append(out, text)
	}
	return out
}

// Runs in every format, with two questions, that a halt, the model's own end, or
// a hidden one end: what counts is what the model streamed and the ledger keeps,
// to the byte and to the id, the ids are the text, and the text is the prompts.
func TestEveryFormat(t *testing.T) {
	for _, f := range raw(t) {
		for _, way := range []struct{ ids, shown bool }{{false, true}, {true, false}, {true, true}} {
			if way.ids && way.shown && !slices.Contains([]string{"qwen", "llama3", "mistral"}, f.Name) {
				continue // two ways tell it
			}
			t.Run(fmt.Sprintf("%s/ids=%t/shown=%t", f.Name, way.ids, way.shown), func(t *testing.T) { tryFormat(t, f, way.ids, way.shown) })
		}
	}
}

func tryFormat(t *testing.T, f *template.Format, ids, shown bool) {
	special := slices.Concat(f.Reserved.Strings, f.Preserve)
	m := &scribe{vocabulary: newVocabulary(special...), ids: ids, texts: script(t, f, shown)}
	_, h := callOf(f)
	r := &runner.Runner{Model: m.model(), Format: f, Tools: set(t, h), Context: 100_000}
	j := newJournal(t)
	events := slices.Concat(j.ask(r, "Wie groß?", false), j.ask(r, "Sure?", true))
	ledger := j.ledger.Text()
	runs := j.runs()

	texts, stops := kept(events)
	if len(texts) != 3 || len(stops) != 3 {
		t.Fatalf("%d turns: %q", len(texts), texts)
	}
	end := endToken(f)
	want, wantIDs, ended := "", []int{}, ledger
	at := 0
	for i, text := range texts {
		n := strings.Index(ledger[at:], text)
		at += n + len(text)
		want += text
		wantIDs = append(wantIDs, whole(m.wrote[i], len(text))...)
		streamed := ""
		for _, token := range m.wrote[i] {
			streamed += token.Piece
		}
		if end == "" || !strings.HasPrefix(streamed[len(text):], end) {
			continue
		}
		if i == len(texts)-1 {
			ended += end
		}
		if strings.HasPrefix(ended[at:], end) {
			want, wantIDs = want+end, append(wantIDs, m.Encode(end, true)...)
		}
	}
	text := one(t, runs, Options{To: Text})
	if text.loss() != want {
		t.Errorf("counts:\n%q\nwant\n%q", text.loss(), want)
	}
	if text.Text != ended {
		t.Errorf("text:\n%q\nwant\n%q", text.Text, ended)
	}
	if answers := f.Answer.Close != "" && f.Call.Kind == template.TagCalls; shown && end != "" && !answers && !strings.HasSuffix(want, end) {
		t.Errorf("%q has no end", want)
	}
	checkIDs(t, m, runs, ids, wantIDs, ended)
	if !ids && shown {
		golden(t, f.Name, text, one(t, runs, Options{To: Messages, Bare: true}))
	}
	for _, seg := range m.asked {
		prompt := ""
		for _, s := range seg.Prompt {
			prompt += s.Text
		}
		if !strings.HasPrefix(text.Text, prompt) {
			t.Errorf("the text does not begin with the prompt %q", prompt)
		}
	}
}

// checkIDs looks at the same runs as ids.
func checkIDs(t *testing.T, m *scribe, runs []trace.Run, sent bool, want []int, text string) {
	t.Helper()
	if !sent {
		if lines, counts := exported(t, runs, Options{To: IDs}); len(lines) > 0 || counts.NoIDs != 1 {
			t.Errorf("%d lines of ids, %+v", len(lines), counts)
		}
	}
	line := one(t, runs, Options{To: IDs, Tokenizer: m})
	if got := m.spelled(line.InputIDs); got != text {
		t.Errorf("the ids spell\n%q\nwant\n%q", got, text)
	}
	masked := one(t, runs, Options{To: IDs, Tokenizer: m, LossMask: true})
	for i, id := range line.Labels {
		if counts := id != ignored; counts != (masked.LossMask[i] == 1) || counts && id != line.InputIDs[i] {
			t.Fatalf("id %d is labelled %d, masked %d", i, id, masked.LossMask[i])
		}
	}
	if sent && !slices.Equal(line.counted(), want) {
		t.Errorf("the ids that count are\n%v %q\nwant\n%v %q", line.counted(), m.spelled(line.counted()), want, m.spelled(want))
	}
	if !sent { // tokens that reach over the end of what was generated do not count
		inside := one(t, runs, Options{To: Text}).loss()
		if got := m.spelled(line.counted()); len(got) > len(inside) || len(got) < len(inside)-2*2*4 || !utf8.ValidString(text) {
			t.Errorf("the ids that count spell\n%q\nof\n%q", got, inside)
		}
	}
}

// golden compares with testdata/NAME.golden: the text with what counts in ⟦⟧,
// and the messages.
func golden(t *testing.T, name string, text, messages decoded) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(text.marked() + "\n\n")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, m := range messages.Messages {
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, b.Bytes()) {
		t.Errorf("%s has\n%s\nnow it is\n%s", path, want, b.Bytes())
	}
}
