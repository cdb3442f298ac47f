package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

// A small file that unpacks to a large one is an error, and costs little.
func TestParquetBombs(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "bomb", "text.parquet"))
	if err != nil || len(b) > 8<<10 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	rows := 0
	err = readParquet(bytes.NewReader(b), int64(len(b)), 64<<20, func(int, row, error) { rows++ })
	if err == nil || !strings.Contains(err.Error(), "unpacks to too much") || rows > 64<<20/500_000 {
		t.Errorf("%d rows, %v", rows, err)
	}
	whole, err := os.ReadFile(filepath.Join("testdata", "nq-v2.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for limit := int64(0); limit < 40_000; limit += 1000 { // wherever it is reached
		err = readParquet(bytes.NewReader(whole), int64(len(whole)), limit, func(int, row, error) {})
		if err == nil || !strings.Contains(err.Error(), "unpacks to too much") {
			t.Fatalf("within %d bytes: %v", limit, err)
		}
	}
	const values = 8 << 20
	c := cursor{b: append(binary.AppendUvarint([]byte{15<<4 | thriftStruct}, values), make([]byte, values)...)}
	if c.value(thriftList, false, 0); c.err == nil || c.values > thriftValues+1 {
		t.Errorf("%d values are read of a list of empty structs, %v", c.values, c.err)
	}
}

// FuzzParquet: whatever the bytes are, the reader ends, within its bounds.
func FuzzParquet(f *testing.F) {
	files, err := filepath.Glob("testdata/*.parquet")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 4 << 20
		bytesOf := int64(0)
		_ = readParquet(bytes.NewReader(b), int64(len(b)), limit, func(_ int, r row, _ error) {
			for _, v := range r {
				bytesOf += int64(len(v))
			}
		})
		if bytesOf > limit {
			t.Errorf("%d bytes of rows", bytesOf)
		}
	})
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
