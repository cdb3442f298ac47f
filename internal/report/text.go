package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"stopgap/internal/compare"
)

// visible makes text from outside safe to look at: what a terminal or a browser
// would act on in place of showing it, and what is not UTF-8, becomes a visible
// character. Newlines and tabs stay.
func visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return acts(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r < 0x20 && acts(r):
			b.WriteRune('␀' + r) // the control pictures
		case r == 0x7f:
			b.WriteRune('␡')
		case acts(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// acts reports whether a character does something in place of being seen: the
// controls without newline and tab, the line and paragraph separators, and what
// changes the direction of text (Unicode TR 36, UAX 9).
func acts(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// line is text from outside on one line.
func line(s string) string { return visible(strings.Join(strings.Fields(s), " ")) }

// number gives a value in its unit, without the unit's name: shares in percent.
func number(v float64, u compare.Unit) string {
	digits := 2
	switch a := math.Abs(v); {
	case u == compare.Share:
		v, digits = 100*v, 1
	case a >= 100:
		digits = 0
	case a >= 10:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Trim(s, "-0.") == "" { // no minus before a zero
		s = strings.TrimPrefix(s, "-")
	}
	return thousands(s)
}

// thousands parts the digits before the point by narrow spaces where there are
// more than four.
func thousands(s string) string {
	whole, rest, _ := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	if len(whole) > 4 {
		var parts []string
		for len(whole) > 3 {
			parts = append([]string{whole[len(whole)-3:]}, parts...)
			whole = whole[:len(whole)-3]
		}
		whole = strings.Join(append([]string{whole}, parts...), "\u202f")
	}
	if rest != "" {
		whole += "." + rest
	}
	return sign + whole
}

// signed is number with its sign, also the plus.
func signed(v float64, u compare.Unit) string {
	s := number(v, u)
	if v > 0 && strings.Trim(s, "0.") != "" {
		s = "+" + s
	}
	return s
}

// bounds gives an interval's, empty where it has no width to tell of.
func bounds(in compare.Interval, u compare.Unit, show func(float64, compare.Unit) string) string {
	if in.Unbounded {
		return show(in.Low, u) + " or more"
	}
	return show(in.Low, u) + " to " + show(in.High, u)
}

// probability gives a p with as many digits as tell something.
func probability(p float64) string {
	switch {
	case p < 0.001:
		return "< 0.001"
	case p < 0.1:
		return strconv.FormatFloat(p, 'f', 3, 64)
	}
	return strconv.FormatFloat(p, 'f', 2, 64)
}

// sign is what stands behind a number of a unit, with the space before it.
func sign(u compare.Unit) string {
	switch u {
	case compare.Share:
		return " %"
	case compare.Seconds:
		return " s"
	}
	return ""
}

// titled is a metric's name with its unit.
func titled(m *compare.Metric) string {
	switch m.Unit {
	case compare.Share:
		return visible(m.Name) + ", %"
	case compare.Seconds:
		return visible(m.Name) + ", s"
	}
	return visible(m.Name)
}

// points is what differences by a metric are counted in.
func points(m *compare.Metric) string {
	if m.Unit == compare.Share {
		return "points"
	}
	return line(m.Name)
}

// words makes a kind such as unknown_tool readable.
func words(kind string) string { return line(strings.ReplaceAll(kind, "_", " ")) }

// plural gives a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(strconv.Itoa(n)) + " " + noun
}

// capital begins a sentence or a heading.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
