package batch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Files that pyarrow wrote (testdata/parquet.py), in each compression and both
// versions of pages, give what was put into them.
func TestParquet(t *testing.T) {
	for _, name := range []string{"nq-none", "nq-snappy", "nq-gzip", "nq-zstd", "nq-v2"} {
		d, err := Read(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(d.Items) != 300 || len(d.Faults) > 0 || d.Shape != NQ {
			t.Errorf("%s: %d questions, %v, %s", name, len(d.Items), d.Faults, d.Shape)
		}
		for i, it := range d.Items {
			want := fmt.Sprintf("%d test_%d when was number %d made? [%d in %d]", i+1, i, i, 1900+i%7, 1900+i%7)
			if i%5 == 0 {
				want = fmt.Sprintf("%d test_%d when was number %d made? []", i+1, i, i)
			}
			if got := fmt.Sprintf("%d %s %s %v", it.Line, it.ID, it.Question, it.Answers); got != want {
				t.Fatalf("%s: %s, not %s", name, got, want)
			}
		}
	}
	for name, want := range map[string]string{
		"search-r1": "1 24abed24cb93: Answer: when? [\"1964\"]\n2 98eebd308b92: Answer: who? [\"Ann\" \"Anna\"]\n",
		"hotpotqa":  "1 5a8b: Who? [\"He\"]\n2 5a8c: Ünïcode 问题? []\n",
	} {
		d, err := Read(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := briefly(d); got != want {
			t.Errorf("%s: %s\n%s", name, d.Shape, got)
		}
	}
}

// A file that is cut off or damaged is an error, or gives other rows, and never
// more than that.
func TestDamagedParquet(t *testing.T) {
	files, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.parquet")
		random := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			b := append([]byte(nil), whole...)
			if random.IntN(4) == 0 {
				b = b[:random.IntN(len(b))]
			} else {
				for range 1 + random.IntN(4) {
					at := random.IntN(len(b))
					if random.IntN(2) == 0 { // the metadata stands at the end
						at = len(b) - 1 - random.IntN(min(len(b), 1500))
					}
					b[at] = byte(random.IntN(256))
				}
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _ = Read(path) // it may also be read: what was changed may be a value
		}
	}
}
