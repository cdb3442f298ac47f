package runner_test

import (
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
)

// TestChatHalt: what comes after a stop is neither shown nor kept, and the
// stream is left.
func TestChatHalt(t *testing.T) {
	said := func(text string) models.ChatChunk { return models.ChatChunk{Chunk: models.Chunk{Text: text}} }
	m := talks([]models.ChatChunk{said("It is 7. STOP"), said(" and more"), {Calls: []models.ToolCall{toolCall("a", good)}}, chatEnd()})
	r := newRunner(t, "chat", m, echo("search"))
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: " STOP", Strip: true}}
	events, out, err := trial(t, r, runner.Task{})
	first := of[runner.Stopped](events)[0]
	if err != nil || out.Answer != "It is 7." || out.Calls != 0 || first.Criterion != "mine" || first.Finish != "" || first.Pieces != 1 {
		t.Errorf("%v, answer %q, stopped %+v", err, out.Answer, first)
	}
}

// TestChatTurn: the server's reason is told, and a character that never became
// whole is dropped.
func TestChatTurn(t *testing.T) {
	m := talks([]models.ChatChunk{{Chunk: models.Chunk{Text: "It is 7.\xe6\x9c"}}, chatEnds(models.FinishLength)})
	events, out, err := trial(t, newRunner(t, "chat", m), runner.Task{})
	first := of[runner.Stopped](events)[0]
	if err != nil || out.Answer != "It is 7." || !strings.HasSuffix(out.Ledger.Text(), "7.") || first.Finish != models.FinishLength || first.KeepEnd != 8 {
		t.Errorf("%v, answer %q, stopped %+v", err, out.Answer, first)
	}
}

// TestChatCallWithoutArguments calls a tool that takes none.
func TestChatCallWithoutArguments(t *testing.T) {
	tool := namedTool{echo("search"), ""}
	m := talks(chatCalls(toolCall("a", "")))
	if _, out, err := trial(t, newRunner(t, "chat", m, tool), runner.Task{}); err != nil || tool.runs.Load() != 1 || out.Problems != 0 {
		t.Errorf("%v, the tool ran %d times, %d problems", err, tool.runs.Load(), out.Problems)
	}
}
