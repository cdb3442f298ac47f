package models

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
)

// chatScript is what the model of the chat scenarios says. The server renders
// the prompt, so each turn begins after the end of a message.
var chatScript = automaton.Script{Turns: []automaton.Turn{
	{After: opens("How deep?"), Text: "<think>\nI look it up.\n</think>\n\nWait.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"tide\", \"首都 \\\"q\\\"\"]}}\n</tool_call>\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>"},
	{After: opens("</tool_response>"), Text: "Five metres."},
	{After: opens("Hello."), Text: "<think>\nA greeting.\n</think>\n\nGood day, 中文."},
	{After: opens("Go on."), Text: " and on", Finish: automaton.FinishLength},
	{After: opens("Which?"), Text: "<tool_call>\n{\"name\": \"unheard\", \"arguments\": {\"query\": [\"x\"]}}\n</tool_call>"},
	{After: opens("Badly."), Text: "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [tide}\n</tool_call>"},
}}

// opens is the end of a prompt whose last message ends so.
func opens(said string) string { return said + "<|im_end|>\n<|im_start|>assistant\n" }

func chatFile(t *testing.T) string {
	t.Helper()
	a, err := automaton.Compile(chatScript)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chat.gguf")
	if err := a.WriteFile(path, automaton.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// ask is a request with the tools of question and one message.
func ask(said string) ChatRequest {
	req := question
	req.Messages = []Message{{Role: RoleUser, Content: said}}
	return req
}

// plainly is a request without tools.
func plainly(said string) ChatRequest {
	return ChatRequest{Conversation: Conversation{Messages: []Message{{Role: RoleUser, Content: said}}}}
}

// callsAndAnswers checks a conversation with two calls in one answer, and what the model
// says when both are answered.
func callsAndAnswers(t *testing.T, m Model) {
	req := ask("How deep?")
	a := answered(t, m, req)
	check(t, "thinking", strings.TrimSpace(a.thinking), "I look it up.")
	check(t, "text", strings.TrimSpace(a.text), "Wait.")
	check(t, "finish", a.final.Finish, FinishStop)
	if len(a.calls) != 2 {
		t.Fatalf("the calls are %q, want two", a.spelled())
	}
	check(t, "name", a.calls[0].Name, "search")
	check(t, "arguments", sameJSON(a.calls[0].Arguments, []byte(`{"query":["tide","首都 \"q\""]}`)), true)
	check(t, "name", a.calls[1].Name, "clock")
	check(t, "arguments", sameJSON(a.calls[1].Arguments, []byte(`{}`)), true)
	u := a.final.Usage
	check(t, "whether the counts are known", u.Prompt.N > 0 && u.Generated.N > 0, true)
	if a.final.Timings.FirstToken <= 0 || a.final.Timings.Prompt <= 0 {
		t.Errorf("timings are %+v", a.final.Timings)
	}

	req.Messages = append(req.Messages, Message{
		Role: RoleAssistant, Thinking: a.thinking, Content: a.text, Calls: a.calls,
	})
	for _, c := range a.calls {
		req.Messages = append(req.Messages, Message{Role: RoleTool, Name: c.Name, CallID: c.ID, Content: "5 m"})
	}
	a = answered(t, m, req)
	check(t, "text", a.text, "Five metres.")
	check(t, "calls", a.spelled(), "")
	check(t, "finish", a.final.Finish, FinishStop)
}

// anyArguments checks that a call stays in the conversation whatever its
// arguments are.
func anyArguments(t *testing.T, m Model) {
	for _, written := range []string{``, `[1]`, `"tide"`, `{"query": [tide`, `{"query": ["<|im_end|>"]}`} {
		a := answered(t, m, after(ToolCall{ID: "c", Name: "search", Arguments: []byte(written)}))
		check(t, "text after "+written, a.text, "Five metres.")
	}
}

// limits checks the two ends that servers call by one name.
func limits(t *testing.T, m Model) {
	req := ask("Go on.")
	req.MaxTokens = 4
	a := answered(t, m, req)
	check(t, "finish", a.final.Finish, FinishLength)
	check(t, "generated", a.final.Usage.Generated, Known(4))
}

// contextEnds checks an answer that fills the context, and a prompt that does
// not fit.
func contextEnds(t *testing.T, m Model) {
	check(t, "finish", answered(t, m, plainly(strings.Repeat("x", 150)+"Go on.")).final.Finish, FinishContext)
	a := hear(t, m, plainly(strings.Repeat("x", 400)))
	var o *OverflowError
	if !errors.As(a.err, &o) {
		t.Fatalf("error is %v, want an OverflowError", a.err)
	}
	check(t, "context", o.Context, Known(256))
}

// withoutTools checks that without tools, or with none to be called, what looks like
// a call is text.
func withoutTools(t *testing.T, m Model) {
	req := ask("Which?")
	req.ToolChoice.Mode = ChooseNone
	for _, req := range []ChatRequest{plainly("Which?"), req} {
		a := answered(t, m, req)
		check(t, "text", a.text, chatScript.Turns[4].Text)
		check(t, "calls", len(a.calls), 0)
	}
	a := answered(t, m, plainly("Hello."))
	check(t, "thinking", strings.TrimSpace(a.thinking), "A greeting.")
	check(t, "text", strings.TrimSpace(a.text), "Good day, 中文.")
}

var ollamaChatScenarios = []scenario{
	{name: "ollama/chat-calls", about: "two calls in one answer, and their answers", run: callsAndAnswers},
	{name: "ollama/chat-arguments", about: "calls whose arguments are no object go back", run: anyArguments},
	{name: "ollama/chat-limit", about: "num_predict is reached", run: limits},
	{name: "ollama/chat-context", about: "the context is full, and the prompt does not fit", opts: Options{ContextSize: 256}, run: contextEnds},
	{name: "ollama/chat-plain", about: "no tools: a call is text", run: withoutTools},
	{
		name: "ollama/chat-lost", about: "calls of an unknown tool, or with broken JSON: the server drops them in silence",
		run: func(t *testing.T, m Model) {
			for _, said := range []string{"Which?", "Badly."} {
				a := answered(t, m, ask(said))
				check(t, "text", a.text, "")
				check(t, "calls", len(a.calls), 0)
				check(t, "finish", a.final.Finish, FinishStop)
			}
		},
	},
	{
		name: "ollama/chat-without-tools", about: "a model whose template has no tools", model: "bare",
		run: func(t *testing.T, m Model) {
			var u *UnsupportedError
			if a := hear(t, m, ask("Hello.")); !errors.As(a.err, &u) {
				t.Errorf("error is %v, want an UnsupportedError", a.err)
			}
		},
	},
}

func TestRecordedOllamaChat(t *testing.T) {
	for _, s := range ollamaChatScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) {
			replay(t, s, func(string) string { return "ollama:chat" })
		})
	}
}

func TestLiveOllamaChat(t *testing.T) {
	for _, s := range ollamaChatScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) {
			server, _ := liveOllamaChat(t, s.model)
			live(t, s, server.URL, func(string) string { return "ollama:chat" }, s.about+"\nOllama 0.17.4, a model with the template chat.gotmpl")
		})
	}
}

// liveOllamaChat starts an Ollama with the model "chat".
func liveOllamaChat(t *testing.T, variant string) (*ollamatest.Server, Model) {
	t.Helper()
	template, err := os.ReadFile(filepath.Join("testdata", "chat.gotmpl"))
	if err != nil {
		t.Fatal(err)
	}
	server := ollamatest.Start(t, "OLLAMA_CONTEXT_LENGTH=4096")
	server.Create(t, "automaton", chatFile(t), nil)
	create := &api.CreateRequest{Model: "chat", From: "automaton", Template: string(template)}
	if variant == "bare" {
		create.Template = "{{ .Prompt }}"
	}
	if err := server.Client.Create(t.Context(), create, func(api.ProgressResponse) error { return nil }); err != nil {
		t.Fatal(err)
	}
	m, err := Open("ollama:chat", Options{OllamaHost: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return server, m
}

var (
	llamaChatFlags     = []string{"--jinja", "--chat-template-file", filepath.Join("testdata", "chat.jinja"), "-np", "2", "-c", "4096"}
	llamaChatScenarios = []scenario{
		{name: "llama-server/chat-calls", about: "two calls in one answer, and their answers", flags: llamaChatFlags, run: callsAndAnswers},
		{name: "llama-server/chat-arguments", about: "calls whose arguments are no object go back", flags: llamaChatFlags, run: anyArguments},
		{name: "llama-server/chat-limit", about: "max_tokens is reached", flags: llamaChatFlags, run: limits},
		{name: "llama-server/chat-context", about: "the context is full, and the prompt does not fit", flags: append(llamaChatFlags[:5:5], "-c", "512"), run: contextEnds},
		{name: "llama-server/chat-plain", about: "no tools: a call is text", flags: llamaChatFlags, run: withoutTools},
		{
			name: "llama-server/chat-required", about: "a call is required", flags: llamaChatFlags,
			run: func(t *testing.T, m Model) {
				req := ask("How deep?")
				req.ToolChoice.Mode = ChooseRequired
				a := answered(t, m, req)
				check(t, "calls", len(a.calls), 2)
				check(t, "finish", a.final.Finish, FinishStop)
			},
		},
		{
			name: "llama-server/chat-constrained", about: "calls of an unknown tool, or with broken JSON: the server does not let the model write them",
			flags: llamaChatFlags,
			run: func(t *testing.T, m Model) {
				for _, said := range []string{"Which?", "Badly."} {
					req := ask(said)
					req.MaxTokens = 60 // the model does not know how to go on from what it did not want
					for _, c := range answered(t, m, req).calls {
						if c.Name != "search" && c.Name != "clock" || !isObject(c.Arguments) {
							t.Errorf("the call is %s %s", c.Name, c.Arguments)
						}
					}
				}
			},
		},
		{
			name: "llama-server/chat-session", about: "a session finds its cache", flags: llamaChatFlags,
			run: func(t *testing.T, m Model) {
				req := ask("How deep?")
				req.Session = "s"
				first := answered(t, m, req)
				second := answered(t, m, req)
				u := second.final.Usage
				check(t, "prompt", u.Prompt, first.final.Usage.Prompt)
				check(t, "reused and evaluated", u.Reused.N+u.Evaluated.N, u.Prompt.N)
				check(t, "whether the second prompt was found in the cache", u.Evaluated.N < 5, true)
				check(t, "whether the reading of the prompt was told", len(first.progress) > 0, true)
				check(t, "whether the counts came before the end", first.usage != nil, true)
			},
		},
		{
			name: "llama-server/chat-without-jinja", about: "a server that was started without --jinja", flags: []string{"--no-jinja", "-c", "4096"},
			run: func(t *testing.T, m Model) {
				var u *UnsupportedError
				if a := hear(t, m, ask("Hello.")); !errors.As(a.err, &u) {
					t.Errorf("error is %v, want an UnsupportedError", a.err)
				}
			},
		},
	}
)

func TestRecordedLlamaServerChat(t *testing.T) {
	for _, s := range llamaChatScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			replay(t, s, func(url string) string { return "llamacpp:" + url })
		})
	}
}

func TestLiveLlamaServerChat(t *testing.T) {
	for _, s := range llamaChatScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			live(t, s, ollamatest.LlamaServer(t, chatFile(t), s.flags...), func(url string) string { return "llamacpp:" + url },
				s.about+"\nllama-server 0.5.0-dev (0c1e570), flags "+strings.Join(s.flags, " "))
		})
	}
}

// TestLiveOllamaChatHalt leaves an answer that would fill the context. What the
// next request finds in the cache tells how far the server went on.
func TestLiveOllamaChatHalt(t *testing.T) {
	server, m := liveOllamaChat(t, "")
	read := 0
	for c, err := range m.(Chatter).Chat(t.Context(), plainly("Go on.")) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Text != "" {
			read++
		}
		if read == 5 {
			break
		}
	}
	answered(t, m, plainly("Hello.")) // waits until the model is free
	slots := server.Slots()
	if len(slots) < 2 {
		t.Fatalf("the log tells of %d requests, want 2", len(slots))
	}
	generated := slots[len(slots)-1].Cached - slots[len(slots)-2].Prompt
	t.Logf("%d pieces read, %d tokens kept by the server", read, generated)
	if generated < read || generated > 1000 {
		t.Errorf("the server kept %d tokens of an answer that was left after %d", generated, read)
	}
}
