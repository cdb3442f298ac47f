package models

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestErrorFrameAfterSuccess(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			for _, frames := range [][]string{{d.broken}, {d.text("one"), d.broken}, {d.text("one"), d.broken, d.end}} {
				f := d.serve(t, d.says(frames...))
				got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
				var s *ServerError
				if !errors.As(got.err, &s) || s.Message != "the runner died" {
					t.Errorf("error is %v, want the server's", got.err)
				}
				if strings.Contains(got.text, "died") {
					t.Error("the message was passed on as text")
				}
			}
		})
	}
}

func TestGarbageLines(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			for _, garbage := range []string{"{]\n\n", "null\n\n", "[1,2]\n\n", "\"text\"\n\n", "{\"response\": 5, \"message\": 5, \"content\": 5, \"choices\": 5}\n\n", "\xff\xfe{}\n\n", strings.Repeat("x", 5000) + "\n\n"} {
				if d.media == "text/event-stream" {
					garbage = "data: " + garbage
				}
				f := d.serve(t, d.says(d.text("one"), garbage, d.text("two"), d.end))
				got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
				var p *ProtocolError
				if !errors.As(got.err, &p) {
					// JSON's null changes nothing in a frame: it is an empty one.
					if strings.Contains(garbage, "null") && got.text == "onetwo" {
						continue
					}
					t.Errorf("%.20q: error is %v, want a ProtocolError", garbage, got.err)
					continue
				}
				check(t, "text before the garbage", got.text, "one")
				if len(p.Excerpt) > 200 {
					t.Errorf("the excerpt has %d bytes", len(p.Excerpt))
				}
			}
		})
	}
}

func TestAnswerThatIsNoStream(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html>Please log in.")
			})
			got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
			var p *ProtocolError
			if !errors.As(got.err, &p) {
				t.Errorf("error is %v, want a ProtocolError", got.err)
			}
			f.play = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"error":{"message":"no more memory"}}`)
			}
			got = listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
			var s *ServerError
			if !errors.As(got.err, &s) || s.Message != "no more memory" {
				t.Errorf("error is %v, want a ServerError", got.err)
			}
		})
	}
}

// TestRepeatedLines: protocols do not number their frames, so a frame that
// comes twice is text twice, except after the end, which is the end.
func TestRepeatedLines(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, d.says(d.text("one"), d.text("one"), d.end, d.end, d.text("late")))
			check(t, "text", complete(t, f.open(t, Options{}), Request{Prompt: text("p")}).text, "oneone")
		})
	}
}

func TestStalls(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, nil)
			stall := func(opts Options, want StallError, frames ...string) {
				t.Helper()
				f.play = f.hangs(frames...)
				got := listen(t, t.Context(), f.open(t, opts), Request{Prompt: text("p")})
				var s *StallError
				if !errors.As(got.err, &s) {
					t.Fatalf("error is %v, want a StallError", got.err)
				}
				check(t, "error", *s, want)
				<-f.gone
			}
			const soon = 50 * time.Millisecond
			stall(Options{FirstToken: soon}, StallError{StallFirstToken, soon})
			stall(Options{BetweenTokens: soon}, StallError{StallBetweenTokens, soon}, d.text("one"))
			// Signs of life that carry no token do not count.
			ping := ": ping\n\n"
			if strings.HasPrefix(d.name, "ollama") {
				ping = d.text("")
			}
			stall(Options{BetweenTokens: soon}, StallError{StallBetweenTokens, soon}, d.text("one"), ping, ping)
		})
	}
}

// TestSlowCallerIsNoStall: the clock stands still while the caller works.
func TestSlowCallerIsNoStall(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, d.says(strings.Join(d.frames("one", "two", "three"), ""))) // at once: a slow server is another thing
			m := f.open(t, Options{BetweenTokens: time.Second})
			slow := false
			for _, err := range m.Stream(t.Context(), Request{Prompt: text("p")}) {
				if err != nil {
					t.Fatal(err)
				}
				if !slow {
					time.Sleep(1500 * time.Millisecond)
				}
				slow = true
			}
		})
	}
}

// refusedURL is an address where nobody listens. A port that was free a moment ago
// can be another test's.
const refusedURL = "http://127.0.0.1:1"

func TestRefused(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			url := refusedURL
			m, err := Open(d.ref(url), Options{OllamaHost: url, Retries: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := listen(t, t.Context(), m, Request{Prompt: text("p")})
			var u *UnreachableError
			if !errors.As(got.err, &u) {
				t.Fatalf("error is %v, want an UnreachableError", got.err)
			}
			check(t, "address", u.URL, url)
			if len(got.progress) != 1 || got.progress[0].Phase != Retrying {
				t.Errorf("progress is %v, want one retry", got.progress)
			}
			if _, err := m.(Describer).Describe(t.Context()); !errors.As(err, &u) {
				t.Errorf("Describe gives %v", err)
			}
		})
	}
}

func TestUnknownHostIsNotRetried(t *testing.T) {
	m, err := Open("llamacpp:http://host.invalid:1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := listen(t, t.Context(), m, Request{Prompt: text("p")})
	var u *UnreachableError
	var dns *net.DNSError
	if !errors.As(got.err, &u) || !errors.As(got.err, &dns) {
		t.Fatalf("error is %v, want an UnreachableError of DNS", got.err)
	}
	if dns.IsNotFound {
		check(t, "retries", len(got.progress), 0)
	}
}

// TestRetries: before the first token, for errors that pass, as often as asked.
func TestRetries(t *testing.T) {
	const after = "0"
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			for _, c := range []struct {
				status  int
				retried bool
			}{{429, true}, {502, true}, {503, true}, {504, true}, {400, false}, {401, false}, {500, false}} {
				var calls atomic.Int64
				f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
					if calls.Add(1) < 3 {
						w.Header().Set("Retry-After", after)
						http.Error(w, `{"error":{"message":"busy"}}`, c.status)
						return
					}
					d.says(d.frames("done")...)(w, r)
				})
				got := listen(t, t.Context(), f.open(t, Options{Retries: 2}), Request{Prompt: text("p")})
				if c.retried {
					check(t, "text", got.text, "done")
					check(t, "retries", len(got.progress), 2)
					continue
				}
				var s *ServerError
				if !errors.As(got.err, &s) || s.Status != c.status {
					t.Errorf("error is %v, want a ServerError of status %d", got.err, c.status)
				}
				check(t, "requests after status "+strconv.Itoa(c.status), calls.Load(), 1)
			}
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			var calls atomic.Int64
			f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				w.Header().Set("Retry-After", "0")
				http.Error(w, "busy", http.StatusTooManyRequests)
			})
			got := listen(t, t.Context(), f.open(t, Options{Retries: 2}), Request{Prompt: text("p")})
			var s *ServerError
			if !errors.As(got.err, &s) {
				t.Errorf("error is %v, want a ServerError", got.err)
			}
			check(t, "requests", calls.Load(), 3)
			calls.Store(0)
			for range f.open(t, Options{Retries: 2}).Stream(t.Context(), Request{Prompt: text("p")}) {
				break // at the first retry
			}
			check(t, "requests after leaving", calls.Load(), 1)
		})
	}
}

func TestNoRetryAfterTheFirstToken(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			var calls atomic.Int64
			f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				d.says(d.text("one"))(w, r)
				panic(http.ErrAbortHandler)
			})
			got := listen(t, t.Context(), f.open(t, Options{Retries: 5}), Request{Prompt: text("p")})
			var c *CutError
			if !errors.As(got.err, &c) {
				t.Errorf("error is %v, want a CutError", got.err)
			}
			check(t, "requests", calls.Load(), 1)
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httpServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the prompt went elsewhere") })
	f := llamaDialect.serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
	var s *ServerError
	if !errors.As(got.err, &s) || s.Status != http.StatusTemporaryRedirect {
		t.Errorf("error is %v, want a ServerError", got.err)
	}
}

func TestPasswordInTheAddressIsNotShown(t *testing.T) {
	url := strings.Replace(refusedURL, "http://", "http://user:hunter2@", 1)
	m, err := Open("llamacpp:"+url, Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	got := listen(t, t.Context(), m, Request{Prompt: text("p")})
	if got.err == nil || strings.Contains(got.err.Error(), "hunter2") {
		t.Errorf("error is %v", got.err)
	}
}

func TestEnvironmentIsNotRead(t *testing.T) {
	for _, k := range []string{"HTTP_PROXY", "http_proxy", "OLLAMA_HOST", "OPENAI_API_KEY"} {
		t.Setenv(k, "http://127.0.0.1:1")
	}
	if os.Getenv("OLLAMA_HOST") == "" {
		t.Fatal("the environment is not set")
	}
	for _, d := range dialects {
		f := d.serve(t, d.says(d.frames("x")...))
		complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
		check(t, "key", f.headers[0].Get("Authorization"), "")
	}
	m, err := Open("ollama:m", Options{})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "address", m.(*ollama).url(), "http://127.0.0.1:11434")
}

// TestLeavingAndCancellingARetry: a caller that ends its context and leaves in
// one go hears no more of it.
func TestLeavingAndCancellingARetry(t *testing.T) {
	for _, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			f := d.serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Error(w, "busy", http.StatusTooManyRequests)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range f.open(t, Options{Retries: 2}).Stream(ctx, Request{Prompt: text("p")}) {
				cancel()
				break // a further yield would panic
			}
		})
	}
}

func TestBadPortIsNotRetried(t *testing.T) {
	m, err := Open("llamacpp:http://127.0.0.1:99999", Options{Retries: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := listen(t, t.Context(), m, Request{Prompt: text("p")})
	var u *UnreachableError
	if !errors.As(got.err, &u) || len(got.progress) > 0 {
		t.Errorf("error is %v after %d retries", got.err, len(got.progress))
	}
}
