package endtoend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/faultproxy"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// ollamaWords are what faults say in the words of Ollama.
var ollamaWords = faultproxy.Stream{
	Media: "application/x-ndjson",
	Line:  func(data string) string { return data + "\n" },
	Text:  func(text string) string { return `{"response":"` + text + `","done":false}` + "\n" },
	Final: func(reason, count string) string {
		return `{"response":"","done":true,"done_reason":` + reason + `,"eval_count":` + count + "}\n"
	},
	Error: `{"error":"the runner died"}` + "\n",
}

// A brokenOllama is a real one with the built-in model, behind a proxy that
// breaks one of its streams.
type brokenOllama struct {
	*ollamatest.Server
	set   *tools.Set
	name  string
	anew  int
	fault faultproxy.Fault
	at    int
}

// run asks a question. The first stream is broken, unless there is no fault.
func (b *brokenOllama) run(t *testing.T) (runner.Outcome, error) {
	t.Helper()
	for {
		p := &faultproxy.Proxy{
			Path: "/api/generate", Answer: faultproxy.To(strings.TrimPrefix(b.URL, "http://")), Stream: ollamaWords,
			Fault: b.fault, At: b.at, Times: 1,
		}
		address, stop, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		m, err := models.Open("ollama:"+b.name, models.Options{OllamaHost: "http://" + address, ContextSize: 4096, FirstToken: 20 * time.Second, BetweenTokens: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		out, err := b.ask(t, m)
		stop()
		// A runner of Ollama that was left in the middle may answer nobody any more.
		var stall *models.StallError
		if !errors.As(err, &stall) || b.anew > 3 {
			return out, err
		}
		b.anew++
		b.name = fmt.Sprint("broken-", b.anew)
		b.Create(t, b.name, builtinFile, nil)
		t.Logf("the model stopped answering: made anew")
	}
}

func (b *brokenOllama) ask(t *testing.T, m models.Model) (out runner.Outcome, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	greedy := 0.0
	r := newRunner(t, "qwen", m, b.set)
	r.Context, r.Sampling, r.Limits = 4096, models.Sampling{Temperature: &greedy}, runner.Limits{Turns: 4, TurnTokens: 300}
	for ev, fault := range r.Run(ctx, runner.Task{Question: "Who designed Kesper Bridge?", Date: "2026-01-02"}) {
		if err = fault; err != nil {
			return out, err
		}
		if e, ok := ev.(runner.Ended); ok {
			out = e.Outcome
		}
	}
	return out, nil
}

// Where the connection to a real Ollama is lost, the run goes on and answers;
// where the server says that something is wrong, or nonsense, it ends in an
// error of that type. Ollama reads the words before the cut anew, so that the
// text may differ after it: how often is told.
func TestBrokenStreamsOfOllama(t *testing.T) {
	s := ollamatest.Start(t) // it may stop answering after so many broken streams
	set := sampleTools(t)
	s.Create(t, "broken", builtinFile, nil)
	b := &brokenOllama{Server: s, set: set, name: "broken"}
	whole, err := b.run(t)
	if err != nil || whole.Resumed != 0 || whole.Termination != runner.TermAnswered {
		t.Fatalf("unbroken: %v, %+v", err, whole)
	}
	same, all, step, ways := 0, 0, 700, []string{"closed", "reset"}
	if os.Getenv("STOPGAP_FAULTS") == "all" {
		step, ways = 250, append(ways, "ended early", "a chunk torn")
	}
	for _, fault := range faultproxy.Faults {
		b.fault = fault
		switch {
		case slices.Contains(ways, fault.Name):
			for b.at = 0; b.at <= 2000; b.at += step {
				out, err := b.run(t)
				if err != nil || out.Resumed != 1 || out.Answer == "" {
					t.Errorf("%s at %d: %v, %+v", fault.Name, b.at, err, out)
					continue
				}
				if all++; out.Ledger.Text() == whole.Ledger.Text() {
					same++
				}
			}
		case fault.Name == "an error" || fault.Name == "garbage":
			b.at = 400
			out, err := b.run(t)
			var (
				reported *models.ServerError
				garbled  *models.ProtocolError
			)
			if !errors.As(err, &reported) && !errors.As(err, &garbled) {
				t.Errorf("%s: %v, ended %s", fault.Name, err, out.Termination)
			}
		}
	}
	t.Logf("%d of %d runs that were resumed have the prompt of the unbroken one", same, all)
	if all == 0 || same == 0 {
		t.Error("no run came out the same")
	}
}
