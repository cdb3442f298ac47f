package batch

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgap/models"
)

var atOnce = flag.Int("parallel-rollouts", 64, "rollouts at once in BenchmarkBatch")

// The turns of the instant server, a word a token.
var (
	thought   = strings.Repeat("I think of what the bridge may have been and who was there. ", 25)
	longCall  = "<think>\n" + thought + "\n</think>\n\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"q\": \"bridge\"}}\n</tool_call>"
	longReply = "<think>\n" + thought + "\n</think>\n\nAnna Low."
)

// instant is an OpenAI-style server that answers at once: the whole stream is
// one write.
func instant(t testing.TB) (address string, tokens *atomic.Int64) {
	tokens = &atomic.Int64{}
	stream := func(text string) ([]byte, int) {
		var b strings.Builder
		n := 0
		for _, word := range strings.SplitAfter(text, " ") {
			line, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "text": word, "finish_reason": nil}}})
			fmt.Fprintf(&b, "data: %s\n\n", line)
			n++
		}
		b.WriteString("data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return []byte(b.String()), n
	}
	call, calls := stream(longCall)
	reply, replies := stream(longReply)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), "seen: ") {
			tokens.Add(int64(replies))
			_, _ = w.Write(reply)
			return
		}
		tokens.Add(int64(calls))
		_, _ = w.Write(call)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }() // until it is closed
	t.Cleanup(func() { s.Close() })
	return l.Addr().String(), tokens
}

// BenchmarkBatch measures what a batch costs a token with many rollouts at once,
// on a server that answers at once, journals and ledger included: processor time
// of this process, in which the server is too. The baseline only reads the same
// streams, with the same client; what is above it is the runner's own.
func BenchmarkBatch(b *testing.B) {
	address, tokens := instant(b)
	open := func() models.Model {
		m, err := models.Open("openai:http://"+address+"#m", models.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	const questionsAtOnce = 4
	var batched, bare time.Duration
	var made, read int64
	var peak uint64
	for b.Loop() {
		before := tokens.Load()
		began := processorTime()
		s := server(b, "instant", open())
		batch := newBatch(b, b.TempDir(), questions(questionsAtOnce**atOnce), s)
		batch.Rollouts, batch.Parallel = 1, *atOnce
		stop := watchMemory(&peak)
		events, err := finish(b, batch)
		stop()
		if err != nil {
			b.Fatal(err)
		}
		if end := of[Ended](events)[0]; end.Failed > 0 || end.Missing > 0 {
			b.Fatalf("%+v", end)
		}
		batched += processorTime() - began
		made += tokens.Load() - before
		_ = batch.Ledger.Close()

		before, began = tokens.Load(), processorTime()
		readBare(b, open(), questionsAtOnce)
		bare += processorTime() - began
		read += tokens.Load() - before
	}
	b.ReportMetric(float64(batched.Microseconds())/float64(made), "µs/token")
	b.ReportMetric(float64(bare.Microseconds())/float64(read), "baseline-µs/token")
	b.ReportMetric(float64(batched.Microseconds())/float64(made)-float64(bare.Microseconds())/float64(read), "own-µs/token")
	b.ReportMetric(float64(peak)/1e6, "MB")
	b.ReportMetric(float64(made)/float64(b.N), "tokens")
}

// readBare reads the streams of as many rollouts, and does nothing with them.
func readBare(b *testing.B, m models.Model, each int) {
	var all sync.WaitGroup
	for range *atOnce {
		all.Go(func() {
			for range each {
				for _, prompt := range []string{"a question", "a question, and seen: it"} {
					for _, err := range m.Stream(context.Background(), models.Request{Prompt: []models.Segment{{Text: prompt}}}) {
						if err != nil {
							b.Error(err)
						}
					}
				}
			}
		})
	}
	all.Wait()
}

// watchMemory keeps the most memory that the process had from the system.
func watchMemory(peak *uint64) (stop func()) {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.Sys-m.HeapReleased)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() { close(done); ended.Wait() }
}
