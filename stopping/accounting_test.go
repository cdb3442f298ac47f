package stopping

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A language is a set of texts, as a regular expression that can be divided by
// a character (Brzozowski's derivative). It says by brute force whether a match
// that has begun can still be completed: the language of what is missing is not
// empty. nil is the empty language; there are no others, because every class
// has a character.
type language struct {
	op   byte // 'e' the empty text, 'c' a character of set, '.' a then b, '|' a or b, '*' any number of a
	set  string
	a, b *language
	key  string // tells languages apart
}

// mini are the characters of the texts: enough for every class to have members
// and strangers.
const mini = "abc1<> \n你"

var emptyText = &language{op: 'e', key: "e"}

func oneOf(set string) *language {
	return &language{op: 'c', set: set, key: fmt.Sprintf("%q", set)}
}

func then(a, b *language) *language {
	switch {
	case a == nil || b == nil:
		return nil
	case a.op == 'e':
		return b
	case b.op == 'e':
		return a
	}
	return &language{op: '.', a: a, b: b, key: "(" + a.key + b.key + ")"}
}

func either(a, b *language) *language {
	// Branches are kept in order and once, so that the derivatives do not grow.
	var branches []*language
	var collect func(l *language)
	collect = func(l *language) {
		switch {
		case l == nil:
		case l.op == '|':
			collect(l.a)
			collect(l.b)
		default:
			branches = append(branches, l)
		}
	}
	collect(a)
	collect(b)
	slices.SortFunc(branches, func(x, y *language) int { return strings.Compare(x.key, y.key) })
	branches = slices.CompactFunc(branches, func(x, y *language) bool { return x.key == y.key })
	var union *language
	for _, l := range branches {
		if union == nil {
			union = l
			continue
		}
		union = &language{op: '|', a: union, b: l, key: union.key + "|" + l.key}
	}
	return union
}

func anyNumber(a *language) *language {
	return &language{op: '*', a: a, key: "(" + a.key + ")*"}
}

func (l *language) nullable() bool {
	switch {
	case l == nil:
		return false
	case l.op == '.':
		return l.a.nullable() && l.b.nullable()
	case l.op == '|':
		return l.a.nullable() || l.b.nullable()
	}
	return l.op == 'e' || l.op == '*'
}

// after is the language of what may follow the character.
func (l *language) after(r rune) *language {
	switch {
	case l == nil || l.op == 'e':
		return nil
	case l.op == 'c':
		if strings.ContainsRune(l.set, r) {
			return emptyText
		}
		return nil
	case l.op == '|':
		return either(l.a.after(r), l.b.after(r))
	case l.op == '*':
		return then(l.a.after(r), l)
	}
	rest := then(l.a.after(r), l.b)
	if l.a.nullable() {
		rest = either(rest, l.b.after(r))
	}
	return rest
}

// A phrase is a pattern and its language.
type phrase struct {
	source   string
	language *language
}

// miniPhrase is a random pattern without assertions.
func miniPhrase(r *rand.Rand, depth int) phrase {
	if depth == 0 {
		letter := string(pick(r, []rune(mini)))
		return pick(r, []phrase{
			{letter, oneOf(letter)}, {letter, oneOf(letter)}, {"a", oneOf("a")}, {"b", oneOf("b")}, {"<", oneOf("<")},
			{".", oneOf(mini)}, {"[ab]", oneOf("ab")}, {"[^a]", oneOf(strings.ReplaceAll(mini, "a", ""))}, {`\w`, oneOf("abc1你")}, {`\s`, oneOf(" \n")}, {`(?-s:.)`, oneOf(strings.ReplaceAll(mini, "\n", ""))},
			{"(?i:A)", oneOf("a")}, {`\p{Han}`, oneOf("你")}, {"<a>", then(oneOf("<"), then(oneOf("a"), oneOf(">")))},
		})
	}
	x := miniPhrase(r, r.IntN(depth))
	y := miniPhrase(r, r.IntN(depth))
	lazy := pick(r, []string{"", "", "?"})
	switch r.IntN(9) {
	case 0:
		return phrase{"(?:" + x.source + "|" + y.source + ")", either(x.language, y.language)}
	case 1:
		return phrase{"(?:" + x.source + ")*" + lazy, anyNumber(x.language)}
	case 2:
		return phrase{"(?:" + x.source + ")+" + lazy, then(x.language, anyNumber(x.language))}
	case 3:
		return phrase{"(?:" + x.source + ")?" + lazy, either(emptyText, x.language)}
	case 4:
		return phrase{"(" + x.source + "){1,3}" + lazy, then(x.language, either(emptyText, then(x.language, either(emptyText, x.language))))}
	case 5:
		return phrase{"(?<g>" + x.source + "){2}" + lazy, then(x.language, x.language)}
	}
	return phrase{x.source + y.source, then(x.language, y.language)}
}

// liveStart is the first byte at which a match may have started that some
// further text completes; the length of the text when there is none. It grows
// with the text by add.
type liveStart struct {
	scope  Scope
	whole  *language
	text   string
	starts []int
	rests  []*language
}

func (l *liveStart) add(r rune, size int, bytes string) {
	if l.scope == (Scope{}) || inScope(l.scope, l.text) {
		l.starts, l.rests = append(l.starts, len(l.text)), append(l.rests, l.whole)
	}
	kept := 0
	for i, rest := range l.rests {
		if rest = rest.after(r); rest != nil {
			l.starts[kept], l.rests[kept] = l.starts[i], rest
			kept++
		}
	}
	l.starts, l.rests = l.starts[:kept], l.rests[:kept]
	l.text += bytes[:size]
}

func (l *liveStart) oldest() int {
	if len(l.starts) == 0 {
		return len(l.text)
	}
	return l.starts[0]
}

// TestHoldsBackFromTheOldestLiveStart: of criteria that strip, what is held back
// after each byte begins no earlier than the oldest start of a match that some
// further text completes. Only automata are held to that; the test says how far
// the others are off.
func TestHoldsBackFromTheOldestLiveStart(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(19, 20))
	rounds := 4000
	if testing.Short() {
		rounds = 1000
	}
	steps, held, ideal, nothing := 0, 0, 0, 0
	strict := 0
	for range rounds {
		var list []Criterion
		var lives []*liveStart
		for i := range 1 + r.IntN(3)/2*r.IntN(3) {
			p := miniPhrase(r, 4)
			c := Criterion{Name: fmt.Sprint(i), Regex: p.source, Strip: true, Captures: pick(r, []Captures{Leftmost, Nearest})}
			if r.IntN(4) == 0 && strings.Contains(p.source, "(?<g>") {
				c.Strip, c.StripGroup = false, "g"
			}
			if r.IntN(5) == 0 {
				c.Scope = pick(r, scopes)
			}
			if p.language.nullable() {
				continue // refused
			}
			list = append(list, c)
			lives = append(lives, &liveStart{scope: c.Scope, whole: p.language})
		}
		set := compile(t, list...)
		m := set.Matcher()
		text := ""
		for range 24 {
			letter := pick(r, []rune(mini)[:3+r.IntN(7)])
			text += string(letter)
		}
		whole := 0
		for i := range len(text) {
			step, err := m.Write(text[i:i+1], 1)
			if err != nil {
				t.Fatalf("%s in %q: %v", spellCriteria(list), text[:i+1], err)
			}
			if step.Stop != nil {
				break
			}
			if c, size := utf8.DecodeRuneInString(text[whole : i+1]); c != utf8.RuneError {
				for _, l := range lives {
					l.add(c, size, text[whole:])
				}
				whole += size
			}
			oldest := whole
			for _, l := range lives {
				oldest = min(oldest, l.oldest())
			}
			n := m.Tally()
			steps++
			held += n.Held
			ideal += i + 1 - oldest
			if n.Held == 0 {
				nothing++
			}
			if automatic(set) {
				strict++
				if n.Held > i+1-oldest {
					t.Errorf("%s holds %d bytes of %q, a match can have started at %d", spellCriteria(list), n.Held, text[:i+1], oldest)
					break
				}
			}
		}
	}
	if steps < rounds*4 || ideal == 0 || nothing < steps/10 || nothing > steps*9/10 {
		t.Errorf("%d steps, %d of them with nothing held", steps, nothing)
	}
	t.Logf("%d steps, %d of automata alone, %d with nothing held; %.3f bytes held for each that a match may need", steps, strict, nothing, float64(held)/float64(ideal))
}

// TestLanguage holds the brute force against regexp2.
func TestLanguage(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	matched := 0
	for range 2000 {
		p := miniPhrase(r, 4)
		o, err := newOracle(Criterion{Name: "p", Regex: p.source})
		if err != nil {
			t.Fatalf("%q: %v", p.source, err)
		}
		var text []rune
		for range r.IntN(6) {
			text = append(text, pick(r, []rune(mini)[:3+r.IntN(7)]))
		}
		rest := p.language
		for _, c := range text {
			rest = rest.after(c)
		}
		m, err := o.here.FindRunesMatchStartingAt(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if (m != nil) != rest.nullable() {
			t.Errorf("%q in %q: regexp2 %v, the language %v", p.source, string(text), m != nil, rest.nullable())
		}
		if m != nil {
			matched++
		}
	}
	if matched < 200 {
		t.Errorf("%d texts matched", matched)
	}
}
