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
	if len(text) > maxRepair || r.budget.steps > maxSteps {
		return t
	}
	if plain, edits := f.canonical(text, looseTags(text)); len(edits) > 0 {
		n := f.parse(plain, r)
		inside := edits.inside(f, n.Calls)
		edits.relocate(&n)
		repaired(n.Calls, RepairTags)
		if !inside && f.better(n, t, r) {
			t = n
		}
	}
	inThink := t.InThink && !f.Think.Calls && f.Call.Kind != LineCalls
	if r.foreign || len(r.Tools) == 0 || len(t.Calls) > 0 || inThink || t.has(UnclosedCall) || t.has(CallInThink) {
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
		n.shift(from)
		n.Think, n.InThink = t.Think, t.InThink
		return n
	}
	return t
}

// shift moves the places in a turn.
func (t *Turn) shift(by int) {
	for i := range t.Calls {
		t.Calls[i].Start += by
		t.Calls[i].End += by
	}
	for i := range t.Problems {
		t.Problems[i].Start += by
		t.Problems[i].End += by
	}
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
		return t.unclosed() || len(n.Problems) < len(t.Problems)
	}
	marked := f.Answer != Answer{} && (f.Call.Kind != LineCalls || t.Text == t.Answer)
	return n.Answered && !t.Answered || marked && n.Answered && len(n.Answer) < len(t.Answer)
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

// others are the formats whose spellings are looked for, in this order. Those of
// bare JSON are not among them: see elsewhere.
var others struct {
	once    sync.Once
	formats []*Format
}

func loadOthers() {
	for _, name := range []string{"qwen", "qwq", "qwen3-coder", "mistral", "qwen-functions", "react", "search-r1", "weaver-plan", "weaver-write"} {
		if f, err := Load(name); err == nil { // a test compiles them all
			others.formats = append(others.formats, f)
		}
	}
	for _, s := range []Spelling{ // of models that have no format here: DeepSeek, Kimi, gpt-oss
		{Open: "<｜tool▁sep｜>", Between: "\n```json\n", Close: "<｜tool▁call▁end｜>"},
		{Open: "<|tool_call_begin|>", Between: "<|tool_call_argument_begin|>", Close: "<|tool_call_end|>"},
		{Open: "to=functions.", Between: "<|message|>"},
	} {
		s.Kind, s.Name, s.Arguments = JSONCalls, usualNames[:1], usualArguments[:1]
		f := &Format{Head: Head{Call: s}}
		f.spelled = f.vocabulary()
		others.formats = append(others.formats, f)
	}
}

// otherFormats reads a text in the spelling of the first of the other formats
// that finds calls of offered tools in it.
func (r *reader) otherFormats(text string) (Turn, bool) {
	tags := looseTags(text)
	others.once.Do(loadOthers)
	for _, f := range others.formats {
		if f.Call.Kind == r.Call.Kind && f.Call.Open == r.Call.Open && slices.Equal(f.Call.Name, r.Call.Name) && len(f.Call.Tags) == len(r.Call.Tags) {
			continue
		}
		plain, edits := f.canonical(text, tags)
		if !labelled(plain, f.openings()...) {
			continue
		}
		reading := r.Reading
		reading.InThink, reading.foreign = false, true
		t := f.parse(plain, reading)
		inside := edits.inside(f, t.Calls)
		if edits.relocate(&t); r.offered(t.Calls) && !inside {
			repaired(t.Calls, RepairSpelling)
			t.Problems = slices.DeleteFunc(t.Problems, func(p Problem) bool { return p.Kind == TextAfterCall })
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
	trimmed := strings.TrimSpace(text)
	start := strings.Index(text, trimmed)
	if calls, ok := r.bareCalls(trimmed); ok {
		return r.found(text, calls, start, start+len(trimmed)), true
	}
	if m := fence.FindStringSubmatchIndex(text); m != nil && strings.Count(text, fenceMark) <= 2 {
		// In the middle of prose it is an example.
		after := strings.TrimSpace(text[m[1]:])
		if calls, ok := r.bareCalls(strings.TrimSpace(text[m[2]:m[3]])); ok && (after == "" || otherClose(after)) {
			return r.found(text, calls, m[0], m[1]), true
		}
	}
	i := strings.IndexAny(text, "{[")
	if i < 0 {
		return Turn{}, false
	}
	e := r.budget.measure(text[i:])
	before, after := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+e.end:])
	switch {
	case !e.closed && (before == "" || fenceOpens.MatchString(before)) && r.beginsCall(text[i:]):
		return Turn{Problems: []Problem{{UnclosedCall, i, len(text), "the JSON has no end"}}}, true
	case !e.closed || before != "" && after != "" && !otherClose(after):
		return Turn{}, false
	}
	if calls, ok := r.bareCalls(text[i : i+e.end]); ok {
		return r.found(text, calls, i, i+e.end), true
	}
	return Turn{}, false
}

// bareCalls reads a text that is nothing but calls of offered tools.
func (r *reader) bareCalls(text string) ([]Call, bool) {
	if calls, ok := r.usual().sequence(text); ok && r.offered(calls) {
		return repaired(calls, RepairOpen), true
	}
	if e := r.budget.measure(text); composite(text) && e.closed && strings.Trim(text[e.end:], "]} \n") == "" {
		calls, ok := r.usual().mendedOrWhole(text)
		if ok && r.offered(calls) && (argumentsKey.MatchString(text) || !slices.ContainsFunc(calls, r.likeData)) {
			return repaired(calls, RepairOpen), true
		}
	}
	if calls, ok := r.usual().nameFirst(text); ok && r.offered(calls) {
		return repaired(calls, RepairOpen), true
	}
	calls, ok := r.pythonic(text)
	return repaired(calls, RepairOpen), ok
}

// likeData reports whether a call without a key for its arguments is more likely
// an object that happens to have a name.
func (r *reader) likeData(c Call) bool {
	tool, _ := r.tool(c.Name)
	known := r.budget.parameters(tool)
	keys, _ := object(c.Arguments)
	for key := range keys {
		if _, ok := known[key]; !ok {
			return true
		}
	}
	return len(keys) == 0
}

var (
	// argumentsKey finds a key that holds arguments.
	argumentsKey = regexp.MustCompile(`(?i)["'](?:` + strings.Join(usualArguments, "|") + `)["']\s*:`)
	// fenceOpens finds the first line of a code block.
	fenceOpens = regexp.MustCompile("^```\\w*$")
	// callName finds the name in the beginning of a call as JSON.
	callName = regexp.MustCompile(`^\[?\s*\{\s*["'](?:` + strings.Join(usualNames, "|") + `)["']\s*:\s*["']([^"'\n]*)["']`)
)

// beginsCall reports whether a text that is cut begins as the call of an offered
// tool does.
func (r *reader) beginsCall(text string) bool {
	m := callName.FindStringSubmatch(text[:min(len(text), maxName)])
	return m != nil && r.known(m[1])
}

// found is a turn with calls at text[i:end].
func (r *reader) found(text string, calls []Call, i, end int) Turn {
	for k := range calls {
		calls[k].Start, calls[k].End = i, end
	}
	return Turn{Calls: calls, Text: strings.TrimSpace(text[:i] + text[end:])}
}
