package stopping

import (
	"slices"
	"sync"
	"sync/atomic"
)

// maxTable is how many bytes the table of an automaton and its states may have.
// What does not fit is computed again each time it is needed.
const maxTable = 4 << 20

// A dfa is an automaton whose table is filled as texts need it. It is shared by
// all matchers of a set and safe for concurrent use.
type dfa struct {
	program *program
	table   atomic.Pointer[table]

	mu      sync.Mutex
	builder *builder
	known   map[string]*state
	size    int
	full    bool
}

// A table says where each state goes for each class. Rows are only ever added,
// entries only ever filled in; a larger table replaces a full one.
type table struct {
	shift  int
	ascii  *[256]uint16
	next   []int32 // row<<shift + column; see the constants below
	states []atomic.Pointer[state]
}

// An entry that is not negative is the place of the next row. unknown is not
// filled in. All others are -2 minus the place of a row that has moves or
// accepts.
const unknown int32 = -1

func newDFA(p *program) *dfa {
	d := &dfa{program: p, builder: newBuilder(p), known: map[string]*state{}}
	d.table.Store(newTable(p.alphabet, 16))
	b := d.builder
	start := b.begin()
	b.items, b.scopes = append(b.items[:0], start.items...), append(b.scopes[:0], start.scopes...)
	b.makeKey(start.context, nil)
	d.intern(start)
	return d
}

func newTable(a *alphabet, rows int) *table {
	t := &table{shift: a.shift, ascii: &a.ascii, next: make([]int32, rows<<a.shift), states: make([]atomic.Pointer[state], rows)}
	for i := range t.next {
		t.next[i] = unknown
	}
	return t
}

// state is the state of a row's place.
func (t *table) state(place int32) *state { return t.states[place>>t.shift].Load() }

// place is what an entry of the table says about a state.
func (t *table) place(s *state) int32 {
	at := s.row << t.shift
	if s.moves != nil || len(s.accepts) > 0 {
		return -2 - at
	}
	return at
}

// next computes where a state goes, and fills it in.
func (d *dfa) next(from *state, c *class) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.table.Load()
	at := from.row<<t.shift + int32(c.column)
	inside := c.column < 1<<t.shift
	if inside {
		switch v := t.next[at]; {
		case v >= 0:
			return t.state(v)
		case v != unknown:
			return t.state(-2 - v)
		}
	}
	d.builder.step(from, c)
	s := d.known[string(d.builder.key)]
	if s == nil {
		s = d.builder.state(&state{}, from, c)
		d.intern(s)
	}
	if t = d.table.Load(); inside && s.row >= 0 {
		atomic.StoreInt32(&t.next[at], t.place(s))
	}
	return s
}

// intern gives a new state, whose key the builder holds, a row.
func (d *dfa) intern(s *state) {
	t := d.table.Load()
	rows := len(d.known)
	size := d.size + 2*len(d.builder.key) + 4<<t.shift + 256
	if size > maxTable {
		d.full = true
		return
	}
	if rows == len(t.states) {
		larger := newTable(d.program.alphabet, 2*rows)
		copy(larger.next, t.next)
		for i := range t.states {
			larger.states[i].Store(t.states[i].Load())
		}
		t = larger
		d.table.Store(t)
	}
	d.size = size
	s.row = int32(rows)
	t.states[rows].Store(s)
	d.known[string(d.builder.key)] = s
}

// find gives the state with the key of a builder, if it has a row.
func (d *dfa) find(key []byte) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[string(key)]
}

// without is the state in which no match of an entry has begun.
func (d *dfa) without(s *state, entry int) *state {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.builder
	b.items, b.scopes = b.items[:0], append(b.scopes[:0], s.scopes...)
	items, skip := s.items, len(b.looks)+entry
	for i := 0; len(items) > 0; i++ {
		n := slices.Index(items, endEntry) + 1
		if i != skip {
			b.items = append(b.items, items[:n]...)
		} else {
			b.items = append(b.items, endEntry)
		}
		items = items[n:]
	}
	b.makeKey(s.context, nil)
	if known := d.known[string(b.key)]; known != nil {
		return known
	}
	r := &state{row: -1, context: s.context, scopes: slices.Clone(s.scopes), items: slices.Clone(b.items)}
	b.complete(r)
	d.intern(r)
	return r
}

// isFull reports whether the table has no room for more states.
func (d *dfa) isFull() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.full
}
