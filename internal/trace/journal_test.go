package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestJournal: of several runs the last one that has a header counts, and one
// with an end is not gone on with. A damaged journal is put aside whole.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	open := func(runs, last, unfinished int) {
		t.Helper()
		j, err := OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if len(j.Runs) != runs || Last(j.Runs) != last || j.Unfinished() != unfinished {
			t.Errorf("%d runs, of which %d counts, %d is not at its end; want %d, %d, %d", len(j.Runs), Last(j.Runs), j.Unfinished(), runs, last, unfinished)
		}
	}
	open(0, -1, -1)
	write(t, path, sample...)
	open(1, 0, -1)
	write(t, path, sample[:3]...)
	open(2, 1, 1)

	b, _ := read(t, path)
	head := bytes.IndexByte(b, '\n') // a kill within the header of a third run: it is none
	if err := os.WriteFile(path, append(bytes.Clone(b), b[:head/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	open(2, 1, 1)

	b[len(b)/3] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	open(0, -1, -1)
	if aside, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(aside, b) {
		t.Errorf("what was damaged is not there any more: %v", err)
	}
	write(t, path, sample...)
	open(1, 0, -1)
}
