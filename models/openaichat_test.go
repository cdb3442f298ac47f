package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// calling is an event with pieces of calls.
func calling(pieces ...string) string {
	return delta(`{"tool_calls":[` + strings.Join(pieces, ",") + `]}`)
}

// piece is a piece of a call; index and id are JSON, name "" for none.
func piece(index, id, name, arguments string) string {
	function := `"arguments":` + quote(arguments)
	if name != "" {
		function = `"name":` + quote(name) + "," + function
	}
	return fmt.Sprintf(`{"index":%s,"id":%s,"type":"function","function":{%s}}`, index, id, function)
}

const doneEvent = "data: [DONE]\n\n"

// openaiStreams are streams of calls: those that servers send, and those that a
// reader must survive. Each comes to the same calls however the network cuts it.
var openaiStreams = []struct {
	name   string
	frames []string
	calls  string // as answer.spelled gives them
	text   string
	think  string
	finish Finish // FinishStop where it is empty
}{
	{
		// DeltaToolCall of vLLM's chat completion protocol: fields that are not
		// set are left out.
		name: "vLLM, two calls",
		frames: []string{
			delta(`{"role":"assistant","content":""}`),
			delta(`{"reasoning":"I look"}`), delta(`{"reasoning":" it up."}`),
			delta(`{"content":"\n\n"}`),
			delta(`{"tool_calls":[{"id":"chatcmpl-tool-a","type":"function","index":0,"function":{"name":"search"}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"query\": "}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"[\"tide\"]}"}}]}`),
			delta(`{"tool_calls":[{"id":"chatcmpl-tool-b","type":"function","index":1,"function":{"name":"clock"}}]}`),
			event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"finish_reason":"tool_calls","stop_reason":null}]}`),
			doneEvent,
		},
		calls: "chatcmpl-tool-a search {\"query\": [\"tide\"]}\nchatcmpl-tool-b clock {}",
		text:  "\n\n", think: "I look it up.",
	},
	{
		// Between 0.11 and 0.15 vLLM sent the reasoning under both names.
		name: "vLLM, reasoning twice",
		frames: []string{
			delta(`{"reasoning":"Hm","reasoning_content":"Hm"}`), delta(`{"reasoning":".","reasoning_content":"."}`),
			delta(`{"content":"Six."}`), finished("stop"),
		},
		text: "Six.", think: "Hm.",
	},
	{
		// A named function ends with "stop" in vLLM, as in OpenAI.
		name: "vLLM, a named function",
		frames: []string{
			delta(`{"tool_calls":[{"id":"chatcmpl-tool-a","type":"function","index":0,"function":{"name":"clock","arguments":"{"}}]}`),
			delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`),
			finished("stop"),
		},
		calls: "chatcmpl-tool-a clock {}",
	},
	{
		// ToolCall of SGLang's protocol: everything is there, as null.
		name: "SGLang",
		frames: []string{
			delta(`{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null}`),
			delta(`{"role":null,"content":null,"reasoning_content":"Hm.","tool_calls":null}`),
			delta(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"search","arguments":""}}]}`),
			delta(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{"id":null,"index":0,"type":"function","function":{"name":null,"arguments":"{\"query\": [\"tide\"]"}}]}`),
			delta(`{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{"id":null,"index":0,"type":"function","function":{"name":null,"arguments":"}"}}]}`),
			event(`{"choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},"finish_reason":"tool_calls","matched_stop":null}],"usage":null}`),
			doneEvent,
		},
		calls: `call_1 search {"query": ["tide"]}`, think: "Hm.",
	},
	{
		name: "LM Studio",
		frames: []string{
			delta(`{"role":"assistant","tool_calls":[{"index":0,"id":"365174485","type":"function","function":{"name":"search","arguments":""}}]}`),
			calling(`{"index":0,"type":"function","function":{"name":"","arguments":"{\"query\""}}`),
			calling(`{"index":0,"type":"function","function":{"arguments":":[\"tide\"]}"}}`),
			finished("tool_calls"), doneEvent,
		},
		calls: `365174485 search {"query":["tide"]}`,
	},
	{
		// llama-cpp-python repeats ID and name with every piece.
		name: "llama-cpp-python",
		frames: []string{
			delta(`{"role":"assistant","content":null,"function_call":null,"tool_calls":null}`),
			delta(`{"role":null,"content":null,"function_call":{"name":"search","arguments":"{"},"tool_calls":[` + piece("0", `"call__0_search_cmpl-1"`, "search", "{") + `]}`),
			delta(`{"role":null,"content":null,"function_call":{"name":"search","arguments":"}"},"tool_calls":[` + piece("0", `"call__0_search_cmpl-1"`, "search", "}") + `]}`),
			delta(`{"role":null,"content":null,"function_call":{"name":"search","arguments":"\n"},"tool_calls":[` + piece("0", `"call__0_search_cmpl-1"`, "search", "\n") + `]}`),
			event(`{"choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"delta":{"role":null,"content":null,"function_call":null,"tool_calls":null}}]}`),
			doneEvent,
		},
		calls: "call__0_search_cmpl-1 search {}\n",
	},
	{
		name:   "a whole call in one piece, in the event that ends",
		frames: []string{event(`{"choices":[{"index":0,"delta":{"content":null,"tool_calls":[` + piece("0", `"a"`, "search", `{"query":[]}`) + `]},"finish_reason":"tool_calls"}]}`)},
		calls:  `a search {"query":[]}`,
	},
	{
		name:   "several calls in one event",
		frames: []string{calling(piece("0", `"a"`, "search", `{}`), piece("1", `"b"`, "clock", `{}`)), finished("tool_calls")},
		calls:  "a search {}\nb clock {}",
	},
	{
		name: "two calls take turns, the second begins first",
		frames: []string{
			calling(piece("1", `"b"`, "clock", "")), calling(piece("0", `"a"`, "search", "")),
			calling(piece("1", "null", "", `{"z`)), calling(piece("0", "null", "", `{"qu`), piece("1", "null", "", `one":1}`)),
			calling(piece("0", "null", "", `ery":[]}`)), finished("tool_calls"),
		},
		calls: "a search {\"query\":[]}\nb clock {\"zone\":1}",
	},
	{
		name: "no index, IDs tell them apart",
		frames: []string{
			calling(piece("null", `"a"`, "search", `{"query":`)), calling(piece("null", "null", "", `[]}`)),
			calling(piece("null", `"b"`, "search", `{`)), calling(piece("null", `"a"`, "", ` `)), calling(piece("null", `"b"`, "", `}`)),
			finished("tool_calls"),
		},
		calls: "a search {\"query\":[]} \nb search {}",
	},
	{
		name:   "no index and no ID, whole calls",
		frames: []string{calling(piece("null", "null", "search", `{"query":["a"]}`), piece("null", "null", "search", `{"query":["b"]}`)), calling(piece("null", "null", "clock", "")), finished("tool_calls")},
		calls:  "call00001 search {\"query\":[\"a\"]}\ncall00002 search {\"query\":[\"b\"]}\ncall00003 clock ",
	},
	{
		name:   "every index is 0",
		frames: []string{calling(piece("0", `"a"`, "search", `{}`)), calling(piece("0", `"b"`, "search", `{}`)), finished("tool_calls")},
		calls:  "a search {}\nb search {}",
	},
	{
		name: "every index is 0, and two calls take turns",
		frames: []string{
			calling(piece("0", `"a"`, "search", `{`)), calling(piece("0", `"b"`, "search", `{`)),
			calling(piece("0", `"a"`, "", `}`)), calling(piece("0", `"b"`, "", `}`)), finished("tool_calls"),
		},
		calls: "a search {}\nb search {}",
	},
	{
		name: "the name is repeated, the ID is not there",
		frames: []string{
			calling(piece("0", `""`, "search", "")), calling(piece("0", `""`, "search", `{"query":[{`)),
			calling(piece("0", `""`, "search", `}]`)), calling(piece("0", `""`, "search", `}`)), calling(piece("0", `""`, "search", "")),
			finished("tool_calls"),
		},
		calls: `call00001 search {"query":[{}]}`,
	},
	{
		name:   "the same ID twice",
		frames: []string{calling(piece("0", `"a"`, "search", `{}`), piece("1", `"a"`, "search", `{}`)), finished("tool_calls")},
		calls:  "a search {}\ncall00001 search {}",
	},
	{
		name:   "arguments as an object",
		frames: []string{calling(`{"index":0,"id":"a","function":{"name":"search","arguments":{"query": ["<tide> & \"co\" ü"], "n": 12345678901234567890}}}`), finished("tool_calls")},
		calls:  `a search {"query": ["<tide> & \"co\" ü"], "n": 12345678901234567890}`,
	},
	{
		name: "arguments cut inside their own escapes",
		frames: []string{
			calling(piece("0", `"a"`, "search", `{"query":["\`)), calling(piece("0", "null", "", `u4e`)),
			calling(piece("0", "null", "", `2d\`)), calling(piece("0", "null", "", `"q"]}`)), finished("tool_calls"),
		},
		calls: `a search {"query":["\u4e2d\"q"]}`,
	},
	{
		// A server that counts in UTF-16 cuts a character in two.
		name: "arguments cut between the halves of a character",
		frames: []string{
			calling(`{"index":0,"id":"a","function":{"name":"search","arguments":"{\"query\":[\"\ud83c"}}`),
			calling(`{"index":0,"function":{"arguments":"\udf0a\"]}"}}`), finished("tool_calls"),
		},
		calls: `a search {"query":["🌊"]}`,
	},
	{
		name:   "arguments that are no JSON",
		frames: []string{calling(piece("0", `"a"`, "search", `{"query": [tide`)), finished("tool_calls")},
		calls:  `a search {"query": [tide`,
	},
	{
		name:   "no arguments at all",
		frames: []string{calling(`{"index":0,"id":"a","function":{"name":"clock"}}`), calling(`{"index":0,"function":null}`), finished("tool_calls")},
		calls:  "a clock ",
	},
	{
		name:   "the limit cuts the second call",
		frames: []string{calling(piece("0", `"a"`, "search", `{}`)), calling(piece("1", `"b"`, "search", `{"query":["ti`)), finished("length")},
		calls:  "a search {}", finish: FinishLength,
	},
	{
		name:   "the limit cuts a call before its name",
		frames: []string{delta(`{"content":"Well"}`), calling(`{"index":0,"id":"a"}`), finished("length")},
		text:   "Well", finish: FinishLength,
	},
	{
		name:   "calls that end with stop",
		frames: []string{calling(piece("0", `"a"`, "search", `{}`)), finished("stop")},
		calls:  "a search {}",
	},
	{
		name:   "filtered",
		frames: []string{delta(`{"content":"One must"}`), finished("content_filter")},
		text:   "One must", finish: FinishFilter,
	},
	{
		name:   "refused",
		frames: []string{delta(`{"content":null,"refusal":""}`), delta(`{"refusal":"I can"}`), delta(`{"refusal":"not."}`), finished("stop")},
		text:   "I cannot.",
	},
	{
		name: "another choice, and what follows the end",
		frames: []string{
			event(`{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"stop"}]}`), delta(`{"content":"yes"}`),
			finished("stop"), delta(`{"content":"late"}`), doneEvent, delta(`{"content":"later"}`),
		},
		text: "yes",
	},
}

func TestOpenAIChatStreams(t *testing.T) {
	for _, s := range openaiStreams {
		t.Run(s.name, func(t *testing.T) {
			whole := strings.Join(s.frames, "")
			for _, size := range []int{0, 1, 7} {
				f := openaiChatDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", openaiChatDialect.media)
					send(w, []byte(whole), size)
				})
				a := answered(t, f.chatter(t), ChatRequest{Conversation: question.Conversation, MaxTokens: 5})
				check(t, "calls", a.spelled(), s.calls)
				check(t, "text", a.text, s.text)
				check(t, "thinking", a.thinking, s.think)
				if s.finish == "" {
					s.finish = FinishStop
				}
				check(t, "finish", a.final.Finish, s.finish)
				if a.final.Timings.FirstToken <= 0 {
					t.Error("the time of the first token is not known")
				}
			}
		})
	}
}

// TestOpenAIChatFailures are streams that must not pass for an answer.
func TestOpenAIChatFailures(t *testing.T) {
	begun := calling(piece("0", `"a"`, "search", `{"query":`))
	for _, c := range []struct {
		name   string
		frames []string
		want   any
	}{
		{"cut in a call", []string{begun}, new(*CutError)},
		{"cut in a call, with [DONE]", []string{begun, doneEvent}, new(*CutError)},
		{"cut after thinking", []string{delta(`{"reasoning_content":"Hm"}`)}, new(*CutError)},
		{"an error in a call", []string{begun, event(`{"error":{"message":"the engine died","type":"internal_error","code":500}}`), doneEvent}, new(*ServerError)},
		{"an error after the end", []string{finished("stop"), event(`{"error":{"message":"the engine died"}}`)}, new(*ServerError)},
		{"aborted", []string{begun, finished("abort")}, new(*ServerError)},
		{"ends with calls, none came", []string{delta(`{"content":"x"}`), finished("tool_calls"), doneEvent}, new(*ProtocolError)},
		{"ends with calls, an empty list", []string{delta(`{"tool_calls":[]}`), finished("tool_calls"), doneEvent}, new(*ProtocolError)},
		{"a call without a name", []string{calling(piece("0", `"a"`, "", `{}`)), finished("tool_calls")}, new(*ProtocolError)},
		{"an unknown end", []string{begun, finished("tired")}, new(*ProtocolError)},
		{"the end of an old protocol", []string{delta(`{"function_call":{"name":"search","arguments":"{}"}}`), finished("function_call")}, new(*ProtocolError)},
		{"not UTF-8 in arguments", []string{event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"search","arguments":"` + "\xe4\xb8" + `"}}]}}]}`), finished("tool_calls")}, new(*ProtocolError)},
		{"content is a list", []string{delta(`{"content":[{"type":"text","text":"x"}]}`), finished("stop")}, new(*ProtocolError)},
		{"nothing", []string{doneEvent}, new(*CutError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := openaiChatDialect.serve(t, openaiChatDialect.says(c.frames...))
			a := hear(t, f.chatter(t), question)
			if !errors.As(a.err, c.want) {
				t.Errorf("error is %v, want a %T", a.err, c.want)
			}
			check(t, "calls", len(a.calls), 0)
		})
	}
}

// TestOpenAIChatCutBytes: pieces of calls count as what came.
func TestOpenAIChatCutBytes(t *testing.T) {
	f := openaiChatDialect.serve(t, openaiChatDialect.says(
		delta(`{"reasoning":"abc"}`), calling(piece("0", `"a"`, "search", "12345"))))
	a := hear(t, f.chatter(t), question)
	var c *CutError
	if !errors.As(a.err, &c) || c.Bytes != 14 || c.Tokens != 2 {
		t.Errorf("error is %v, want a CutError after 14 bytes in 2 pieces", a.err)
	}
}

// TestOpenAIChatPiecesAreSignsOfLife: a long call must not look like silence,
// and a call that stops coming is silence.
func TestOpenAIChatPiecesAreSignsOfLife(t *testing.T) {
	f := openaiChatDialect.serve(t, nil)
	f.play = f.hangs(calling(piece("0", `"a"`, "search", `{"query":`)), delta(`{}`))
	p := f.open(t, Options{FirstToken: time.Minute, BetweenTokens: 50 * time.Millisecond}).(asPrompt)
	var s *StallError
	if a := hear(t, p.Model, question); !errors.As(a.err, &s) || s.Phase != StallBetweenTokens {
		t.Errorf("error is %v, want a StallError between tokens", a.err)
	}
	<-f.gone
}

// TestOpenAIChatFieldsOfEachServer: as with /v1/completions, each gets its own.
func TestOpenAIChatFieldsOfEachServer(t *testing.T) {
	common := "messages model stream stream_options tools "
	penalty, temperature := 1.1, 0.0
	for _, c := range []struct {
		name string
		d    dialect
		want string
	}{
		{"LM Studio", studioChatDialect, common + "repeat_penalty temperature"},
		{"vLLM", vllmChatDialect, common + "repetition_penalty temperature"},
		{"SGLang", sglangChatDialect, common + "repetition_penalty temperature rid"},
		{"llama-server", llamaChatDialect, "messages stream stream_options tools repeat_penalty temperature cache_prompt return_progress timings_per_token id_slot"},
	} {
		f := c.d.serve(t, c.d.says(c.d.frames("x")...))
		req := question
		req.Sampling, req.Session = Sampling{RepeatPenalty: &penalty, Temperature: &temperature}, "s"
		answered(t, f.chatter(t), req)
		body := f.last(t)
		var names []string
		for name := range body {
			names = append(names, name)
		}
		want := strings.Fields(c.want)
		sort.Strings(names)
		sort.Strings(want)
		check(t, c.name, strings.Join(names, " "), strings.Join(want, " "))
		check(t, "include_usage", body["stream_options"].(map[string]any)["include_usage"], any(true))
		req.MaxTokens = 7
		answered(t, f.chatter(t), req)
		check(t, "max_tokens", f.last(t)["max_tokens"], any(7.0))
	}
}

func TestOpenAIChatUsage(t *testing.T) {
	usage := func(prompt, generated int, details string) string {
		return event(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":0%s}}`, prompt, generated, details))
	}
	f := vllmChatDialect.serve(t, vllmChatDialect.says(
		event(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`),
		finished("stop"), usage(9, 3, `,"prompt_tokens_details":{"cached_tokens":8}`), doneEvent))
	a := answered(t, f.chatter(t), question)
	check(t, "usage before the end", *a.usage, Usage{Prompt: Known(9), Generated: Known(1)})
	check(t, "usage", a.final.Usage, Usage{Prompt: Known(9), Reused: Known(8), Evaluated: Known(1), Generated: Known(3)})

	// The end of the context is told apart from the limit, as for raw prompts.
	f.play = f.says(delta(`{"content":"a"}`), finished("length"), usage(4000, 96, ""))
	check(t, "finish", answered(t, f.chatter(t), question).final.Finish, FinishContext)
	// A stream that ends before the counts is complete all the same.
	f.play = f.says(delta(`{"content":"a"}`), finished("stop"))
	check(t, "usage", answered(t, f.chatter(t), question).final.Usage, Usage{})
}

func TestOpenAIChatOverflow(t *testing.T) {
	for _, c := range []struct {
		d    dialect
		body string
	}{
		{vllmChatDialect, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}}`},
		{sglangChatDialect, `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","param":null,"code":400}`},
		{llamaChatDialect, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`},
	} {
		f := c.d.serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, c.body, http.StatusBadRequest) })
		a := hear(t, f.chatter(t), question)
		var o *OverflowError
		if !errors.As(a.err, &o) {
			t.Errorf("%s: error is %v, want an OverflowError", c.d.name, a.err)
			continue
		}
		check(t, "error", *o, OverflowError{Known(5000), Known(4096)})
	}
}

// TestSGLangChatIsToldToAbort: see TestSGLangIsToldToAbort.
func TestSGLangChatIsToldToAbort(t *testing.T) {
	var mu sync.Mutex
	var aborted []string
	f := sglangChatDialect.serve(t, nil)
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/abort_request" {
			f.ServeHTTP(w, r)
			return
		}
		var body struct {
			ID string `json:"rid"`
		}
		b, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(b, &body)
		mu.Lock()
		defer mu.Unlock()
		aborted = append(aborted, body.ID)
	})
	m, err := Open("openai:"+front+"/v1#m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.play = f.says(f.frames("a")...)
	answered(t, m, question)
	f.play = f.hangs(delta(`{"content":"a"}`))
	for range m.(Chatter).Chat(t.Context(), question) {
		break
	}
	mu.Lock()
	defer mu.Unlock()
	if len(aborted) != 1 || aborted[0] == "" || any(aborted[0]) != f.requests[1]["rid"] {
		t.Errorf("aborted %q, want the second of %v", aborted, f.requests)
	}
	check(t, "whether two requests have different names", f.requests[0]["rid"] != f.requests[1]["rid"], true)
}
