package template

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// wanting reports whether a turn may hold more than was found in it.
func wanting(t Turn) bool {
	return len(t.Calls) == 0 || t.unclosed() || t.has(UnclosedCall) || t.has(BadJSON) || t.has(MissingName)
}

// lenient reads a turn once more, with tags as models misspell them and then in
// other formats' spellings. It gives t where that finds nothing better.
func (f *Format) lenient(text string, r Reading, t Turn) Turn {
	if plain, edits := f.canonical(text); len(edits) > 0 {
		n := f.parse(plain, r)
		edits.relocate(&n)
		repaired(n.Calls, RepairTags)
		if f.better(n, t, r) {
			t = n
		}
	}
	inThink := t.InThink && !f.Think.Calls && f.Call.Kind != LineCalls
	if r.foreign || len(r.Tools) == 0 || len(t.Calls) > 0 || inThink || t.has(UnclosedCall) {
		return t
	}
	from := 0 // where the visible text begins
	if f.Think.Close != "" && !f.Think.Calls {
		if i := strings.LastIndex(text, f.Think.Close); i >= 0 {
			from = i + len(f.Think.Close)
		}
	}
	p := &reader{Format: f, Reading: r}
	p.foreign = true
	if n, ok := p.elsewhere(text[from:], t.Answered && f.Answer != Answer{}); ok {
		for i := range n.Calls {
			n.Calls[i].Start += from
			n.Calls[i].End += from
		}
		n.Think, n.InThink = t.Think, t.InThink
		n.Problems = nil
		return n
	}
	return t
}

// unclosed reports whether a call lacked its closing tag.
func (t Turn) unclosed() bool {
	return slices.ContainsFunc(t.Calls, func(c Call) bool { return slices.Contains(c.Repairs, RepairClose) })
}

func (t Turn) has(kind ProblemKind) bool {
	return slices.ContainsFunc(t.Problems, func(p Problem) bool { return p.Kind == kind })
}

// better reports whether n reads more out of a turn than t.
func (f *Format) better(n, t Turn, r Reading) bool {
	p := &reader{Format: f, Reading: r}
	switch {
	case len(n.Calls) > len(t.Calls):
		return len(r.Tools) == 0 || p.offered(n.Calls)
	case len(n.Calls) < len(t.Calls):
		return false
	case len(n.Calls) > 0:
		return t.unclosed() && !n.unclosed() || len(n.Problems) < len(t.Problems)
	}
	return n.Answered && !t.Answered || n.Answered && t.Answered && len(n.Answer) < len(t.Answer) && f.Answer != Answer{}
}

// foreignCalls reads calls in the spelling of another format.
func (r *reader) foreignCalls(text string) ([]Call, bool) {
	if r.foreign || len(r.Tools) == 0 {
		return nil, false
	}
	p := *r
	p.foreign = true
	t, ok := p.otherFormats(text)
	return t.Calls, ok
}

// others are the shipped formats whose spellings are looked for, in this order.
// Those of bare JSON are not among them: see elsewhere.
var others struct {
	sync.Once
	formats []*Format
}

func loadOthers() []*Format {
	others.Do(func() {
		for _, name := range []string{"qwen", "qwq", "qwen3-coder", "mistral", "qwen-functions", "react", "search-r1", "weaver-plan", "weaver-write"} {
			if f, err := Load(name); err == nil { // a test compiles them all
				others.formats = append(others.formats, f)
			}
		}
	})
	return others.formats
}

// otherFormats reads a text in the spelling of the first of the other formats
// that finds calls of offered tools in it.
func (r *reader) otherFormats(text string) (Turn, bool) {
	for _, f := range loadOthers() {
		if f.Call.Kind == r.Call.Kind && f.Call.Open == r.Call.Open && slices.Equal(f.Call.Name, r.Call.Name) && len(f.Call.Tags) == len(r.Call.Tags) {
			continue
		}
		if !labelled(text, f.openings()...) {
			continue
		}
		reading := r.Reading
		reading.InThink, reading.foreign = false, true
		t := f.parse(text, reading)
		if !r.offered(t.Calls) {
			plain, edits := f.canonical(text)
			t = f.parse(plain, reading)
			edits.relocate(&t)
		}
		if r.offered(t.Calls) {
			repaired(t.Calls, RepairSpelling)
			return t, true
		}
	}
	return Turn{}, false
}

// openings are the strings of which a call of the format has at least one.
func (f *Format) openings() []string {
	if f.Call.Kind == LineCalls {
		return f.Call.Name[:1]
	}
	return tagKinds[f.Call.Kind].opens(f.Call)
}

// fence finds a code block.
var fence = regexp.MustCompile("(?s)```[ \\t]*[\\w-]*[ \\t]*\\r?\\n?(.*?)(?:```|$)")

// elsewhere looks for calls of offered tools in the visible text of a turn that
// has none in the format's own spelling: in another format's, in a code block,
// or as bare JSON or Python. Where the turn has an answer, marked as such, only
// another spelling counts.
func (r *reader) elsewhere(text string, answered bool) (Turn, bool) {
	if t, ok := r.otherFormats(text); ok {
		return t, true
	}
	if answered {
		return Turn{}, false
	}
	if m := fence.FindStringSubmatchIndex(text); m != nil && len(fence.FindAllStringIndex(text, 3)) == 1 {
		if calls, ok := r.bareCalls(strings.TrimSpace(text[m[2]:m[3]])); ok {
			return r.found(text, repaired(calls, RepairOpen), m[0], m[1]), true
		}
	}
	i := strings.IndexAny(text, "{[")
	if i < 0 {
		return Turn{}, false
	}
	e := measure(text[i:])
	end := e.end
	before, after := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+end:])
	// In the middle of prose it is an example more likely than a call.
	if !e.closed || before != "" && after != "" && !otherClose(after) {
		return Turn{}, false
	}
	if calls, ok := r.bareCalls(text[i : i+end]); ok {
		return r.found(text, repaired(calls, RepairOpen), i, i+end), true
	}
	return Turn{}, false
}

// bareCalls reads a text that is nothing but calls of offered tools.
func (r *reader) bareCalls(text string) ([]Call, bool) {
	if composite(text) {
		if calls, ok := r.usual().mendedOrWhole(text); ok && r.offered(calls) {
			return calls, true
		}
	}
	return r.pythonic(text)
}

// found is a turn with calls at text[i:end].
func (r *reader) found(text string, calls []Call, i, end int) Turn {
	for k := range calls {
		calls[k].Start, calls[k].End = i, end
	}
	return Turn{Calls: calls, Text: strings.TrimSpace(text[:i] + text[end:])}
}
