package models

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"stopgap/internal/ollamatest"
)

func TestMain(m *testing.M) { os.Exit(ollamatest.Main(m)) }

// A scenario is a conversation with a real server. It is run against what was
// recorded, cut into network reads of several sizes, and against a live server
// where there is one.
type scenario struct {
	name  string
	about string
	model string   // "" or "special", see specialFile
	flags []string // of llama-server, or environment variables of Ollama
	opts  Options
	run   func(t *testing.T, m Model)
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

var llamaScenarios = []scenario{
	{
		name: "llama-server/plain", about: "a generation that ends by itself, twice",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			for i := range 2 {
				got := complete(t, m, Request{Prompt: text(userPrompt)})
				check(t, "text", got.text, testScript.Turns[0].Text)
				check(t, "finish", got.final.Finish, FinishStop)
				u := got.final.Usage
				check(t, "reused and evaluated", u.Reused.N+u.Evaluated.N, u.Prompt.N)
				check(t, "whether the second prompt was found in the cache", u.Evaluated.N == 1, i == 1)
				// The end-of-generation token is counted and not part of the output.
				check(t, "ids", len(got.tokens), u.Generated.N-1)
				if len(got.progress) == 0 || got.progress[0].Phase != Reading {
					t.Errorf("progress is %v, want reading", got.progress)
				}
				if got.usage == nil || got.usage.Prompt != u.Prompt || got.usage.Reused != u.Reused {
					t.Errorf("usage before the end is %v, want the prompt of %v", got.usage, u)
				}
			}
		},
	},
	{
		name: "llama-server/preserved", about: "preserved_tokens renders the end-of-generation token",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt), Preserve: []string{"<|im_end|>"}})
			check(t, "text", got.text, testScript.Turns[0].Text+"<|im_end|>")
			check(t, "ids", len(got.tokens), got.final.Usage.Generated.N)
		},
	},
	{
		name: "llama-server/limit", about: "n_predict is reached",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[endless]"), MaxTokens: 4})
			check(t, "text", got.text, "around and aroundaround")
			check(t, "finish", got.final.Finish, FinishLength)
			check(t, "generated", got.final.Usage.Generated, Known(4))
		},
	},
	{
		name: "llama-server/context", about: "the context is full",
		flags: []string{"-np", "2", "-c", "512"}, // 256 a slot
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(strings.Repeat("x", 200) + "[endless]")})
			check(t, "finish", got.final.Finish, FinishContext)
		},
	},
	{
		name: "llama-server/overflow", about: "the prompt is longer than the context",
		flags: []string{"-np", "2", "-c", "512"},
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text(strings.Repeat("x", 300) + "[1]")})
			var o *OverflowError
			if !errors.As(got.err, &o) {
				t.Fatalf("error is %v, want an OverflowError", got.err)
			}
			check(t, "error", *o, OverflowError{PromptTokens: Known(301), Context: Known(256)})
		},
	},
	{
		name: "llama-server/hidden", about: "a control token in the output: hidden with its id, then preserved",
		model: "special", flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			hidden := complete(t, m, Request{Prompt: text("[hidden]")})
			check(t, "text", hidden.text, "firstthen the rest")
			shown := complete(t, m, Request{Prompt: text("[hidden]"), Preserve: []string{"</tool_response>"}})
			check(t, "text", shown.text, "first</tool_response>then the rest")
			check(t, "ids", fmt.Sprint(hidden.tokens), fmt.Sprint(shown.tokens))
		},
	},
	{
		name: "llama-server/hole", about: "a character of two tokens: the first one has no event",
		model: "special", flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[hole]")})
			check(t, "text", got.text, "one ab中cdeF two")
			holes := 0
			for _, c := range got.chunks {
				if c.Text != "" && c.Tokens == nil {
					holes++
					check(t, "text of the hole", c.Text, " ab中cdeF")
				}
			}
			check(t, "holes", holes, 1)
			check(t, "ids", len(got.tokens), 2)
		},
	},
	{
		name: "llama-server/stop", about: "a stop string is cut from the text and not from the ids",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt), Stop: []string{"</think>"}})
			check(t, "text", got.text, "<think>\nI look it up.\n")
			check(t, "finish", got.final.Finish, FinishStop)
			check(t, "ids", len(got.tokens), 0)
		},
	},
	{
		name: "llama-server/ids", about: "the second prompt has the ids of the first answer in its middle",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			first := complete(t, m, Request{Prompt: text("Tides.[1]")})
			second := complete(t, m, Request{Prompt: []Segment{
				{Text: "Tides."}, {Text: "[1]"}, {Text: first.text, Tokens: first.tokens}, {Text: "<|im_end|>[2]"},
			}})
			check(t, "text", second.text, testScript.Turns[6].Text)
			check(t, "evaluated", second.final.Usage.Evaluated, Known(2))
		},
	},
	{
		name: "llama-server/tokenize", about: "tokens with pieces, one of which is no text",
		flags: []string{"-np", "2", "-c", "4096"},
		run: func(t *testing.T, m Model) {
			tokens, err := m.(Tokenizer).Tokenize(t.Context(), "a<tool_call>é")
			if err != nil {
				t.Fatal(err)
			}
			var pieces []string
			for _, token := range tokens {
				pieces = append(pieces, token.Piece)
			}
			check(t, "pieces", fmt.Sprintf("%q", pieces), `["a" "<tool_call>" "\xc3" "\xa9"]`)
		},
	},
	{
		name: "llama-server/describe", about: "what the server says of itself",
		flags: []string{"-np", "2", "-c", "4096", "--alias", "automaton"},
		run: func(t *testing.T, m Model) {
			info, err := m.(Describer).Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			check(t, "model", info.Model, "automaton")
			check(t, "context", info.Context, Known(2048))
			check(t, "trained", info.Trained, Known(32768))
			check(t, "slots", info.Slots, Known(2))
			if !strings.HasPrefix(info.Server, "llama-server ") {
				t.Errorf("server is %q", info.Server)
			}
			models, err := m.(Lister).List(t.Context())
			if err != nil || len(models) != 1 || models[0].Name != "automaton" || models[0].Size == 0 {
				t.Errorf("models are %v, %v", models, err)
			}
		},
	},
	{
		name: "llama-server/sessions-np", about: "two sessions take turns, -np 2: a turn costs its own tokens",
		flags: []string{"-np", "2", "-c", "8192"},
		run: func(t *testing.T, m Model) {
			for _, turn := range alternate(t, m) {
				if turn.n > 1 {
					// What was appended and nothing else.
					check(t, turn.name+" evaluated", turn.usage.Evaluated, Known(turn.added))
				}
			}
			check(t, "verdict", measure(t, m).Verdict, PrefixKept)
		},
	},
	{
		name: "llama-server/sessions-np-free", about: "two sessions take turns, -np 2, no slot is named: sessions with a long common start share a slot",
		flags: []string{"-np", "2", "-c", "8192"}, opts: Options{Slots: SlotsFree},
		run: func(t *testing.T, m Model) { check(t, "verdict", measure(t, m).Verdict, PrefixLost) },
	},
	{
		name: "llama-server/sessions-default", about: "two sessions take turns, default flags: only the common start is reused",
		flags: []string{"-c", "8192"},
		run: func(t *testing.T, m Model) {
			for _, turn := range alternate(t, m) {
				if turn.n > 1 && turn.usage.Evaluated.N <= 2*turn.added {
					t.Errorf("%s evaluated %s: the server has learned to keep prefixes", turn.name, turn.usage.Evaluated)
				}
			}
			report := measure(t, m)
			check(t, "exact", report.Exact, true)
			check(t, "verdict", report.Verdict, PrefixLost)
			check(t, "advice", report.Advice, "-np 2")
		},
	},
	{
		name: "llama-server/sessions-default-pinned", about: "two sessions take turns, default flags, slots named all the same",
		flags: []string{"-c", "8192"}, opts: Options{Slots: SlotsPinned},
		run: func(t *testing.T, m Model) {
			report := measure(t, m)
			check(t, "verdict", report.Verdict, PrefixLost)
			check(t, "advice", report.Advice, "-np 2")
		},
	},
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

var ollamaScenarios = []scenario{
	{
		name: "ollama/plain", about: "a generation that ends by itself",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(userPrompt)})
			check(t, "text", got.text, testScript.Turns[0].Text)
			check(t, "finish", got.final.Finish, FinishStop)
			u := got.final.Usage
			check(t, "prompt and generated are known", u.Prompt.Known && u.Generated.Known, true)
			check(t, "reused or evaluated are known", u.Reused.Known || u.Evaluated.Known, false)
			check(t, "ids", len(got.tokens), 0)
			if got.final.Timings.Prompt <= 0 || got.final.Timings.Total <= 0 {
				t.Errorf("timings are %v", got.final.Timings)
			}
		},
	},
	{
		name: "ollama/counts", about: "the same prompt twice: prompt_eval_count is the whole prompt both times",
		run: func(t *testing.T, m Model) {
			prompt := text(strings.Repeat("x", 500) + "[1]")
			first, second := complete(t, m, Request{Prompt: prompt}), complete(t, m, Request{Prompt: prompt})
			check(t, "prompt", first.final.Usage.Prompt, Known(501))
			check(t, "prompt", second.final.Usage.Prompt, Known(501))
		},
	},
	{
		name: "ollama/limit", about: "num_predict is reached",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[endless]"), MaxTokens: 4})
			check(t, "text", got.text, "around and aroundaround")
			check(t, "finish", got.final.Finish, FinishLength)
		},
	},
	{
		name: "ollama/context", about: "the context is full",
		opts: Options{ContextSize: 256},
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text(strings.Repeat("x", 200) + "[endless]")})
			check(t, "finish", got.final.Finish, FinishContext)
		},
	},
	{
		name: "ollama/overflow", about: "the prompt is longer than the context",
		opts: Options{ContextSize: 256},
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text(strings.Repeat("x", 300) + "[1]")})
			var o *OverflowError
			if !errors.As(got.err, &o) {
				t.Fatalf("error is %v, want an OverflowError", got.err)
			}
			check(t, "context", o.Context, Known(256))
		},
	},
	{
		name: "ollama/cut", about: "thirty equal pieces: the stream ends and does not say so",
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text("[same]"), MaxTokens: 200})
			var c *CutError
			if !errors.As(got.err, &c) {
				t.Fatalf("error is %v, want a CutError", got.err)
			}
			check(t, "bytes", c.Bytes, len(got.text))
			check(t, "tokens", c.Tokens, len(got.text)/len("same"))
		},
	},
	{
		name: "ollama/stops", about: "a request's stop, with the model's own: both end a generation",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[1]"), Stop: []string{"never"}})
			check(t, "text", got.text, "High water is")
			check(t, "finish", got.final.Finish, FinishStop)
			got = complete(t, m, Request{Prompt: text("[1]"), Stop: []string{"water"}})
			check(t, "text", got.text, "High ")
		},
	},
	{
		name: "ollama/hidden", about: "a control token in the output is rendered", model: "special",
		run: func(t *testing.T, m Model) {
			got := complete(t, m, Request{Prompt: text("[hidden]")})
			check(t, "text", got.text, "first</tool_response>then the rest")
		},
	},
	{
		name: "ollama/describe", about: "what the server says of itself, before and after loading",
		run: func(t *testing.T, m Model) {
			for _, context := range []Count{{}, Known(4096)} {
				info, err := m.(Describer).Describe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				check(t, "server", info.Server, "ollama 0.0.0") // built from its module
				check(t, "context", info.Context, context)
				check(t, "trained", info.Trained, Known(32768))
				check(t, "stops", strings.Join(info.Stops, ","), " at")
				complete(t, m, Request{Prompt: text("[1]"), MaxTokens: 1})
			}
			models, err := m.(Lister).List(t.Context())
			if err != nil || len(models) != 1 || models[0].Size == 0 {
				t.Errorf("models are %v, %v", models, err)
			}
		},
	},
	{
		name: "ollama/missing", about: "a model that is not there", model: "missing",
		run: func(t *testing.T, m Model) {
			got := listen(t, t.Context(), m, Request{Prompt: text("[1]")})
			_, derr := m.(Describer).Describe(t.Context())
			for _, err := range []error{got.err, derr} {
				var nf *NotFoundError
				if !errors.As(err, &nf) {
					t.Fatalf("error is %v, want a NotFoundError", err)
				}
				check(t, "model", nf.Model, "missing")
				check(t, "available", strings.Join(nf.Available, ","), "automaton:latest")
			}
		},
	},
	{
		name: "ollama/sessions", about: "two sessions take turns on one slot",
		run: func(t *testing.T, m Model) {
			report := measure(t, m)
			check(t, "exact", report.Exact, false)
			check(t, "verdict", report.Verdict, PrefixLost)
		},
	},
}

func ollamaRef(s scenario) func(string) string {
	return func(string) string {
		if s.model == "missing" {
			return "ollama:missing"
		}
		return "ollama:automaton"
	}
}

func TestRecordedOllama(t *testing.T) {
	for _, s := range ollamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) { replay(t, s, ollamaRef(s)) })
	}
}

func TestLiveOllama(t *testing.T) {
	for _, s := range ollamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "ollama/"), func(t *testing.T) {
			file := modelFile
			if s.model == "special" {
				file = specialFile
			}
			server := ollamatest.Start(t, append(s.flags, "OLLAMA_CONTEXT_LENGTH=4096")...)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the log of Ollama:\n%s", server.Log())
				}
			})
			server.Create(t, "automaton", file(t), map[string]any{"stop": []string{" at"}})
			live(t, s, server.URL, ollamaRef(s), s.about+"\nOllama 0.17.4, a model with stop \" at\" "+strings.Join(s.flags, " "))
		})
	}
}

func TestRecordedLlamaServer(t *testing.T) {
	for _, s := range llamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			replay(t, s, func(url string) string { return "llamacpp:" + url })
		})
	}
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

func TestLiveLlamaServer(t *testing.T) {
	for _, s := range llamaScenarios {
		t.Run(strings.TrimPrefix(s.name, "llama-server/"), func(t *testing.T) {
			file := modelFile
			if s.model == "special" {
				file = specialFile
			}
			live(t, s, startLlama(t, file(t), s.flags...), func(url string) string { return "llamacpp:" + url },
				s.about+"\nllama-server 0.5.0-dev (0c1e570), flags "+strings.Join(s.flags, " "))
		})
	}
}
