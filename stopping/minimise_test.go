package stopping

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// minimiseLimit is the time that a mismatch may be made smaller.
const minimiseLimit = 20 * time.Second

// fails reports whether a smaller trial is still wrong.
func (x trial) fails() bool {
	err := x.verify(judgeLimit)
	return err != nil && !errors.Is(err, errUndecided)
}

// minimise leaves out criteria, options, pieces of the patterns and pieces of
// the text as long as what is left still fails.
func (m *mismatch) minimise() *mismatch {
	small := &mismatch{m.trial, m.cut, m.err}
	if !m.fails() {
		return small // a failure that depends on the cut: printed as it is
	}
	deadline := time.Now().Add(minimiseLimit)
	try := func(x trial) bool {
		if time.Now().After(deadline) || !x.fails() {
			return false
		}
		small.trial = x
		return true
	}
	for progress := true; progress && time.Now().Before(deadline); {
		progress = small.fewerCriteria(try) || small.fewerOptions(try)
		progress = small.shorterText(try) || progress
		for i := range small.criteria {
			progress = small.shorterPattern(i, try) || progress
		}
	}
	small.cut, small.err = "", small.verify(judgeLimit)
	return small
}

func (m *mismatch) fewerCriteria(try func(trial) bool) (progress bool) {
	for i := 0; i < len(m.criteria) && len(m.criteria) > 1; {
		list := append(append([]Criterion{}, m.criteria[:i]...), m.criteria[i+1:]...)
		if try(trial{list, m.text}) {
			progress = true
		} else {
			i++
		}
	}
	return progress
}

// with is the trial with one criterion changed.
func (x trial) with(i int, change func(*Criterion)) trial {
	list := append([]Criterion{}, x.criteria...)
	change(&list[i])
	return trial{list, x.text}
}

func (m *mismatch) fewerOptions(try func(trial) bool) (progress bool) {
	for i := range m.criteria {
		for _, simpler := range []func(*Criterion){
			func(c *Criterion) { c.Scope = Scope{} },
			func(c *Criterion) { c.MinBytes = 0 },
			func(c *Criterion) { c.Captures = "" },
			func(c *Criterion) { c.Action = "" },
			func(c *Criterion) { c.Strip, c.StripGroup = false, "" },
			func(c *Criterion) { c.Budget = 0 },
		} {
			x := m.with(i, simpler)
			if x.criteria[i] != m.criteria[i] && try(x) {
				progress = true
			}
		}
	}
	return progress
}

func (m *mismatch) shorterText(try func(trial) bool) bool {
	return shorten(m.text, nil, func(text string) bool { return try(trial{m.criteria, text}) })
}

func (m *mismatch) shorterPattern(i int, try func(trial) bool) bool {
	if m.criteria[i].Literal != "" {
		return shorten(m.criteria[i].Literal, nil, func(s string) bool {
			return s != "" && try(m.with(i, func(c *Criterion) { c.Literal = s }))
		})
	}
	return shorten(m.criteria[i].Regex, brackets, func(s string) bool {
		return s != "" && try(m.with(i, func(c *Criterion) { c.Regex = s }))
	})
}

// shorten takes pieces out of s as long as keep accepts the rest: first whole
// parts, then halves, then single characters; at last it writes "a" for them.
func shorten(s string, parts func(string) []string, keep func(string) bool) (progress bool) {
	accept := func(shorter string) bool {
		if len(shorter) >= len(s) && strings.Count(shorter, "a") <= strings.Count(s, "a") || !keep(shorter) {
			return false
		}
		s, progress = shorter, true
		return true
	}
	for again := parts != nil; again; {
		again = false
		for _, shorter := range parts(s) {
			if accept(shorter) {
				again = true
				break
			}
		}
	}
	for size := (len(s) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(s); {
			if !accept(s[:at] + s[at+size:]) {
				at++
			}
		}
	}
	for at := 0; at < len(s); {
		_, n := utf8.DecodeRuneInString(s[at:])
		accept(s[:at] + "a" + s[at+n:])
		_, n = utf8.DecodeRuneInString(s[at:])
		at += n
	}
	return progress
}

// brackets are the pattern without one of its bracketed parts, and with only
// the inside of one, from the outermost on.
func brackets(pattern string) []string {
	var out []string
	for open := range len(pattern) {
		if pattern[open] != '(' {
			continue
		}
		depth := 0
		for end := open; end < len(pattern); end++ {
			switch pattern[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth > 0 {
				continue
			}
			inside := pattern[open+1 : end]
			out = append(out, pattern[:open]+pattern[end+1:], pattern[:open]+inside+pattern[end+1:])
			if _, body, ok := strings.Cut(inside, ":"); ok && strings.HasPrefix(inside, "?") {
				out = append(out, pattern[:open]+body+pattern[end+1:])
			}
			for _, branch := range strings.Split(inside, "|") {
				out = append(out, pattern[:open+1]+branch+pattern[end:])
			}
			break
		}
	}
	return out
}

// row is the trial as a line of equivalenceRows.
func (x trial) row() string { return fmt.Sprintf("{%s, %q},", spellCriteria(x.criteria), x.text) }

// String is the row with what is wrong.
func (m *mismatch) String() string { return fmt.Sprintf("\t%s // %v", m.row(), m.err) }

// spellCriteria is criteria as Go source, without the zero values.
func spellCriteria(list []Criterion) string {
	var out []string
	for _, c := range list {
		s := fmt.Sprintf("{Name: %q", c.Name)
		if c.Literal != "" {
			s += fmt.Sprintf(", Literal: %q", c.Literal)
		}
		if c.Regex != "" {
			s += fmt.Sprintf(", Regex: %s", quote(c.Regex))
		}
		if c.Repetition != nil {
			s += fmt.Sprintf(", Repetition: &Repetition{Min: %d, Max: %d, Count: %d}", c.Repetition.Min, c.Repetition.Max, c.Repetition.Count)
		}
		if c.JSON {
			s += ", JSON: true"
		}
		if c.Sentences+c.Bytes > 0 {
			s += fmt.Sprintf(", Sentences: %d, Bytes: %d", c.Sentences, c.Bytes)
		}
		if c.Strip {
			s += ", Strip: true"
		}
		if c.StripGroup != "" {
			s += fmt.Sprintf(", StripGroup: %q", c.StripGroup)
		}
		if c.Action == Notify {
			s += ", Action: Notify"
		}
		if c.Captures == Nearest {
			s += ", Captures: Nearest"
		}
		if c.MinBytes != 0 {
			s += fmt.Sprintf(", MinBytes: %d", c.MinBytes)
		}
		if c.Scope != (Scope{}) {
			s += ", Scope: " + strings.TrimPrefix(fmt.Sprintf("%#v", c.Scope), "stopping.")
		}
		out = append(out, s+"}")
	}
	return "[]Criterion{" + strings.Join(out, ", ") + "}"
}

func quote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return r < ' ' || r == '`' || r == utf8.RuneError || r > 0x7f && !strings.ContainsRune("你好é🙂", r)
	}) < 0
	if plain {
		return "`" + s + "`"
	}
	return fmt.Sprintf("%q", s)
}
