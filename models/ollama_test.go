package models

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/envconfig"
)

// ollamaFake is a fake Ollama that says "x".
func ollamaFake(t *testing.T) *fake {
	return ollamaDialect.serve(t, ollamaDialect.says(ollamaDialect.frames("x")...))
}

func option(t *testing.T, f *fake, name string) any {
	t.Helper()
	options, ok := f.last(t)["options"].(map[string]any)
	if !ok {
		t.Fatalf("the request has no options: %v", f.last(t))
	}
	return options[name]
}

func TestOllamaSendsRawAndNeverThinks(t *testing.T) {
	f := ollamaFake(t)
	complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	check(t, "raw", f.last(t)["raw"], any(true))
	check(t, "think", f.last(t)["think"], any(false))
}

func TestOllamaNeverCutsThePrompt(t *testing.T) {
	f := ollamaFake(t)
	complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	check(t, "truncate", f.last(t)["truncate"], any(false))
	check(t, "shift", f.last(t)["shift"], any(false))
}

func TestOllamaSendsTheSameContextEachTime(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{ContextSize: 12345})
	for range 2 {
		complete(t, m, Request{Prompt: text("p")})
		check(t, "num_ctx", option(t, f, "num_ctx"), any(12345.0))
	}
}

func TestOllamaKeepsTheContextOfALoadedModel(t *testing.T) {
	f := ollamaFake(t)
	f.asides = map[string]string{"/api/ps": `{"models":[{"name":"other:latest","context_length":1},{"name":"m:latest","model":"m:latest","context_length":32000}]}`}
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p")})
	f.asides["/api/ps"] = `{"models":[]}` // unloaded meanwhile
	complete(t, m, Request{Prompt: text("p")})
	check(t, "num_ctx", option(t, f, "num_ctx"), any(32000.0))
}

func TestOllamaLeavesTheContextOfAnUnloadedModelToTheServer(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p")})
	f.asides["/api/ps"] = `{"models":[{"name":"m:latest","context_length":4096}]}`
	complete(t, m, Request{Prompt: text("p")})
	check(t, "num_ctx", option(t, f, "num_ctx"), nil)
}

func TestOllamaMergesTheModelsOwnStops(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p")})
	check(t, "stop", option(t, f, "stop"), nil) // then the model's own apply
	complete(t, m, Request{Prompt: text("p"), Stop: []string{"mine", "a b"}})
	check(t, "stop", fmt.Sprintf("%q", option(t, f, "stop")), `["mine" "a b" "<|im_end|>"]`)
}

func TestOllamaStopParameters(t *testing.T) {
	for lines, want := range map[string]string{
		"": "[]",
		"stop                           \"<|im_end|>\"\nnum_ctx 4096\nstop   \"a \\\"b\\\"\\n\"": `["<|im_end|>" "a \"b\"\n"]`,
		"stop  plain\ntemperature 0.5": `["plain"]`,
		"stopwords  \"x\"":             "[]",
	} {
		check(t, "stops", fmt.Sprintf("%q", parameters(lines, "stop")), want)
	}
}

func TestOllamaPredictsUntilTheStopUnlessLimited(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p")})
	check(t, "num_predict", option(t, f, "num_predict"), any(-1.0))
	complete(t, m, Request{Prompt: text("p"), MaxTokens: 9})
	check(t, "num_predict", option(t, f, "num_predict"), any(9.0))
}

func TestOllamaSendsSamplingOnlyWhereGiven(t *testing.T) {
	f := ollamaFake(t)
	zero, one, k := 0.0, 1.0, 40
	complete(t, f.open(t, Options{}), Request{Prompt: text("p"), Sampling: Sampling{Temperature: &zero, TopP: &one, TopK: &k}})
	check(t, "temperature", option(t, f, "temperature"), any(0.0))
	check(t, "top_p", option(t, f, "top_p"), any(1.0))
	check(t, "top_k", option(t, f, "top_k"), any(40.0))
	check(t, "min_p", option(t, f, "min_p"), nil)
}

func TestOllamaGetsTextAndNoIDs(t *testing.T) {
	f := ollamaFake(t)
	complete(t, f.open(t, Options{}), Request{Prompt: []Segment{{Text: "a", Tokens: []int{7}}, {Text: "b"}}})
	check(t, "prompt", f.last(t)["prompt"], any("ab"))
}

// TestOllamaNeverUsesItsCompletionsRoute: that one applies the template.
func TestOllamaNeverUsesItsCompletionsRoute(t *testing.T) {
	f := ollamaFake(t)
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p"), Stop: []string{"s"}})
	_, _ = m.(Describer).Describe(t.Context()) // only the paths are looked at
	for _, path := range f.asked {
		if strings.HasPrefix(path, "/v1/") {
			t.Errorf("asked for %s", path)
		}
	}
}

func TestOllamaStreamWithoutDoneIsAnError(t *testing.T) {
	f := ollamaDialect.serve(t, ollamaDialect.says(ollamaDialect.text("one"), ollamaDialect.text("two")))
	got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
	var c *CutError
	if !errors.As(got.err, &c) {
		t.Fatalf("error is %v, want a CutError", got.err)
	}
	check(t, "tokens", c.Tokens, 2)
}

func TestOllamaEndings(t *testing.T) {
	for _, c := range []struct {
		reason    string
		generated int
		max       int
		want      Finish // empty for an error
	}{
		{"stop", 3, 0, FinishStop},
		{"length", 5, 5, FinishLength},
		{"length", 3, 5, FinishContext}, // fewer than asked for: the context is full
		{"length", 3, 0, FinishContext}, // nothing was asked for
		{"", 3, 0, ""},
		{"load", 0, 0, ""},
		{"unload", 0, 0, ""},
	} {
		f := ollamaDialect.serve(t, ollamaDialect.says(fmt.Sprintf(
			`{"response":"","done":true,"done_reason":%q,"prompt_eval_count":7,"eval_count":%d}`+"\n", c.reason, c.generated)))
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p"), MaxTokens: c.max})
		if c.want == "" {
			if got.err == nil {
				t.Errorf("%q: a finish was invented: %v", c.reason, got.final)
			}
			continue
		}
		check(t, c.reason, got.final.Finish, c.want)
	}
}

// TestOllamaPromptCountIsNotACountOfMisses: it includes what was in the cache.
func TestOllamaPromptCountIsNotACountOfMisses(t *testing.T) {
	f := ollamaFake(t)
	u := complete(t, f.open(t, Options{}), Request{Prompt: text("p")}).final.Usage
	check(t, "usage", u, Usage{Prompt: Known(7), Generated: Known(3)})
}

func TestOllamaMissingModelNamesTheOthers(t *testing.T) {
	f := ollamaDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"model 'm' not found"}`)
	})
	got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
	var nf *NotFoundError
	if !errors.As(got.err, &nf) {
		t.Fatalf("error is %v, want a NotFoundError", got.err)
	}
	check(t, "available", strings.Join(nf.Available, ","), "m:latest")
}

// TestOllamaOverflowTexts: old and new servers word it differently.
func TestOllamaOverflowTexts(t *testing.T) {
	for _, body := range []string{
		`{"error":"the input length exceeds the context length"}`,
		`{"error":{"code":400,"message":"request (301 tokens) exceeds the available context size (256 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":301,"n_ctx":256}}`,
	} {
		f := ollamaDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		})
		got := listen(t, t.Context(), f.open(t, Options{ContextSize: 256}), Request{Prompt: text("p")})
		var o *OverflowError
		if !errors.As(got.err, &o) || o.Context != Known(256) {
			t.Errorf("error is %v, want an OverflowError", got.err)
		}
	}
}

// TestOllamaAddress compares with Ollama's own reading of OLLAMA_HOST, apart
// from addresses that one can listen on but, on some systems, not connect to.
func TestOllamaAddress(t *testing.T) {
	ours := map[string]string{
		"0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:8000": "http://127.0.0.1:8000", "http://0.0.0.0": "http://127.0.0.1:80",
		"[::]:1234": "http://[::1]:1234", "::": "http://[::1]:11434",
		":8000": "http://127.0.0.1:8000", // Ollama has an empty host there
	}
	for _, s := range []string{
		"", " ", "localhost", "localhost:1", "example.com", "http://example.com", "https://example.com", "https://example.com:99",
		"1.2.3.4", "1.2.3.4:5", ":8000", "0.0.0.0", "0.0.0.0:8000", "http://0.0.0.0", "[::]:1234", "::", "::1", "[::1]", "[::1]:7",
		"example.com/path", "https://example.com:8/a/b", "example.com:99999", "example.com:port",
		`"localhost:1"`, " '1.2.3.4' ",
	} {
		u, err := OllamaURL(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		want, ok := ours[s]
		if !ok {
			t.Setenv("OLLAMA_HOST", s)
			host := envconfig.Host()
			host.Path = strings.TrimRight(host.Path, "/")
			want = host.String()
		}
		check(t, fmt.Sprintf("%q", s), u.String(), want)
	}
	for _, s := range []string{"ftp://x", "a b", "http://me:secret@host:1"} {
		if _, err := OllamaURL(s); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error is %v", s, err)
		}
	}
}

func TestOllamaNames(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"qwen3", "qwen3:latest", true}, {"qwen3:8b", "qwen3", false}, {"Qwen3", "qwen3", true},
		{"host:5000/a/b", "host:5000/a/b:latest", true}, {"a/b:c", "a/b:c", true},
		{"registry.ollama.ai/library/qwen3", "qwen3:latest", true}, {"library/qwen3:8b", "qwen3:8b", true},
		{"other/qwen3", "qwen3", false}, {"hf.co/Org/Repo:Q4", "hf.co/org/repo:q4", true},
	} {
		check(t, c.a+" and "+c.b, sameOllamaName(c.a, c.b), c.same)
	}
}

func TestOllamaTimings(t *testing.T) {
	f := ollamaFake(t)
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p")}).final.Timings
	check(t, "load", got.Load, time.Nanosecond)
	check(t, "prompt", got.Prompt, 2*time.Nanosecond)
	check(t, "generation", got.Generation, 3*time.Nanosecond)
}
