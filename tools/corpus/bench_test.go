package corpus

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

// vocabulary makes words with the long tail that real ones have.
func vocabulary(rng *rand.Rand, n int) func() string {
	syllables := strings.Fields("ka re mi to lan der vos ne sul tar bri on ek um fen pol dis ar we gi")
	words := make([]string, n)
	for i := range words {
		for range 1 + i%4 {
			words[i] += syllables[rng.IntN(len(syllables))]
		}
	}
	zipf := rand.NewZipf(rng, 1.1, 4, uint64(n-1))
	return func() string { return words[zipf.Uint64()] }
}

// writeCorpus writes n documents of about 60 words as one JSONL file.
func writeCorpus(tb testing.TB, n int) string {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	word := vocabulary(rng, 20_000)
	some := func(n int) string {
		var list []string
		for range n {
			list = append(list, word())
		}
		return strings.Join(list, " ")
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"doc-%d\",\"title\":%q,\"text\":%q}\n", i, some(3), some(20)+". "+some(20)+". "+some(20)+".")
	}
	path := filepath.Join(tb.TempDir(), "documents.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		tb.Fatal(err)
	}
	old := time.Now().Add(-time.Hour) // a young file is read once more
	if err := os.Chtimes(path, old, old); err != nil {
		tb.Fatal(err)
	}
	return path
}

const benchDocuments = 20_000

func BenchmarkIndex(b *testing.B) {
	path := writeCorpus(b, benchDocuments)
	for i := 0; b.Loop(); i++ {
		x, err := Open(b.Context(), Config{Path: path, Index: filepath.Join(b.TempDir(), fmt.Sprint(i, ".db"))})
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
	b.ReportMetric(benchDocuments*float64(b.N)/b.Elapsed().Seconds(), "docs/s")
}

func BenchmarkOpenUnchanged(b *testing.B) {
	cfg := Config{Path: writeCorpus(b, benchDocuments), Index: filepath.Join(b.TempDir(), "i.db")}
	x, err := Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	x.Close()
	for b.Loop() {
		x, err := Open(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}

func BenchmarkSearch(b *testing.B) {
	x, err := Open(b.Context(), Config{Path: writeCorpus(b, benchDocuments), Index: filepath.Join(b.TempDir(), "i.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	rng := rand.New(rand.NewPCG(3, 4))
	word := vocabulary(rand.New(rand.NewPCG(1, 2)), 20_000)
	for _, words := range []int{2, 6, 12} {
		b.Run(fmt.Sprint(words, "words"), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				var query []string
				for range words - rng.IntN(2) {
					query = append(query, word())
				}
				start := time.Now()
				if _, err := x.Search(b.Context(), []string{strings.Join(query, " ")}, 5); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
