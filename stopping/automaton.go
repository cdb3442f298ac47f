package stopping

import (
	"encoding/binary"
	"slices"
)

// A state is what an automaton knows about the text so far. It is immutable.
//
// items holds, for each lookbehind and then for each entry, groups of items;
// -1 ends a group and -2 ends the entry. A tracked entry has one group for each
// start of a match that is still possible, the preferred one first; an item is
// only in the first group that reaches it. The other entries have at most one
// group. Each group of a tracked entry has a register with its start.
type state struct {
	row     int32 // place in the table, -1 if it is not in there
	context context
	scopes  []scopeState
	items   []int32
	// moves says from which register of the state before each register of this
	// one is taken; fresh is the place of the last character. nil changes nothing.
	moves     []int32
	registers int
	holds     []hold
	accepts   []accept // by entry
}

const (
	endGroup int32 = -1
	endEntry int32 = -2
	fresh    int32 = -1
)

// A hold keeps text back from a start on, but not more than the reach of the
// entry unless that is 0.
type hold struct {
	register int32
	reach    int
}

// An accept says that a match ends here.
type accept struct {
	entry    int
	register int32 // fresh when the match is empty or the entry not tracked
}

// A builder computes states. It is not safe for concurrent use.
type builder struct {
	*program
	reached marks // items reached in front of the next character
	taken   marks // items reached behind it
	stack   []int32
	items   []int32
	moves   []int32
	scopes  []scopeState
	looks   []bool // whether each lookbehind holds
	accept  bool   // whether the group that is looked at accepts
	key     []byte
}

// marks is a set of items that is cleared at once.
type marks struct {
	stamp []uint32
	now   uint32
}

func (m *marks) clear(size int) {
	if len(m.stamp) < size || m.now == 1<<32-1 {
		m.stamp, m.now = make([]uint32, size), 0
	}
	m.now++
}

// add reports whether the item is new.
func (m *marks) add(item int32) bool {
	if m.stamp[item] == m.now {
		return false
	}
	m.stamp[item] = m.now
	return true
}

func newBuilder(p *program) *builder {
	return &builder{program: p, looks: make([]bool, len(p.looks))}
}

// begin is the state before the first character.
func (b *builder) begin() *state {
	s := &state{row: -1, context: first & b.context}
	for _, sc := range b.program.scopes {
		s.scopes = append(s.scopes, sc.begin())
	}
	for range len(b.program.looks) + len(b.entries) {
		s.items = append(s.items, endEntry)
	}
	b.complete(s)
	return s
}

// step computes the state after one more character.
func (b *builder) step(from *state, c *class) {
	next := symbol{c}
	b.reset()
	items := b.readLooks(from, next, true)
	register := int32(0)
	for i := range b.entries {
		e := &b.entries[i]
		groups := len(b.items)
		open := b.allows(e, from)
		if open && e.tracked && e.youngest {
			b.group(nil, e.start, from, next)
			b.endGroup(&groups, fresh)
		}
		for items[0] != endEntry {
			n := slices.Index(items, endGroup)
			b.group(items[:n], -1, from, next)
			items = items[n+1:]
			if e.tracked {
				b.endGroup(&groups, register)
				register++
			}
		}
		items = items[1:]
		if open && !(e.tracked && e.youngest) {
			b.group(nil, e.start, from, next)
			if e.tracked {
				b.endGroup(&groups, fresh)
			}
		}
		if !e.tracked && len(b.items) > groups {
			slices.Sort(b.items[groups:])
			b.items = append(b.items, endGroup)
		}
		b.items = append(b.items, endEntry)
	}
	b.scopes = b.scopes[:0]
	for i, sc := range b.program.scopes {
		b.scopes = append(b.scopes, sc.step(from.scopes[i], c))
	}
	b.makeKey(contextAfter(c)&b.context, identity(b.moves, from.registers))
}

func (b *builder) reset() {
	b.reached.clear(2 * len(b.ops))
	b.taken.clear(2 * len(b.ops))
	b.items, b.moves = b.items[:0], b.moves[:0]
}

// readLooks finds out which lookbehinds hold before the next character, and
// gives the items of the entries. keep appends what becomes of the lookbehinds.
func (b *builder) readLooks(from *state, next symbol, keep bool) (items []int32) {
	items = from.items
	for i := range b.looks {
		n := slices.Index(items, endEntry)
		behind := items[:n]
		if n > 0 {
			behind = items[:n-1] // without endGroup
		}
		items = items[n+1:]
		start := len(b.items)
		b.group(behind, b.program.looks[i].start, from, next)
		b.looks[i] = b.accept
		if !keep {
			b.items = b.items[:start]
			continue
		}
		if len(b.items) > start {
			slices.Sort(b.items[start:])
			b.items = append(b.items, endGroup)
		}
		b.items = append(b.items, endEntry)
	}
	return items
}

// endGroup closes the group that began at *start, if it has items.
func (b *builder) endGroup(start *int, register int32) {
	if len(b.items) == *start {
		return
	}
	slices.Sort(b.items[*start:])
	b.items = append(b.items, endGroup)
	b.moves = append(b.moves, register)
	*start = len(b.items)
}

// allows reports whether a match of the entry may start after this state.
func (b *builder) allows(e *entry, s *state) bool {
	return e.scope < 0 || b.program.scopes[e.scope].allows(s.scopes[e.scope])
}

// group takes items, and start unless it is negative, over the next character
// and appends where they arrive. accept is set when a match ends before it.
func (b *builder) group(items []int32, start int32, from *state, next symbol) {
	b.accept = false
	for _, item := range items {
		if item&1 == 0 || next.end() {
			b.follow(item, from.context, next)
		}
	}
	if start >= 0 {
		b.follow(itemOf(start, false), from.context, next)
	}
}

// follow goes from an item to all that it reaches without a character, and from
// there over the next one.
func (b *builder) follow(item int32, before context, next symbol) {
	b.stack = append(b.stack[:0], item)
	for len(b.stack) > 0 {
		item := b.stack[len(b.stack)-1]
		b.stack = b.stack[:len(b.stack)-1]
		if !b.reached.add(item) {
			continue
		}
		o := &b.ops[item>>1]
		final := item & 1
		switch o.code {
		case opChar:
			if !next.end() && next.members.has(o.set) {
				b.arrive(o.x<<1 | final)
			}
		case opSplit:
			b.stack = append(b.stack, o.y<<1|final, o.x<<1|final)
		case opAssert:
			if ok, last := o.assert.holds(before, next); ok {
				b.stack = append(b.stack, o.x<<1|final|int32(bit(last)))
			}
		case opLook:
			if b.looks[o.set] != o.negate {
				b.stack = append(b.stack, o.x<<1|final)
			}
		case opAccept:
			b.accept = true
		}
	}
}

// arrive appends the instructions that an item stands for.
func (b *builder) arrive(item int32) {
	o := &b.ops[item>>1]
	if !b.taken.add(item) {
		return
	}
	if o.code == opSplit {
		b.arrive(o.x<<1 | item&1)
		b.arrive(o.y<<1 | item&1)
		return
	}
	b.items = append(b.items, item)
}

func contextAfter(c *class) context {
	switch {
	case c.newline:
		return afterLine
	case c.word:
		return afterWord
	}
	return 0
}

// identity gives no moves for moves that change nothing.
func identity(moves []int32, registers int) []int32 {
	for i, m := range moves {
		if int(m) != i {
			return moves
		}
	}
	if len(moves) != registers {
		return moves
	}
	return nil
}

// makeKey writes down what tells the state apart from others.
func (b *builder) makeKey(ctx context, moves []int32) {
	k := append(b.key[:0], byte(ctx), bit(moves != nil))
	for _, s := range b.scopes {
		k = append(k, bit(s.begun), bit(s.inside))
		k = binary.LittleEndian.AppendUint32(k, uint32(s.after))
		k = binary.LittleEndian.AppendUint32(k, uint32(s.tag))
	}
	for _, i := range b.items {
		k = binary.LittleEndian.AppendUint32(k, uint32(i))
	}
	for _, m := range moves {
		k = binary.LittleEndian.AppendUint32(k, uint32(m))
	}
	b.key = k
}

// state writes what step has computed into s, which may be the state that the
// step was taken from, and returns it.
func (b *builder) state(s, from *state, c *class) *state {
	s.row, s.context = -1, contextAfter(c)&b.context
	s.scopes = append(s.scopes[:0], b.scopes...)
	s.items = append(s.items[:0], b.items...)
	s.moves = nil
	if moves := identity(b.moves, from.registers); moves != nil {
		s.moves = append([]int32{}, moves...)
	}
	b.complete(s)
	return s
}

// complete fills in what follows from the items of a state.
func (b *builder) complete(s *state) {
	b.reset()
	end := symbol{}
	s.holds, s.accepts = s.holds[:0], s.accepts[:0]
	items := b.readLooks(s, end, false)
	register := int32(0)
	for i := range b.entries {
		e := &b.entries[i]
		base := register
		open := b.allows(e, s)
		done := false
		try := func(items []int32, start int32, register int32) {
			if b.group(items, start, s, end); b.accept && !done {
				s.accepts = append(s.accepts, accept{entry: i, register: register})
				done = true
			}
		}
		if open && e.youngest {
			try(nil, e.start, fresh)
		}
		for items[0] != endEntry {
			n := slices.Index(items, endGroup)
			if !e.tracked {
				try(items[:n], -1, fresh)
			} else {
				try(items[:n], -1, register)
				register++
			}
			items = items[n+1:]
		}
		items = items[1:]
		if open && !e.youngest {
			try(nil, e.start, fresh)
		}
		if e.holds && register > base {
			oldest := base
			if e.youngest {
				oldest = register - 1
			}
			s.holds = append(s.holds, hold{register: oldest, reach: e.reach})
		}
	}
	s.registers = int(register)
}
