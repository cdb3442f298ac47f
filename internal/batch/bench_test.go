package batch

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
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

const instantVariable = "STOPGAP_BATCH_INSTANT"

// TestInstant is an OpenAI-style server that answers at once: the whole stream
// is one write. It runs in a process of its own, until its standard input ends.
func TestInstant(t *testing.T) {
	if os.Getenv(instantVariable) == "" {
		t.Skip("BenchmarkBatch starts it")
	}
	stream := func(text string) []byte {
		var b strings.Builder
		for _, word := range strings.SplitAfter(text, " ") {
			line, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "text": word, "finish_reason": nil}}})
			fmt.Fprintf(&b, "data: %s\n\n", line)
		}
		b.WriteString("data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		return []byte(b.String())
	}
	call, reply := stream(longCall), stream(longReply)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), "seen: ") {
			_, _ = w.Write(reply)
			return
		}
		_, _ = w.Write(call)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }() // until it is closed
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Close()
}

// startInstant gives the address of such a server.
func startInstant(b *testing.B) string {
	b.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestInstant$")
	child.Env = append(os.Environ(), instantVariable+"=1")
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = child.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// BenchmarkBatch measures what a batch costs a token with many rollouts at once,
// on a server that answers at once, journals and ledger included: processor time
// and memory of this process. The baseline only reads the same streams, with the
// same client; what is above it is the runner's own.
func BenchmarkBatch(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(GCPercent)) // as the command does
	address := startInstant(b)
	open := func() models.Model {
		m, err := models.Open("openai:http://"+address+"#m", models.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	const each = 4 // questions of a worker
	var batched, bare time.Duration
	var made, read int64
	var peak uint64
	for b.Loop() {
		began := processorTime()
		batch := newBatch(b, b.TempDir(), questions(each**atOnce), server(b, "instant", open()))
		batch.Rollouts, batch.Parallel = 1, *atOnce
		stop := watchMemory(&peak)
		for ev, err := range batch.Run(b.Context()) {
			switch ev := ev.(type) {
			case Finished:
				made += int64(ev.Pieces)
			case Ended:
				if ev.Failed > 0 || ev.Missing > 0 {
					b.Fatalf("%+v", ev)
				}
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		stop()
		batched += processorTime() - began
		_ = batch.Ledger.Close() // the test closes it again

		began = processorTime()
		read += readBare(b, open(), each)
		bare += processorTime() - began
	}
	perToken := func(d time.Duration, tokens int64) float64 { return float64(d.Nanoseconds()) / 1000 / float64(tokens) }
	b.ReportMetric(perToken(batched, made), "µs/token")
	b.ReportMetric(perToken(bare, read), "baseline-µs/token")
	b.ReportMetric(perToken(batched, made)-perToken(bare, read), "own-µs/token")
	b.ReportMetric(float64(peak)/1e6, "MB")
	b.ReportMetric(float64(made)/float64(b.N), "tokens")
}

// readBare reads the streams of as many rollouts, counts their tokens and does
// nothing with them.
func readBare(b *testing.B, m models.Model, each int) int64 {
	var all sync.WaitGroup
	var tokens atomic.Int64
	for range *atOnce {
		all.Go(func() {
			for range 2 * each { // turns
				for c, err := range m.Stream(context.Background(), models.Request{Prompt: []models.Segment{{Text: "a question"}}}) {
					if err != nil {
						b.Error(err)
					}
					if c.Text != "" {
						tokens.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	return tokens.Load()
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
