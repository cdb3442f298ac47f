package trace

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// A fountain is a model that writes words without end, one token each, with its
// counts, as llama-server does.
type fountain struct{ tokens int }

func (f fountain) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		for i := range f.tokens {
			if !yield(models.Chunk{Text: " word", Tokens: []int{i}, Usage: &models.Usage{Prompt: models.Known(100), Generated: models.Known(i)}}, nil) {
				return
			}
		}
		yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop}}, nil)
	}
}

// What a token costs with the journal and without, one run of 2000 tokens after
// the other, so that both see the same machine; bare is a loop over the stream
// that keeps the text. At 100 tokens a second a token has 10 ms.
func BenchmarkJournal(b *testing.B) {
	const tokens = 2000
	for name, question := range map[string]string{"short": "Where?", "32k": strings.Repeat("long words ", 12_000)} {
		b.Run(name, func(b *testing.B) {
			w, err := Open(filepath.Join(b.TempDir(), "runs.trace"))
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			r := &runner.Runner{Model: fountain{tokens}, Format: format(b, "qwen"), Tools: set(b, tools.Options{}, echo("search"))}
			task, a := runner.Task{Question: question}, about(b, "qwen")
			var spent [3]time.Duration
			for b.Loop() {
				for i, run := range []func(){
					func() {
						var text strings.Builder
						for c := range r.Model.Stream(b.Context(), models.Request{}) {
							text.WriteString(c.Text)
						}
					},
					func() {
						for range r.Run(b.Context(), task) {
						}
					},
					func() {
						for range w.Run(b.Context(), a, r, task) {
						}
					},
				} {
					began := time.Now()
					run()
					spent[i] += time.Since(began)
				}
			}
			if err := w.Err(); err != nil {
				b.Fatal(err)
			}
			each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(b.N*tokens) }
			b.ReportMetric(each(spent[0]), "bare-ns/token")
			b.ReportMetric(each(spent[1]), "run-ns/token")
			b.ReportMetric(each(spent[2]), "journal-ns/token")
			b.ReportMetric(each(spent[2])/each(spent[1]), "ratio")
			b.ReportMetric(100*(each(spent[2])-each(spent[1]))/float64(10*time.Millisecond), "%-at-100/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
