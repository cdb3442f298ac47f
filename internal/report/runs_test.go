package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/internal/compare"
	"stopgap/template"
)

// A page of 200 items, 4 configurations and 2 rollouts stays small where the
// runs are, and stays below a bound where they are not.
func TestSizeOfThePage(t *testing.T) {
	r := made(abilities, 200, 2)
	long := func(run *compare.Run) ([]compare.Segment, error) {
		var out []compare.Segment
		for i := range 8 {
			out = append(out, compare.Segment{Source: template.FromTool, Text: strings.Repeat(fmt.Sprintf("result %d of %d. ", i, run.Seed), 500)})
		}
		return out, nil
	}
	for _, of := range []struct {
		name string
		runs Runs
		most int
	}{{"without runs", nil, 1 << 20}, {"short runs", madeRuns, 3 << 20}, {"100 MB of runs", long, 18 << 20}} {
		var b bytes.Buffer
		if err := HTML(&b, r, of.runs); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB", of.name, float64(b.Len())/1e6)
		if b.Len() > of.most {
			t.Errorf("%s: %d bytes", of.name, b.Len())
		}
	}
}

// Where not all runs fit, those of items that differ stay.
func TestWhatIsLeftOut(t *testing.T) {
	r := made(abilities, 300, 2)
	d := newData(r, func(run *compare.Run) ([]compare.Segment, error) {
		var out []compare.Segment
		for i := range 30 { // 30 texts of 512 bytes, 2400 runs: 36 MB
			out = append(out, compare.Segment{Source: template.FromModel, Text: strings.Repeat(fmt.Sprintf("%d/%d ", run.Seed, i), 70)})
		}
		return out, nil
	})
	body, err := json.Marshal(d)
	if err != nil || len(body) > 18<<20 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	kept := map[bool]int{}
	for i, it := range d.Items {
		for _, runs := range it.Runs {
			for _, run := range runs {
				switch {
				case len(run.Segments) == 30:
					kept[r.Items[i].Differs]++
				case len(run.Segments) > 0 || !strings.Contains(run.Note, "stopgap trace show "):
					t.Fatalf("%s: %d segments, %q", it.ID, len(run.Segments), run.Note)
				}
			}
		}
	}
	if kept[true] < 400 || kept[false] > 0 {
		t.Errorf("kept are %v", kept)
	}
}

// A text that is shortened again and again tells how much is gone.
func TestShorten(t *testing.T) {
	whole := strings.Repeat("aß字🙂", 500)
	for _, most := range []int{4000, 1000, 500, 90, 10, 1, 0} {
		c := cut{head: whole}
		for _, m := range []int{3000, most} {
			c = c.shorten(m)
		}
		if c.size() > max(most, 0) && c.size() > 3000 || c.size()+c.left != len(whole) || !strings.HasPrefix(whole, c.head) || !strings.HasSuffix(whole, c.tail) {
			t.Errorf("%d: %d and %d bytes, %d left out of %d", most, len(c.head), len(c.tail), c.left, len(whole))
		}
		if !utf8.ValidString(c.head) || !utf8.ValidString(c.tail) {
			t.Errorf("%d: it is cut in a character", most)
		}
	}
	if c := (cut{head: "short"}).shorten(10); c.left != 0 || c.value() != "short" {
		t.Errorf("%+v", c)
	}
}
