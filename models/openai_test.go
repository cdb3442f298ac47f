package models

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// What vLLM, SGLang and LM Studio list as their models.
const (
	vllmModels   = `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"vllm","root":"m","parent":null,"max_model_len":4096,"permission":[]}]}`
	sglangModels = `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"sglang","root":"m","max_model_len":4096}]}`
	studioModels = `{"object":"list","data":[{"id":"m","object":"model","owned_by":"organization_owner"}]}`
)

var (
	vllmDialect   = openaiDialect.with("/v1/models", vllmModels).with("/tokenize", `{"count":96,"max_model_len":4096,"tokens":[]}`)
	sglangDialect = openaiDialect.with("/v1/models", sglangModels)
)

func openaiFake(t *testing.T, d dialect, frames ...string) *fake {
	if frames == nil {
		frames = d.frames("x")
	}
	return d.serve(t, d.says(frames...))
}

func openaiPart(text string, ids string, finish string, more string) string {
	if finish != "null" {
		finish = quote(finish)
	}
	return event(fmt.Sprintf(`{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":%s,"logprobs":null,"finish_reason":%s,"token_ids":%s%s}]}`,
		quote(text), finish, ids, more))
}

// TestOpenAIDoneIsNotTheTruth: it comes also after an error and after nothing.
func TestOpenAIDoneIsNotTheTruth(t *testing.T) {
	f := openaiFake(t, openaiDialect, openaiPart("a", "null", "null", ""), event("[DONE]"))
	var c *CutError
	if got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")}); !errors.As(got.err, &c) {
		t.Errorf("error is %v, want a CutError", got.err)
	}
	// And a stream without it is complete if it has a reason.
	f = openaiFake(t, openaiDialect, openaiPart("a", "null", "length", ""))
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p"), MaxTokens: 1})
	check(t, "finish", got.final.Finish, FinishLength)
}

func TestOpenAIMaxTokensIsAlwaysSent(t *testing.T) {
	ids := []Segment{{Text: "abc", Tokens: []int{1, 2, 3}}}
	for _, c := range []struct {
		name   string
		d      dialect
		prompt []Segment
		max    int
		want   float64
	}{
		{"as asked", openaiDialect, text("p"), 7, 7},
		{"unknown context", openaiDialect, text("p"), 0, defaultMaxTokens},
		{"vLLM counts a text", vllmDialect, text("p"), 0, 4096 - 96 - 1},
		{"vLLM, ids", vllmDialect, ids, 0, 4096 - 3 - 1},
		{"SGLang, ids", sglangDialect, ids, 0, 4096 - 3 - 1},
		{"SGLang, text", sglangDialect, text("p"), 0, defaultMaxTokens},
	} {
		f := openaiFake(t, c.d)
		complete(t, f.open(t, Options{}), Request{Prompt: c.prompt, MaxTokens: c.max})
		check(t, c.name, f.last(t)["max_tokens"], any(c.want))
	}
}

// TestOpenAIFieldsOfEachServer: strict servers refuse fields that they do not
// know, so each gets its own.
func TestOpenAIFieldsOfEachServer(t *testing.T) {
	common := "max_tokens model prompt stream stream_options"
	penalty := 1.1
	for _, c := range []struct {
		name string
		d    dialect
		want string
	}{
		{"LM Studio", openaiDialect.with("/v1/models", studioModels), common + " repeat_penalty"},
		{"vLLM", vllmDialect, common + " skip_special_tokens return_token_ids add_special_tokens repetition_penalty"},
		{"SGLang", sglangDialect, common + " skip_special_tokens return_token_ids rid repetition_penalty"},
	} {
		f := openaiFake(t, c.d)
		complete(t, f.open(t, Options{}), Request{Prompt: text("p"), Sampling: Sampling{RepeatPenalty: &penalty}})
		var names []string
		for name := range f.last(t) {
			names = append(names, name)
		}
		want := strings.Fields(c.want)
		sort.Strings(names)
		sort.Strings(want)
		check(t, c.name, strings.Join(names, " "), strings.Join(want, " "))
		options := f.last(t)["stream_options"].(map[string]any)
		check(t, "include_usage", options["include_usage"], any(true))
		check(t, "skip_special_tokens", f.last(t)["skip_special_tokens"] == any(false), c.name != "LM Studio")
	}
}

func TestOpenAIPromptsAsIDs(t *testing.T) {
	all := []Segment{{Text: "a", Tokens: []int{1}}, {Text: "bc", Tokens: []int{2, 3}}, {}}
	some := []Segment{{Text: "a", Tokens: []int{1}}, {Text: "bc"}}
	for _, c := range []struct {
		d      dialect
		prompt []Segment
		want   string
	}{
		{vllmDialect, all, "[1,2,3]"}, {sglangDialect, all, "[1,2,3]"}, {openaiDialect, all, `"abc"`},
		{vllmDialect, some, `"abc"`},
	} {
		f := openaiFake(t, c.d)
		complete(t, f.open(t, Options{}), Request{Prompt: c.prompt})
		check(t, "prompt", jsonOf(t, f.last(t)["prompt"]), c.want)
	}
	// Ids that no vocabulary has are not sent: they have killed engines.
	f := openaiFake(t, vllmDialect)
	for _, id := range []int{-1, 1 << 40} {
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: []Segment{{Text: "a", Tokens: []int{id}}}})
		var p *PromptError
		if !errors.As(got.err, &p) {
			t.Errorf("id %d: error is %v", id, got.err)
		}
	}
	check(t, "requests", len(f.requests), 0)
}

func TestOpenAIIDsOfTheOutput(t *testing.T) {
	usage := event(`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}`)
	f := openaiFake(t, vllmDialect,
		openaiPart("a", "[11]", "null", ""), openaiPart("b", "[12]", "null", ""),
		openaiPart("", "[99]", "stop", `,"stop_reason":null`), usage, event("[DONE]"))
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	check(t, "ids, without the one that ends it", fmt.Sprint(got.tokens), "[11 12]")
	check(t, "usage", got.final.Usage, Usage{Prompt: Known(9), Reused: Known(8), Evaluated: Known(1), Generated: Known(3)})
	f = openaiFake(t, vllmDialect, openaiPart("a", "[11]", "null", ""), openaiPart("", "[12]", "stop", `,"stop_reason":"b"`), event("[DONE]"))
	got = complete(t, f.open(t, Options{}), Request{Prompt: text("p"), Stop: []string{"b"}})
	check(t, "ids where a stop string cuts", len(got.tokens), 0)
}

func TestOpenAIUsageBeforeTheEnd(t *testing.T) {
	f := openaiFake(t, vllmDialect, event(`{"choices":[{"index":0,"text":"a","finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`))
	got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
	if got.usage == nil || *got.usage != (Usage{Prompt: Known(9), Generated: Known(1)}) {
		t.Errorf("usage is %v", got.usage)
	}
}

func TestOpenAIEndings(t *testing.T) {
	usage := func(prompt, generated int) string {
		return event(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, generated))
	}
	for _, c := range []struct {
		name   string
		finish string
		usage  string
		max    int
		want   Finish
	}{
		{"stop", "stop", usage(9, 3), 0, FinishStop},
		{"limit", "length", usage(9, 5), 5, FinishLength},
		{"context", "length", usage(4000, 96), 500, FinishContext},
		{"context, nothing asked", "length", usage(4000, 95), 0, FinishContext},
		{"no counts", "length", "", 5, FinishLength},
		{"aborted", "abort", "", 0, ""},
		{"error", "error", "", 0, ""},
		{"unknown", "tool_calls", "", 0, ""},
	} {
		f := openaiFake(t, vllmDialect, openaiPart("a", "[1]", c.finish, ""), c.usage, event("[DONE]"))
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p"), MaxTokens: c.max})
		if c.want == "" {
			if got.err == nil {
				t.Errorf("%s: a finish was invented: %v", c.name, got.final)
			}
			continue
		}
		if got.final == nil {
			t.Errorf("%s: %v", c.name, got.err)
			continue
		}
		check(t, c.name, got.final.Finish, c.want)
	}
}

// TestSGLangIsToldToAbort: it notices a closed connection late.
func TestSGLangIsToldToAbort(t *testing.T) {
	var mu sync.Mutex
	var aborted []string
	f := sglangDialect.serve(t, nil)
	f.play = f.hangs(sglangDialect.text("a"))
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/abort_request" {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			aborted = append(aborted, strings.TrimSpace(string(body)))
			mu.Unlock()
			return
		}
		f.ServeHTTP(w, r)
	})
	m, err := Open("openai:"+front+"/v1#m", Options{BetweenTokens: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(n int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(aborted) != n {
			t.Fatalf("aborted %q, want %d", aborted, n)
		}
		for i, a := range aborted {
			check(t, "aborted", a, `{"rid":`+quote(f.requests[i]["rid"].(string))+`}`)
		}
	}
	for range m.Stream(t.Context(), Request{Prompt: text("p")}) {
		break
	}
	expect(1)
	listen(t, t.Context(), m, Request{Prompt: text("p")}) // stalls
	expect(2)
	f.play = f.says(f.frames("a")...)
	if m, err = Open("openai:"+front+"/v1#m", Options{}); err != nil {
		t.Fatal(err)
	}
	complete(t, m, Request{Prompt: text("p")})
	expect(2)
	check(t, "whether two requests have different names", f.requests[0]["rid"] != f.requests[1]["rid"], true)
}

func TestOpenAIOverflowTexts(t *testing.T) {
	for message, want := range map[string]OverflowError{
		"This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (5000 in the messages, 100 in the completion). Please reduce the length of the messages or completion.": {Known(5000), Known(4096)},
		"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4096 > 8192 - 5000).":                   {Known(5000), Known(8192)},
		"this model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens":                                                                                                 {Known(5000), Known(4096)},
		"You passed 5001 input tokens and requested 16 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4080 tokens.":                     {Known(5001), Known(4096)},
		"The input (5000 tokens) is longer than the model's context length (4096 tokens).":                                                                                                              {Known(5000), Known(4096)},
		"Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5016 tokens: 5000 tokens from the input messages and 16 tokens for the completion.":  {Known(5000), Known(4096)},
		"the prompt is longer than the context length": {},
	} {
		for _, body := range []string{
			`{"error":{"message":` + quote(message) + `,"type":"BadRequestError","param":null,"code":400}}`,
			`{"object":"error","message":` + quote(message) + `,"type":"BadRequestError","param":null,"code":400}`,
			`{"detail":` + quote(message) + `}`,
		} {
			f := vllmDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, body)
			})
			got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
			var o *OverflowError
			if !errors.As(got.err, &o) {
				t.Errorf("error is %v, want an OverflowError", got.err)
				continue
			}
			check(t, message, *o, want)
		}
	}
}

func TestOpenAIModelNames(t *testing.T) {
	open := func(d dialect, fragment string) (*fake, told) {
		f := openaiFake(t, d)
		m, err := Open("openai:"+f.URL+"/v1/"+fragment, Options{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		return f, listen(t, t.Context(), m, Request{Prompt: text("p")})
	}
	f, got := open(openaiDialect, "#org/model name")
	check(t, "named", f.last(t)["model"], any("org/model name"))
	check(t, "error", got.err, nil)
	f, _ = open(openaiDialect, "")
	check(t, "the only one", f.last(t)["model"], any("m"))
	_, got = open(openaiDialect.with("/v1/models", `{"data":[{"id":"a"},{"id":"b"}]}`), "")
	var nf *NotFoundError
	if !errors.As(got.err, &nf) || strings.Join(nf.Available, ",") != "a,b" {
		t.Errorf("one of two: error is %v", got.err)
	}
	// A server that has no list is asked all the same.
	d := openaiDialect
	d.asides = map[string]string{}
	f, got = open(d, "#m")
	check(t, "error", got.err, nil)
	check(t, "model", f.last(t)["model"], any("m"))
}

func TestOpenAIMissingModel(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"The model ` + "`m`" + ` does not exist.","type":"NotFoundError","param":"model","code":404}}`,
		`{"object":"error","message":"The model m does not exist.","type":"NotFoundError","code":404}`,
	} {
		f := openaiDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, body)
		})
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
		var nf *NotFoundError
		if !errors.As(got.err, &nf) || nf.Model != "m" || strings.Join(nf.Available, ",") != "m" {
			t.Errorf("error is %v, want a NotFoundError", got.err)
		}
	}
}

func TestOpenAIDescribes(t *testing.T) {
	f := vllmDialect.with("/version", `{"version":"0.18.2"}`).serve(t, nil)
	info, err := f.open(t, Options{}).(Describer).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "server", info.Server, "vllm 0.18.2")
	check(t, "context", info.Context, Known(4096))
	check(t, "reference", info.Ref, "openai:"+f.URL+"#m")
	models, err := f.open(t, Options{}).(Lister).List(t.Context())
	if err != nil || len(models) != 1 || models[0].Name != "m" {
		t.Errorf("models are %v, %v", models, err)
	}
}

// TestOpenAIDescribeAsks: whoever waits for a server to come back asks it, also
// where it has told what it is before.
func TestOpenAIDescribeAsks(t *testing.T) {
	f := openaiFake(t, vllmDialect)
	m := f.open(t, Options{})
	if _, err := m.(Describer).Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.Close()
	var gone *UnreachableError
	if _, err := m.(Describer).Describe(t.Context()); !errors.As(err, &gone) {
		t.Errorf("a server that is gone describes itself: %v", err)
	}
}

// TestOpenAIListThatFailsForNow: what the server is is asked again, not guessed
// from a list that could not be had just then.
func TestOpenAIListThatFailsForNow(t *testing.T) {
	f := openaiFake(t, vllmDialect)
	var asked atomic.Int64
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" && asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		f.ServeHTTP(w, r)
	})
	m, err := Open("openai:"+front+"#m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	complete(t, m, Request{Prompt: text("p")})
	check(t, "a field that only vLLM gets", f.last(t)["add_special_tokens"], any(false))
}

// TestOpenAIWithoutList: a missing route is no missing model, whatever it says.
func TestOpenAIWithoutList(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed} {
		f := openaiFake(t, openaiDialect)
		front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/models" {
				http.Error(w, `{"detail":"no route /v1/models"}`, status)
				return
			}
			f.ServeHTTP(w, r)
		})
		m, err := Open("openai:"+front+"#m", Options{Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		complete(t, m, Request{Prompt: text("p")})
	}
}
