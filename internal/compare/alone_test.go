package compare

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"

	"stopgap/internal/batch"
)

// A batch that was killed before it began has nothing to be drawn.
func TestAloneNotBegun(t *testing.T) {
	dir := t.TempDir()
	ledger, err := batch.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	if r, err := Read(dir); !errors.Is(err, ErrNone) {
		t.Errorf("%+v, %v", r, err)
	}
}

// The folder of a batch alone is scored as it is in a comparison.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	whole := compared(t, asking(dir, 2, cities, candidate(t, "a", clerk{script: idle}), candidate(t, "b", clerk{script: idle})))
	of := whole.Configurations[1]
	sub := filepath.Join(dir, filepath.FromSlash(of.Folder))
	r, err := Read(sub)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Configurations) != 1 || len(r.Pairs) != 0 || r.Rollouts != 2 || r.Data != whole.Data || r.Date != whole.Date || r.Primary != whole.Primary {
		t.Fatalf("%+v", r)
	}
	c := r.Configurations[0]
	if c.Name != of.Format || c.Format != of.Format || c.Model != of.Model || c.Hash != of.Hash || c.Done != of.Done || !reflect.DeepEqual(c.Scores, of.Scores) {
		t.Errorf("%+v, not %+v", c, of)
	}
	if segments, err := Segments(t.Context(), sub, r.Items[0].Runs[0][0], 0); err != nil || len(segments) == 0 {
		t.Errorf("segments: %v, %v", segments, err)
	}
	if _, err := ReadTimes(sub, r); err != nil {
		t.Error(err)
	}
}
