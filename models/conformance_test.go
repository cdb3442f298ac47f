package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgap/internal/automaton"
)

// A dialect is how a protocol says what every test needs.
type dialect struct {
	name   string
	path   string // of the generation
	media  string
	asides map[string]string // answers to what a client asks besides
	text   func(s string) string
	end    string
	broken string // an error frame after 200
	ref    func(url string) string
	chat   bool // an endpoint for conversations: see asPrompt
}

func event(data string) string { return "data: " + data + "\n\n" }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var (
	ollamaDialect = dialect{
		name: "ollama", path: "/api/generate", media: "application/x-ndjson",
		asides: map[string]string{
			"/api/ps":   `{"models":[]}`,
			"/api/show": `{"parameters":"num_ctx                        4096\nstop                           \"<|im_end|>\"\nstop                           \"a b\""}`,
			"/api/tags": `{"models":[{"name":"m:latest"}]}`,
		},
		text: func(s string) string { return `{"response":` + quote(s) + `,"done":false}` + "\n" },
		end: `{"response":"","done":true,"done_reason":"stop","total_duration":5,"load_duration":1,` +
			`"prompt_eval_count":7,"prompt_eval_duration":2,"eval_count":3,"eval_duration":3}` + "\n",
		broken: `{"error":"the runner died"}` + "\n",
		ref:    func(string) string { return "ollama:m" },
	}
	llamaDialect = dialect{
		name: "llamacpp", path: "/completion", media: "text/event-stream",
		asides: map[string]string{
			"/props":     `{"default_generation_settings":{"n_ctx":2048},"total_slots":2}`,
			"/tokenize":  `{"tokens":[{"id":9,"piece":"a"}]}`,
			"/v1/models": `{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_vocab":1000}}]}`,
		},
		text:   func(s string) string { return event(`{"content":` + quote(s) + `,"tokens":[5],"stop":false}`) },
		end:    event(`{"content":"","tokens":[],"stop":true,"stop_type":"eos","tokens_predicted":3,"tokens_evaluated":7,"timings":{"cache_n":4,"prompt_n":3}}`),
		broken: event(`{"error":{"code":500,"message":"the runner died","type":"server_error"}}`),
		ref:    func(url string) string { return "llamacpp:" + url },
	}
	openaiDialect = dialect{
		name: "openai", path: "/v1/completions", media: "text/event-stream",
		asides: map[string]string{"/v1/models": `{"data":[{"id":"m","owned_by":"organization_owner"}]}`},
		text: func(s string) string {
			return event(`{"choices":[{"index":0,"text":` + quote(s) + `,"finish_reason":null}]}`)
		},
		end: event(`{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}`) +
			event(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`) + event("[DONE]"),
		broken: event(`{"error":{"message":"the runner died","type":"server_error","code":500}}`) + event("[DONE]"),
		ref:    func(url string) string { return "openai:" + url + "#m" },
	}
	dialects = []dialect{
		ollamaDialect, llamaDialect, openaiDialect,
		ollamaChatDialect, llamaChatDialect, openaiChatDialect,
	}
)

// frames are the frames of a whole generation.
func (d dialect) frames(pieces ...string) []string {
	var out []string
	for _, p := range pieces {
		out = append(out, d.text(p))
	}
	return append(out, d.end)
}

// A fake is a server that speaks a dialect.
type fake struct {
	dialect
	*httptest.Server
	play func(w http.ResponseWriter, r *http.Request) // the answer to a generation

	mu       sync.Mutex
	requests []map[string]any // bodies of generations
	headers  []http.Header
	asked    []string // paths of all requests
	active   int
	gone     chan struct{} // a client has left in the middle
}

// serve starts a fake that answers every generation with play.
func (d dialect) serve(t *testing.T, play func(w http.ResponseWriter, r *http.Request)) *fake {
	t.Helper()
	f := &fake{dialect: d, play: play, gone: make(chan struct{}, 100)}
	f.asides = maps.Clone(d.asides) // a test may change them
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.Path)
	f.mu.Unlock()
	if r.URL.Path != f.path {
		answer, ok := f.asides[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
		return
	}
	var request map[string]any
	_ = json.Unmarshal(body, &request)
	f.mu.Lock()
	f.requests = append(f.requests, request)
	f.headers = append(f.headers, r.Header)
	f.active++
	f.mu.Unlock()
	f.play(w, r)
	f.mu.Lock()
	f.active--
	f.mu.Unlock()
}

// last is the body of the last generation.
func (f *fake) last(t *testing.T) map[string]any {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		t.Fatal("no generation was asked for")
	}
	return f.requests[len(f.requests)-1]
}

// frames answers with frames, each sent at once.
func (d dialect) says(frames ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", d.media)
		for _, s := range frames {
			send(w, []byte(s), 0)
		}
	}
}

// hangs answers with frames and then with nothing, until the client leaves.
func (f *fake) hangs(frames ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		f.says(frames...)(w, r)
		<-r.Context().Done()
		f.gone <- struct{}{}
	}
}

// open opens a model at the fake. Retries are off unless opts says otherwise.
func (f *fake) open(t *testing.T, opts Options) Model {
	t.Helper()
	opts.OllamaHost = f.URL
	if opts.Retries == 0 {
		opts.Retries = -1
	}
	m, err := Open(f.ref(f.URL), opts)
	if err != nil {
		t.Fatal(err)
	}
	if f.chat {
		return asPrompt{m}
	}
	return m
}

// A conforming is a model with a known answer, and a way to see that its
// requests are over.
type conforming struct {
	name      string
	model     Model
	idle      func() bool
	generated int // tokens
}

const conformingText = "one two three"

// everyProtocol opens one model of each kind, all saying conformingText.
func everyProtocol(t *testing.T) []conforming {
	var all []conforming
	for _, d := range dialects {
		f := d.serve(t, d.says(d.frames("one", " two", " three")...))
		all = append(all, conforming{d.name, f.open(t, Options{}), func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.active == 0
		}, 3})
	}
	idle := func() bool { return true }
	m, err := Open("builtin:"+automatonFile(t, automaton.Turn{After: ".", Text: conformingText}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, conforming{"builtin", m, idle, 4}) // the end-of-generation token counts
	path := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte("turns: [{text: "+conformingText+"}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err = Open("script:"+path, Options{}); err != nil {
		t.Fatal(err)
	}
	return append(all, conforming{"script", m, idle, 3})
}

// automatonFile writes a model file that says what the turns are.
func automatonFile(t testing.TB, turns ...automaton.Turn) string {
	t.Helper()
	a, err := automaton.Compile(automaton.Script{Turns: turns})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := a.WriteFile(path, automaton.Options{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// waitFor waits for something that another goroutine does.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 10_000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("still waiting: %s", what)
}

// TestConformance is what every kind of model keeps.
func TestConformance(t *testing.T) {
	request := Request{Prompt: text("Count."), Session: "s"}
	for _, m := range everyProtocol(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Run("a stream ends with its final chunk", func(t *testing.T) {
				got := complete(t, m.model, request)
				check(t, "text", got.text, conformingText)
				check(t, "finish", got.final.Finish, FinishStop)
				check(t, "generated", got.final.Usage.Generated, Known(m.generated))
				if got.final.Timings.Total < got.final.Timings.FirstToken {
					t.Errorf("timings are %+v", got.final.Timings)
				}
			})
			t.Run("the same sequence can be ranged over again", func(t *testing.T) {
				seq := m.model.Stream(t.Context(), request)
				for range 2 {
					said := ""
					for c, err := range seq {
						if err != nil {
							t.Fatal(err)
						}
						said += c.Text
					}
					check(t, "text", said, conformingText)
				}
			})
			t.Run("leaving at any chunk ends it", func(t *testing.T) {
				chunks := len(complete(t, m.model, request).chunks)
				for leave := range chunks {
					n := 0
					for range m.model.Stream(t.Context(), request) {
						if n == leave {
							break
						}
						n++
					}
					check(t, "chunks before leaving", n, leave)
					waitFor(t, "the end of the request", m.idle)
				}
			})
			t.Run("a context that ends at any chunk ends it with its error", func(t *testing.T) {
				chunks := len(complete(t, m.model, request).chunks)
				for at := range chunks - 1 {
					ctx, cancel := context.WithCancel(t.Context())
					n, after := 0, 0
					var last error
					for _, err := range m.model.Stream(ctx, request) {
						if last = err; err != nil {
							continue
						}
						if n > at {
							after++ // what had arrived already may still come
						}
						if n == at {
							cancel()
						}
						n++
					}
					if last != nil && !errors.Is(last, context.Canceled) {
						t.Errorf("canceled at chunk %d: error is %v", at, last)
					}
					if last == nil && n < chunks {
						t.Errorf("canceled at chunk %d: the stream just ended", at)
					}
					cancel()
				}
			})
			t.Run("a context that is over sends nothing", func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				got := listen(t, ctx, m.model, request)
				if !errors.Is(got.err, context.Canceled) || len(got.chunks) != 1 {
					t.Errorf("got %d chunks and %v", len(got.chunks), got.err)
				}
			})
			t.Run("an empty prompt is refused", func(t *testing.T) {
				for _, prompt := range [][]Segment{nil, {}, text("")} {
					got := listen(t, t.Context(), m.model, Request{Prompt: prompt})
					var p *PromptError
					if !errors.As(got.err, &p) {
						t.Errorf("error is %v, want a PromptError", got.err)
					}
				}
			})
			t.Run("the request is not changed", func(t *testing.T) {
				r := Request{Prompt: []Segment{{Text: "a", Tokens: []int{1}}, {Text: "b"}}, Stop: []string{"never"}, Preserve: []string{"x"}}
				before := fmt.Sprintf("%+v", r)
				complete(t, m.model, r)
				check(t, "request", fmt.Sprintf("%+v", r), before)
			})
			t.Run("many streams at the same time", func(t *testing.T) {
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						got := listen(t, t.Context(), m.model, Request{Prompt: text("Count."), Session: fmt.Sprint(i)})
						check(t, "text", got.text, conformingText)
					})
				}
				wg.Wait()
			})
		})
	}
}

// TestLeavingEndsTheRequestAtTheServer looks from the server's side.
func TestLeavingEndsTheRequestAtTheServer(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, nil)
			f.play = f.hangs(d.text("one"), d.text("two"))
			m := f.open(t, Options{})
			for range m.Stream(t.Context(), Request{Prompt: text("p")}) {
				break
			}
			select {
			case <-f.gone:
			case <-time.After(2 * time.Minute):
				t.Error("the server still sends")
			}
			ctx, cancel := context.WithCancel(t.Context())
			for c := range m.Stream(ctx, Request{Prompt: text("p")}) {
				if c.Text == "two" {
					cancel()
				}
			}
			select {
			case <-f.gone:
			case <-time.After(2 * time.Minute):
				t.Error("the server still sends")
			}
			cancel()
		})
	}
}

// TestNoGoroutineIsLeft counts goroutines after streams that end in every way.
func TestNoGoroutineIsLeft(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, nil)
			transport := &http.Transport{}
			client := &http.Client{Transport: transport}
			m := f.open(t, Options{Client: client, BetweenTokens: 30 * time.Millisecond})
			streams := func() {
				f.play = d.says(d.frames("a", "b")...)
				listen(t, t.Context(), m, Request{Prompt: text("p")})
				f.play = d.says(d.text("a"))
				listen(t, t.Context(), m, Request{Prompt: text("p")})
				f.play = f.hangs(d.text("a"))
				listen(t, t.Context(), m, Request{Prompt: text("p")})
				for range m.Stream(t.Context(), Request{Prompt: text("p")}) {
					break
				}
				transport.CloseIdleConnections()
				f.CloseClientConnections()
			}
			streams()
			waitFor(t, "idle", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.active == 0 })
			before := runtime.NumGoroutine()
			for range 5 {
				streams()
			}
			waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// TestNothingIsYieldedAfterLeaving uses a sequence by hand: range would panic.
func TestNothingIsYieldedAfterLeaving(t *testing.T) {
	for _, m := range everyProtocol(t) {
		t.Run(m.name, func(t *testing.T) {
			left := false
			m.model.Stream(t.Context(), Request{Prompt: text("p")})(func(Chunk, error) bool {
				if left {
					t.Error("yielded after the caller had left")
				}
				left = true
				return false
			})
		})
	}
}

func TestPromptIsSentAsItIs(t *testing.T) {
	const prompt = "<|im_start|>a & b\u2028\x00\"\\\r\n\t\U0001F30A"
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, d.says(d.frames("x")...))
			m := f.open(t, Options{})
			complete(t, m, Request{Prompt: []Segment{{Text: prompt[:5]}, {Text: prompt[5:]}}})
			check(t, "prompt", d.prompt(f.last(t)), any(prompt))
			got := listen(t, t.Context(), m, Request{Prompt: text("half a character: \xe4\xb8")})
			var p *PromptError
			if !errors.As(got.err, &p) {
				t.Errorf("error is %v, want a PromptError", got.err)
			}
		})
	}
}

func TestNoErrorHoldsThePromptOrTheKey(t *testing.T) {
	const secret = "the patient's name is Hieronymus Unwin"
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			key := "sk-0123456789abcdef"
			if strings.HasPrefix(d.name, "ollama") {
				key = "" // is never sent there
			}
			echo := func(status int, media, body string) func(http.ResponseWriter, *http.Request) {
				return func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", media)
					w.WriteHeader(status)
					_, _ = io.WriteString(w, body)
				}
			}
			message := quote("bad value: " + secret + " with " + key)
			for _, play := range []func(http.ResponseWriter, *http.Request){
				echo(400, "application/json", `{"error":{"message":`+message+`}}`),
				echo(500, "text/plain", secret+key),
				echo(422, "application/json", `{"detail":[{"input":`+message+`}]}`),
				echo(200, "text/html", "<p>"+secret+key),
				d.says(d.text("x"), strings.Replace(d.broken, "the runner died", secret+key, 1)),
				d.says("data: "+secret+key+"\n\n", secret+"\n"),
			} {
				f := d.serve(t, play)
				got := listen(t, t.Context(), f.open(t, Options{APIKey: key}), Request{Prompt: text("Note: " + secret + ". Go on.")})
				if got.err == nil {
					t.Fatal("no error")
				}
				if s := got.err.Error(); strings.Contains(s, "Hieronymus") || key != "" && strings.Contains(s, key) {
					t.Errorf("the error tells it: %s", s)
				}
			}
		})
	}
}

// httpServer is a server of one handler.
func httpServer(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
