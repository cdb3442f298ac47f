package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// turnText is a turn of a model at its worst: calls that are good, bad and cut,
// tags and labels anywhere, text of any script, and all of it cut at random.
func turnText(rng *rand.Rand) string {
	pieces := []string{
		qwenCall, qwqCall, reactCall, qwenAnswer, qwqAnswer, reactDone, "\n", " ", "word ", "月は遠い。", "🌕", "é", "{", "}", "\"", "\\",
		"<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "</tool_response>", "<|im_end|>", "<|im_start|>", "<tool_",
		"\nAction:", " search", "\nAction Input:", " {\"query\": \"q\"}", "\nObservation:", "\nThought:", "\nFinal Answer:", "\nQuestion:",
		`<tool_call>{"name": "nothing", "arguments": {}}</tool_call>`, `<tool_call>{"name": "search"}</tool_call>`,
		`{"name": "search", "arguments": {"query": "` + strings.Repeat("x", 30) + `"}}`, "\xff", "\x00",
	}
	var b strings.Builder
	for range rng.IntN(9) {
		b.WriteString(pieces[rng.IntN(len(pieces))])
	}
	s := b.String()
	if rng.IntN(3) == 0 {
		s = s[:rng.IntN(len(s)+1)]
	}
	return s
}

// chunked cuts a text anywhere, also inside characters, with ids or without.
func chunked(rng *rand.Rand, s string) []models.Chunk {
	ids := rng.IntN(2) == 0
	var out []models.Chunk
	for s != "" {
		n := min(len(s), 1+rng.IntN(9))
		c := models.Chunk{Text: s[:n]}
		if ids && rng.IntN(9) > 0 {
			c.Tokens = []int{rng.IntN(1000)}
		}
		if rng.IntN(9) == 0 {
			out = append(out, models.Chunk{Tokens: c.Tokens})
		}
		out, s = append(out, c), s[n:]
	}
	switch rng.IntN(12) {
	case 0: // the stream is cut
	case 1:
		out = append(out, end(models.FinishContext))
	case 2, 3:
		out = append(out, end(models.FinishLength))
	default:
		out = append(out, end(models.FinishStop))
	}
	return out
}

// A randomModel is a model at its worst behind a server at its worst, which
// keeps to a schema only mostly.
type randomModel struct {
	rng     *rand.Rand
	opened  string   // how a call begins
	prompts []string // of the requests; those of a chat as one text
	chats   []models.ChatRequest
}

func (m *randomModel) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	if req.MaxTokens < 1 {
		panic("a request for nothing")
	}
	m.prompts = append(m.prompts, text(req.Prompt))
	return func(yield func(models.Chunk, error) bool) {
		for _, c := range chunked(m.rng, m.words(req.Schema)) {
			if !yield(c, nil) {
				return
			}
		}
		if m.rng.IntN(20) == 0 {
			yield(models.Chunk{}, &models.ServerError{Message: "no more"})
		}
	}
}

// words are what is written in a request.
func (m *randomModel) words(schema json.RawMessage) string {
	var under struct{ Enum []string }
	if len(schema) > 0 && json.Unmarshal(schema, &under) != nil {
		panic("the schema is no JSON")
	}
	switch n := m.rng.IntN(10); {
	case len(schema) == 0 && n < 4:
		return turnText(m.rng) + m.opened + turnText(m.rng)
	case len(schema) == 0 || n == 0:
		return turnText(m.rng)
	case under.Enum != nil:
		return fmt.Sprintf("%q", under.Enum[m.rng.IntN(len(under.Enum))]) + []string{"", " ", "\n\n"}[m.rng.IntN(3)]
	}
	return []string{`{"query": "q"}`, "{\"query\":\n\"</tool_call> 月\"}\n", "{}", "[1]", "null", ` {"query": 3}`}[m.rng.IntN(6)]
}

func (m *randomModel) Chat(_ context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	req.Messages = slices.Clone(req.Messages)
	var b strings.Builder
	for _, msg := range req.Messages {
		fmt.Fprintf(&b, "%q\n", msg)
	}
	m.prompts, m.chats = append(m.prompts, b.String()), append(m.chats, req)
	return func(yield func(models.ChatChunk, error) bool) {
		for _, c := range chunked(m.rng, turnText(m.rng)) {
			chunk := models.ChatChunk{Chunk: c}
			chunk.Tokens = nil
			switch m.rng.IntN(12) {
			case 0:
				chunk.Thinking = "Hm. "
			case 1:
				id := fmt.Sprint(len(m.chats), m.rng.IntN(3))
				arguments := []string{`{"query": "q"}`, "", "{", `"q"`, "{}"}[m.rng.IntN(5)]
				chunk.Calls = []models.ToolCall{{ID: id, Name: []string{"search", "nothing", ""}[m.rng.IntN(3)], Arguments: json.RawMessage(arguments)}}
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// answered checks that every call of a conversation has its answer, in order,
// before anything else is said.
func answered(t *testing.T, name string, messages []models.Message) {
	t.Helper()
	var open []models.ToolCall
	for i, msg := range messages {
		switch {
		case msg.Role == models.RoleTool:
			if len(open) == 0 || open[0].ID != msg.CallID || open[0].Name != msg.Name {
				t.Errorf("%s: message %d answers %q, open are %+v", name, i, msg.CallID, open)
				return
			}
			open = open[1:]
		case len(open) > 0:
			t.Errorf("%s: message %d comes before the answers to %+v", name, i, open)
			return
		}
		if msg.Role == models.RoleAssistant {
			open = msg.Calls
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: no answers to %+v", name, open)
	}
}

func TestRandomModels(t *testing.T) {
	for _, name := range []string{"qwen", "qwq", "react", "qwq-tools", "llama3", "mistral", "mistral-v13", "qwen-functions", "chat"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, one := format(t, name), searchSet(t)
			two, err := tools.NewSet([]tools.Tool{echo("search"), readTool{echo("read")}}, tools.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var ledger *runner.Ledger
			for seed := range uint64(400) {
				rng := rand.New(rand.NewPCG(seed, 7))
				m := &randomModel{rng: rng}
				r := randomRunner(rng, f, []*tools.Set{one, two}[rng.IntN(2)])
				if frame, ok := f.Frame(); ok {
					m.opened = "\n" + frame.Opened
				}
				r.Model = m
				task := runner.Task{Question: "q"}
				if rng.IntN(4) == 0 {
					task.Ledger = ledger
				}
				label := fmt.Sprint(name, " ", seed)
				ledger = randomRun(t, label, r, m, task)
				for i, c := range m.chats {
					answered(t, fmt.Sprint(label, " request ", i), c.Messages)
				}
				if t.Failed() {
					return
				}
				if ledger.Tokens() > 20000 {
					ledger = nil
				}
			}
		})
	}
}

// randomRunner draws the settings of a run.
func randomRunner(rng *rand.Rand, f *template.Format, set *tools.Set) *runner.Runner {
	r := &runner.Runner{Format: f, Tools: set, SingleCall: rng.IntN(3) == 0, Strict: rng.IntN(3) == 0, Constrain: rng.IntN(2) == 0}
	r.Limits = runner.Limits{Turns: 1 + rng.IntN(6), Problems: rng.IntN(4), TurnTokens: rng.IntN(60)}
	switch rng.IntN(6) {
	case 0:
		r.Choice.Mode = runner.Required
	case 1:
		r.Choice = runner.Choice{Mode: runner.Named, Tool: "search"}
	case 2:
		r.Choice.Mode = runner.None
	}
	if rng.IntN(3) == 0 {
		r.Limits.Tokens = 600 + rng.IntN(6000)
	}
	if rng.IntN(4) == 0 {
		c := stopping.Criterion{Name: "mine", Literal: "word", MinTokens: rng.IntN(3), Action: []stopping.Action{
			stopping.Halt, stopping.Call, stopping.Finish, stopping.Notify}[rng.IntN(4)]}
		c.Strip = c.Action != stopping.Notify && rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			c.Literal, c.Regex = "", `[a-z]{3}.*?[}"月]`
		}
		r.Criteria = []stopping.Criterion{c}
	}
	return r
}

func searchSet(t *testing.T) *tools.Set {
	t.Helper()
	set, err := tools.NewSet([]tools.Tool{echo("search")}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// randomRun makes a run and checks what is true of every run.
func randomRun(t *testing.T, name string, r *runner.Runner, m *randomModel, task runner.Task) *runner.Ledger {
	t.Helper()
	before := ""
	if task.Ledger != nil {
		before = task.Ledger.Text()
	}
	var events []runner.Event
	errs := 0
	for ev, err := range r.Run(t.Context(), task) {
		if err != nil {
			errs++
			if len(events) == 0 {
				t.Fatalf("%s: %v", name, err)
			}
			continue
		}
		if errs > 0 {
			t.Errorf("%s: an event after the error", name)
		}
		events = append(events, ev)
	}
	end, ok := events[len(events)-1].(runner.Ended)
	if !ok || len(of[runner.Ended](events)) != 1 || errs > 1 || (end.Error != "") != (errs == 1) {
		t.Errorf("%s: %d errors, %q, %s", name, errs, end.Error, kinds(events))
	}
	chat, most := r.Format.Opening == template.OpenChat, 2
	if r.Constrain {
		most += 3 * 16
	}
	if max := r.Limits.Turns + 1; end.Turns > max || len(m.prompts) != end.Requests || end.Requests > most*end.Turns+end.Resumed {
		t.Errorf("%s: %d turns, %d requests, said %d, at most %d", name, end.Turns, len(m.prompts), end.Requests, max)
	}
	for i, p := range m.prompts {
		if i > 0 && !strings.HasPrefix(p, m.prompts[i-1]) {
			t.Errorf("%s: prompt %d does not begin with the one before", name, i)
		}
		if !chat && !(strings.HasPrefix(p, before) && strings.HasPrefix(end.Ledger.Text(), p)) {
			t.Errorf("%s: prompt %d is not of the ledger", name, i)
		}
	}
	texts, kept := map[int]string{}, ""
	for _, ev := range of[runner.Text](events) {
		texts[ev.Turn] += ev.Text
		kept += ev.Text
	}
	for _, st := range of[runner.Stopped](events) {
		if !chat && len(texts[st.Turn]) != st.KeepEnd || st.Criterion != "" && !(st.KeepEnd <= st.MatchEnd && st.MatchStart <= st.MatchEnd) {
			t.Errorf("%s: %d bytes shown, stopped %+v", name, len(texts[st.Turn]), st)
		}
	}
	if !strings.HasSuffix(modelText(end.Ledger), kept) {
		t.Errorf("%s: shown %q, kept %q", name, kept, modelText(end.Ledger))
	}
	if len(of[runner.Called](events)) != end.Calls || (end.Termination == runner.TermAnswered) != (len(of[runner.Answered](events)) == 1 && !of[runner.Answered](events)[0].Forced) {
		t.Errorf("%s: %d calls, ended %s: %s", name, end.Calls, end.Termination, kinds(events))
	}
	if task.Ledger != nil && task.Ledger.Text() != before {
		t.Errorf("%s: the ledger that is continued has changed", name)
	}
	return end.Ledger
}

// modelText is what the model wrote, and what was put into its mouth.
func modelText(l *runner.Ledger) string {
	var b strings.Builder
	for _, s := range l.Segments() {
		if s.Turn > 0 {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// One Runner answers many questions at once.
func TestRunsAtOnce(t *testing.T) {
	r := newRunner(t, "qwen", concurrentModel{}, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Regex: `(?<tail> STOP)$`, StripGroup: "tail"}}
	_, first, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			task := runner.Task{Question: fmt.Sprint("question ", i)}
			if i%2 == 0 {
				task.Ledger = first.Ledger
			}
			_, out, err := collect(t.Context(), r, task)
			if err != nil || out.Termination != runner.TermAnswered || !strings.Contains(out.Ledger.Text(), task.Question+"<") {
				t.Errorf("run %d ended %s with %v", i, out.Termination, err)
			}
		})
	}
	wg.Wait()
}
