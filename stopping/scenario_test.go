package stopping

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// draw makes the criteria of a batch, and what writes its texts.
func draw(r *rand.Rand) ([]Criterion, func() string) {
	switch n := r.IntN(100); {
	case n < 55:
		g := newGrower(r)
		p := g.grow(2 + r.IntN(4))
		if r.IntN(4) == 0 {
			p.source = "(?<n>" + p.source + ")" + pick(r, []string{"", "", "a", "(?<g>.?)b"})
		}
		if r.IntN(12) == 0 {
			p.source = pick(r, options) + p.source
		}
		noise := noises(r, p.source)
		return []Criterion{dress(r, p.source)}, func() string { return p.text(r, noise, 48) }
	case n < 65:
		p := pick(r, patterns)
		return []Criterion{dress(r, p)}, func() string { return randomText(r, 16) }
	case n < 75:
		return []Criterion{dress(r, pick(r, callPatterns))}, func() string { return transcript(r) }
	case n < 78:
		p := bulky(r)
		noise := noises(r, p.source)
		return []Criterion{dress(r, p.source)}, func() string { return p.text(r, noise, 200) }
	default:
		return drawSet(r)
	}
}

// drawSet makes two to eight criteria, reports among them.
func drawSet(r *rand.Rand) ([]Criterion, func() string) {
	var list []Criterion
	var grown []grown
	real := r.IntN(3) == 0
	structured := false // with JSON
	for i := range r.IntN(7) + 2 {
		var c Criterion
		switch n := r.IntN(12); {
		case n >= 10:
			c = counting(r)
		case n < 2:
			c.Literal = pick(r, pieces[:30]) + pick(r, []string{"a", "b", "你", "\ufffd", ""})
			if real {
				c.Literal = pick(r, []string{"</tool_call>", "\nObservation:", "<|im_end|>", "END", "。"})
			}
			c.Strip = r.IntN(2) == 0
		case real:
			c = dress(r, pick(r, callPatterns))
		case n < 6:
			c = dress(r, pick(r, patterns))
		default:
			p := newGrower(r).grow(2 + r.IntN(2))
			grown = append(grown, p)
			c = dress(r, p.source)
		}
		structured = structured || c.JSON
		c.Name = fmt.Sprint(i)
		if i > 0 && r.IntN(3) == 0 || c.Sentences+c.Bytes > 0 && r.IntN(2) == 0 {
			c.Action, c.Strip, c.StripGroup = Notify, false, ""
		}
		list = append(list, c)
	}
	return list, func() string {
		switch {
		case real:
			return transcript(r)
		case len(grown) > 0 && r.IntN(2) == 0:
			return pick(r, grown).text(r, pieces, 48)
		}
		if structured && r.IntN(2) == 0 {
			var b strings.Builder
			for range r.IntN(20) + 1 {
				b.WriteString(pick(r, []string{"{", "}", "[", "]", `"`, `\"`, `\\`, ":", "a", `{"a": "`, `"}`}))
			}
			return b.String()
		}
		return randomText(r, 16)
	}
}

// counting makes a criterion that is no pattern.
func counting(r *rand.Rand) Criterion {
	var c Criterion
	switch r.IntN(4) {
	case 0:
		c.Repetition, c.Strip = &Repetition{Min: r.IntN(3), Max: 3 + r.IntN(9), Count: 2 + r.IntN(3)}, r.IntN(2) == 0
	case 1:
		c.JSON, c.Strip = true, r.IntN(2) == 0
	case 2:
		c.Sentences = 1 + r.IntN(3)
	default:
		c.Bytes = 20 + r.IntN(60)
	}
	if r.IntN(4) == 0 {
		c.Scope = pick(r, scopes)
	}
	if r.IntN(8) == 0 {
		c.MinBytes = r.IntN(20)
	}
	return c
}

// dress makes a criterion of a pattern.
func dress(r *rand.Rand, regex string) Criterion {
	c := Criterion{Name: "p", Regex: regex, Budget: oracleLimit}
	if r.IntN(3) == 0 {
		c.Captures = Nearest
	}
	switch r.IntN(6) {
	case 0, 1:
		c.Strip = true
	case 2:
		c.Action = Notify
	case 3:
		for _, name := range []string{"n", "o", "g", "a", "call", "body", "args"} {
			if strings.Contains(regex, "(?<"+name+">") {
				c.StripGroup = name
			}
		}
	}
	if r.IntN(6) == 0 {
		c.Scope = pick(r, scopes)
	}
	if r.IntN(8) == 0 {
		c.MinBytes = r.IntN(12)
	}
	return c
}
