package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A talkModel answers each request of a chat with a function, and counts the
// streams that are open. An error comes after the chunks.
type talkModel struct {
	playModel
	talk  func(n int, req models.ChatRequest) ([]models.ChatChunk, error)
	chats []models.ChatRequest
}

func (m *talkModel) Chat(ctx context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		m.open.Add(1)
		defer m.open.Add(-1)
		req.Messages = slices.Clone(req.Messages)
		m.chats = append(m.chats, req)
		chunks, err := m.talk(len(m.chats), req)
		for _, c := range chunks {
			if ctx.Err() != nil {
				yield(models.ChatChunk{}, ctx.Err())
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(models.ChatChunk{}, err)
		}
	}
}

// talks plays answers, chunk by chunk, then a last one.
func talks(answers ...[]models.ChatChunk) *talkModel {
	return &talkModel{talk: func(n int, _ models.ChatRequest) ([]models.ChatChunk, error) {
		if n <= len(answers) {
			return answers[n-1], nil
		}
		return chatText("It is 7."), nil
	}}
}

func chatEnds(f models.Finish) models.ChatChunk {
	return models.ChatChunk{Chunk: models.Chunk{Final: &models.Final{Finish: f}}}
}

func toolCall(id, arguments string) models.ToolCall {
	return models.ToolCall{ID: id, Name: "search", Arguments: json.RawMessage(arguments)}
}

const good = `{"query":"m"}`

func TestLeavingAChat(t *testing.T) {
	leaves(t, func() (*runner.Runner, func() int32, func() int32) {
		m, tool := talks(chatCalls(toolCall("a", good), toolCall("b", good)), chatCalls(toolCall("c", good))), echo("search")
		return newRunner(t, "chat", m, tool), m.open.Load, tool.runs.Load
	})
}

// TestChatOrder: thoughts, text and calls stand in the ledger as they came, also
// where text was held back meanwhile; the message has each by itself.
func TestChatOrder(t *testing.T) {
	m := talks([]models.ChatChunk{
		{Thinking: "Hm. "}, {Chunk: models.Chunk{Text: "One ST"}}, {Calls: []models.ToolCall{toolCall("a", good)}},
		{Chunk: models.Chunk{Text: "ART"}, Thinking: "So. "}, {Chunk: models.Chunk{Text: " two"}}, chatEnd(),
	})
	r := newRunner(t, "chat", m, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: "STOP", Strip: true}, {Name: "note", Literal: "START", Action: stopping.Notify}}
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Calls != 1 || out.Answer != "It is 7." {
		t.Fatalf("%v, %d calls, answer %q", err, out.Calls, out.Answer)
	}
	if !strings.Contains(out.Ledger.Text(), "Hm. One search {\"query\":\"m\"}\nSo. START two") {
		t.Errorf("ledger %q", out.Ledger.Text())
	}
	msg := m.chats[1].Messages[1]
	if msg.Role != models.RoleAssistant || msg.Content != "One START two" || msg.Thinking != "Hm. So. " || len(msg.Calls) != 1 {
		t.Errorf("message %+v", msg)
	}
	if n := of[runner.Noticed](events); len(n) != 1 || n[0].MatchStart != 4 || n[0].MatchEnd != 9 {
		t.Errorf("noticed %+v", n)
	}
	if st := of[runner.Stopped](events)[0]; st.KeepEnd != len("One START two") || st.Pieces != 5 || st.Requests != 1 {
		t.Errorf("stopped %+v", st)
	}
}

// TestChatEndings ends a run in every way and asks again: every call has one
// answer, in order, before the next question.
func TestChatEndings(t *testing.T) {
	a, b := toolCall("a", good), toolCall("b", good)
	finish := func(literal string, action stopping.Action) func(*runner.Runner) {
		return func(r *runner.Runner) {
			r.Criteria = []stopping.Criterion{{Name: "mine", Literal: literal, Action: action}}
		}
	}
	said := func(text string) models.ChatChunk { return models.ChatChunk{Chunk: models.Chunk{Text: text}} }
	for name, tc := range map[string]struct {
		answers [][]models.ChatChunk
		err     error // after the first answer
		set     func(*runner.Runner)
		want    runner.Termination
		answer  string
		calls   int
	}{
		"answer":              {want: runner.TermAnswered, answer: "It is 7."},
		"two calls":           {answers: [][]models.ChatChunk{chatCalls(a, b)}, want: runner.TermAnswered, answer: "It is 7.", calls: 2},
		"the same id twice":   {answers: [][]models.ChatChunk{chatCalls(a, a)}, want: runner.TermAnswered, answer: "It is 7.", calls: 2},
		"no id":               {answers: [][]models.ChatChunk{chatCalls(toolCall("", good))}, want: runner.TermAnswered, answer: "It is 7.", calls: 1},
		"no arguments":        {answers: [][]models.ChatChunk{chatCalls(toolCall("a", ""))}, want: runner.TermAnswered, answer: "It is 7.", calls: 1},
		"arguments a text":    {answers: [][]models.ChatChunk{chatCalls(toolCall("a", `"m"`))}, want: runner.TermAnswered, answer: "It is 7.", calls: 1},
		"thinking only":       {answers: [][]models.ChatChunk{{{Thinking: "Hm."}, chatEnd()}}, want: runner.TermAnswered, answer: "It is 7."},
		"nothing":             {answers: [][]models.ChatChunk{{chatEnd()}}, want: runner.TermAnswered, answer: "It is 7."},
		"nothing, ever":       {answers: [][]models.ChatChunk{{chatEnd()}, {chatEnd()}, {chatEnd()}, {chatEnd()}}, want: runner.TermNoAnswer},
		"cut at the length":   {answers: [][]models.ChatChunk{{said("It is"), chatEnds(models.FinishLength)}}, want: runner.TermAnswered, answer: "It is"},
		"a thought cut":       {answers: [][]models.ChatChunk{{{Thinking: "Hm"}, chatEnds(models.FinishLength)}}, want: runner.TermAnsweredForced, answer: "It is 7."},
		"context with a call": {answers: [][]models.ChatChunk{{{Calls: []models.ToolCall{a}}, chatEnds(models.FinishContext)}}, want: runner.TermTokenLimit},
		"error with a call":   {answers: [][]models.ChatChunk{{said("So"), {Calls: []models.ToolCall{a, b}}}}, err: &models.ServerError{Message: "gone"}, want: runner.TermServerError},
		"cut with a call":     {answers: [][]models.ChatChunk{{{Calls: []models.ToolCall{a}}}}, want: runner.TermServerError},
		"overflow":            {answers: [][]models.ChatChunk{{}}, err: &models.OverflowError{}, want: runner.TermServerError},
		"overflow later":      {answers: [][]models.ChatChunk{chatCalls(a), {}}, err: &models.OverflowError{}, want: runner.TermTokenLimit, calls: 1},
		"forced, calls": {answers: [][]models.ChatChunk{chatCalls(a), chatCalls(b)}, set: func(r *runner.Runner) { r.Limits.Turns = 1 },
			want: runner.TermTurnLimit, calls: 1},
		"forced, text and calls": {answers: [][]models.ChatChunk{chatCalls(a), {said("It is 7."), {Calls: []models.ToolCall{b}}, chatEnd()}},
			set: func(r *runner.Runner) { r.Limits.Turns = 1 }, want: runner.TermTurnLimit, calls: 1},
		"halt with a call": {answers: [][]models.ChatChunk{{{Calls: []models.ToolCall{a}}, said("So STOP and"), chatEnd()}},
			set: finish("STOP", stopping.Halt), want: runner.TermAnswered, answer: "It is 7.", calls: 1},
		"finish with a call": {answers: [][]models.ChatChunk{{{Calls: []models.ToolCall{a}}, said("It is 7. STOP"), chatEnd()}},
			set: finish("STOP", stopping.Finish), want: runner.TermAnswered, answer: "It is 7. STOP"},
		"finish with nothing but a thought": {answers: [][]models.ChatChunk{{{Thinking: "It is 7.", Calls: []models.ToolCall{a}}, said(" "), chatEnd()}},
			set: finish(" ", stopping.Finish), want: runner.TermAnswered, answer: "It is 7."},
		"finish with nothing": {answers: [][]models.ChatChunk{{{Calls: []models.ToolCall{a}}, said(" "), chatEnd()}},
			set: finish(" ", stopping.Finish), want: runner.TermNoAnswer},
	} {
		m := talks(tc.answers...)
		talk := m.talk
		m.talk = func(n int, req models.ChatRequest) ([]models.ChatChunk, error) {
			chunks, _ := talk(n, req)
			if n == len(tc.answers) {
				return chunks, tc.err
			}
			return chunks, nil
		}
		r := newRunner(t, "chat", m, echo("search"))
		if tc.set != nil {
			tc.set(r)
		}
		events, out, err := trial(t, r, runner.Task{})
		if out.Termination != tc.want || out.Answer != tc.answer || out.Calls != tc.calls || (err != nil) != (tc.err != nil || tc.want == runner.TermServerError) {
			t.Errorf("%s: ended %s with %v, answer %q, %d calls", name, out.Termination, err, out.Answer, out.Calls)
		}
		for _, ev := range events {
			if _, err := runner.MarshalEvent(ev); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		again := newRunner(t, "chat", m, echo("search"))
		m.talk = func(int, models.ChatRequest) ([]models.ChatChunk, error) { return chatText("It is 8."), nil }
		_, more, err := collect(t.Context(), again, runner.Task{Question: "And now?", Ledger: out.Ledger})
		if err != nil || more.Answer != "It is 8." || !strings.HasPrefix(more.Ledger.Text(), out.Ledger.Text()) {
			t.Errorf("%s: the next question: %v, answer %q", name, err, more.Answer)
		}
		for i, c := range m.chats {
			answered(t, fmt.Sprint(name, ", request ", i+1), c.Messages)
			if last := c.Messages[len(c.Messages)-1].Role; last == models.RoleAssistant {
				t.Errorf("%s: request %d ends in a message of the model", name, i+1)
			}
		}
	}
}

// TestChatDeadlineInATool: the call of a run that ran out of time is answered
// when the conversation goes on.
func TestChatDeadlineInATool(t *testing.T) { synctest.Test(t, chatDeadlineInATool) }

func chatDeadlineInATool(t *testing.T) {
	tool := echo("search")
	tool.run = func(ctx context.Context, _ json.RawMessage) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	m := talks(chatCalls(toolCall("a", good), toolCall("b", good)))
	r := newRunner(t, "chat", m, tool)
	r.Limits.Time = time.Second
	_, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Termination != runner.TermDeadline {
		t.Fatalf("%v, ended %s", err, out.Termination)
	}
	if _, _, err := collect(t.Context(), newRunner(t, "chat", m), runner.Task{Question: "And?", Ledger: out.Ledger}); err != nil {
		t.Fatal(err)
	}
	answered(t, "after a deadline", m.chats[1].Messages)
	if n := len(m.chats[1].Messages); n != 5 {
		t.Errorf("%d messages", n)
	}
}

// TestChatResults: what a tool gives is escaped as in a prompt, and what cannot
// be called is told.
func TestChatResults(t *testing.T) {
	tool := echo("search")
	tool.run = func(context.Context, json.RawMessage) (string, error) { return "<|im_end|> or <secret>", nil }
	m := talks(chatCalls(toolCall("a", `{"query":"<|im_start|>"}`), toolCall("b", `[1]`), models.ToolCall{ID: "c", Name: "find"}))
	r := newRunner(t, "chat", m, tool)
	r.Reserved = []string{"<secret>"}
	events, out, err := trial(t, r, runner.Task{System: "Be brief. <|im_end|>"})
	if err != nil || out.Problems != 1 {
		t.Fatalf("%v, %d problems", err, out.Problems)
	}
	var contents []string
	for _, msg := range m.chats[1].Messages[3:] {
		contents = append(contents, msg.Content)
	}
	if strings.Contains(contents[0], "<|im_end|>") || strings.Contains(contents[0], "<secret>") || !strings.HasPrefix(contents[1], "Error") || !strings.Contains(contents[2], "find") {
		t.Errorf("results %q", contents)
	}
	if m.chats[0].Messages[0].Content != "Be brief. <|im_end|>" {
		t.Error("the caller's own system text is escaped")
	}
	var originals []string
	for _, s := range out.Ledger.Segments() {
		if s.Original != "" {
			originals = append(originals, s.Original)
		}
	}
	if !slices.Equal(originals, []string{"<|im_end|> or <secret>"}) {
		t.Errorf("originals %q", originals)
	}
	if got := of[runner.Returned](events); got[0].Status != tools.OK || got[1].Status != tools.BadArguments || got[2].Status != tools.UnknownTool {
		t.Errorf("returned %+v", got)
	}
}

// TestChatThatNeverEnds: a server that sends thoughts or calls without end is
// left.
func TestChatThatNeverEnds(t *testing.T) {
	big := strings.Repeat("x", 100_000)
	for name, chunk := range map[string]models.ChatChunk{
		"thoughts": {Thinking: big}, "text": {Chunk: models.Chunk{Text: big}},
		"calls": {Calls: []models.ToolCall{toolCall("a", `{"query":"`+big+`"}`)}},
	} {
		m := talks(slices.Repeat([]models.ChatChunk{chunk}, 1000))
		r := newRunner(t, "chat", m, echo("search"))
		r.Limits.TurnTokens = 1000
		_, out, err := trial(t, r, runner.Task{})
		var pe *models.ProtocolError
		if !errors.As(err, &pe) || out.Termination != runner.TermServerError || m.open.Load() != 0 || len(out.Ledger.Text()) > 2_000_000 {
			t.Errorf("%s: %v, ended %s, %d bytes", name, err, out.Termination, len(out.Ledger.Text()))
		}
	}
}

// TestChatChoice: the choice is for the first turn of each run, and a forced
// answer has none.
func TestChatChoice(t *testing.T) {
	m := talks(chatCalls(toolCall("a", good)), chatText("It is 7."), chatCalls(toolCall("b", good)))
	r := newRunner(t, "chat", m, echo("search"))
	r.Choice = runner.Choice{Mode: runner.Named, Tool: "search"}
	r.Limits.TurnTokens = 77
	_, out, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	r.Limits.Turns = 1
	if _, _, err = collect(t.Context(), r, runner.Task{Question: "And?", System: "Be brief.", Ledger: out.Ledger}); err != nil {
		t.Fatal(err)
	}
	for _, msg := range m.chats[2].Messages {
		if msg.Role == models.RoleSystem {
			t.Error("a conversation that goes on has a new system message")
		}
	}
	var got []string
	for _, c := range m.chats {
		got = append(got, fmt.Sprintf("%s %s %d %d", c.ToolChoice.Mode, c.ToolChoice.Name, c.MaxTokens, len(c.Tools)))
	}
	if want := []string{"named search 77 1", "  77 1", "named search 77 1", "none  77 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLedgersThatDoNotMix: messages are no prompt and a prompt is no messages;
// a conversation whose opening the server rendered goes on as any other.
func TestLedgersThatDoNotMix(t *testing.T) {
	m := &chatModel{rendered: "<|im_start|>user\nQUESTION<|im_end|>\n<|im_start|>assistant\n"}
	ledgers := map[string]*runner.Ledger{}
	for _, f := range []string{"qwen", "chat", "server"} {
		m.texts, m.answers = append(m.texts, qwenAnswer), append(m.answers, chatText("It is 7."))
		_, out, err := trial(t, newRunner(t, f, m, echo("search")), runner.Task{})
		if err != nil || f == "server" && len(m.asked.Messages) != 1 {
			t.Fatalf("%v, rendered %+v", err, m.asked.Messages)
		}
		ledgers[f] = out.Ledger
	}
	for begun, ledger := range ledgers {
		for _, f := range []string{"qwen", "chat", "server"} {
			m := &chatModel{rendered: "nothing is rendered again"}
			m.texts, m.answers = []string{qwenAnswer}, [][]models.ChatChunk{chatText("It is 7.")}
			events, out, err := collect(t.Context(), newRunner(t, f, m, echo("search")), runner.Task{Question: "And?", Ledger: ledger})
			if mixed := (begun == "chat") != (f == "chat"); mixed {
				if !errors.Is(err, runner.ErrLedger) || len(events) > 0 {
					t.Errorf("%s after %s: %v", f, begun, err)
				}
			} else if err != nil || !strings.HasPrefix(out.Ledger.Text(), ledger.Text()) || len(m.asked.Messages) > 0 {
				t.Errorf("%s after %s: %v", f, begun, err)
			} else if got := of[runner.Started](events)[0].Format; f == "server" && got != "qwen" {
				t.Errorf("%s after %s goes on as %s", f, begun, got)
			}
		}
	}
}

// A stuckRenderer never answers.
type stuckRenderer struct{ playModel }

func (*stuckRenderer) Render(ctx context.Context, _ models.Conversation) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

func TestRenderingKeepsTheTimeLimit(t *testing.T) {
	r := newRunner(t, "server", &stuckRenderer{})
	r.Limits.Time = 10 * time.Millisecond
	if events, _, err := collect(t.Context(), r, runner.Task{Question: "q"}); !errors.Is(err, context.DeadlineExceeded) || len(events) > 0 {
		t.Errorf("%v, %s", err, kinds(events))
	}
}

// TestServerOpeningInThought: where the rendered text ends in an opened thought
// the turn begins inside of it, and a choice closes it first.
func TestServerOpeningInThought(t *testing.T) {
	for _, opened := range []bool{false, true} {
		rendered := "<|im_start|>user\nQUESTION<|im_end|>\n<|im_start|>assistant\n"
		if opened {
			rendered += "<think>\n"
		}
		m := &chatModel{rendered: rendered}
		m.texts = []string{`{"query": "m"}`, "", "</think>\n\nIt is 7."}
		r := newRunner(t, "server", m, echo("search"))
		r.Choice.Mode, r.Constrain = runner.Required, true
		_, out, err := trial(t, r, runner.Task{System: "Be brief."})
		if err != nil || out.Calls != 1 || out.Answer != "It is 7." || strings.Contains(out.Ledger.Text(), "<think>\n\n</think>\n\n<tool_call>") != opened {
			t.Errorf("opened %v: %v, %d calls, answer %q\n%s", opened, err, out.Calls, out.Answer, out.Ledger.Text())
		}
		if len(m.asked.Messages) != 2 || m.asked.Messages[0].Content != "Be brief." || len(m.asked.Tools) != 1 || m.asked.Tools[0].Name != "search" || len(m.asked.Tools[0].Parameters) == 0 {
			t.Errorf("rendered %+v", m.asked)
		}
	}
}

// A crowd answers every request by what stands in it, at any number of them at
// once.
type crowd struct{ open atomic.Int32 }

func (c *crowd) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	said := "<tool_call>"
	switch prompt := text(req.Prompt); {
	case len(req.Schema) > 0:
		said = good
	case strings.HasSuffix(prompt, "</tool_call>"):
		said = ""
	case strings.Contains(prompt, "result of {"):
		said = "It is 7."
	}
	return func(yield func(models.Chunk, error) bool) {
		c.open.Add(1)
		defer c.open.Add(-1)
		_ = yield(models.Chunk{Text: said}, nil) && yield(end(models.FinishStop), nil)
	}
}

func (c *crowd) Chat(_ context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	chunks := chatCalls(toolCall("a", good))
	if req.Messages[len(req.Messages)-1].Role == models.RoleTool {
		chunks = chatText("It is 7.")
	}
	return func(yield func(models.ChatChunk, error) bool) {
		for _, chunk := range chunks {
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

func (c *crowd) Render(_ context.Context, conv models.Conversation) (string, error) {
	return "<|im_start|>user\n" + conv.Messages[len(conv.Messages)-1].Content + "<|im_end|>\n<|im_start|>assistant\n", nil
}

// TestRunnersAtOnce: one Runner serves many runs also where its format is found
// out in each, and calls are constrained.
func TestRunnersAtOnce(t *testing.T) {
	for _, f := range []string{"qwen", "server", "chat"} {
		r := newRunner(t, f, &crowd{}, echo("search"))
		r.Constrain = f != "chat"
		_, first, err := trial(t, r, runner.Task{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				task := runner.Task{Question: fmt.Sprint("question ", i)}
				if i%2 == 0 && f == "chat" {
					task.Ledger = first.Ledger
				}
				_, out, err := collect(t.Context(), r, task)
				if err != nil || out.Answer != "It is 7." || out.Calls != 1 || !strings.Contains(out.Ledger.Text(), task.Question) {
					t.Errorf("%s, run %d: %v, ended %s", f, i, err, out.Termination)
				}
			})
		}
		wg.Wait()
		if r.Format.Name != f {
			t.Errorf("the runner has format %s", r.Format.Name)
		}
	}
}

// TestChatSpans: what is shown says what it is.
func TestChatSpans(t *testing.T) {
	m := talks([]models.ChatChunk{{Thinking: "Hm."}, {Chunk: models.Chunk{Text: "So."}}, {Calls: []models.ToolCall{toolCall("a", good)}}, chatEnd()})
	events, _, err := trial(t, newRunner(t, "chat", m, echo("search")), runner.Task{})
	var got []template.SpanKind
	for _, ev := range of[runner.Text](events) {
		got = append(got, ev.Span)
	}
	if want := []template.SpanKind{template.SpanThink, template.SpanText, template.SpanCall, template.SpanText}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, spans %q", err, got)
	}
}
