package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// BenchmarkPrefill plays runs with and without --prefill, with a tool that takes
// a while, and prints what it saves: tokens that the next turn does not read,
// and the time to its first token.
func BenchmarkPrefill(b *testing.B) {
	servers := map[string]func() models.Model{
		"builtin": func() models.Model { return opened(b, "builtin", models.Options{}) },
		"ollama": func() models.Model {
			s := ollamatest.Shared(b)
			s.Create(b, "prefill", builtinFile, nil)
			return opened(b, "ollama:prefill", models.Options{OllamaHost: s.URL, ContextSize: 4096})
		},
		"llama-server": func() models.Model {
			return opened(b, "llamacpp:"+ollamatest.LlamaServer(b, builtinFile, "-c", "4096", "-np", "1"), models.Options{})
		},
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		b.Run(name, func(b *testing.B) {
			m := servers[name]()
			var first [2][]time.Duration
			var read [2]int
			for i := 0; b.Loop(); i++ {
				for way, ahead := range []bool{false, true} {
					took, evaluated := secondTurn(b, m, 2*i+way, ahead)
					first[way] = append(first[way], took)
					read[way] += evaluated
				}
			}
			b.ReportMetric(float64(median(first[1]))/float64(median(first[0])), "first-token/without")
			b.ReportMetric(float64(read[0]-read[1])/float64(len(first[0])), "tokens-saved")
		})
	}
}

func opened(b *testing.B, ref string, opts models.Options) models.Model {
	b.Helper()
	m, err := models.Open(ref, opts)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// secondTurn asks a question and gives the time to the first token of the turn
// after the first call, and the prompt tokens that were read for it.
func secondTurn(b *testing.B, m models.Model, number int, ahead bool) (first time.Duration, evaluated int) {
	b.Helper()
	set, err := tools.NewSet([]tools.Tool{slow{}}, tools.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := newRunner(b, "qwen", m, set)
	r.Context, r.Prefill, r.Session = 4096, ahead, fmt.Sprintf("%d-%v", number, ahead)
	r.Limits = runner.Limits{Turns: 2, TurnTokens: 200}
	greedy := 0.0
	r.Sampling = models.Sampling{Temperature: &greedy}
	var returned time.Time
	for ev, err := range r.Run(b.Context(), runner.Task{Question: fmt.Sprintf("%d bridges: who painted the last?", number+3)}) {
		if err != nil {
			b.Fatal(err)
		}
		switch ev := ev.(type) {
		case runner.Returned:
			returned = time.Now()
		case runner.Text:
			if !returned.IsZero() && first == 0 {
				first = time.Since(returned)
			}
		case runner.Stopped:
			if ev.Turn == 2 {
				evaluated = ev.Usage.Evaluated.N
			}
		}
	}
	return first, evaluated
}

// slow is a search that takes as long as one over the network.
type slow struct{}

func (slow) Spec() tools.Spec {
	return tools.Spec{Name: "search", Description: "Search the user's documents.", Parameters: json.RawMessage(
		`{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}`)}
}

func (slow) Run(context.Context, json.RawMessage) (string, error) {
	time.Sleep(200 * time.Millisecond)
	return "Bridge. The bridge was painted by Anna Low. [bridge.md] (score 3.10)", nil
}
