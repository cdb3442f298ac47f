package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
)

// The dialects of the chat endpoints. They keep all that the raw ones keep:
// what conformance_test.go and faults_test.go say of dialects is of these too.
var (
	ollamaChatDialect = dialect{
		name: "ollama chat", path: "/api/chat", media: ollamaDialect.media, asides: ollamaDialect.asides,
		text: func(s string) string {
			return `{"message":{"role":"assistant","content":` + quote(s) + `},"done":false}` + "\n"
		},
		end:    strings.Replace(ollamaDialect.end, `"response":""`, `"message":{"role":"assistant","content":""}`, 1),
		broken: ollamaDialect.broken, ref: ollamaDialect.ref, chat: true,
	}
	openaiChatDialect = dialect{
		name: "openai chat", path: "/v1/chat/completions", media: openaiDialect.media, asides: openaiDialect.asides,
		text: func(s string) string { return delta(`{"content":` + quote(s) + `}`) },
		end: event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`) +
			event(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`) + event("[DONE]"),
		broken: openaiDialect.broken, ref: openaiDialect.ref, chat: true,
	}
	llamaChatDialect = dialect{
		name: "llamacpp chat", path: openaiChatDialect.path, media: openaiDialect.media, asides: llamaDialect.asides,
		text: openaiChatDialect.text, end: openaiChatDialect.end,
		broken: llamaDialect.broken, ref: llamaDialect.ref, chat: true,
	}
	vllmChatDialect   = openaiChatDialect.with("/v1/models", vllmModels)
	sglangChatDialect = openaiChatDialect.with("/v1/models", sglangModels)
	studioChatDialect = openaiChatDialect.with("/v1/models", studioModels)
)

// delta is an event of /v1/chat/completions.
func delta(d string) string {
	return event(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + d + `,"logprobs":null,"finish_reason":null}]}`)
}

// finished is the event that ends an answer.
func finished(reason string) string {
	return event(`{"choices":[{"index":0,"delta":{},"finish_reason":` + quote(reason) + `}]}`)
}

// asPrompt is a chat endpoint as a Model: the prompt is the only message.
type asPrompt struct{ Model }

func (m asPrompt) Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error] {
	chat := ChatRequest{MaxTokens: req.MaxTokens, Sampling: req.Sampling, Session: req.Session}
	said := ""
	for _, s := range req.Prompt {
		said += s.Text
	}
	if said != "" {
		chat.Messages = []Message{{Role: RoleUser, Content: said}}
	}
	return func(yield func(Chunk, error) bool) {
		for c, err := range m.Model.(Chatter).Chat(ctx, chat) {
			if !yield(c.Chunk, err) {
				return
			}
		}
	}
}

// prompt is what was asked, in the body of a request.
func (d dialect) prompt(body map[string]any) any {
	if d.chat {
		return body["messages"].([]any)[0].(map[string]any)["content"]
	}
	return body["prompt"]
}

// An answer is everything that a chat yielded.
type answer struct {
	text, thinking string
	calls          []ToolCall
	progress       []Progress
	usage          *Usage
	final          *Final
	err            error
}

// spelled are the calls, one a line: ID, name, arguments.
func (a answer) spelled() string {
	var lines []string
	for _, c := range a.calls {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.ID, c.Name, c.Arguments))
	}
	return strings.Join(lines, "\n")
}

// hear reads a chat to its end and checks what every chat keeps.
func hear(t *testing.T, m Model, req ChatRequest) answer {
	t.Helper()
	var a answer
	taken := map[string]bool{}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	for c, err := range m.(Chatter).Chat(t.Context(), req) {
		if a.err != nil || a.final != nil {
			t.Errorf("%+v, %v was yielded after the end", c, err)
		}
		if c.Tokens != nil {
			t.Errorf("a chat chunk has the ids %v", c.Tokens)
		}
		if h := (heard{ChatChunk: c}); err == nil && !h.told() {
			t.Error("a chunk says nothing")
		}
		for _, call := range c.Calls {
			if call.ID == "" || taken[call.ID] {
				t.Errorf("the ID %q of a call is not its own", call.ID)
			}
			taken[call.ID] = true
		}
		a.text += c.Text
		a.thinking += c.Thinking
		a.calls = append(a.calls, c.Calls...)
		if c.Progress != nil {
			a.progress = append(a.progress, *c.Progress)
			if c.Usage != nil && c.Usage.Prompt != Known(c.Progress.Total) {
				t.Errorf("the prompt is %s of %d tokens", c.Usage.Prompt, c.Progress.Total)
			}
		}
		if c.Usage != nil {
			a.usage = c.Usage
		}
		a.final, a.err = c.Final, err
	}
	if (a.err == nil) == (a.final == nil) {
		t.Errorf("a chat ended with final %v and error %v", a.final, a.err)
	}
	return a
}

// answered is a chat that must not fail.
func answered(t *testing.T, m Model, req ChatRequest) answer {
	t.Helper()
	a := hear(t, m, req)
	if a.err != nil {
		t.Fatalf("chat: %v", a.err)
	}
	return a
}

// open opens the fake without the wrapping of chat dialects.
func (f *fake) chatter(t *testing.T) Model {
	t.Helper()
	if p, ok := f.open(t, Options{}).(asPrompt); ok {
		return p.Model
	}
	t.Fatal("not the dialect of a chat endpoint")
	return nil
}

var (
	searchTool = ToolSpec{
		Name: "search", Description: "Looks it up.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"array","items":{"type":"string"}}},"required":["query"]}`),
	}
	clockTool = ToolSpec{Name: "clock"}
	question  = ChatRequest{Conversation: Conversation{
		Messages: []Message{{Role: RoleSystem, Content: "Be brief."}, {Role: RoleUser, Content: "How deep?"}},
		Tools:    []ToolSpec{searchTool, clockTool},
	}}
)

// after is the question with a call, its answer and what stands between.
func after(call ToolCall) ChatRequest {
	req := question
	req.Messages = append(req.Messages[:2:2],
		Message{Role: RoleAssistant, Thinking: "I look it up.", Content: "Wait.", Calls: []ToolCall{call}},
		Message{Role: RoleTool, Name: call.Name, CallID: call.ID, Content: "5 m"})
	return req
}

// TestChatRefusesWhatCannotBeSent: before anything is sent.
func TestChatRefusesWhatCannotBeSent(t *testing.T) {
	say := func(m Message) Conversation { return Conversation{Messages: []Message{m}} }
	user := say(Message{Role: RoleUser, Content: "x"})
	with := func(t ToolSpec) Conversation { return Conversation{Messages: user.Messages, Tools: []ToolSpec{t}} }
	for name, req := range map[string]ChatRequest{
		"no messages":               {},
		"half a character":          {Conversation: say(Message{Role: RoleUser, Content: "\xe4\xb8"})},
		"half a character, thought": {Conversation: say(Message{Role: RoleAssistant, Thinking: "\xe4\xb8"})},
		"half a character, called":  {Conversation: say(Message{Role: RoleAssistant, Calls: []ToolCall{{Name: "f", Arguments: json.RawMessage("{\"a\":\"\xe4\"}")}}})},
		"half a character, named":   {Conversation: with(ToolSpec{Name: "\xe4"})},
		"parameters are no JSON":    {Conversation: with(ToolSpec{Name: "f", Parameters: json.RawMessage(`{"type":`)})},
		"parameters are no object":  {Conversation: with(ToolSpec{Name: "f", Parameters: json.RawMessage(`[]`)})},
		"required of none":          {Conversation: user, ToolChoice: ToolChoice{Mode: ChooseRequired}},
		"named, not offered":        {Conversation: with(ToolSpec{Name: "f"}), ToolChoice: ToolChoice{Mode: ChooseNamed, Name: "g"}},
		"unknown choice":            {Conversation: with(ToolSpec{Name: "f"}), ToolChoice: ToolChoice{Mode: "perhaps"}},
	} {
		f := openaiChatDialect.serve(t, openaiChatDialect.says(openaiChatDialect.frames("x")...))
		a := hear(t, f.chatter(t), req)
		var p *PromptError
		if !errors.As(a.err, &p) {
			t.Errorf("%s: error is %v, want a PromptError", name, a.err)
		}
		check(t, name+": requests", len(f.requests), 0)
	}
}

// TestChatToolChoice: what each server is told, or cannot be told.
func TestChatToolChoice(t *testing.T) {
	const named = "tool_choice: a named function"
	function := map[string]any{"type": "function", "function": map[string]any{"name": "clock"}}
	for _, c := range []struct {
		d           dialect
		mode        ChoiceMode
		want        any // tool_choice, nil for none
		tools       int
		unsupported string
	}{
		{openaiChatDialect, ChooseAuto, nil, 2, ""},
		{openaiChatDialect, ChooseNone, "none", 2, ""},
		{openaiChatDialect, ChooseRequired, "required", 2, ""},
		{openaiChatDialect, ChooseNamed, function, 2, ""},
		{vllmChatDialect, ChooseNamed, function, 2, ""},
		{llamaChatDialect, ChooseAuto, nil, 2, ""},
		{llamaChatDialect, ChooseNone, "none", 2, ""},
		{llamaChatDialect, ChooseRequired, "required", 2, ""},
		{llamaChatDialect, ChooseNamed, nil, 0, named},
		{openaiChatDialect.with("/v1/models", `{"data":[{"id":"m","owned_by":"llamacpp"}]}`), ChooseNamed, nil, 0, named},
		{ollamaChatDialect, ChooseAuto, nil, 2, ""},
		{ollamaChatDialect, ChooseNone, nil, 0, ""},
		{ollamaChatDialect, ChooseRequired, nil, 0, "tool_choice: required"},
		{ollamaChatDialect, ChooseNamed, nil, 0, named},
	} {
		t.Run(c.d.name+" "+string(c.mode), func(t *testing.T) {
			f := c.d.serve(t, c.d.says(c.d.frames("x")...))
			req := question
			req.ToolChoice = ToolChoice{Mode: c.mode, Name: "clock"}
			a := hear(t, f.chatter(t), req)
			if c.unsupported != "" {
				var u *UnsupportedError
				if !errors.As(a.err, &u) || u.What != c.unsupported {
					t.Errorf("error is %v, want an UnsupportedError of %q", a.err, c.unsupported)
				}
				check(t, "requests", len(f.requests), 0)
				return
			}
			body := f.last(t)
			check(t, "tool_choice", jsonOf(t, body["tool_choice"]), jsonOf(t, c.want))
			tools, _ := body["tools"].([]any)
			check(t, "tools", len(tools), c.tools)
			if _, sent := body["parallel_tool_calls"]; sent {
				t.Error("whether calls come several at once is the server's default")
			}
		})
	}
	// Without tools there is nothing to choose from, and servers refuse a choice.
	f := openaiChatDialect.serve(t, openaiChatDialect.says(openaiChatDialect.frames("x")...))
	req := ChatRequest{Conversation: Conversation{Messages: question.Messages}, ToolChoice: ToolChoice{Mode: ChooseNone}}
	answered(t, f.chatter(t), req)
	for _, field := range []string{"tools", "tool_choice"} {
		if _, sent := f.last(t)[field]; sent {
			t.Errorf("%s was sent without tools", field)
		}
	}
}

// TestChatTools: how a tool is described.
func TestChatTools(t *testing.T) {
	for _, d := range []dialect{openaiChatDialect, llamaChatDialect, ollamaChatDialect} {
		f := d.serve(t, d.says(d.frames("x")...))
		answered(t, f.chatter(t), question)
		check(t, d.name, jsonOf(t, f.last(t)["tools"]), `[`+
			`{"function":{"description":"Looks it up.","name":"search","parameters":{"properties":{"query":{"items":{"type":"string"},"type":"array"}},"required":["query"],"type":"object"}},"type":"function"},`+
			`{"function":{"name":"clock","parameters":{"properties":{},"type":"object"}},"type":"function"}]`)
	}
}

// TestChatMessages: a conversation with a call, as each server takes it.
func TestChatMessages(t *testing.T) {
	call := ToolCall{ID: "call_1", Name: "search", Arguments: json.RawMessage(`{"query": ["tide"]}`)}
	opening := `[{"content":"Be brief.","role":"system"},{"content":"How deep?","role":"user"},`
	openai := func(reasoning string) string {
		return opening +
			`{"content":"Wait.",` + reasoning + `:"I look it up.","role":"assistant","tool_calls":[` +
			`{"function":{"arguments":"{\"query\": [\"tide\"]}","name":"search"},"id":"call_1","type":"function"}]},` +
			`{"content":"5 m","name":"search","role":"tool","tool_call_id":"call_1"}]`
	}
	for _, c := range []struct {
		name string
		d    dialect
		want string
	}{
		{"LM Studio", studioChatDialect, openai(`"reasoning_content"`)},
		{"SGLang", sglangChatDialect, openai(`"reasoning_content"`)},
		{"llama-server", llamaChatDialect, openai(`"reasoning_content"`)},
		{"vLLM", vllmChatDialect, openai(`"reasoning"`)},
		{"Ollama", ollamaChatDialect, opening +
			`{"content":"Wait.","role":"assistant","thinking":"I look it up.","tool_calls":[` +
			`{"function":{"arguments":{"query":["tide"]},"index":0,"name":"search"},"id":"call_1"}]},` +
			`{"content":"5 m","role":"tool","tool_call_id":"call_1","tool_name":"search"}]`},
	} {
		f := c.d.serve(t, c.d.says(c.d.frames("x")...))
		answered(t, f.chatter(t), after(call))
		check(t, c.name, jsonOf(t, f.last(t)["messages"]), c.want)
	}
}

// TestChatArgumentsGoBack: whatever a model wrote as arguments, the call stays
// in the conversation, and every server can read it.
func TestChatArgumentsGoBack(t *testing.T) {
	for written, want := range map[string]string{
		``:                                      `{}`,
		" {\"a\": 1, \"a\": 2}\n":               `{"a": 1, "a": 2}`,
		`{"n":12345678901234567890, "s":"<&>"}`: `{"n":12345678901234567890, "s":"<&>"}`,
		`[1, 2]`:                                `{"arguments":[1,2]}`,
		`"tide"`:                                `{"arguments":"tide"}`,
		`null`:                                  `{"arguments":null}`,
		`{"query": ["tide`:                      `{"arguments":"{\"query\": [\"tide"}`,
		`{"a":1}{"b":2}`:                        `{"arguments":"{\"a\":1}{\"b\":2}"}`,
		"<b> & \u2028":                          `{"arguments":"<b> & \u2028"}`,
	} {
		call := ToolCall{ID: "c", Name: "search", Arguments: json.RawMessage(written)}
		f := openaiChatDialect.serve(t, openaiChatDialect.says(openaiChatDialect.frames("x")...))
		answered(t, f.chatter(t), after(call))
		function := func() map[string]any {
			return f.last(t)["messages"].([]any)[2].(map[string]any)["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)
		}
		check(t, "as text", function()["arguments"], any(want))
		f = ollamaChatDialect.serve(t, ollamaChatDialect.says(ollamaChatDialect.frames("x")...))
		answered(t, f.chatter(t), after(call))
		var object any
		if err := json.Unmarshal([]byte(want), &object); err != nil {
			t.Fatal(err)
		}
		check(t, "as object", jsonOf(t, function()["arguments"]), jsonOf(t, object))
	}
}

// TestChatIDs: what the server gives, unless it is missing or taken.
func TestChatIDs(t *testing.T) {
	history := after(ToolCall{ID: "call00001", Name: "search"}).Conversation
	for _, c := range []struct{ given, want string }{
		{"a b", "a b"},
		{" ", "call00002 call00003"},
		{"call00001 b", "call00002 b"},
		{"b b b", "b call00002 call00003"},
		{"call00002 ", "call00002 call00003"},
	} {
		ids := newCallIDs(history)
		var got []string
		for given := range strings.SplitSeq(c.given, " ") {
			got = append(got, ids.unique(given))
		}
		check(t, fmt.Sprintf("the IDs for %q", c.given), strings.Join(got, " "), c.want)
	}
}

// TestServersWithoutTools: the words in which servers say it.
func TestServersWithoutTools(t *testing.T) {
	for _, c := range []struct {
		d      dialect
		status int
		body   string
	}{
		{ollamaChatDialect, 400, `{"error":"registry.ollama.ai/library/m:latest does not support tools"}`},
		{vllmChatDialect, 400, `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}`},
		{llamaChatDialect, 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`},
		{studioChatDialect, 400, `{"error":"Invalid tool_choice type: 'object'. Supported string values: none, auto, required"}`},
	} {
		f := c.d.serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, c.body, c.status) })
		var u *UnsupportedError
		if a := hear(t, f.chatter(t), question); !errors.As(a.err, &u) || !strings.Contains(u.What, "tool") {
			t.Errorf("%s: error is %v, want an UnsupportedError", c.d.name, a.err)
		}
		var s *ServerError
		plain := ChatRequest{Conversation: Conversation{Messages: question.Messages}}
		if a := hear(t, f.chatter(t), plain); !errors.As(a.err, &s) {
			t.Errorf("%s: without tools the error is %v, want a ServerError", c.d.name, a.err)
		}
	}
}

// TestChatErrorsKeepSecrets: what a server quotes of a conversation.
func TestChatErrorsKeepSecrets(t *testing.T) {
	const secret = "Hieronymus Unwin, of 4 Quay Street"
	said, _ := json.Marshal(secret)
	for name, req := range map[string]ChatRequest{
		"content":     {Conversation: Conversation{Messages: []Message{{Role: RoleUser, Content: secret}}}},
		"thinking":    {Conversation: Conversation{Messages: []Message{{Role: RoleAssistant, Thinking: secret}}}},
		"arguments":   {Conversation: Conversation{Messages: []Message{{Role: RoleAssistant, Calls: []ToolCall{{Name: "f", Arguments: said}}}}}},
		"description": {Conversation: Conversation{Messages: question.Messages, Tools: []ToolSpec{{Name: "f", Description: secret}}}},
	} {
		for _, d := range []dialect{openaiChatDialect, llamaChatDialect, ollamaChatDialect} {
			f := d.serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "bad: "+secret, 400) })
			a := hear(t, f.chatter(t), req)
			if a.err == nil || strings.Contains(a.err.Error(), "Unwin") {
				t.Errorf("%s, %s: error is %v", d.name, name, a.err)
			}
		}
	}
}
