package models

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestReferences(t *testing.T) {
	for ref, want := range map[string]string{
		"ollama:qwen3:8b":                        "http://127.0.0.1:11434",
		"llamacpp:http://host:8080":              "http://host:8080",
		"llamacpp:host:8080":                     "http://host:8080",
		"llamacpp:127.0.0.1:8080/":               "http://127.0.0.1:8080",
		"llamacpp:https://host/behind/a/proxy/":  "https://host/behind/a/proxy",
		"openai:http://host:8000/v1#m":           "http://host:8000",
		"openai:http://host:8000/v1/#org/name:x": "http://host:8000",
		"openai:http://host:8000":                "http://host:8000",
		"openai:host/api/v1#m":                   "http://host/api",
	} {
		m, err := Open(ref, Options{})
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		var got string
		switch m := m.(type) {
		case *ollama:
			got = m.url()
		case *llama:
			got = m.url()
		case *openai:
			got = m.url()
		}
		check(t, ref, got, want)
	}
}

func TestBadReferences(t *testing.T) {
	for ref, kinds := range map[string]int{
		"":                     5,
		"qwen3":                5, // a bare name could be anybody's
		"qwen3:8b":             5,
		"http://host":          5,
		"ollama":               5,
		"ollama:":              1,
		"builtin:":             1,
		"llamacpp:":            1,
		"llamacpp:ftp://host":  1,
		"llamacpp:http://":     1,
		"llamacpp:http://a b/": 1,
		"openai:#m":            1,
		"openai:://":           1,
		":x":                   5,
	} {
		m, err := Open(ref, Options{})
		var r *RefError
		if !errors.As(err, &r) {
			t.Errorf("%q: %v, %v", ref, m, err)
			continue
		}
		check(t, "reference", r.Ref, ref)
		check(t, fmt.Sprintf("%q: kinds that the error offers", ref), len(r.Kinds), kinds)
	}
	_, err := Open("ollama:m", Options{OllamaHost: "ftp://host"})
	var r *RefError
	if !errors.As(err, &r) || !strings.Contains(r.Reason, "OLLAMA_HOST") {
		t.Errorf("error is %v, want one that names OLLAMA_HOST", err)
	}
}

func TestKindsHaveForms(t *testing.T) {
	for _, k := range Kinds() {
		if !strings.HasPrefix(k.Form, k.Name) || !strings.Contains(k.Form, ":") || k.Help == "" {
			t.Errorf("kind %+v", k)
		}
	}
}

func TestDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	check(t, "first token", o.FirstToken, 5*time.Minute)
	check(t, "between tokens", o.BetweenTokens, time.Minute)
	check(t, "load wait", o.LoadWait, 10*time.Minute)
	check(t, "retries", o.Retries, 3)
	mine := &http.Client{}
	check(t, "client", Options{Client: mine}.withDefaults().Client, mine)
}

func TestErrorsSayWhat(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&RefError{Ref: "x", Reason: "the kind of server is missing"}, `model reference "x": the kind of server is missing`},
		{&UnreachableError{"ollama", "http://h", errors.New("connection refused")}, "cannot reach ollama at http://h: connection refused"},
		{&NotFoundError{Server: "ollama", URL: "http://h", Model: "m"}, `ollama at http://h has no model "m"`},
		{&LoadingError{"llama-server", "http://h", time.Minute}, "llama-server at http://h is still loading its model after 1m0s"},
		{&OverflowError{PromptTokens: Known(9)}, "the prompt does not fit the context (prompt tokens: 9, context: unknown)"},
		{&CutError{Bytes: 3, Tokens: 1}, "the stream was cut after 3 bytes (1 tokens)"},
		{&StallError{StallFirstToken, time.Minute}, "no first token within 1m0s"},
		{&StallError{StallBetweenTokens, time.Minute}, "no further token within 1m0s"},
		{&ServerError{Server: "ollama", Status: 500, Message: "no"}, "ollama reports an error (status 500): no"},
	} {
		check(t, "error", c.err.Error(), c.want)
	}
}

func TestWithholding(t *testing.T) {
	long := "a sentence that is long enough to be recognised, with more after it"
	for message, want := range map[string]string{
		"bad: " + long:                        "bad: [prompt]",
		"bad: " + long[:30] + "! " + long[5:]: "bad: [prompt]! [prompt]",
		"bad: a sentence":                     "bad: a sentence",
		"":                                    "",
	} {
		check(t, "message", withhold(message, "", text(long)), want)
	}
	check(t, "key", withhold("key is sk-1", "sk-1", nil), "key is [key]")
	check(t, "a short prompt", withhold("you sent: my secret!", "", text("my secret")), "you sent: [prompt]!")
}

func TestExcerptsAreBounded(t *testing.T) {
	check(t, "excerpt", excerpt("äöü", 3), "ä…")
	check(t, "excerpt", excerpt(" a\xff ", 10), "a\uFFFD")
	check(t, "excerpt", excerpt("a\r\n\x1b[31mb\x00", 10), "a [31mb")
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"": -1, "3": 3 * time.Second, "x": -1, "-1": -1, "0": 0} {
		check(t, value, retryAfter(value), want)
	}
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if d := retryAfter(date); d < 50*time.Minute || d > time.Hour {
		t.Errorf("%s is %v", date, d)
	}
}

func TestCounts(t *testing.T) {
	for _, c := range []Count{{}, Known(0), Known(5)} {
		b, err := c.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var back Count
		if err := back.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		check(t, c.String(), back, c)
	}
}

func TestPasswordOfABadAddressIsNotShown(t *testing.T) {
	_, err := parseURL("http://me:secret@ho st:1")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error is %v", err)
	}
}
