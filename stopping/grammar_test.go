package stopping

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A grown is a random pattern, and a way to write texts that it is likely to
// match. The samples are guesses: what a text means is for the oracle to say.
type grown struct {
	source string
	sample func(*sampler) string
	atom   bool // a quantifier takes hold of all of it
	choice bool // it has branches, so it needs a group inside a sequence
}

// A sampler writes one text.
type sampler struct {
	r        *rand.Rand
	numbered map[int]string
	named    map[string]string
}

func newSampler(r *rand.Rand) *sampler {
	return &sampler{r: r, numbered: map[int]string{}, named: map[string]string{}}
}

// A grower makes a pattern of everything that the syntax has.
type grower struct {
	r      *rand.Rand
	groups int             // numbered groups so far
	names  map[string]bool // named groups so far
}

func newGrower(r *rand.Rand) *grower { return &grower{r: r, names: map[string]bool{}} }

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// fixed is a piece of a pattern with texts that it matches.
func fixed(source string, samples ...string) grown {
	return grown{source: source, atom: true, sample: func(s *sampler) string {
		if len(samples) == 0 {
			return ""
		}
		return pick(s.r, samples)
	}}
}

// letters share their characters with pieces, so that random texts contain
// matches and near misses.
var letters = []grown{
	fixed("a", "a"), fixed("b", "b"), fixed("c", "c"), fixed("1", "1"), fixed("a", "a"), fixed("b", "b"),
	fixed("<", "<"), fixed(">", ">"), fixed("你", "你"), fixed("好", "好"), fixed("🙂", "🙂"), fixed("é", "é"), fixed("\u212a", "\u212a"),
	fixed("k", "k"), fixed("s", "s"), fixed("ſ", "ſ"), fixed("ß", "ß"), fixed("İ", "İ"), fixed("ı", "ı"), fixed("i", "i"), fixed("I", "I"),
	fixed("Σ", "Σ"), fixed("σ", "σ"), fixed("ς", "ς"), fixed("ẞ", "ẞ"), fixed("Ǆ", "Ǆ"), fixed("\u0301", "\u0301"), fixed("\ufffd", "\ufffd", "\xff", "\xe4"),
	fixed(`\.`, "."), fixed(`\x61`, "a"), fixed(`\u0062`, "b"), fixed(`\t`, "\t"), fixed(`\n`, "\n"), fixed(`\n`, "\n"), fixed(`\r`, "\r"),
	fixed(`\061`, "1"), fixed(`\e`, "\x1b"), fixed(`\cA`, "\x01"), fixed(`\x{1f642}`, "🙂"), fixed(" ", " "),
}

var classes = []grown{
	fixed(".", "a", "\n", "你", "1", "\xff"), fixed(".", "b", " "), fixed(`\w`, "a", "你", "é", "1", "_", "\u0301", "\u200d"), fixed(`\W`, " ", "🙂", "\n", "<"),
	fixed(`\d`, "1", "2", "٣", "３"), fixed(`\D`, "a", " ", "你"), fixed(`\s`, " ", "\n", "\u00a0", "\u2028", "\u3000", "\u0085"), fixed(`\S`, "a", "你", "1"),
	fixed(`\p{Han}`, "你", "好", "𠀀"), fixed(`\p{L}`, "a", "你", "é"), fixed(`\P{L}`, "1", " ", "🙂"), fixed(`\p{Lu}`, "É", "K", "Σ"), fixed(`\p{Ll}`, "a", "ſ", "ß"),
	fixed(`\pN`, "1", "٣"), fixed(`\p{M}`, "\u0301"), fixed(`\p{Greek}`, "Σ", "σ"), fixed(`\P{Han}`, "a", "。"), fixed(`\p{Emoji}`, "🙂", "1"), fixed(`\p{Lt}`, "ǅ"),
	fixed(`[^\s\S]`), fixed(`[a-[a]]`), fixed(`[\s\S]`, "a", "\n"), fixed(`[^\n]`, "a", "你"), fixed(`[^<]`, "a", ">"), fixed(`[\x00-\x7f]`, "a", "\n"), fixed(`[^\x00-\x7f]`, "你", "\xff"),
}

// anchors match no characters; a quantifier may follow them all the same.
var anchors = []grown{
	fixed("^"), fixed("$"), fixed(`\b`), fixed(`\B`), fixed(`\b`), fixed(`\B`), fixed(`\A`), fixed(`\Z`), fixed(`\z`),
	fixed(`(?:$\n)`, "\n"), fixed(`(?:\Z\n)`, "\n"), fixed(`(?:\n^)`, "\n"), fixed(`(?m:$)`), fixed(`(?m:^)`), fixed(`(?m:$\n)`, "\n"), fixed(`(?m:\n^)`, "\n"),
	fixed(`(?<=$)`), fixed(`(?<=a$)`, "a"), fixed(`(?<=a$)\n`, "a\n"), fixed(`(?<!\Z)`), fixed(`(?<=\n^)`, "\n"), fixed(`(?<=a\b)`, "a"), fixed(`(?<!\B)`), fixed(`(?=\b)`), fixed(`(?!^)`), fixed(`(?<=(?=a))`), fixed(`(?<=a(?!b))`, "a"),
	fixed(`(?<=(?<=a)b)`, "ab"), fixed(`(?<!(?<!a)b)`, "ab"), fixed(`(?=(?<=a)b)`, "a"), fixed(`(?<=(?<g>a))`, "a"), fixed(`(?m:(?<=$\n))`, "\n"), fixed(`(?<=\Aa*)`, "a"), fixed(`(?<=^.*)`),
	fixed(`(?!)`), fixed(`(?=)`), fixed(`(?:)`), fixed(`()`), fixed(`(?#note)`), fixed(`\Q\E`),
}

// units are what cannot be taken apart, and what goes on to the end of its group.
var units = []grown{
	fixed(`\X`, "a", "e\u0301", "👩‍👩‍👧", "\r\n", "🇩🇪", "\u1100\u1161"), fixed(`\R`, "\n", "\r\n", "\r", "\u2028", "\u0085"),
	fixed(`\Qa.b\E`, "a.b"), fixed(`\Q(\E`, "("), fixed(`(?:\Qab\E)`, "ab"), fixed(`ab`, "ab"), fixed(`<a>`, "<a>"), fixed(`</a>`, "</a>"), fixed("aba", "aba"),
}

var options = []string{"(?i)", "(?-i)", "(?m)", "(?-m)", "(?-s)", "(?s)", "(?x)", "(?n)", "(?im-s)"}

// leaf is a pattern without parts.
func (g *grower) leaf() grown {
	switch n := g.r.IntN(100); {
	case n < 45:
		return pick(g.r, letters)
	case n < 62:
		return pick(g.r, classes)
	case n < 69:
		return g.class()
	case n < 82:
		return pick(g.r, anchors)
	case n < 88:
		return pick(g.r, units)
	case n < 91:
		return fixed(pick(g.r, options))
	default:
		return g.reference()
	}
}

// class is a set in brackets.
func (g *grower) class() grown {
	items := []grown{
		fixed("a", "a"), fixed("b", "b"), fixed("a-c", "a", "b", "c"), fixed("0-9", "1", "2"), fixed("k", "k", "K"), fixed("s", "s"), fixed("A-Z", "A", "K"), fixed("a-z", "a", "k"),
		fixed(`\w`, "a", "你"), fixed(`\d`, "1"), fixed(`\s`, " ", "\n"), fixed(`\W`, " "), fixed(`\S`, "a"), fixed(`\D`, "a"), fixed(`\p{L}`, "a", "é"), fixed(`\P{Lu}`, "a", "1"), fixed(`\p{Han}`, "你"),
		fixed("你", "你"), fixed("一-龥", "你", "好"), fixed(`\x61`, "a"), fixed(`\n`, "\n"), fixed(`\-`, "-"), fixed(`\]`, "]"), fixed("é-ÿ", "é"), fixed("🙂", "🙂"), fixed(`\u212a`, "\u212a"), fixed("ſ", "ſ"),
		fixed(".", "."), fixed(`\b`, "\b"), fixed("^", "^"), fixed("ı", "ı"), fixed("İ", "İ"), fixed("Α-Ω", "Σ"), fixed(`\Q]-\E`, "]", "-"), fixed("<", "<"),
	}
	var b strings.Builder
	var parts []grown
	b.WriteByte('[')
	negated := g.r.IntN(4) == 0
	if negated {
		b.WriteByte('^')
	}
	for range g.r.IntN(3) + 1 {
		item := pick(g.r, items)
		if b.Len() == 1 && item.source == "^" {
			continue
		}
		b.WriteString(item.source)
		parts = append(parts, item)
	}
	if len(parts) == 0 {
		b.WriteByte('a')
		parts = append(parts, fixed("a", "a"))
	}
	if g.r.IntN(6) == 0 {
		b.WriteString("-" + g.class().source)
	}
	b.WriteByte(']')
	return grown{source: b.String(), atom: true, sample: func(s *sampler) string {
		if negated {
			return pick(s.r, letters).sample(s)
		}
		return pick(s.r, parts).sample(s)
	}}
}

// reference points at a group, mostly one that is there.
func (g *grower) reference() grown {
	if (g.groups == 0 || g.r.IntN(3) == 0) && len(g.names) > 0 || g.r.IntN(40) == 0 {
		name := pick(g.r, []string{"n", "o"})
		if !g.names[name] && len(g.names) > 0 {
			name = map[string]string{"n": "o", "o": "n"}[name]
		}
		return grown{source: pick(g.r, []string{`\k<%s>`, `\k'%s'`, `(?i:\k<%s>)`}), atom: true,
			sample: func(s *sampler) string { return s.named[name] }}.format(name)
	}
	if g.groups == 0 {
		return pick(g.r, letters)
	}
	number := g.r.IntN(g.groups) + 1
	return grown{source: pick(g.r, []string{`(?:\%d)`, `(?i:\%d)`, `\k<%d>`}), atom: true,
		sample: func(s *sampler) string { return s.numbered[number] }}.format(number)
}

func (n grown) format(argument any) grown {
	n.source = fmt.Sprintf(n.source, argument)
	return n
}

// grow makes a pattern of at most this depth.
func (g *grower) grow(depth int) grown {
	if depth == 0 {
		return g.leaf()
	}
	switch n := g.r.IntN(100); {
	case n < 12:
		return g.leaf()
	case n < 45:
		return g.sequence(depth)
	case n < 57:
		return g.alternatives(depth)
	case n < 77:
		return g.quantified(depth)
	default:
		return g.group(depth)
	}
}

func (g *grower) sequence(depth int) grown {
	var parts []grown
	source := ""
	for range g.r.IntN(3) + 2 {
		n := g.grow(depth - 1)
		if n.choice {
			n = wrap(n)
		}
		parts = append(parts, n)
		source += n.source
	}
	return grown{source: source, sample: func(s *sampler) string {
		text := ""
		for _, n := range parts {
			text += n.sample(s)
		}
		return text
	}}
}

func (g *grower) alternatives(depth int) grown {
	var parts []grown
	var sources []string
	for range g.r.IntN(3) + 2 {
		n := g.grow(depth - 1)
		if g.r.IntN(10) == 0 {
			n = fixed("")
		}
		parts = append(parts, n)
		sources = append(sources, n.source)
	}
	return grown{source: strings.Join(sources, "|"), choice: true, sample: func(s *sampler) string { return pick(s.r, parts).sample(s) }}
}

func wrap(n grown) grown {
	return grown{source: "(?:" + n.source + ")", atom: true, sample: n.sample}
}

// counts are quantifiers, and how often they repeat at least and usefully.
var counts = []struct {
	source   string
	min, max int
}{
	{"*", 0, 3}, {"+", 1, 3}, {"?", 0, 1}, {"*", 0, 3}, {"+", 1, 3}, {"?", 0, 1}, {"{2}", 2, 2}, {"{1,2}", 1, 2}, {"{0,2}", 0, 2}, {"{2,}", 2, 4}, {"{2,3}", 2, 3},
	{"{0}", 0, 0}, {"{0,0}", 0, 0}, {"{1}", 1, 1}, {"{3,7}", 3, 7}, {"{0,1000}", 0, 4}, {"{1,}", 1, 3}, {"{0,}", 0, 3},
}

func (g *grower) quantified(depth int) grown {
	n := g.grow(depth - 1)
	if !n.atom {
		if g.r.IntN(4) == 0 {
			n = g.captured(n)
		} else {
			n = wrap(n)
		}
	}
	count := pick(g.r, counts)
	kind := ""
	switch g.r.IntN(10) {
	case 0, 1, 2:
		kind = "?"
	case 3:
		kind = "+"
	}
	return wrapIf(g.r.IntN(3) == 0, grown{source: n.source + count.source + kind, sample: func(s *sampler) string {
		text := ""
		for range count.min + s.r.IntN(count.max-count.min+1) {
			text += n.sample(s)
		}
		return text
	}})
}

func wrapIf(yes bool, n grown) grown {
	if yes {
		return wrap(n)
	}
	return n
}

func (g *grower) captured(n grown) grown {
	g.groups++
	number := g.groups
	return grown{source: "(" + n.source + ")", atom: true, sample: func(s *sampler) string {
		text := n.sample(s)
		s.numbered[number] = text
		return text
	}}
}

func (g *grower) named(n grown) grown {
	name := pick(g.r, []string{"n", "n", "o"})
	g.names[name] = true
	source := pick(g.r, []string{"(?<%s>", "(?<%s>", "(?'%s'"})
	return grown{source: fmt.Sprintf(source, name) + n.source + ")", atom: true, sample: func(s *sampler) string {
		text := n.sample(s)
		s.named[name] = text
		return text
	}}
}

// group is a pattern in one of the many brackets.
func (g *grower) group(depth int) grown {
	n := g.grow(depth - 1)
	within := func(open string) grown {
		return grown{source: open + n.source + ")", atom: true, sample: n.sample}
	}
	maybe := func(open string, chance float64) grown {
		return grown{source: open + n.source + ")", atom: true, sample: func(s *sampler) string {
			if s.r.Float64() < chance {
				return n.sample(s)
			}
			return ""
		}}
	}
	switch g.r.IntN(18) {
	case 0, 1:
		return g.captured(n)
	case 2, 3:
		return g.named(n)
	case 4:
		return within("(?>")
	case 5:
		return maybe("(?=", 0.3)
	case 6:
		return maybe("(?!", 0.1)
	case 7, 8, 9:
		if n.choice {
			n = wrap(n)
		}
		n.source += pick(g.r, []string{"", "", ".*", `\w*`, "[^<]*", ".{2}", "(?:a|b|ab)*", "$", `\b`})
		if g.r.IntN(3) == 0 {
			return maybe("(?<!", 0.1)
		}
		return maybe("(?<=", 0.8)
	case 10, 11:
		return folded(within("(?i:"))
	case 12:
		return within(pick(g.r, []string{"(?m:", "(?-s:", "(?s:", "(?-i:", "(?n:", "(?:"}))
	case 13:
		return grown{source: "(?x: " + n.source + " # end\n)", atom: true, sample: n.sample}
	case 14:
		return g.balancing(n)
	case 15:
		return g.conditional(depth, n)
	case 16:
		return grown{source: "(?:" + n.source + pick(g.r, []string{"|)", "|a)", "|b?)"}), atom: true, sample: n.sample}
	default:
		return g.around(n)
	}
}

// around is a pattern between its own ends, as tags are.
func (g *grower) around(n grown) grown {
	if n.choice {
		n = wrap(n)
	}
	tags := pick(g.r, [][2]string{{"<a>", "</a>"}, {"a", "b"}, {"'", "'"}, {"<", ">"}, {"{", "}"}})
	inner := pick(g.r, []string{".*?", ".*", "[^<]*", `\s*`, `(?<n>.*?)`, ""})
	if inner == "(?<n>.*?)" {
		g.names["n"] = true
	}
	return grown{source: tags[0] + inner + n.source + tags[1], sample: func(s *sampler) string {
		middle := ""
		if inner != "" && s.r.IntN(2) == 0 {
			middle = pick(s.r, []string{"a", " ", "1", "\n", "b"})
		}
		return tags[0] + middle + n.sample(s) + tags[1]
	}}
}

// balancing takes a capture back.
func (g *grower) balancing(n grown) grown {
	g.names["o"] = true
	switch g.r.IntN(4) {
	case 0:
		return grown{source: "(?:(?<o>a)|(?<-o>b))+" + pick(g.r, []string{"", "(?(o)(?!))", "(?(o)1)"}), sample: func(s *sampler) string {
			return pick(s.r, []string{"ab", "aabb", "a", "aab", "aab1"})
		}}
	case 1:
		g.names["n"] = true
		end := pick(g.r, []string{"", `\k<n>`, `(?i:\k<n>)`})
		return grown{source: "(?<o>a)" + pick(g.r, []string{"", "b?", ".*?"}) + "(?<n-o>" + n.source + ")" + end, sample: func(s *sampler) string { return "a" + n.sample(s) }}
	case 2:
		return grown{source: "(?<o>" + n.source + ")(?<-o>b)?", sample: func(s *sampler) string { return n.sample(s) + pick(s.r, []string{"", "b"}) }}
	default:
		return grown{source: "(?<o>" + n.source + ")(?<-o>)" + `\k<o>?`, sample: n.sample}
	}
}

func (g *grower) conditional(depth int, n grown) grown {
	other := g.grow(depth - 1)
	if other.choice {
		other = wrap(other)
	}
	if n.choice {
		n = wrap(n)
	}
	condition := "(?=a)"
	switch {
	case g.groups > 0 && g.r.IntN(2) == 0:
		condition = fmt.Sprintf("(%d)", g.r.IntN(g.groups)+1)
	case len(g.names) > 0 && g.r.IntN(2) == 0:
		condition = "(o)" // a group, or else the letter
	default:
		condition = pick(g.r, []string{"(?=a)", "(?!b)", "(?<=a)", "(a)", "(?<!^)", `(\b)`})
	}
	return grown{source: "(?" + condition + n.source + "|" + other.source + ")", atom: true, sample: func(s *sampler) string {
		if s.r.IntN(2) == 0 {
			return other.sample(s)
		}
		return n.sample(s)
	}}
}

// folded writes some letters in another case, as Unicode folds them.
func folded(n grown) grown {
	inner := n.sample
	n.sample = func(s *sampler) string { return foldSome(s.r, inner(s)) }
	return n
}

func foldSome(r *rand.Rand, text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		if c == utf8.RuneError || r.IntN(2) == 0 {
			b.WriteString(text[i : i+size])
		} else {
			b.WriteRune(unicode.SimpleFold(c))
		}
		i += size
	}
	return b.String()
}
