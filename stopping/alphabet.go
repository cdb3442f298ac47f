package stopping

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2/syntax"
)

// A runeSet decides which characters an instruction takes. Text is compared as
// bytes, so a literal never takes a byte that is not valid UTF-8, while a
// pattern sees U+FFFD there.
type runeSet struct {
	set     *syntax.CharSet // nil for one character
	char    rune
	not     bool // every character but char
	literal bool
}

// invalid stands for a byte that is not valid UTF-8.
const invalid rune = -1

func (s *runeSet) has(r rune) bool {
	if r == invalid {
		if s.literal {
			return false
		}
		r = utf8.RuneError
	}
	if s.set != nil {
		return s.set.Contains(r)
	}
	return (r == s.char) != s.not
}

// A class is a set of characters that no instruction tells apart. Column 0 of
// every table is not a class: it stands for "more than one byte".
type class struct {
	column  int
	members bitset // the rune sets that have its characters
	word    bool
	newline bool
}

// A bitset is a set of small numbers.
type bitset []uint64

func newBitset(size int) bitset   { return make(bitset, (size+63)/64) }
func (b bitset) has(i int32) bool { return b[i>>6]&(1<<(i&63)) != 0 }
func (b bitset) add(i int32)      { b[i>>6] |= 1 << (i & 63) }
func (b bitset) appendTo(k []byte) []byte {
	for _, w := range b {
		k = binary.LittleEndian.AppendUint64(k, w)
	}
	return k
}

// An alphabet divides all characters into classes. It is complete when it is
// frozen, but learns to which class a character outside of ASCII belongs when
// it sees one. It is safe for concurrent use after freeze.
type alphabet struct {
	sets   []runeSet
	index  map[runeSet]int32
	hashes map[string]int32 // of sets with a CharSet
	words  bool             // word characters are told apart
	lines  bool             // "\n" is told apart

	ascii [256]uint16 // column of each byte; 0 from 0x80 on
	bad   *class      // of invalid
	shift int         // a row has 1<<shift columns

	mu      sync.Mutex
	known   map[string]*class
	classes atomic.Pointer[[]*class] // by column
	pages   [(utf8.MaxRune + 1) >> 8]atomic.Pointer[page]
}

// A page holds the columns of 256 characters, 0 when not looked at yet.
type page [256]atomic.Uint32

func newAlphabet() *alphabet {
	a := &alphabet{index: map[runeSet]int32{}, hashes: map[string]int32{}, known: map[string]*class{}}
	a.classes.Store(&[]*class{nil})
	return a
}

// add gives the number of a set.
func (a *alphabet) add(s runeSet) int32 {
	if s.set != nil {
		key := string(s.set.Hash())
		if n, ok := a.hashes[key]; ok {
			return n
		}
		a.sets = append(a.sets, s)
		a.hashes[key] = int32(len(a.sets) - 1)
		return a.hashes[key]
	}
	s.literal = s.literal && s.char == utf8.RuneError // otherwise there is no difference
	if n, ok := a.index[s]; ok {
		return n
	}
	a.sets = append(a.sets, s)
	a.index[s] = int32(len(a.sets) - 1)
	return a.index[s]
}

// samples have one character of most kinds, so that a row is wide enough for
// nearly every text.
const samples = "\u00a0éÉßıſК\u0301中あア한ไع٣１　—“。…€\u200b\u200d\u2028\ufeff\ufffd🙂𝒳"

// freeze ends the collection of sets and fixes the width of a row.
func (a *alphabet) freeze() {
	for b := range 128 {
		a.ascii[b] = uint16(a.find(rune(b)).column)
	}
	a.bad = a.find(invalid)
	for _, r := range samples {
		a.classOf(r)
	}
	for _, s := range a.sets {
		if s.set == nil && s.char >= 0 {
			a.classOf(s.char)
		}
	}
	n := len(*a.classes.Load())
	a.shift = bits.Len(uint(n + n/8 + 1))
}

// find gives the class of a character.
func (a *alphabet) find(r rune) *class {
	c := class{members: newBitset(len(a.sets))}
	for i := range a.sets {
		if a.sets[i].has(r) {
			c.members.add(int32(i))
		}
	}
	c.word = a.words && syntax.IsWordChar(r)
	c.newline = a.lines && r == '\n'
	key := c.members.appendTo(nil)
	key = append(key, bit(c.word)|bit(c.newline)<<1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.known[string(key)]; ok {
		return k
	}
	old := *a.classes.Load()
	c.column = len(old)
	a.known[string(key)] = &c
	all := append(old[:len(old):len(old)], &c)
	a.classes.Store(&all)
	return &c
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// classOf is find with a memory.
func (a *alphabet) classOf(r rune) *class {
	p := a.pages[r>>8].Load()
	if p == nil {
		a.pages[r>>8].CompareAndSwap(nil, new(page))
		p = a.pages[r>>8].Load()
	}
	if column := p[r&255].Load(); column != 0 {
		return (*a.classes.Load())[column]
	}
	c := a.find(r)
	p[r&255].Store(uint32(c.column))
	return c
}

// columnOf is the column and the size of the character at the start of the
// text; the size is 0 when the character is not valid, not complete, new, or of
// a class that no row has room for.
func (a *alphabet) columnOf(text string) (column uint32, size int) {
	r, size := utf8.DecodeRuneInString(text)
	if size == 1 {
		return 0, 0
	}
	p := a.pages[r>>8].Load()
	if p == nil {
		return 0, 0
	}
	column = p[r&255].Load()
	if column == 0 || column >= 1<<a.shift {
		return 0, 0
	}
	return column, size
}

// next is the class and the size of the character at the start of the text.
// The text is not empty and its first character is complete.
func (a *alphabet) next(text string) (*class, int) {
	if b := text[0]; b < utf8.RuneSelf {
		return (*a.classes.Load())[a.ascii[b]], 1
	}
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 {
		return a.bad, 1
	}
	return a.classOf(r), size
}
