package template

import (
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
)

// wanting reports whether a turn may hold more than was found in it.
func wanting(t Turn) bool {
	return len(t.Calls) == 0 || slices.ContainsFunc(t.Problems, func(p Problem) bool {
		return p.Kind == UnclosedCall || p.Kind == BadJSON || p.Kind == MissingName
	})
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
	if r.foreign || len(r.Tools) == 0 || len(t.Calls) > 0 || t.InThink && !f.Think.Calls {
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

// better reports whether n reads more out of a turn than t.
func (f *Format) better(n, t Turn, r Reading) bool {
	p := &reader{Format: f, Reading: r}
	switch {
	case len(n.Calls) > len(t.Calls):
		return len(r.Tools) == 0 || p.offered(n.Calls)
	case len(n.Calls) < len(t.Calls):
		return false
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
		if len(t.Calls) > 0 && r.offered(t.Calls) {
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
	end, whole := extent(text[i:])
	before, after := strings.TrimSpace(text[:i]), strings.TrimSpace(text[min(len(text), i+end):])
	// In the middle of prose it is an example more likely than a call.
	if !whole || before != "" && after != "" && !otherClose(after) {
		return Turn{}, false
	}
	if calls, ok := r.bareCalls(text[i : i+end]); ok {
		return r.found(text, repaired(calls, RepairOpen), i, i+end), true
	}
	return Turn{}, false
}

// bareCalls reads a text that is nothing but calls of offered tools.
func (r *reader) bareCalls(text string) ([]Call, bool) {
	usual := *r.Format
	if usual.Call.Kind != JSONCalls {
		usual.Call = Spelling{Kind: JSONCalls, Open: "<tool_call>", Close: "</tool_call>", Name: usualNames[:1], Arguments: usualArguments[:2]}
	}
	p := &reader{Format: &usual, Reading: r.Reading}
	p.foreign = true
	if composite(text) {
		if calls, ok := p.mendedOrWhole(text); ok && p.offered(calls) {
			return calls, true
		}
	}
	if pythonList.MatchString(text) || pythonCall.MatchString(text) {
		if calls, err := p.python(text); err == nil && p.offered(calls) {
			return repaired(calls, RepairSpelling), true
		}
	}
	return nil, false
}

// found is a turn with calls at text[i:end].
func (r *reader) found(text string, calls []Call, i, end int) Turn {
	for k := range calls {
		calls[k].Start, calls[k].End = i, end
	}
	return Turn{Calls: calls, Text: strings.TrimSpace(text[:i] + text[end:])}
}

// A looseTag finds a tag or label of the format as models misspell it.
type looseTag struct {
	pattern *regexp.Regexp
	tag     string
	line    bool // it begins a line
}

// looseTags makes the patterns for the format's own tags.
func (f *Format) looseTags() []looseTag {
	var out []looseTag
	add := func(tag string, line bool, aliases ...string) {
		if tag == "" {
			return
		}
		var spellings []string
		for _, t := range append([]string{tag}, aliases...) {
			spellings = append(spellings, loosely(t, line))
		}
		pattern := "(?i)(?:" + strings.Join(spellings, "|") + ")"
		if line {
			pattern = "(?im)" + lineStart + "(?:" + strings.Join(spellings, "|") + ")" + lineEnd
		}
		if re, err := regexp.Compile(pattern); err == nil {
			out = append(out, looseTag{re, tag, line})
		}
	}
	lines := f.Call.Kind == LineCalls
	if !lines {
		add(f.Think.Open, false)
		add(f.Think.Close, false)
	}
	add(f.Call.Open, false)
	add(f.Call.Close, false)
	add(f.Answer.Open, false)
	add(f.Answer.Close, false)
	for _, t := range f.Call.Tags {
		add(t.open(), false, "<"+t.Tag+"/>")
		add(t.close(), false)
	}
	switch f.Call.Kind {
	case XMLCalls:
		for _, open := range append(slices.Clip(f.Call.Name), f.Call.Arguments...) {
			add(open, false)
			add(closingOf(open), false)
		}
	case LineCalls: // the longer labels first: "Action Input:" before "Action:"
		add(f.Call.Arguments[0], true, f.Call.Arguments[1:]...)
		add(f.Call.Name[0], true, f.Call.Name[1:]...)
		add(f.Answer.After, true)
		add(f.Response.Open, true)
	}
	return out
}

// Between a line's start and a label, and behind a label, models put emphasis
// and list marks.
const (
	lineStart = `(?:^|[ \t])[ \t>#]*(?:[-*+•]\s+|\d{1,2}[.)]\s*)?[*_\x60]{0,3}`
	lineEnd   = `[*_\x60]{0,3}`
)

// loosely is a pattern for a tag with other case, spaces and punctuation.
func loosely(tag string, line bool) string {
	var b strings.Builder
	for _, c := range tag {
		switch {
		case c == '<' && line:
			b.WriteString("<")
		case c == '<':
			b.WriteString(`(?:<|&lt;|＜)[ \t]*\|?[ \t]*`)
		case c == '>':
			b.WriteString(`s?[ \t]*\|?[ \t]*(?:>|&gt;|＞)`)
		case c == '/':
			b.WriteString(`[/\\][ \t]*`)
		case c == '_' || c == '-' || c == ' ':
			b.WriteString(`[\s_-]{0,2}`)
		case c == ':' && line:
			b.WriteString(`[ \t]*[*_]{0,2}[ \t]*[:：]`)
		case c == '：' && line:
			b.WriteString(`[ \t]*[:：]`)
		case c == '=':
			b.WriteString(`[ \t]*[=:][ \t]*`)
		case c == '[':
			b.WriteString(`\[[ \t]*/?`)
		case c == ']':
			b.WriteString(`S?[ \t]*\]`)
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String()
}

// An edit says that plain[start:end] stood at other places in the text.
type edit struct{ start, end, oldStart, oldEnd int }

type edits []edit

// canonical spells the format's tags in a text as the format does. Without
// edits the text had none that are spelled otherwise.
func (f *Format) canonical(text string) (string, edits) {
	type found struct {
		from, to int
		tag      string
	}
	var all []found
	for _, l := range f.loose {
		for _, m := range l.pattern.FindAllStringIndex(text, -1) {
			from := m[0]
			if l.line && from < m[1] && (text[from] == ' ' || text[from] == '\t') && from > 0 {
				from++ // the space before a label in the middle of a line
			}
			all = append(all, found{from, m[1], l.tag})
		}
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].from < all[j].from })
	var b strings.Builder
	var out edits
	at := 0
	for _, m := range all {
		if m.from < at || text[m.from:m.to] == m.tag {
			if m.from >= at { // as it should be: nothing that begins inside it counts
				b.WriteString(text[at:m.to])
				at = m.to
			}
			continue
		}
		b.WriteString(text[at:m.from])
		tag := m.tag
		if f.Call.Kind == LineCalls && m.from > 0 && text[m.from-1] != '\n' && strings.TrimSpace(text[:m.from]) != "" {
			tag = "\n" + tag
		}
		start := b.Len()
		b.WriteString(tag)
		out = append(out, edit{start, b.Len(), m.from, m.to})
		at = m.to
	}
	b.WriteString(text[at:])
	return b.String(), out
}

// relocate moves the places in a turn from the edited text to the one that was
// edited. A place inside a tag becomes the tag's.
func (e edits) relocate(t *Turn) {
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Start, c.End = e.before(c.Start, false), e.before(c.End, true)
	}
	for i := range t.Problems {
		p := &t.Problems[i]
		p.Start, p.End = e.before(p.Start, false), e.before(p.End, true)
	}
}

// before gives the place in the text before the edits.
func (e edits) before(at int, end bool) int {
	i := sort.Search(len(e), func(i int) bool { return e[i].end >= at }) // the first edit that does not lie before it
	if i < len(e) && at > e[i].start {
		if end || at == e[i].end {
			return e[i].oldEnd
		}
		return e[i].oldStart
	}
	if i == 0 {
		return at
	}
	return e[i-1].oldEnd + at - e[i-1].end
}
