package trace

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// A talker is a model with a chat endpoint.
type talker struct {
	pen
	answers [][]models.ChatChunk
	chats   int
}

func (m *talker) Chat(_ context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		m.chats++
		if m.chats > len(m.answers) {
			yield(models.ChatChunk{}, &models.ServerError{Server: "talker", Status: 500})
			return
		}
		for _, c := range m.answers[m.chats-1] {
			if !yield(c, nil) {
				return
			}
		}
		yield(models.ChatChunk{Chunk: models.Chunk{Final: &models.Final{Finish: models.FinishStop}}}, nil)
	}
}

func says(text string) []models.ChatChunk {
	return []models.ChatChunk{{Chunk: models.Chunk{Text: text}}}
}

func asks(arguments ...string) []models.ChatChunk {
	out := []models.ChatChunk{{Thinking: "Hm."}}
	for _, a := range arguments {
		out = append(out, models.ChatChunk{Calls: []models.ToolCall{{ID: "call" + a, Name: "search", Arguments: json.RawMessage(a)}}})
	}
	return out
}

// A conversation with a chat endpoint, with calls that are no JSON, and a server
// that fails in its third question.
func TestReplayChat(t *testing.T) {
	m := &talker{answers: [][]models.ChatChunk{asks(`{ "q": "a" }`, `{"q`, ``), says("So."), asks(`{"q":"b"}`), says("Or so.")}}
	r := &runner.Runner{Model: m, Format: format(t, "chat"), Tools: set(t, tools.Options{}, echo("search"))}
	runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?", "And?", "Again?")
	replays(t, runs)
	for i := range runs {
		if found := NewDeck(runs).Verify(i); len(found) > 0 {
			t.Errorf("run %d: %v", i+1, found)
		}
	}
	if prompt, err := NewDeck(runs).Prompt(1); err != nil || !strings.Contains(prompt, `{"role":"user","content":"And?"}`) {
		t.Errorf("%s, %v", prompt, err)
	}
	if _, _, err := NewDeck(runs).Fork(t.Context(), 0, Fork{At: 1, Format: format(t, "qwen")}, Live{Tools: []tools.Tool{echo("search")}}); !errors.As(err, new(*ForkError)) {
		t.Errorf("a chat becomes a prompt: %v", err)
	}
}

// A stage renders openings and spells tokens.
type stage struct {
	pen
	spelling *models.Spelling
}

func (m *stage) Render(_ context.Context, c models.Conversation) (string, error) {
	return "<|im_start|>user\n" + questionOf(c) + "<|im_end|>\n<|im_start|>assistant\n", nil
}

func (m *stage) Spelling(context.Context) (*models.Spelling, error) { return m.spelling, nil }

// syllables spells a text eight bytes a token, and special tokens as one.
func syllables() *models.Spelling {
	special := []string{"<|im_start|>", "<|im_end|>"}
	return &models.Spelling{Special: special, Complete: true, IDs: true, Exact: true, Encode: func(_ context.Context, text string, as bool) ([]models.Token, error) {
		var out []models.Token
		for len(text) > 0 {
			n := min(8, len(text))
			if i := strings.IndexByte(text[1:], '<') + 1; i > 0 && i < n {
				n = i
			}
			id := int(crc32.ChecksumIEEE([]byte(text[:n])))
			for i, s := range special {
				if as && strings.HasPrefix(text, s) {
					n, id = len(s), 1+i
				}
			}
			out, text = append(out, models.Token{ID: id, Piece: text[:n]}), text[n:]
		}
		return out, nil
	}}
}

// Openings that the server renders, prompts of ids, and questions that continue
// each other: the ids of the whole conversation are the same.
func TestReplayConversation(t *testing.T) {
	for _, name := range []string{"qwen", "server"} {
		m := &stage{pen: pen{ids: true, texts: []string{calls("search", "a<|im_end|>"), "So.", "Or so.", calls("search", "b"), "Yes."}}, spelling: syllables()}
		r := &runner.Runner{Model: m, Format: format(t, name), Tools: set(t, tools.Options{}, echo("search")), Context: 100_000}
		runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?", "And <|im_end|>?", "Again?")
		replays(t, runs)
		deck := NewDeck(runs)
		for i := range runs {
			if ev, err := runs[i].Records[len(runs[i].Records)-1].RunnerEvent(); err != nil || ev.(runner.Ended).Termination != runner.TermAnswered {
				t.Errorf("%s, run %d: %+v, %v", name, i+1, ev, err)
			}
			if found := deck.Verify(i); len(found) > 0 {
				t.Errorf("%s, run %d: %v", name, i+1, found)
			}
			tape, err := newTape(&runs[i])
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tape.lastPrompt() {
				if len(p.Tokens) == 0 {
					t.Errorf("%s, run %d: %q has no ids", name, i+1, p.text())
				}
			}
		}
		if _, err := NewDeck(runs[1:]).Replay(t.Context(), 0); !errors.As(err, new(*ContinuesError)) {
			t.Errorf("%s: without the first run: %v", name, err)
		}
	}
}

// A run that is cut off at any of its records goes on to the same end, and no
// request that was whole is made again.
func TestResumeAnywhere(t *testing.T) {
	texts := []string{calls("search", "a", "b"), "<think>\nHm.\n</think>\n" + calls("change", "c"), "So."}
	model := func() *stage {
		return &stage{pen: pen{ids: true, texts: texts}, spelling: syllables()}
	}
	changes := 0
	list := []tools.Tool{echo("search"), hand{name: "change", effects: true, run: func(context.Context, json.RawMessage) (string, error) {
		changes++
		return "done", nil
	}}}
	dir := t.TempDir()
	first := filepath.Join(dir, "first.trace")
	w, err := Open(first)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{Model: model(), Format: format(t, "qwen"), Tools: set(t, tools.Options{}, list...)}
	for range w.Run(t.Context(), about(t, "qwen"), r, runner.Task{Question: "Where?"}) {
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(b)))
	for n := 1; n < len(lines); n++ {
		head := strings.Join(lines[:n], "")
		path := filepath.Join(dir, "cut.trace")
		if err := os.WriteFile(path, []byte(head+lines[n][:len(lines[n])/2]), 0o600); err != nil {
			t.Fatal(err)
		}
		changes = strings.Count(head, `"event":"result","turn":2,"call":0`)
		unknown := changes == 0 && strings.Contains(head, `"event":"running","turn":2`)
		w, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		w.file = unsynced{w.file.(*os.File)}
		runs, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := model()
		m.asked = strings.Count(head, `"event":"stream"`) // the pen goes on there
		for _, err := range NewDeck(runs).Resume(t.Context(), w, 0, Live{Model: m, Tools: list}) {
			if err != nil {
				t.Fatalf("cut after %d lines: %v", n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if runs, err = ReadFile(path); err != nil || len(runs) != 1 || !runs[0].Ended() {
			t.Fatalf("cut after %d lines: %+v, %v", n, runs, err)
		}
		if m.asked != len(texts) {
			t.Errorf("cut after %d lines: %d requests", n, m.asked)
		}
		want := 1
		if unknown {
			want = 0
		}
		if changes != want {
			t.Errorf("cut after %d lines: changed %d times, want %d", n, changes, want)
		}
		if got, as := kinds(&runs[0]), kinds(&whole[0]); !unknown && !slices.Equal(got, as) {
			t.Errorf("cut after %d lines:\n%v\nwant\n%v", n, got, as)
		}
		if found := NewDeck(runs).Verify(0); len(found) > 0 {
			t.Errorf("cut after %d lines: %v", n, found)
		}
		replays(t, runs)
	}
	if _, err := collect(NewDeck(whole).Resume(t.Context(), w, 0, Live{Model: model(), Tools: list})); !errors.Is(err, ErrEnded) {
		t.Errorf("a whole run: %v", err)
	}
}

func collect(events iter.Seq2[runner.Event, error]) (out []runner.Event, failed error) {
	for ev, err := range events {
		if err != nil {
			return out, err
		}
		out = append(out, ev)
	}
	return out, nil
}

// kinds are the events of a run.
func kinds(run *Run) (out []string) {
	for _, rec := range run.Records {
		if events[rec.Kind] != nil {
			out = append(out, rec.Kind)
		}
	}
	return out
}

// What cannot be gone on with is told before anything is asked or written.
func TestResumeRefuses(t *testing.T) {
	m := &pen{texts: []string{calls("search", "a"), "So."}}
	r := &runner.Runner{Model: m, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, echo("search"))}
	runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?")
	runs[0].Records = runs[0].Records[:len(runs[0].Records)-3]
	other := echo("search")
	other.effects = true
	changed := runs[0]
	changed.Records = slices.Clone(changed.Records)
	for i, rec := range changed.Records {
		if rec.Kind == "returned" {
			changed.Records[i].Event = json.RawMessage(strings.Replace(string(rec.Event), "It is", "It was", 1))
		}
	}
	for name, c := range map[string]struct {
		run  Run
		live Live
		as   any
	}{
		"no tool":         {runs[0], Live{Model: m}, new(*ToolError)},
		"another tool":    {runs[0], Live{Model: m, Tools: []tools.Tool{other}}, new(*ToolError)},
		"another history": {changed, Live{Model: m, Tools: []tools.Tool{echo("search")}}, new(*DivergedError)},
	} {
		d, asked := &disk{room: 1 << 20}, m.asked
		_, err := collect(NewDeck([]Run{c.run}).Resume(t.Context(), &Writer{file: d, now: time.Now}, 0, c.live))
		if !errors.As(err, c.as) || d.Len() > 0 || m.asked != asked {
			t.Errorf("%s: %v, %d bytes, %d requests", name, err, d.Len(), m.asked-asked)
		}
	}
}

// A fork plays turns, with their calls, and goes on with what is asked of it.
func TestFork(t *testing.T) {
	m := &pen{ids: true, texts: []string{"<think>\nHm.\n</think>\n\n" + calls("search", "a"), calls("search", "b", "c"), "So."}}
	var ran atomic.Int32
	tool := hand{name: "search", run: func(_ context.Context, args json.RawMessage) (string, error) {
		ran.Add(1)
		return "It is " + string(args), nil
	}}
	r := &runner.Runner{Model: m, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, tool)}
	runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?")
	edited := "Edited."
	for name, c := range map[string]struct {
		fork   Fork
		texts  []string
		played int // calls
		has    []string
		not    string
	}{
		"anew":             {Fork{}, []string{"Other."}, 0, []string{"Other."}, "Hm."},
		"after a turn":     {Fork{At: 1}, []string{calls("search", "d"), "Other."}, 1, []string{"Hm.", `It is {"q": "a"}`, `It is {"q": "d"}`, "Other."}, `"b"`},
		"another response": {Fork{At: 2, Response: &edited, Call: 2}, []string{"Other."}, 3, []string{`It is {"q": "b"}`, edited, "Other."}, `It is {"q": "c"}`},
		"another model":    {Fork{At: 2, Model: true}, []string{"Other."}, 3, []string{`It is {"q": "c"}`, "Other."}, ""},
		"another format":   {Fork{At: 2, Format: format(t, "qwen2.5")}, []string{"Other."}, 3, []string{"<tool_call>", `It is {"q": "c"}`, "Other."}, ""},
		"with a thought":   {Fork{At: 1, Format: format(t, "qwq")}, []string{"\n</think>\n\nOther."}, 1, []string{"Hm.\n</think>", `It is {"q": "a"}`, "Other."}, `"b"`},
		"one call a turn":  {Fork{At: 1, Format: format(t, "react")}, []string{" I know.\nFinal Answer: Other."}, 1, []string{"Action: search", "Observation", "Other."}, "<tool_call>"},
	} {
		t.Run(name, func(t *testing.T) {
			ran.Store(0)
			live := &pen{texts: c.texts}
			fr, task, err := NewDeck(runs).Fork(t.Context(), 0, c.fork, Live{Model: live, Tools: []tools.Tool{tool}})
			if err != nil {
				t.Fatal(err)
			}
			again := record(t, t.Context(), fr, func(runner.Event) {}, task.Question)
			ended, err := again[0].Records[len(again[0].Records)-1].RunnerEvent()
			if err != nil || ended.(runner.Ended).Termination != runner.TermAnswered || ended.(runner.Ended).Answer != "Other." {
				t.Fatalf("%+v, %v", ended, err)
			}
			prompt, err := NewDeck(again).Prompt(0)
			if err != nil {
				t.Fatal(err)
			}
			prompt += ended.(runner.Ended).Answer
			for _, want := range c.has {
				if !strings.Contains(prompt, want) {
					t.Errorf("%q is not in\n%s", want, prompt)
				}
			}
			if c.not != "" && strings.Contains(prompt, c.not) {
				t.Errorf("%q is in\n%s", c.not, prompt)
			}
			if live.asked != len(c.texts) || int(ran.Load()) != ended.(runner.Ended).Calls-c.played {
				t.Errorf("%d requests, %d calls", live.asked, ran.Load())
			}
			tape, err := newTape(&again[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range tape.lastPrompt() {
				if (c.fork.Model || c.fork.Format != nil) && len(p.Tokens) > 0 {
					t.Errorf("%q has ids of another model", p.text())
				}
			}
			replays(t, again)
		})
	}
	for name, f := range map[string]Fork{
		"too far":                  {At: 3},
		"a call that is not there": {At: 1, Response: &edited, Call: 2},
		"no turn to edit":          {Response: &edited, Call: 1},
		"two calls in one":         {At: 2, Format: format(t, "react")},
	} {
		if _, _, err := NewDeck(runs).Fork(t.Context(), 0, f, Live{Model: m, Tools: []tools.Tool{tool}}); !errors.As(err, new(*ForkError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where the journal cannot be written, the run goes on without it, but nothing
// with side effects is done of which nobody would know.
func TestUnwritable(t *testing.T) {
	changes := 0
	list := []tools.Tool{echo("search"), hand{name: "change", effects: true, run: func(context.Context, json.RawMessage) (string, error) { changes++; return "", nil }}}
	r := &runner.Runner{Model: &pen{texts: []string{calls("search", "a") + calls("change", "b"), "So."}}, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, list...)}
	w := &Writer{file: &disk{room: 100}, now: time.Now}
	all, err := collect(w.Run(t.Context(), about(t, "qwen"), r, runner.Task{Question: "Where?"}))
	if err != nil || w.Err() == nil || changes != 0 {
		t.Fatalf("%v, %v, changed %d times", err, w.Err(), changes)
	}
	last := all[len(all)-1].(runner.Ended)
	if text := last.Ledger.Text(); last.Answer != "So." || !strings.Contains(text, `It is {"q": "a"}.`) || !strings.Contains(text, "change was not run") {
		t.Errorf("%s", text)
	}
}

// Whatever is changed in a recorded run is found, with its place.
func TestDifferences(t *testing.T) {
	r := &runner.Runner{Model: &pen{texts: []string{calls("search", "a"), "So."}}, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, echo("search"))}
	runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?")
	for i, rec := range runs[0].Records {
		if !compares(rec.Kind) || rec.Kind == "stream" || rec.Kind == "waiting" {
			continue
		}
		for name, change := range map[string]string{"text": `"text":"`, "content": `"content":"`, "answer": `"answer":"`, "note": `"question":"`, "sha256": `"sha256":"`} {
			if !strings.Contains(string(rec.Event), change) {
				continue
			}
			changed := runs[0]
			changed.Records = slices.Clone(changed.Records)
			changed.Records[i].Event = json.RawMessage(strings.Replace(string(rec.Event), change, change+"x", 1))
			report, err := NewDeck([]Run{changed}).Replay(t.Context(), 0)
			if err != nil || !slices.ContainsFunc(report.Differences, func(d Difference) bool { return d.Seq == rec.Seq }) {
				t.Errorf("%s of record %d (%s): %+v, %v", name, rec.Seq, rec.Kind, report, err)
			}
		}
	}
	missing := runs[0]
	missing.Records = slices.Delete(slices.Clone(missing.Records), 5, 6)
	if report, err := NewDeck([]Run{missing}).Replay(t.Context(), 0); err != nil || len(report.Differences) == 0 {
		t.Errorf("a record left out: %+v, %v", report, err)
	}
}
