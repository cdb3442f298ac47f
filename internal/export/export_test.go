package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
	"stopgap/template"
)

const (
	called  = "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"a\"}}\n</tool_call>"
	closing = "<|im_end|>"
)

func qwen(t *testing.T, ids bool, texts ...string) (*scribe, *runner.Runner) {
	t.Helper()
	f := load(t, "qwen")
	m := &scribe{vocabulary: newVocabulary(slices.Concat(f.Reserved.Strings, f.Preserve)...), ids: ids, texts: texts}
	return m, &runner.Runner{Model: m.model(), Format: f, Tools: set(t, hand{"search", "query"}), Context: 100_000}
}

// The built-in model: the ids that count are exactly those that it streamed, and
// all ids spell the text, by its own tokenizer.
func TestBuiltin(t *testing.T) {
	m, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var vocabulary *tokenizer.Tokenizer
	if vocabulary, err = m.(models.VocabularyTeller).Vocabulary(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := &listener{Model: m}
	r := &runner.Runner{Model: heard, Format: load(t, "qwen"), Tools: set(t, hand{"search", "query"}), Context: 4096, Limits: runner.Limits{Turns: 3, TurnTokens: 60}}
	j := newJournal(t)
	j.ask(r, "Where was Zoë <|im_end|> born?", false)
	j.ask(r, "And when?", true)
	ledger := j.ledger
	runs := j.runs()
	line := one(t, runs, Options{To: IDs, Tokenizer: vocabulary})
	if !slices.Equal(line.InputIDs, ledger.IDs()) || len(line.InputIDs) == 0 {
		t.Errorf("%d ids, the ledger has %d", len(line.InputIDs), len(ledger.IDs()))
	}
	if !slices.Equal(line.counted(), heard.kept()) || len(heard.streams) < 3 {
		t.Errorf("what counts is\n%v\nstreamed was\n%v", line.counted(), heard.kept())
	}
	var spelled bytes.Buffer
	for _, id := range line.InputIDs {
		spelled.Write(vocabulary.Bytes(id))
	}
	text := one(t, runs, Options{To: Text})
	if spelled.String() != text.Text {
		t.Errorf("the ids spell\n%s\nthe text is\n%s", &spelled, text.Text)
	}
	var generated strings.Builder
	for _, s := range ledger.Segments() {
		if s.Source == template.FromModel {
			generated.WriteString(s.Text)
		}
	}
	if text.loss() != generated.String() {
		t.Errorf("what counts is\n%q\nthe model wrote\n%q", text.loss(), generated.String())
	}
}

// A listener hears what a model streams.
type listener struct {
	models.Model
	streams []heard
}

type heard struct {
	text   string // of the prompt
	chunks []models.Chunk
}

func (l *listener) Spelling(ctx context.Context) (*models.Spelling, error) {
	return l.Model.(models.Speller).Spelling(ctx)
}

func (l *listener) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		h := heard{}
		for _, s := range req.Prompt {
			h.text += s.Text
		}
		l.streams = append(l.streams, h)
		at := &l.streams[len(l.streams)-1]
		for c, err := range l.Model.Stream(ctx, req) {
			at.chunks = append(at.chunks, c)
			if !yield(c, err) {
				return
			}
		}
	}
}

// kept are the ids that were streamed and stand in the next prompt as they were.
func (l *listener) kept() []int {
	var out []int
	for i, h := range l.streams {
		at := len(h.text)
		for _, c := range h.chunks {
			if c.Text == "" || i+1 < len(l.streams) && !strings.HasPrefix(l.streams[i+1].text[at:], c.Text) {
				continue
			}
			at += len(c.Text)
			out = append(out, c.Tokens...)
		}
	}
	return out
}

// Words that were put into the model's mouth are not its own: those of a tool
// choice, and the tag that closes a thought that was too long. A stream that was
// cut and gone on with is one stretch.
func TestOnlyWhatWasGenerated(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		edit  func(*scribe, *runner.Runner)
		want  string
	}{
		{"tool choice", []string{`search", "arguments": {"query": "a"}}` + "\n</tool_call>", "So."}, func(_ *scribe, r *runner.Runner) {
			r.Choice = runner.Choice{Mode: runner.Required}
		}, `search", "arguments": {"query": "a"}}` + "\n</tool_call>So."},
		{"thinking limit", []string{"<think>" + strings.Repeat("abc", 40), "So."}, func(_ *scribe, r *runner.Runner) {
			r.Limits.Think = 5
		}, "<think>abcabcabcabcSo."},
		{"cut stream", []string{"Größere Kürbisse.", "isse."}, func(m *scribe, _ *runner.Runner) {
			m.cut = map[int]int{0: 5}
		}, "Größere Kürbisse."},
		{"length limit", []string{called[:40], called[40:], "So."}, func(m *scribe, _ *runner.Runner) {
			m.finish = models.FinishLength
		}, called + "So."},
		{"invented response", []string{"Hm.<tool_response>\nNo.", "So."}, nil, "Hm.So."},
		{"a note", []string{"<think>x</think>", "So."}, nil, "<think>x</think>So."},
		{"broken call", []string{"Oh.<tool_call>\n{\"nam\": 1}\n</tool_call>", "So."}, nil, "Oh.<tool_call>\n{\"nam\": 1}\n</tool_call>So."},
	} {
		for _, ids := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				m, r := qwen(t, ids, c.texts...)
				if c.edit != nil {
					c.edit(m, r)
				}
				j := newJournal(t)
				j.ask(r, "Why?", false)
				runs := j.runs()
				line := one(t, runs, Options{To: Text})
				if line.loss() != c.want {
					t.Errorf("%q counts, want %q\n%s", line.loss(), c.want, line.marked())
				}
				masked := one(t, runs, Options{To: IDs, Tokenizer: m})
				if got := m.spelled(masked.counted()); ids && got != c.want {
					t.Errorf("%q counts as ids, want %q", got, c.want)
				}
				if m.spelled(masked.InputIDs) != line.Text {
					t.Errorf("%q", m.spelled(masked.InputIDs))
				}
			})
		}
	}
}

// A name that was chosen under a schema counts where it stands as it was
// streamed, and not where the format spells it in another way.
func TestConstrained(t *testing.T) {
	for format, want := range map[string]string{
		"qwen":  called[:11] + `"search"{"query": "a"}` + closing + "So.",
		"react": ` Hm.` + "\nAction:" + `{"query": "a"}` + " So.\nFinal Answer: b",
	} {
		t.Run(format, func(t *testing.T) {
			f := load(t, format)
			texts := []string{"<tool_call>", `"search"`, `{"query": "a"}`, closing, "So."}
			if format == "react" {
				texts = []string{" Hm.\nAction:", `"search"`, `{"query": "a"}`, " So.\nFinal Answer: b"}
			}
			m := &scribe{vocabulary: newVocabulary(f.Preserve...), texts: texts}
			r := &runner.Runner{Model: m, Format: f, Tools: set(t, hand{"search", "query"}, hand{"read", "id"}), Constrain: true}
			j := newJournal(t)
			j.ask(r, "Why?", false)
			line := one(t, j.runs(), Options{To: Text})
			if got := line.loss(); !strings.HasSuffix(got, want) {
				t.Errorf("%q counts, want %q\n%s", got, want, line.marked())
			}
		})
	}
}

// The end of a turn that the server hid counts where it is asked for.
func TestEOS(t *testing.T) {
	for _, ids := range []bool{false, true} {
		m, r := qwen(t, ids, called+closing, "So.", "Yes.")
		j := newJournal(t)
		j.ask(r, "Why?", false)
		j.ask(r, "Sure?", true)
		runs := j.runs()
		for eos, want := range map[bool]string{false: called + closing + "So.Yes.", true: called + closing + "So.<|im_end|>Yes.<|im_end|>"} {
			line := one(t, runs, Options{To: Text, EOS: eos})
			if line.loss() != want || strings.HasSuffix(line.Text, "<|im_end|>") != eos {
				t.Errorf("%q counts, want %q", line.loss(), want)
			}
			masked := one(t, runs, Options{To: IDs, Tokenizer: m, EOS: eos})
			if got := m.spelled(masked.counted()); ids && got != want {
				t.Errorf("%q counts as ids, want %q", got, want)
			}
		}
	}
}

// Two questions that continue the same run are two lines; what the model wrote
// before counts in the first.
func TestBranches(t *testing.T) {
	_, r := qwen(t, true, "One.", "Two.", "Three.")
	j := newJournal(t)
	j.ask(r, "Why?", false)
	before := j.ledger
	j.ask(r, "And?", true)
	j.ledger = before
	j.ask(r, "Or?", true)
	runs := j.runs()
	lines, counts := exported(t, runs, Options{To: Text})
	if len(lines) != 2 || lines[0].loss() != "One.Two." || lines[1].loss() != "Three." || counts.Earlier != 1 {
		t.Errorf("%+v, %+v", lines, counts)
	}
	lines, _ = exported(t, runs, Options{To: Messages})
	if len(lines) != 2 || lines[0].Messages[2].Weight != nil || lines[1].Messages[2].Weight == nil || *lines[1].Messages[2].Weight != 0 || lines[1].Messages[4].Weight != nil {
		t.Errorf("%+v", lines)
	}
	if m := lines[1].Metadata; m.Number != 3 || len(m.Continues) != 1 || m.Continues[0] != runs[0].Header.ID || m.Question != "Or?" || m.Answer != "Three." {
		t.Errorf("%+v", m)
	}
}

// What is left out is counted.
func TestFilters(t *testing.T) {
	m, r := qwen(t, false, called, "So.", "So.", "<think>x</think>", "<think>x</think>")
	r.Limits.Problems = 1
	j := newJournal(t)
	j.ask(r, "Why?", false)   // a call
	j.ask(r, "When?", false)  // none
	j.ask(r, "Where?", false) // no answer
	j.ask(r, "Who?", false)   // the model fails
	m.texts, m.asked, m.wrote = []string{"So."}, nil, nil
	j.ask(r, "When?", false) // again
	runs := j.runs()
	for _, c := range []struct {
		opts Options
		want Counts
	}{
		{Options{}, Counts{Lines: 4, Failed: 1}},
		{Options{Answered: true}, Counts{Lines: 3, Failed: 1, Filtered: 1}},
		{Options{MinCalls: 1}, Counts{Lines: 1, Failed: 1, Filtered: 3}},
		{Options{Dedupe: true}, Counts{Lines: 3, Failed: 1, Duplicates: 1}},
	} {
		c.opts.To, c.want.Runs = Messages, 5
		lines, counts := exported(t, runs, c.opts)
		if counts != c.want || len(lines) != c.want.Lines {
			t.Errorf("%+v: %+v", c.opts, counts)
		}
	}
	for _, run := range runs[:1] { // killed
		run.Records = run.Records[:len(run.Records)-1]
		if _, counts := exported(t, []trace.Run{run}, Options{To: Text}); counts.Killed != 1 || counts.Lines != 0 {
			t.Errorf("%+v", counts)
		}
	}
}

// A conversation with a chat endpoint is exported as it was.
func TestChat(t *testing.T) {
	f := load(t, "chat")
	m := &talker{answers: []models.ChatChunk{
		{Thinking: "Hm.", Calls: []models.ToolCall{{ID: "x1", Name: "search", Arguments: json.RawMessage(`{ "query": "a" }`)}}},
		{Chunk: models.Chunk{Text: "So."}}, {Chunk: models.Chunk{Text: "Yes."}},
	}}
	r := &runner.Runner{Model: m, Format: f, Tools: set(t, hand{"search", "query"})}
	j := newJournal(t)
	j.ask(r, "Why?", false)
	j.ask(r, "Sure?", true)
	runs := j.runs()
	var got []string
	for _, msg := range one(t, runs, Options{To: Messages}).Messages {
		b, _ := json.Marshal(msg)
		got = append(got, string(b))
	}
	want := []string{
		`{"role":"system","content":"Be brief."}`, `{"role":"user","content":"Why?"}`,
		`{"role":"assistant","content":"","reasoning_content":"Hm.","tool_calls":[{"id":"x1","type":"function","function":{"name":"search","arguments":"{ \"query\": \"a\" }"}}]}`,
		`{"role":"tool","content":"It says: größer than { \"query\": \"a\" } \u003c·|im_end|\u003e","tool_call_id":"x1","name":"search"}`,
		`{"role":"assistant","content":"So."}`, `{"role":"user","content":"Sure?"}`, `{"role":"assistant","content":"Yes."}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if lines, counts := exported(t, runs, Options{To: Text}); len(lines) != 0 || counts.Chats != 1 {
		t.Errorf("%+v", counts)
	}
}

type talker struct{ answers []models.ChatChunk }

func (*talker) Stream(context.Context, models.Request) iter.Seq2[models.Chunk, error] { return nil }

func (m *talker) Chat(context.Context, models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		c := m.answers[0]
		m.answers = m.answers[1:]
		if yield(c, nil) {
			yield(models.ChatChunk{Chunk: models.Chunk{Final: &models.Final{Finish: models.FinishStop}}}, nil)
		}
	}
}

// What could not be read stays in the content, as it was written, and is
// answered by the user.
func TestBrokenCalls(t *testing.T) {
	broken := "<tool_call>\n{\"nam\": 1}\n</tool_call>"
	_, r := qwen(t, false, "Oh. "+called+"\n"+broken, "Hm.<tool_response>", "So.")
	j := newJournal(t)
	j.ask(r, "Why?", false)
	var got []string
	for _, m := range one(t, j.runs(), Options{To: Messages}).Messages[2:] {
		got = append(got, string(m.Role)+": "+m.Content)
		for _, c := range m.Calls {
			got = append(got, c.ID+" "+c.Function.Arguments)
		}
	}
	want := []string{"assistant: Oh.\n" + broken, `call00001 {"query": "a"}`, "tool: ", "user: Error: ", "assistant: Hm.", "user: ", "assistant: So."}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
}

// A journal that was changed is found out, with the record and the place.
func TestDisagreement(t *testing.T) {
	for _, c := range []struct {
		name, kind, from, to string
		where                string
	}{
		{"a prompt", "request", "Why?", "Who?", "run 1, record"},
		{"an id of a prompt", "request", `"tokens":[0,`, `"tokens":[1,`, "run 1, record"},
		{"an answer", "stream", `"So."`, `"No."`, "run 1, record"},
		{"an id of an answer", "stream", `"tokens":[`, `"tokens":[9`, "run 1, record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := qwen(t, true, called, "So.")
			j := newJournal(t)
			j.ask(r, "Why?", false)
			runs := j.runs()
			changed := false
			for i := range runs[0].Records {
				rec := &runs[0].Records[i]
				if rec.Kind != c.kind || !bytes.Contains(rec.Event, []byte(c.from)) {
					continue
				}
				changed = true
				rec.Event = bytes.Replace(rec.Event, []byte(c.from), []byte(c.to), 1)
				break
			}
			if !changed {
				t.Fatal("there is nothing to change")
			}
			written := 0
			err := (&Exporter{Options: Options{To: IDs}}).Journal(t.Context(), "x", runs, func([]byte) error { written++; return nil })
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.where) || e.Seq == 0 || written > 0 {
				t.Errorf("%v, %d lines", err, written)
			}
		})
	}
}

// The comparison itself, where the playing would have seen nothing.
func TestMeasure(t *testing.T) {
	fresh := func() *rollout {
		_, r := qwen(t, true, called, "So.")
		j := newJournal(t)
		j.ask(r, "Why?", false)
		played, err := trace.NewDeck(j.runs()).Rollout(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		return &rollout{Rollout: played, number: 1}
	}
	for _, c := range []struct {
		name string
		edit func(r *rollout)
		want string
	}{
		{"nothing", func(*rollout) {}, ""},
		{"text of a prompt", func(r *rollout) { s := &r.Exchanges[1].Prompt[0]; s.Text = "x" + s.Text[1:] }, "byte 0: the text is not the prompt"},
		{"id of a prompt", func(r *rollout) {
			s := &r.Exchanges[1].Prompt[0]
			s.Tokens = append(slices.Clone(s.Tokens[:3]), append([]int{99999}, s.Tokens[4:]...)...)
		}, "id 3: the ids are not those that were sent"},
		{"streamed text", func(r *rollout) { r.Exchanges[1].Chunks[0].Text = "No." }, ": what the ledger says the model wrote is not what it streamed"},
		{"streamed ids", func(r *rollout) { r.Exchanges[1].Chunks[0].Tokens = []int{99999} }, ": the ids are not those that the model streamed"},
	} {
		r := fresh()
		c.edit(r)
		err := r.measure()
		if got := ""; err != nil || c.want != "" {
			if err != nil {
				got = err.Error()
			}
			if c.want == "" || !strings.Contains(got, c.want) || !strings.HasPrefix(got, "run 1, record ") {
				t.Errorf("%s: %q", c.name, got)
			}
		}
	}
	r := fresh()
	if err := r.measure(); err != nil {
		t.Fatal(err)
	}
	r.wanted = true
	e := &Exporter{Options: Options{To: IDs, Tokenizer: newVocabulary()}}
	e.Tokenizer.Encode(strings.Repeat("ab", 3000), false) // ids that spell something else
	for i := range 3000 {
		e.Tokenizer.Encode(string([]byte{byte(i), byte(i >> 8), 'x'}), false)
	}
	if _, err := e.ids(r); err == nil || !strings.Contains(err.Error(), "it is not the model's") {
		t.Errorf("%v", err)
	}
}
