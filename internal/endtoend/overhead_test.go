package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/models/tokenizer"
	"stopgap/runner"
	"stopgap/tools"
)

// An instant is a model that writes its turns at once, a token a chunk, so that
// all the time of a run is the run's own.
type instant struct {
	vocabulary *tokenizer.Tokenizer
	ids        bool
	turns      [][]models.Chunk
	next       int
}

func newInstant(t testing.TB, ids bool, turns ...string) *instant {
	m := &instant{vocabulary: embedded(t).Tokenizer(), ids: ids}
	for _, text := range turns {
		var chunks []models.Chunk
		for _, id := range m.vocabulary.Encode(text, true) {
			c := models.Chunk{Text: string(m.vocabulary.Bytes(id))}
			if ids {
				c.Tokens = []int{id}
			}
			chunks = append(chunks, c)
		}
		m.turns = append(m.turns, append(chunks, models.Chunk{Final: &models.Final{Finish: models.FinishStop}}))
	}
	return m
}

func (m *instant) Spelling(context.Context) (*models.Spelling, error) {
	return &models.Spelling{Special: m.vocabulary.Specials(), Complete: true, Exact: true, IDs: m.ids,
		Encode: func(_ context.Context, text string, special bool) ([]models.Token, error) {
			ids := m.vocabulary.Encode(text, special)
			tokens := make([]models.Token, len(ids))
			for i, id := range ids {
				tokens[i] = models.Token{ID: id, Piece: string(m.vocabulary.Bytes(id))}
			}
			return tokens, nil
		}}, nil
}

func (m *instant) Stream(context.Context, models.Request) iter.Seq2[models.Chunk, error] {
	turn := m.turns[m.next%len(m.turns)]
	m.next++
	return func(yield func(models.Chunk, error) bool) {
		for _, c := range turn {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// long is a search whose result has some thousand tokens.
type long struct{ text string }

func (long) Spec() tools.Spec { return slow{}.Spec() }

func (l long) Run(context.Context, json.RawMessage) (string, error) { return l.text, nil }

// BenchmarkOverhead measures all that a run does besides waiting for the model,
// with a prompt of 32 000 tokens: the share of the wall time of a model that
// writes 100 tokens a second, beyond that of a loop that only reads the streams
// of the same turns.
func BenchmarkOverhead(b *testing.B) {
	const pace = 10 * time.Millisecond // a token
	v := embedded(b).Tokenizer()
	words := strings.Repeat("The northern bridge of the old harbour was painted by Anna Low in 1764. ", 400)
	size := len(v.Encode(words, false))
	question := strings.Repeat(words, 26000/size) + "Who painted the bridge?"
	result := strings.Repeat(words, 1) + "<|im_end|>"
	thought := strings.Repeat("I think of what the bridge may have been and who was there. ", 12)
	call := "<think>\n" + thought + "\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"bridge\"}}\n</tool_call>"
	answer := "<think>\n" + thought + "\n</think>\n\nAnna Low."
	for _, ids := range []bool{true, false} {
		for _, journal := range []bool{false, true} {
			b.Run(fmt.Sprintf("ids=%v/journal=%v", ids, journal), func(b *testing.B) {
				m := newInstant(b, ids, call, answer)
				set, err := tools.NewSet([]tools.Tool{long{result}}, tools.Options{MaxTokens: -1})
				if err != nil {
					b.Fatal(err)
				}
				r := newRunner(b, "qwen", m, set)
				r.Context = 0
				var w *trace.Writer
				if journal {
					if w, err = trace.Open(filepath.Join(b.TempDir(), "journal")); err != nil {
						b.Fatal(err)
					}
					defer w.Close()
				}
				var own, bare time.Duration
				tokens, prompt := 0, 0
				for b.Loop() {
					start := time.Now()
					for range m.turns {
						var text strings.Builder
						for c := range m.Stream(b.Context(), models.Request{}) {
							text.WriteString(c.Text)
							tokens++
						}
					}
					bare += time.Since(start)
					start = time.Now()
					events := r.Run(b.Context(), runner.Task{Question: question})
					if journal {
						events = w.Run(b.Context(), trace.About{}, r, runner.Task{Question: question})
					}
					for ev, err := range events {
						if err != nil {
							b.Fatal(err)
						}
						if end, ok := ev.(runner.Ended); ok {
							if prompt = end.Ledger.Tokens(); end.Answer != "Anna Low." {
								b.Fatalf("answered %q", end.Answer)
							}
						}
					}
					own += time.Since(start)
				}
				b.ReportMetric(100*float64(own-bare)/float64(time.Duration(tokens)*pace), "%-of-wall-time")
				b.ReportMetric(float64(prompt), "prompt-tokens")
				b.ReportMetric(float64(tokens)/float64(b.N), "generated")
			})
		}
	}
}
