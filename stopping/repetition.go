package stopping

// gram is how many equal bytes in a row make two places worth comparing.
const gram = 4

// A repetition detects that the text ends in the same bytes, several times in
// a row. runs[n] is how many bytes at the end equal the bytes n places before
// them, so that a pattern of n bytes stands count times when runs[n] reaches
// n*(count-1).
//
// Distances below gram are compared at every byte. A larger one matters only
// while the last gram bytes stand at that distance too; those places are found
// in chains of places with the same hash.
type repetition struct {
	min, max, count int
	pos             int     // bytes looked at
	runs            []int   // by distance
	since           []int   // by distance: the pos for which runs holds, from gram on
	active          []int   // the distances from gram on for which it does, ascending
	head            []int32 // by hash: the last place, a byte behind gram equal ones; 0 for none
	back            []int32 // by place modulo its size: the place before with the same hash
}

const hashBits = 10

func newRepetition(r Repetition) *repetition {
	d := &repetition{min: r.Min, max: r.Max, count: r.Count}
	d.runs, d.since = make([]int, d.max+1), make([]int, d.max+1)
	if d.max >= gram {
		size := 1
		for size <= d.max {
			size *= 2
		}
		d.head, d.back = make([]int32, 1<<hashBits), make([]int32, size)
	}
	return d
}

func (d *repetition) next(text string, to int, w *window) (match, bool) {
	for d.pos < to {
		if !d.add(text) || !isBoundary(text, d.pos) {
			continue
		}
		for n := d.min; n < gram && n <= d.max; n++ {
			if m, ok := d.stands(n, text, w); ok {
				return m, true
			}
		}
		for _, n := range d.active {
			if m, ok := d.stands(n, text, w); ok {
				return m, true
			}
		}
	}
	return match{}, false
}

// stands reports whether a pattern of n bytes stands often enough. Equal bytes
// inside one character are no repetition.
func (d *repetition) stands(n int, text string, w *window) (match, bool) {
	start := d.pos - n*d.count
	if d.runs[n] < n*(d.count-1) || !isBoundary(text, start) || !w.allows(start) {
		return match{}, false
	}
	return match{start: start, end: d.pos}, true
}

// add takes one more byte and reports whether some pattern stands often enough.
func (d *repetition) add(text string) (full bool) {
	at := d.pos
	d.pos++
	for n := d.min; n < gram && n <= d.max && n <= at; n++ {
		if text[at] != text[at-n] {
			d.runs[n] = 0
			continue
		}
		d.runs[n]++
		full = full || d.runs[n] >= n*(d.count-1)
	}
	d.active = d.active[:0]
	if d.max < gram || d.pos < gram {
		return full
	}
	last := text[d.pos-gram : d.pos]
	hash := (uint32(last[0]) | uint32(last[1])<<8 | uint32(last[2])<<16 | uint32(last[3])<<24) * 2654435761 >> (32 - hashBits)
	mask := len(d.back) - 1
	for p := int(d.head[hash]); p > 0 && d.pos-p <= d.max; p = int(d.back[p&mask]) {
		n := d.pos - p
		if n < max(d.min, gram) || text[p-gram:p] != last {
			continue
		}
		if d.since[n] == d.pos-1 {
			d.runs[n]++
		} else {
			d.runs[n] = gram
		}
		d.since[n] = d.pos
		d.active = append(d.active, n)
		full = full || d.runs[n] >= n*(d.count-1)
	}
	d.back[d.pos&mask] = d.head[hash]
	d.head[hash] = int32(d.pos)
	return full
}

// held reaches back to the first copy of the longest run. Even without a run
// the last max bytes may be a first copy; a run that is shorter than gram has
// not been counted.
func (d *repetition) held(to int) int {
	back := d.max
	if d.max >= gram {
		back += gram - 1
	}
	for n := d.min; n < gram && n <= d.max; n++ {
		back = max(back, n+min(d.runs[n], n*(d.count-1)))
	}
	for _, n := range d.active {
		back = max(back, n+min(d.runs[n], n*(d.count-1)))
	}
	return max(0, to-back)
}
