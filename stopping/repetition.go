package stopping

// A repetition detects that the text ends in the same bytes, several times in
// a row. runs[n] is how many bytes at the end equal the bytes n places before
// them, so that a pattern of n bytes stands count times when runs[n] reaches
// n*(count-1).
type repetition struct {
	min, max, count int
	runs            []int
	read            int // bytes looked at
}

func newRepetition(r Repetition) *repetition {
	d := &repetition{min: r.Min, max: r.Max, count: r.Count}
	d.runs = make([]int, d.max+1)
	return d
}

func (d *repetition) advance(t *text, w *window) (match, bool, error) {
	for ; d.read < t.end; d.read++ {
		for n := d.min; n <= d.max && n <= d.read; n++ {
			if t.bytes[d.read] == t.bytes[d.read-n] {
				d.runs[n]++
			} else {
				d.runs[n] = 0
			}
		}
	}
	for n := d.min; n <= d.max; n++ {
		if d.runs[n] < n*(d.count-1) {
			continue
		}
		start := t.end - n*d.count
		// Equal bytes inside one character are no repetition.
		if i := t.index(start); i >= 0 && w.allows(i) {
			return match{start: start, keep: start}, true, nil
		}
	}
	return match{}, false, nil
}

// held reaches back to the first copy of the longest run: even without a run
// the last max bytes may be a first copy.
func (d *repetition) held(t *text) int {
	back := 0
	for n := d.min; n <= d.max; n++ {
		back = max(back, n+min(d.runs[n], n*(d.count-1)))
	}
	return max(0, t.end-back)
}
