package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/stopping"
)

// A meter notes when bytes were last read from a socket, and how long after
// that the socket was closed, which is when the server sees that its client has
// left. What is behind the match is not read any more.
type meter struct {
	mu   sync.Mutex
	read time.Time
	halt time.Duration
}

type metered struct {
	net.Conn
	*meter
}

func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	return metered{c, m}, err
}

func (c metered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.read = time.Now()
	}
	return n, err
}

func (c metered) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halt = time.Since(c.read)
	return c.Conn.Close()
}

// BenchmarkHaltCriteria prints how long after the match was read from the
// socket the connection is closed, with eight criteria at once, which end a
// text in turn.
func BenchmarkHaltCriteria(b *testing.B) {
	s := ollamatest.Shared(b)
	m := &meter{}
	client := &http.Client{Transport: &http.Transport{DialContext: m.dial}}
	halts := map[string][]time.Duration{}
	var all []time.Duration
	for n := 0; b.Loop(); n++ {
		e := endings[n%(len(endings)-1)] // the last one ends nothing
		name := "criteria-" + e.criterion
		if halts[e.criterion] == nil {
			s.Create(b, name, modelFile(b, e.script(), automaton.Options{}), nil)
		}
		real, err := models.Open("ollama:"+name, models.Options{OllamaHost: s.URL, ContextSize: 8192, Client: client})
		if err != nil {
			b.Fatal(err)
		}
		if got := firstTurn(b, &listener{Model: real}); got.stopped.Criterion != e.criterion {
			b.Fatalf("stopped by %q, want %s", got.stopped.Criterion, e)
		}
		m.mu.Lock()
		halt := m.halt
		m.mu.Unlock()
		halts[e.criterion], all = append(halts[e.criterion], halt), append(all, halt)
	}
	report(b, "us-to-cancel", all)
	for _, e := range endings {
		if some := halts[e.criterion]; some != nil {
			b.Logf("%-13s median %v, most %v of %d", e, median(some), slices.Max(some), len(some))
		}
	}
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// report prints the median and the most of what was measured, in microseconds.
func report(b *testing.B, unit string, all []time.Duration) {
	b.ReportMetric(float64(median(all).Nanoseconds())/1e3, unit+"-median")
	b.ReportMetric(float64(slices.Max(all).Nanoseconds())/1e3, unit+"-max")
}

// prose has about so many bytes and completes none of the criteria.
func prose(size int) string {
	words := strings.Fields("a place where the river turns and small boats wait until light comes over every hill")
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", ", ", "\n"}[r.IntN(5)])
	}
	return b.String()
}

// lead is what stands before the match when the text is that long.
func (e ending) lead(size int) string {
	lead := ""
	if !e.thinking {
		lead = "\n</think>\n\n"
	}
	if e.criterion == "sentences" {
		for i := range 22 { // so many are missing
			lead += fmt.Sprintf("%d! ", i)
		}
	}
	return lead + prose(size-len(lead)-len(e.before)) + e.before
}

// BenchmarkHaltWrite prints what the check of the last four bytes of a match
// costs, by the length of the text before it, with the eight criteria in
// place. Without a candidate before, all that is put off until a match falls
// due here: finding its start, and running what no automaton knows.
func BenchmarkHaltWrite(b *testing.B) {
	set, err := stopping.Compile(eight(thinking(b).Think)...)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range endings {
		for _, size := range []int{1_000, 100_000, 1_000_000} {
			if e.criterion == "" {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", e, size), func(b *testing.B) {
				last := max(0, len(e.match)-4)
				lead, end := e.lead(size)+e.match[:last], e.match[last:]
				var took []time.Duration
				exceeded := 0
				for b.Loop() {
					m := set.Matcher()
					for part := range slices.Chunk([]byte(lead), 1<<10) {
						if step, err := m.Write(string(part), 1); err != nil || step.Stop != nil {
							b.Fatalf("%+v, %v before the match", step.Stop, err)
						}
					}
					began := time.Now()
					step, err := m.Write(end, 1)
					took = append(took, time.Since(began))
					var over *stopping.BudgetError
					if errors.As(err, &over) {
						exceeded++
						continue
					}
					if err != nil || step.Stop == nil || step.Stop.Criterion.Name != e.criterion {
						b.Fatalf("%+v, %v at the match", step.Stop, err)
					}
				}
				report(b, "us-write", took)
				b.ReportMetric(float64(exceeded), "over-budget")
				b.ReportMetric(float64(median(took).Nanoseconds())/float64(len(lead)), "ns/byte")
			})
		}
	}
}
