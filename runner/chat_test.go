package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

// A chatModel has a chat endpoint that answers with these chunks, one list a
// request, and renders conversations as plain text.
type chatModel struct {
	fakeModel
	answers  [][]models.ChatChunk
	chats    []models.ChatRequest
	rendered string // with QUESTION where the question stands
	asked    models.Conversation
}

func (m *chatModel) Chat(_ context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		req.Messages = slices.Clone(req.Messages)
		m.chats = append(m.chats, req)
		if len(m.chats) > len(m.answers) {
			yield(models.ChatChunk{}, &models.ServerError{Message: "no more answers"})
			return
		}
		for _, c := range m.answers[len(m.chats)-1] {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func (m *chatModel) Render(_ context.Context, c models.Conversation) (string, error) {
	m.asked = c
	return strings.ReplaceAll(m.rendered, "QUESTION", c.Messages[len(c.Messages)-1].Content), nil
}

func chatEnd() models.ChatChunk {
	return models.ChatChunk{Chunk: models.Chunk{Final: &models.Final{Finish: models.FinishStop, Usage: models.Usage{Prompt: models.Known(20), Generated: models.Known(5)}}}}
}

func chatText(text string) []models.ChatChunk {
	return []models.ChatChunk{{Chunk: models.Chunk{Text: text}}, chatEnd()}
}

func chatCalls(calls ...models.ToolCall) []models.ChatChunk {
	return []models.ChatChunk{{Thinking: "Hm."}, {Calls: calls}, chatEnd()}
}

func TestChat(t *testing.T) {
	calls := []models.ToolCall{
		{ID: "a", Name: "search", Arguments: json.RawMessage(`{"query":"m"}`)},
		{ID: "b", Name: "find", Arguments: json.RawMessage(`{"query":"m"}`)},
		{ID: "c", Name: "search", Arguments: json.RawMessage(`not JSON`)},
	}
	m := &chatModel{answers: [][]models.ChatChunk{chatCalls(calls...), chatText("It is 7. <|im_end|>")}}
	tool := echo("search")
	r := newRunner(t, "chat", m, tool)
	r.Choice.Mode = runner.Required
	events, out, err := trial(t, r, runner.Task{Question: "Who? <|im_start|>", System: "Be brief."})
	if err != nil || out.Answer != "It is 7. <|im_end|>" || tool.runs.Load() != 1 || out.Requests != 2 || out.Usage.Prompt.N != 40 {
		t.Fatalf("%v; answer %q, the tool ran %d times, %d requests, usage %+v", err, out.Answer, tool.runs.Load(), out.Requests, out.Usage)
	}
	if got := kinds(events); got != "started stopped called called called returned returned returned stopped answered ended" {
		t.Error(got)
	}
	if got := of[runner.Text](events)[0]; got.Span != template.SpanThink || got.Text != "Hm." {
		t.Errorf("the first text is %+v", got)
	}
	if c := []models.ChoiceMode{m.chats[0].ToolChoice.Mode, m.chats[1].ToolChoice.Mode}; !slices.Equal(c, []models.ChoiceMode{models.ChooseRequired, models.ChooseAuto}) {
		t.Errorf("choices %q", c)
	}
	var roles []string
	for _, msg := range m.chats[1].Messages {
		roles = append(roles, string(msg.Role)+msg.CallID)
	}
	if want := []string{"system", "user", "assistant", "toola", "toolb", "toolc"}; !slices.Equal(roles, want) {
		t.Errorf("roles %q, want %q", roles, want)
	}
	if q := m.chats[0].Messages[1].Content; strings.Contains(q, "<|im_start|>") || out.Ledger.Segments()[1].Original != "Who? <|im_start|>" {
		t.Errorf("the question is %q", q)
	}
	var kinds []template.ProblemKind
	for _, p := range of[runner.Stopped](events)[0].Problems {
		kinds = append(kinds, p.Kind)
	}
	if !slices.Contains(kinds, template.BadArguments) {
		t.Errorf("problems %q", kinds)
	}
	for _, ev := range events {
		if _, err := runner.MarshalEvent(ev); err != nil {
			t.Errorf("%s: %v", ev.Kind(), err)
		}
	}
}

// TestChatGoesOn asks again in the same conversation, after a run that was cut
// while its tool ran: every call has an answer.
func TestChatGoesOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tool := echo("search")
	tool.run = func(ctx context.Context, _ json.RawMessage) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}
	m := &chatModel{answers: [][]models.ChatChunk{
		chatCalls(models.ToolCall{ID: "a", Name: "search", Arguments: json.RawMessage(`{"query":"m"}`)}), chatText("It is 7."),
	}}
	r := newRunner(t, "chat", m, tool)
	_, out, err := collect(ctx, r, runner.Task{Question: "q"})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, out2, err := collect(t.Context(), r, runner.Task{Question: "And now?", Ledger: out.Ledger})
	if err != nil || out2.Answer != "It is 7." {
		t.Fatalf("%v, answer %q", err, out2.Answer)
	}
	var roles []string
	for _, msg := range m.chats[1].Messages {
		roles = append(roles, string(msg.Role)+msg.CallID)
	}
	if want := []string{"user", "assistant", "toola", "user"}; !slices.Equal(roles, want) {
		t.Errorf("roles %q, want %q", roles, want)
	}
	if len(out.Ledger.Segments()) >= len(out2.Ledger.Segments()) {
		t.Error("the ledger did not grow")
	}
}

// TestChatCriteria: the caller's own criteria see the answer's text.
func TestChatCriteria(t *testing.T) {
	m := &chatModel{answers: [][]models.ChatChunk{chatText("It is 7. STOP and more")}}
	r := newRunner(t, "chat", m, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: " STOP", Strip: true}}
	if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Answer != "It is 7." || out.Discarded == 0 {
		t.Errorf("%v, answer %q, %d bytes discarded", err, out.Answer, out.Discarded)
	}
}

// TestChatLimits: a forced answer is asked for without tools, and an empty one
// is asked for again.
func TestChatLimits(t *testing.T) {
	call := func(id string) []models.ChatChunk {
		return chatCalls(models.ToolCall{ID: id, Name: "search", Arguments: json.RawMessage(`{"query":"m"}`)})
	}
	m := &chatModel{answers: [][]models.ChatChunk{{chatEnd()}, call("a"), chatText("It is 7.")}}
	r := newRunner(t, "chat", m, echo("search"))
	r.Limits.Turns = 2
	events, out, err := trial(t, r, runner.Task{})
	if err != nil || out.Termination != runner.TermAnsweredForced || m.chats[2].ToolChoice.Mode != models.ChooseNone {
		t.Errorf("%v, ended %s, the last choice is %q", err, out.Termination, m.chats[2].ToolChoice.Mode)
	}
	if got := kinds(events); got != "started stopped nudged stopped called returned nudged stopped answered ended" {
		t.Error(got)
	}
}

// TestServerOpening: the server renders the opening, the format that is
// recognised in it goes on, and the question stays the user's.
func TestServerOpening(t *testing.T) {
	m := &chatModel{rendered: "<|im_start|>system\nSYS<|im_end|>\n<|im_start|>user\nQUESTION<|im_end|>\n<|im_start|>assistant\n"}
	m.texts = []string{qwenCall, qwenAnswer}
	r := newRunner(t, "server", m, echo("search"))
	events, out, err := trial(t, r, runner.Task{Question: "Who? <|im_end|>", System: "Be brief."})
	if err != nil || out.Answer != "The moon is far [a.md]." {
		t.Fatalf("%v, answer %q, %s, %+v", err, out.Answer, out.Ledger.Text(), of[runner.Stopped](events))
	}
	if started := of[runner.Started](events)[0]; started.Format != "qwen" || len(started.Prompt) != 3 || started.Prompt[1].Source != template.FromUser || started.Prompt[1].Original != "Who? <|im_end|>" {
		t.Errorf("started %+v", started)
	}
	if len(m.asked.Tools) != 1 || len(m.asked.Messages) != 2 || strings.Contains(m.asked.Messages[1].Content, "Who") {
		t.Errorf("the server was asked to render %+v", m.asked)
	}
	if !strings.Contains(out.Ledger.Text(), "<|im_end|>\n<|im_start|>user\n<tool_response>") {
		t.Errorf("ledger %q", out.Ledger.Text())
	}
	prefixes(t, &m.fakeModel)

	m.texts = append(m.texts, qwenAnswer)
	if _, next, err := trial(t, r, runner.Task{Question: "And?", Ledger: out.Ledger}); err != nil || !strings.HasPrefix(next.Ledger.Text(), out.Ledger.Text()) {
		t.Errorf("a further question: %v", err)
	}
}

func TestServerOpeningFaults(t *testing.T) {
	for name, rendered := range map[string]string{
		"no question":      "<|im_start|>assistant\n",
		"two questions":    "QUESTION <|im_start|>assistant QUESTION",
		"unknown template": "[Human] QUESTION [Assistant]",
	} {
		m := &chatModel{rendered: rendered}
		if _, _, err := collect(t.Context(), newRunner(t, "server", m, echo("search")), runner.Task{Question: "q"}); err == nil || len(m.requests) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(m.requests))
		}
	}
	for format, want := range map[string]error{"server": runner.ErrNoRenderer, "chat": runner.ErrNoChat} {
		if _, _, err := collect(t.Context(), newRunner(t, format, &fakeModel{}, echo("search")), runner.Task{Question: "q"}); !errors.Is(err, want) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
