package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

// counted is an end with what the server has counted and timed.
func counted(prompt, generated int, timings models.Timings) models.Chunk {
	return models.Chunk{Final: &models.Final{Finish: models.FinishStop, Timings: timings, Usage: models.Usage{
		Prompt: models.Known(prompt), Evaluated: models.Known(prompt), Reused: models.Known(0), Generated: models.Known(generated),
	}}}
}

// TestSumsOfATurn: requests, usage, pieces and discarded bytes of a turn are
// those of all its requests, and the run's those of its turns.
func TestSumsOfATurn(t *testing.T) {
	timings := models.Timings{Generation: time.Second}
	m := &rawModel{turns: [][]models.Chunk{
		{{Text: `"read"`}, counted(10, 3, models.Timings{})},
		{{Text: `{"id":`}, {Text: ` "7"}`}, counted(20, 4, models.Timings{})},
		{{Text: "\n"}, counted(30, 1, timings)},
		{{Text: "It"}, {Text: " is 7."}, counted(40, 2, timings)},
	}}
	r := constrained(t, "qwen", m)
	r.Choice.Mode, r.Session, r.Limits.TurnTokens = runner.Required, "talk", 50
	events, out, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	first := of[runner.Stopped](events)[0]
	if first.Requests != 3 || first.Pieces != 4 || first.Usage.Prompt != models.Known(60) || first.Usage.Generated != models.Known(8) || first.Timings != timings {
		t.Errorf("first turn %+v", first)
	}
	if out.Requests != 4 || out.Pieces != 6 || out.Usage.Prompt != models.Known(100) || out.Usage.Generated != models.Known(10) {
		t.Errorf("run %+v", out)
	}
	var tokens []int
	for _, req := range m.requests {
		tokens = append(tokens, req.MaxTokens)
		if req.Session != "talk" {
			t.Errorf("session %q", req.Session)
		}
	}
	if want := []int{50, 47, 43, 50}; !slices.Equal(tokens, want) {
		t.Errorf("tokens %v, want %v: what the server counts is more than the chunks", tokens, want)
	}

	discards := &rawModel{turns: [][]models.Chunk{
		said("<tool_call>\n{", models.FinishStop), said(`{"query": "a"}`, models.FinishStop),
		said("\n<tool_call>\n", models.FinishStop), said(`{"query": "b"}`, models.FinishStop), said("", models.FinishStop),
		said("<tool_call>123", models.FinishStop), said(`{"query": "c"}`, models.FinishStop), said("", models.FinishStop), said("It is 7.", models.FinishStop),
	}}
	r = newRunner(t, "qwen", discards, echo("search"))
	r.Constrain = true
	events, out, err = trial(t, r, runner.Task{})
	if first := of[runner.Stopped](events)[0]; err != nil || first.Discarded != 3 || out.Discarded != 6 || out.Calls != 3 {
		t.Errorf("%v; %d bytes discarded in the first turn, %d in all, %d calls", err, first.Discarded, out.Discarded, out.Calls)
	}
}

// TestSourcesOfWordsPutIn: the ledger tells what the model chose and what was
// written for it.
func TestSourcesOfWordsPutIn(t *testing.T) {
	m := script(`"read"`, `{"id": "7"}`, "")
	r := constrained(t, "qwen", m)
	r.Choice.Mode = runner.Required
	_, out, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range out.Ledger.Segments() {
		if s.Turn == 1 {
			got = append(got, fmt.Sprintf("%s %s", s.Source, s.Text))
		}
	}
	want := []string{"template <tool_call>\n{\"name\": ", "model \"read\"", "template , \"arguments\": ", "model {\"id\": \"7\"}", "template }\n</tool_call>"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestChoiceThenFreely: after the call that was chosen the model goes on, also
// with another call, unless the turn has one only.
func TestChoiceThenFreely(t *testing.T) {
	for _, single := range []bool{false, true} {
		m, calls, requests := script(`"read"`, `{"id": "7"}`, "\n<tool_call>", `"search"`, `{"query": "m"}`, ""), 2, 7
		if single {
			m, calls, requests = script(`"read"`, `{"id": "7"}`), 1, 3
		}
		r := constrained(t, "qwen", m)
		r.Choice.Mode, r.SingleCall = runner.Required, single
		if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Calls != calls || len(m.requests) != requests {
			t.Errorf("single %v: %v, %d calls, %d requests", single, err, out.Calls, len(m.requests))
		}
	}
}

// TestEndedCalls: arguments without an end are mended where a stop of the format
// shows that the call is over; what is cut is no call, whoever cut it.
func TestEndedCalls(t *testing.T) {
	open := "I look.\nAction: search\nAction Input: {\"query\": \"m\""
	for name, tc := range map[string]struct {
		chunks []models.Chunk
		calls  int
	}{
		"the model's end":  {said(open, models.FinishStop), 0},
		"the format's":     {said(open+"\nObservation:", models.FinishStop), 1},
		"the caller's":     {said(open+" STOP", models.FinishStop), 0},
		"the length limit": {said(open, models.FinishLength), 0},
	} {
		m := &rawModel{turns: [][]models.Chunk{tc.chunks, said("\nFinal Answer: It is 7.", models.FinishStop)}}
		r := newRunner(t, "react", m, echo("search"))
		r.Criteria = []stopping.Criterion{{Name: "mine", Literal: " STOP", Strip: true}}
		if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Calls != tc.calls {
			t.Errorf("%s: %v, %d calls", name, err, out.Calls)
		}
	}
}

// TestCutTurns: only a call that ends where the text ends is gone on with, and
// none in the last turn.
func TestCutTurns(t *testing.T) {
	m := &rawModel{turns: [][]models.Chunk{said("<tool_call>\n{\"name\": \"sea\n<answer>It is 7. And", models.FinishLength), said("<answer>It is 7.</answer>", models.FinishStop)}}
	events, _, err := trial(t, newRunner(t, "deepresearch", m, echo("search")), runner.Task{})
	if first := of[runner.Stopped](events)[0]; err != nil || first.Requests != 1 {
		t.Errorf("%v, %d requests, problems %+v", err, first.Requests, first.Problems)
	}

	m = &rawModel{turns: [][]models.Chunk{said(qwenCall, models.FinishStop), said("<tool_call>\n{\"name\": \"sea", models.FinishLength)}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Limits.Turns = 1
	if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Termination != runner.TermTurnLimit || len(m.requests) != 2 {
		t.Errorf("%v, ended %s after %d requests", err, out.Termination, len(m.requests))
	}
}

// TestInventedAfterACall: the response is cut off, and the call is as it should
// be.
func TestInventedAfterACall(t *testing.T) {
	m := script(qwenCall + "\n<tool_response>\nIt is 8.")
	events, out, err := trial(t, newRunner(t, "qwen", m, echo("search")), runner.Task{})
	if first := of[runner.Stopped](events)[0]; err != nil || len(first.Problems) != 0 || out.Invented != 1 || out.Calls != 1 {
		t.Errorf("%v, problems %+v, %d invented, %d calls", err, first.Problems, out.Invented, out.Calls)
	}
}

// TestTornMoon: three of the four bytes of a character are none.
func TestTornMoon(t *testing.T) {
	for n := 1; n < 4; n++ {
		m := &rawModel{turns: [][]models.Chunk{said("It is 7. "+"🌕"[:n], models.FinishLength)}}
		if _, out, err := trial(t, newRunner(t, "qwen", m), runner.Task{}); err != nil || out.Answer != "It is 7." || !strings.HasSuffix(out.Ledger.Text(), "7. ") {
			t.Errorf("%d bytes: %v, answer %q", n, err, out.Answer)
		}
	}
}

// TestTurnsInThought: a turn that begins inside the thinking part is shown and
// stopped as one.
func TestTurnsInThought(t *testing.T) {
	m := &fakeModel{texts: []string{"No <tool_response> yet.\n</think>\n\nIt is 7."}}
	events, out, err := trial(t, newRunner(t, "qwq-tools", m, echo("search")), runner.Task{})
	if err != nil || out.Answer != "It is 7." || out.Invented != 0 {
		t.Errorf("%v, answer %q, %d invented", err, out.Answer, out.Invented)
	}
	if first := of[runner.Text](events)[0]; first.Span != template.SpanThink {
		t.Errorf("the first text is %+v", first)
	}

	m = &fakeModel{texts: []string{"I could <tool_call> it.\n</think>\n\nIt is 7."}}
	if _, out, err := trial(t, constrained(t, "qwq-tools", m), runner.Task{}); err != nil || out.Answer != "It is 7." || out.Requests != 1 {
		t.Errorf("under a schema: %v, answer %q, %d requests", err, out.Answer, out.Requests)
	}
}

// TestTokensThatCriteriaCount: a chunk without ids is a token, one with ids as
// many.
func TestTokensThatCriteriaCount(t *testing.T) {
	for _, ids := range []bool{false, true} {
		var chunks []models.Chunk
		for i := range 6 {
			c := models.Chunk{Text: "ab"}
			if ids {
				c.Tokens = []int{i, i}
			}
			chunks = append(chunks, c)
		}
		r := newRunner(t, "qwen", &rawModel{turns: [][]models.Chunk{append(chunks, end(models.FinishStop))}})
		r.Criteria = []stopping.Criterion{{Name: "mine", Tokens: 4}}
		events, out, err := trial(t, r, runner.Task{})
		if want := map[bool]string{false: "abababab", true: "abab"}[ids]; err != nil || out.Answer != want || of[runner.Stopped](events)[0].Halt <= 0 {
			t.Errorf("ids %v: %v, answer %q", ids, err, out.Answer)
		}
	}
}

// TestOpenTurns: what the length limit cut is open for the next question, also
// a last turn that ended where a call began.
func TestOpenTurns(t *testing.T) {
	f := closing(t)
	for name, tc := range map[string]struct {
		play func(n int, req models.Request) reply
		want bool
	}{
		"cut":    {func(int, models.Request) reply { return reply{text: "It is", finish: models.FinishLength} }, true},
		"whole":  {func(int, models.Request) reply { return wrote("It is 7.") }, false},
		"no end": {func(int, models.Request) reply { return reply{text: "It is"} }, true},
		"a stop": {func(int, models.Request) reply { return wrote("It is 7.<|im_end|>") }, false},
		"no calls": {func(n int, _ models.Request) reply {
			return wrote([]string{"<tool_call>", "{}", "", "<tool_call>"}[n-1])
		}, true},
		"whole arguments at the limit": {func(n int, _ models.Request) reply {
			return []reply{wrote("<tool_call>"), {text: "{}", finish: models.FinishLength}, wrote(""), wrote("It is 7.")}[n-1]
		}, false},
	} {
		r := newRunner(t, "qwen", &playModel{play: tc.play}, namedTool{echo("search"), ""})
		r.Format, r.Constrain, r.Limits.Turns = f, true, 1
		_, out, _ := trial(t, r, runner.Task{})
		_, more, err := collect(t.Context(), &runner.Runner{Model: script(), Format: f}, runner.Task{Question: "And?", Ledger: out.Ledger})
		if err != nil || strings.Contains(more.Ledger.Text(), "[cut]") != tc.want {
			t.Errorf("%s: %v, %q", name, err, more.Ledger.Text())
		}
	}
}

// TestNameThatIsCut: the turn ends with the server's reason, and the call is
// told of.
func TestNameThatIsCut(t *testing.T) {
	m := &playModel{play: func(n int, req models.Request) reply {
		return []reply{wrote("<tool_call>"), {text: `"re`, finish: models.FinishLength}, wrote("It is 7.")}[n-1]
	}}
	events, out, err := trial(t, constrained(t, "qwen", m), runner.Task{})
	first := of[runner.Stopped](events)[0]
	if err != nil || first.Finish != models.FinishLength || len(first.Problems) != 1 || out.Problems != 1 || out.Answer != "It is 7." {
		t.Errorf("%v, %+v", err, first)
	}
}

// TestContextFullBehindArguments: where nothing more fits nothing more is asked
// for.
func TestContextFullBehindArguments(t *testing.T) {
	m := &playModel{play: func(n int, req models.Request) reply {
		return []reply{wrote("<tool_call>"), wrote(`"read"`), {text: `{"id": "7"}`, finish: models.FinishContext}}[n-1]
	}}
	_, out, err := trial(t, constrained(t, "qwen", m), runner.Task{})
	if err != nil || out.Termination != runner.TermTokenLimit || out.Calls != 0 || out.Requests != 3 {
		t.Errorf("%v, ended %s after %d calls and %d requests", err, out.Termination, out.Calls, out.Requests)
	}
}

// A spentRenderer keeps the context that it was given.
type spentRenderer struct {
	playModel
	ctx context.Context
}

func (s *spentRenderer) Render(ctx context.Context, _ models.Conversation) (string, error) {
	s.ctx = ctx
	return "", errors.New("no template")
}

func TestNothingIsLeftOfAnOpeningThatFails(t *testing.T) {
	m := &spentRenderer{}
	if _, _, err := collect(t.Context(), newRunner(t, "server", m), runner.Task{Question: "q"}); err == nil || m.ctx.Err() == nil {
		t.Errorf("%v, the context is open", err)
	}
}
