package models

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"stopgap/internal/ollamatest"
)

func TestMain(m *testing.M) { os.Exit(ollamatest.Main(m)) }

// A scenario is a conversation with a real server. It is run against what was
// recorded, cut into network reads of several sizes, and against a live server
// where there is one.
type scenario struct {
	name  string
	about string
	model string   // "", "special", "soft" or "bos", see live_test.go
	flags []string // of llama-server, or environment variables of Ollama
	// derived is a model of Ollama that is made from the model file.
	derived *api.CreateRequest
	opts    Options
	timed   bool // the outcome depends on time: only what was recorded is a test
	run     func(t *testing.T, m Model)
}

const userPrompt = "<|im_start|>user\nHow deep?<|im_end|>\n<|im_start|>assistant\n"

func text(s string) []Segment { return []Segment{{Text: s}} }

// A told is everything that a stream yielded.
type told struct {
	text     string
	tokens   []int
	chunks   []Chunk
	progress []Progress
	usage    *Usage // the last one before the end
	final    *Final
	err      error
}

// listen reads a stream to its end and checks what every stream keeps.
func listen(t *testing.T, ctx context.Context, m Model, req Request) told {
	t.Helper()
	var all told
	for c, err := range m.Stream(ctx, req) {
		if all.err != nil || all.final != nil {
			t.Errorf("%+v, %v was yielded after the end", c, err)
		}
		all.chunks = append(all.chunks, c)
		all.text += c.Text
		all.tokens = append(all.tokens, c.Tokens...)
		if c.Progress != nil {
			all.progress = append(all.progress, *c.Progress)
		}
		if c.Usage != nil {
			all.usage = c.Usage
		}
		all.final, all.err = c.Final, err
	}
	if (all.err == nil) == (all.final == nil) {
		t.Errorf("a stream ended with final %v and error %v", all.final, all.err)
	}
	return all
}

// complete is a stream that must not fail.
func complete(t *testing.T, m Model, req Request) told {
	t.Helper()
	all := listen(t, t.Context(), m, req)
	if all.err != nil {
		t.Fatalf("stream: %v", all.err)
	}
	return all
}

func check[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// A turn is one generation of alternate.
type turn struct {
	name  string
	n     int
	added int // tokens that the prompt has more than the one before and what was generated
	usage Usage
}

// alternate runs two sessions of three turns, one turn of each in turn. Each
// prompt is the last one, what was generated, as ids, and a response.
func alternate(t *testing.T, m Model) []turn {
	t.Helper()
	start := strings.Repeat("The harbour office keeps a table of the tides. ", 8)
	prompts := map[string][]Segment{}
	last := map[string]Usage{}
	var turns []turn
	for n := 1; n <= 3; n++ {
		for _, s := range []string{"a", "b"} {
			if n == 1 {
				prompts[s] = text(start + "Ask for " + s + strings.Repeat(" and wait", 20) + ".[1]")
			}
			got := complete(t, m, Request{Prompt: prompts[s], Session: s})
			u := got.final.Usage
			done := turn{name: fmt.Sprintf("turn %d of %s", n, s), n: n, usage: u}
			if n > 1 {
				done.added = u.Prompt.N - last[s].Prompt.N - (last[s].Generated.N - 1)
			}
			t.Logf("%s: prompt %s, reused %s, evaluated %s, added %d", done.name, u.Prompt, u.Reused, u.Evaluated, done.added)
			turns = append(turns, done)
			last[s] = u
			prompts[s] = append(prompts[s], Segment{Text: got.text, Tokens: got.tokens}, Segment{
				Text: fmt.Sprintf("<|im_end|>The table says %d for %s.[%d]", 100*n, s, n%2+1),
			})
		}
	}
	return turns
}

// measure is MeasurePrefix with a fixed start, as a recording needs it.
func measure(t *testing.T, m Model) PrefixReport {
	t.Helper()
	report, err := measurePrefix(t.Context(), m, "Measured once")
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range report.Turns {
		u := turn.Usage
		t.Logf("%s%d: prompt %s, reused %s, evaluated %s, added %s, time %v",
			turn.Session, turn.Turn, u.Prompt, u.Reused, u.Evaluated, turn.Added, turn.Time)
	}
	return report
}

// replay runs a scenario against its recording. How the network cuts the bytes
// must change nothing.
func replay(t *testing.T, s scenario, ref func(url string) string) {
	for _, size := range []int{0, 1, 7, 1000} {
		t.Run(fmt.Sprintf("%d bytes a read", size), func(t *testing.T) {
			url := loadTranscript(t, s.name).play(t, size).URL
			opts := s.opts
			opts.OllamaHost = url
			m, err := Open(ref(url), opts)
			if err != nil {
				t.Fatal(err)
			}
			s.run(t, m)
		})
	}
}

// live runs a scenario against a server, and records it if that is asked for.
func live(t *testing.T, s scenario, server string, ref func(url string) string, comment string) {
	tr := &transcript{}
	proxy := tr.keep(t, server)
	opts := s.opts
	opts.OllamaHost = proxy.URL
	m, err := Open(ref(proxy.URL), opts)
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, m)
	proxy.Close() // waits for the last bytes
	if *record && !t.Failed() {
		tr.save(t, s.name, comment)
	}
}
