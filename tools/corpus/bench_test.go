package corpus

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// How large the benchmarks' corpus is: STOPGAP_BENCH_DOCUMENTS, which
// "make bench-corpus" sets.
func benchDocuments(tb testing.TB) int {
	said := os.Getenv("STOPGAP_BENCH_DOCUMENTS")
	if said == "" {
		return 5_000
	}
	n, err := strconv.Atoi(said)
	if err != nil || n < 1000 {
		tb.Fatalf("STOPGAP_BENCH_DOCUMENTS is %q, not a number of documents", said)
	}
	return n
}

// A speech draws words with the long tail that real ones have: the n-th word is
// about n times rarer than the first. It uses whole numbers only, so that it is
// the same on every machine.
type speech struct {
	rng   *rand.Rand
	words []string
}

const vocabularyBits = 15

func newSpeech(seed uint64) *speech {
	syllables := strings.Fields("ka re mi to lan der vos ne sul tar bri on ek um fen pol dis ar we gi")
	rng := rand.New(rand.NewPCG(1, 2)) // the words are always the same
	words := make([]string, 1<<vocabularyBits)
	seen := make(map[string]bool)
	for i := range words {
		for words[i] == "" || seen[words[i]] {
			for range 1 + i%3 {
				words[i] += syllables[rng.IntN(len(syllables))]
			}
		}
		seen[words[i]] = true
	}
	return &speech{rand.New(rand.NewPCG(seed, 3)), words}
}

func (s *speech) word() string {
	return s.words[s.rng.IntN(1<<(1+s.rng.IntN(vocabularyBits)))]
}

func (s *speech) say(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = s.word()
	}
	return strings.Join(list, " ")
}

// document says 20 to 100 words.
func (s *speech) document() string {
	return s.say(10+s.rng.IntN(40)) + ". " + s.say(10+s.rng.IntN(40)) + "."
}

// writeCorpus writes n documents as one JSONL file.
func writeCorpus(tb testing.TB, n int) string {
	tb.Helper()
	s := newSpeech(1)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"doc-%d\",\"text\":%q}\n", i, s.document())
	}
	path := filepath.Join(tb.TempDir(), "documents.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		tb.Fatal(err)
	}
	age(tb, path, time.Hour) // a young file is read once more
	return path
}

func BenchmarkIndex(b *testing.B) {
	n := benchDocuments(b)
	path := writeCorpus(b, n)
	var c clock
	for i := 0; b.Loop(); i++ {
		c.start()
		x, err := Open(b.Context(), Config{Path: path, Index: filepath.Join(b.TempDir(), fmt.Sprint(i, ".db"))})
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
		c.stop()
	}
	c.report(b, n)
}

// BenchmarkIndexPlain is the baseline of BenchmarkIndex: SQLite's own full-text
// table with the same texts, in one transaction.
func BenchmarkIndexPlain(b *testing.B) {
	n := benchDocuments(b)
	s := newSpeech(1)
	var c clock
	for i := 0; b.Loop(); i++ {
		c.start()
		db := plainIndex(b, filepath.Join(b.TempDir(), fmt.Sprint(i, ".db")), n, func() string { return s.document() })
		c.stop()
		db.Close()
	}
	c.report(b, n)
}

func BenchmarkOpenUnchanged(b *testing.B) {
	cfg := Config{Path: writeCorpus(b, benchDocuments(b)), Index: filepath.Join(b.TempDir(), "i.db")}
	mustOpen(b, cfg).Close()
	for b.Loop() {
		mustOpen(b, cfg).Close()
	}
}

// bench is the one index of a benchmark run.
var bench struct {
	sync.Mutex
	index *Index
}

func benchIndex(b *testing.B) *Index {
	bench.Lock()
	defer bench.Unlock()
	if bench.index == nil {
		dir, err := os.MkdirTemp("", "corpus")
		if err != nil {
			b.Fatal(err)
		}
		x, err := Open(context.Background(), Config{Path: writeCorpus(b, benchDocuments(b)), Index: filepath.Join(dir, "i.db")})
		if err != nil {
			b.Fatal(err)
		}
		bench.index = x
	}
	return bench.index
}

func BenchmarkSearch(b *testing.B) {
	x := benchIndex(b)
	for _, words := range []int{2, 5, 10} {
		b.Run(fmt.Sprint(words, "words"), func(b *testing.B) {
			s := newSpeech(uint64(words))
			times(b, func() {
				if _, err := x.Search(b.Context(), []string{s.say(words)}, 5); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkSearchPlain is the baseline of BenchmarkSearch: SQLite's own ranking.
func BenchmarkSearchPlain(b *testing.B) {
	s := newSpeech(1)
	db := plainIndex(b, filepath.Join(b.TempDir(), "plain.db"), benchDocuments(b), func() string { return s.document() })
	defer db.Close()
	for _, words := range []int{2, 5, 10} {
		b.Run(fmt.Sprint(words, "words"), func(b *testing.B) {
			s := newSpeech(uint64(words))
			times(b, func() { plainSearch(b, db, strings.ReplaceAll(s.say(words), " ", " OR ")) })
		})
	}
}

// times measures what do takes, each time: the wall's clock and the process's.
func times(b *testing.B, do func()) {
	var wall, cpu []time.Duration
	for b.Loop() {
		var c clock
		c.start()
		do()
		c.stop()
		wall, cpu = append(wall, c.wall), append(cpu, c.cpu)
	}
	for name, list := range map[string][]time.Duration{"ms": wall, "cpu-ms": cpu} {
		slices.Sort(list)
		b.ReportMetric(float64(list[len(list)/2].Microseconds())/1000, "p50-"+name)
		b.ReportMetric(float64(list[len(list)*99/100].Microseconds())/1000, "p99-"+name)
	}
	b.ReportMetric(0, "ns/op")
}

// A clock measures time, and how much of it the process computed.
type clock struct {
	wall, cpu time.Duration
	began     time.Time
	used      time.Duration
}

func (c *clock) start() { c.began, c.used = time.Now(), processTime() }
func (c *clock) stop() {
	c.wall += time.Since(c.began)
	c.cpu += processTime() - c.used
}

// report tells how many documents were indexed in a second of either kind.
func (c *clock) report(b *testing.B, n int) {
	b.ReportMetric(float64(n*b.N)/c.wall.Seconds(), "docs/s")
	if c.cpu > 0 {
		b.ReportMetric(float64(n*b.N)/c.cpu.Seconds(), "docs/cpu-s")
		b.ReportMetric(c.cpu.Seconds()/c.wall.Seconds(), "cores")
	}
	b.ReportMetric(0, "ns/op")
}

// drawn is an embedding model that gives each text a direction of its own.
type drawn struct{ width int }

func (d drawn) Name() string { return "drawn" }

func (d drawn) Embed(_ context.Context, texts []string, _ bool) ([][]float32, error) {
	list := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64()
		h.Write([]byte(text))
		rng := rand.New(rand.NewPCG(h.Sum64(), 1))
		list[i] = make([]float32, d.width)
		for j := range list[i] {
			list[i][j] = float32(rng.NormFloat64())
		}
	}
	return list, normalise(list, len(texts))
}

// BenchmarkHybrid searches by words and by half as many vectors of 384 numbers as
// BenchmarkSearch has documents. The model's own time is not in it: the vectors
// are drawn.
func BenchmarkHybrid(b *testing.B) {
	cfg := Config{Path: writeCorpus(b, benchDocuments(b)/2), Index: filepath.Join(b.TempDir(), "i.db"), Embedder: drawn{384}}
	x := mustOpen(b, cfg)
	s := newSpeech(5)
	search := func() {
		if _, err := x.Search(b.Context(), []string{s.say(5)}, 5); err != nil {
			b.Fatal(err)
		}
	}
	var first clock
	first.start()
	search() // reads the vectors
	first.stop()
	b.Run("vectors", func(b *testing.B) {
		times(b, search)
		b.ReportMetric(float64(first.cpu.Milliseconds()), "first-cpu-ms")
		b.ReportMetric(float64(len(x.vectors.rows)), "vectors")
	})
	// The baseline: the same products, one number after the other.
	b.Run("plain", func(b *testing.B) {
		query, err := drawn{384}.Embed(b.Context(), []string{"query"}, true)
		if err != nil {
			b.Fatal(err)
		}
		times(b, func() {
			top := newBest(120)
			for i, p := range x.vectors.passages {
				row := int(x.vectors.rows[i]) * x.vectors.width
				sum := float32(0)
				for j, f := range query[0] {
					sum += f * x.vectors.values[row+j]
				}
				top.add(ranked{p, float64(sum)})
			}
			top.settle()
		})
	})
}
