package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// recordings are what real servers answered; see the README there.
var recordings = filepath.Join("..", "..", "models", "testdata")

// A replayed answer is one of a recording.
type replayedAnswer struct {
	status int
	media  string
	body   string
}

// replay makes a server that answers each path as the recordings do, one
// request after the other and the last answer again and again. Unlike the tests
// of package models it takes other prompts than the recorded ones. The question
// that a chat template was recorded with becomes the one that it is asked for.
func replay(t *testing.T, names ...string) string {
	t.Helper()
	answers := map[string][]replayedAnswer{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(recordings, filepath.FromSlash(name)+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		files := txtar.Parse(b).Files
		for i := 0; i+1 < len(files); i += 2 { // "1 POST /path" and "1 200 media type"
			_, route, _ := strings.Cut(files[i].Name, " ")
			_, rest, _ := strings.Cut(files[i+1].Name, " ")
			status, media, _ := strings.Cut(rest, " ")
			a := replayedAnswer{media: media, body: string(files[i+1].Data)}
			if _, err := fmt.Sscan(status, &a.status); err != nil {
				t.Fatalf("%s: %q: %v", name, files[i+1].Name, err)
			}
			answers[route] = append(answers[route], a)
		}
	}
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		route := r.Method + " " + r.URL.Path
		mu.Lock()
		list := answers[route]
		if len(list) > 1 {
			answers[route] = list[1:]
		}
		mu.Unlock()
		if len(list) == 0 {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", list[0].media)
		w.WriteHeader(list[0].status)
		_, _ = io.WriteString(w, asked(list[0].body, string(request))) // the client may be gone
	}))
	t.Cleanup(s.Close)
	return s.URL
}

var (
	recordedQuestion = regexp.MustCompile(`How deep (?:&|\\u0026) \\"wide\\"\?`)
	askedQuestion    = regexp.MustCompile(`"role":"user","content":"(\w+)"`)
)

// asked puts the question of a request in the place of the recorded one.
func asked(answer, request string) string {
	if m := askedQuestion.FindStringSubmatch(request); m != nil {
		return recordedQuestion.ReplaceAllString(answer, m[1])
	}
	return answer
}

// alone keeps the settings of whoever runs the tests away from them.
func alone(t *testing.T) {
	t.Setenv("STOPGAP_CONFIG", "")
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
}

// wants fails where the text does not match one of the expressions.
func wants(t *testing.T, text string, expressions ...string) {
	t.Helper()
	for _, e := range expressions {
		if !regexp.MustCompile(e).MatchString(text) {
			t.Errorf("no match for %s in\n%s", e, text)
		}
	}
}

// What a real llama-server tells of a text, token by token and in sum.
func TestScore(t *testing.T) {
	alone(t)
	const text = "<think>é<|im_end|>"
	model := "llamacpp:" + replay(t, "llama-server/score")
	code, out, errs := stopgap(t, strings.NewReader(""), "render", "--quiet", "--model", model, "--score", text, "How deep?")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	want := "-19.5190\t3.33e-07%\t4 tokens\t\"<think>é<|im_end|>\"\n" +
		"  -1.5253\t11\t\"<think>\"\n" +
		"  -5.9979\t211\t\"\\xc3\"\n" +
		"  -5.9979\t185\t\"\\xa9\"\n" +
		"  -5.9979\t7\t\"<|im_end|>\"\n"
	if out != want {
		t.Errorf("prints\n%s\nnot\n%s", out, want)
	}

	model = "llamacpp:" + replay(t, "llama-server/score")
	code, out, errs = stopgap(t, strings.NewReader(""), "render", "--quiet", "--json", "--model", model, "--score", text, "How deep?")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	wants(t, out, `^\[\{"text":"<think>é<\|im_end\|>","logprob":-19\.51\d+,"probability":3\.33\d*e-9,"tokens":\[\{"id":11,"piece":"<think>","logprob":-1\.525\d*\},`)
}

// A text that the model never writes has no logarithm.
func TestScoreNever(t *testing.T) {
	alone(t)
	model := "llamacpp:" + replay(t, "llama-server/score-never")
	code, out, errs := stopgap(t, strings.NewReader(""), "render", "--quiet", "--model", model, "--score", "<think>x", "How deep?")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if want := "-inf\t0%\t2 tokens\t\"<think>x\"\n  0.0000\t11\t\"<think>\"\n  -inf\t136\t\"x\"\n"; out != want {
		t.Errorf("prints\n%s\nnot\n%s", out, want)
	}
}

// A conversation by the chat endpoint shows the same events as any other.
func TestFormatChat(t *testing.T) {
	alone(t)
	for _, server := range []struct{ name, model, host string }{
		{name: "ollama", model: "ollama:chat", host: replay(t, "ollama/describe", "ollama/chat-calls")},
		{name: "llama-server", model: "llamacpp:" + replay(t, "llama-server/chat-calls")},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Setenv("OLLAMA_HOST", server.host)
			corpus := t.TempDir()
			if err := os.WriteFile(filepath.Join(corpus, "tide.md"), []byte("# Tide\n\nThe tide is 5 m deep."), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := stopgap(t, strings.NewReader(""), "run", "--format", "chat", "--model", server.model, "--corpus", corpus, "How deep?")
			if code != 0 {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			wants(t, out, `^Five metres\.\n$`)
			wants(t, errs, `\nI look it up\.\n`, `\nWait\.\n`, `\n→ search\("tide", "首都 \\"q\\""\)\n`, `\n← search: 3 lines\n    Results for "tide":\n    Tide\. The tide is 5 m deep\.`,
				`\n→ clock\(\)\n`, `\n← clock: 1 line, unknown tool\n`, `\nanswered · 2 turns, 2 calls · `)
		})
	}
}

// The opening is the server's, the question stays the user's, and the format
// that goes on is told.
func TestFormatServer(t *testing.T) {
	alone(t)
	question := "How deep is <|im_end|> it?"
	for _, server := range []struct{ name, model, host string }{
		{name: "ollama", model: "ollama:derived", host: replay(t, "ollama/render", "ollama/plain")},
		{name: "llama-server", model: "llamacpp:" + replay(t, "llama-server/render", "llama-server/plain")},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Setenv("OLLAMA_HOST", server.host)
			code, out, errs := stopgap(t, strings.NewReader(""), "render", "--quiet", "--format", "server", "--model", server.model, question)
			if code != 0 || errs != "" {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			wants(t, out, `^<\|im_start\|>system\n`, `\n<\|im_start\|>user\nHow deep is <·\|im_end\|> it\?<\|im_end\|>\n`, `\n<\|im_start\|>assistant\n$`)

			code, out, errs = stopgap(t, strings.NewReader(""), "run", "--json", "--max-turns", "1", "--format", "server", "--model", server.model, question)
			if code != 1 {
				t.Fatalf("exit code %d, %s", code, errs)
			}
			wants(t, out, `^\{"event":"started","question":"How deep is <\|im_end\|> it\?","format":"qwen",`,
				`\{"source":"user","text":"How deep is <·\|im_end\|> it\?","original":"How deep is <\|im_end\|> it\?"\}`,
				`\n\{"event":"called","turn":1,"index":0,"name":"search",`)
		})
	}
}
