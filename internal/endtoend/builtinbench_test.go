package endtoend

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"stopgap/internal/ollamatest"
	"stopgap/models/builtin"
)

// A pace is tokens and the time they took.
type pace struct {
	tokens int
	took   time.Duration
}

func (p *pace) add(tokens int, took time.Duration) { p.tokens, p.took = p.tokens+tokens, p.took+took }

func (p pace) perSecond() float64 { return float64(p.tokens) / p.took.Seconds() }

// BenchmarkBuiltin prints how many tokens a second the engine and the real
// Ollama read and generate with the same file and the same prompts, on one core
// each, one after the other.
func BenchmarkBuiltin(b *testing.B) {
	s, m := ollamatest.Shared(b), embedded(b)
	s.Create(b, "inside", builtinFile, nil) // with one thread
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	prompts := builtinPrompts(b, m, 50)
	var read, generated, theyRead, theyGenerated pace
	for i := 0; b.Loop(); i++ {
		prompt := fmt.Sprint(i, ". ", prompts[i%len(prompts)]) // nothing of it is known
		var last builtin.Usage
		began := time.Now()
		var first time.Duration
		for step, err := range m.Generate(b.Context(), builtin.Request{Prompt: m.Tokenizer().Encode(prompt, true), MaxTokens: compared}) {
			if err != nil {
				b.Fatal(err)
			}
			if last = step.Usage; last.Generated == 1 {
				first = time.Since(began)
			}
		}
		read.add(last.Evaluated, first)
		generated.add(last.Generated-1, time.Since(began)-first)
		err := s.Client.Generate(b.Context(), &api.GenerateRequest{
			Model: "inside", Prompt: prompt, Raw: true, Think: &api.ThinkValue{Value: false},
			Options: map[string]any{"temperature": 0, "num_predict": compared, "num_ctx": 4096},
		}, func(r api.GenerateResponse) error {
			if r.Done {
				theyRead.add(r.PromptEvalCount, r.PromptEvalDuration)
				theyGenerated.add(r.EvalCount, r.EvalDuration)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(read.perSecond(), "read/s")
	b.ReportMetric(theyRead.perSecond(), "ollama-read/s")
	b.ReportMetric(read.perSecond()/theyRead.perSecond(), "read-ratio")
	b.ReportMetric(generated.perSecond(), "generated/s")
	b.ReportMetric(theyGenerated.perSecond(), "ollama-generated/s")
	b.ReportMetric(generated.perSecond()/theyGenerated.perSecond(), "generated-ratio")
}
