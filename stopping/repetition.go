package stopping

// A repetition detects that the text ends in the same bytes, several times in
// a row. runs[n] is how many bytes at the end equal the bytes n places before
// them, so that a pattern of n bytes stands count times when runs[n] reaches
// n*(count-1).
type repetition struct {
	min, max, count int
	runs            []int
	pos             int // bytes looked at
}

func newRepetition(r Repetition) *repetition {
	d := &repetition{min: r.Min, max: r.Max, count: r.Count}
	d.runs = make([]int, d.max+1)
	return d
}

func (d *repetition) next(text string, to int, w *window) (match, bool) {
	for d.pos < to {
		full := d.add(text)
		if !full || !isBoundary(text, d.pos) {
			continue
		}
		for n := d.min; n <= d.max; n++ {
			if d.runs[n] < n*(d.count-1) {
				continue
			}
			// Equal bytes inside one character are no repetition.
			if start := d.pos - n*d.count; isBoundary(text, start) && w.allows(start) {
				return match{start: start, end: d.pos}, true
			}
		}
	}
	return match{}, false
}

// add takes one more byte and reports whether some pattern stands often enough.
func (d *repetition) add(text string) (full bool) {
	b := text[d.pos]
	for n := d.min; n <= d.max && n <= d.pos; n++ {
		if b != text[d.pos-n] {
			d.runs[n] = 0
			continue
		}
		d.runs[n]++
		full = full || d.runs[n] >= n*(d.count-1)
	}
	d.pos++
	return full
}

// held reaches back to the first copy of the longest run: even without a run
// the last max bytes may be a first copy.
func (d *repetition) held(to int) int {
	back := 0
	for n := d.min; n <= d.max; n++ {
		back = max(back, n+min(d.runs[n], n*(d.count-1)))
	}
	return max(0, to-back)
}
