package template

import (
	"slices"
	"strings"
)

// Parse parses what the model generated in one turn. Whatever the text, the
// result is calls, an answer or problems; Parse never fails. Its time grows with
// the length of the text; what would take longer is not read.
//
// Calls between tags: where several opening tags precede a closing one, the
// nearest counts, except that a tag inside the JSON's own strings is text. A
// key that occurs twice has its last value, as in Python and encoding/json. A
// call without arguments has {}. A closing think tag without an opening one
// makes what stands before it thinking, as chat templates do.
//
// Calls as lines: where a format makes one call a turn, the last name before
// the last arguments, as ReAct's own parser does. An answer marker at the start
// of a line wins over a call.
//
// A tag in backquotes, in the middle of a sentence, before the placeholders of
// the prompt's example, or in a code block after which the text goes on is a
// mention. What follows a token that ends the model's turn is ignored.
//
// Unless the reading is strict, calls are repaired, and a turn in which the
// format's own spelling finds none is read once more with tags and labels as
// models misspell them, and then in the spellings of the other formats. What it
// took is in Call.Repairs. A call that the end of the text cuts is never made
// whole: only what follows it shows that it had an end.
func (f *Format) Parse(text string, r Reading) Turn {
	if r.budget == nil {
		r.budget = &budget{}
	}
	t := f.parse(text, r)
	if !r.Strict && wanting(t) {
		t = f.lenient(text, r, t)
	}
	for _, c := range t.Calls {
		if !slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == c.Name }) && len(r.Tools) > 0 {
			t.Problems = append(t.Problems, Problem{UnknownTool, c.Start, c.End, "there is no tool of that name"})
		}
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int { return a.Start - b.Start })
	if len(t.Calls) == 0 && !t.Answered && len(t.Problems) == 0 {
		t.Problems = []Problem{{Kind: NoCallNoAnswer, End: len(text), Message: "neither a call nor an answer"}}
	}
	return t
}

// parse reads a turn in the format's own spelling.
func (f *Format) parse(text string, r Reading) Turn {
	if r.budget == nil {
		r.budget = &budget{}
	}
	r.budget.work += len(text)
	switch {
	case f.Opening != OpenOwn: // the server has read the calls
		plain := strings.TrimSpace(text)
		return Turn{Text: plain, Answer: plain, Answered: plain != ""}
	case f.Call.Kind == LineCalls:
		return f.parseLines(text, r)
	}
	return f.parseTags(text, r)
}

// A tagParser reads a turn whose calls stand between tags, or bare.
type tagParser struct {
	reader
	text    string
	turn    Turn
	tags    *finder
	kind    tagKind
	inThink bool
	think   []byte
	rest    []byte // outside the thinking part, without calls
	// afterCall is where rest stood when the last call ended, and afterCallAt
	// the place in text.
	afterCall, afterCallAt int
	// tried says that there is a call, or something that was to be one, invented
	// that the model went on with somebody else's turn.
	tried, invented bool
	// answer is what the last pair of answer tags holds, answerAt its place.
	answer   string
	answerAt int // -1 for none
	plainAt  int // where the text since the last tag or call begins
	quoted   quoting
}

// A tagKind reads calls that begin with a tag or where a turn begins.
type tagKind interface {
	// opens are the tags that begin a call.
	opens(s Spelling) []string
	// read reads the call whose opening tag stands at p.text[i:] and gives the
	// place where the turn goes on.
	read(p *tagParser, tag string, i int) int
	// bare reads calls that begin at p.text[i:], without a tag, at the start of
	// the visible text. It gives i where there are none.
	bare(p *tagParser, i int) int
}

var tagKinds = map[CallKind]tagKind{
	JSONCalls: jsonCalls{}, XMLCalls: xmlCalls{}, TagCalls: tagCalls{}, PythonCalls: pythonCalls{},
}

func (f *Format) parseTags(text string, r Reading) Turn {
	p := &tagParser{reader: reader{Format: f, Reading: r}, text: text, inThink: r.InThink, answerAt: -1, kind: tagKinds[f.Call.Kind]}
	p.tags = newFinder(text, &r.budget.work, append(p.kind.opens(f.Call),
		append(slices.Clone(f.ends), f.Think.Open, f.Think.Close, f.Response.Open, f.Answer.Open, p.strayClose())...)...)
	for at := p.begin(0); at < len(text); {
		tag, i := p.tags.next(at)
		p.write(text[at:i])
		p.quoted.plain(text, at, i)
		if i == len(text) {
			break
		}
		if !p.budget.step() {
			p.bad(Problem{BadJSON, i, len(text), "more tags and calls than a turn may have"})
			break
		}
		next := p.step(tag, i)
		if tag == f.Think.Close && !p.inThink {
			next = p.begin(next)
		}
		at, p.plainAt = next, next
	}
	return p.finish()
}

// begin reads what may begin the visible text without a tag.
func (p *tagParser) begin(at int) int {
	if p.inThink || p.tried || p.invented {
		return at
	}
	start := at + len(p.text[at:]) - len(strings.TrimLeft(p.text[at:], blanks))
	if end := p.kind.bare(p, start); end > start {
		return end
	}
	return at
}

// strayClose is a closing tag that may stand without its opening one.
func (p *tagParser) strayClose() string {
	if p.Strict || p.Call.Kind != JSONCalls {
		return ""
	}
	return p.Call.Close
}

// step handles the tag at text[i:] and says where to go on.
func (p *tagParser) step(tag string, i int) int {
	end := i + len(tag)
	switch {
	case slices.Contains(p.kind.opens(p.Call), tag):
		if p.mentioned(i, end) {
			p.write(tag)
			return end
		}
		return p.kind.read(p, tag, i)
	case p.quoted.inline(p.text, i, end): // `<think>` is not the tag
		p.write(tag)
	case slices.Contains(p.ends, tag) && p.endsTurn(tag, end):
		return p.ended(i, end)
	case tag == p.strayClose():
		return p.unopened(i)
	case tag == p.Answer.Open:
		return p.answered(i)
	case tag == p.Think.Open && !p.inThink:
		p.inThink = true
	case tag == p.Think.Close && p.inThink:
		p.inThink = false
	case tag == p.Think.Close && !p.tried:
		p.think, p.rest = append(p.think, p.rest...), nil
	case tag == p.Response.Open && (!p.inThink || p.Think.Calls && p.tried):
		p.problem(InventedResponse, i, len(p.text), "the model wrote a tool's response itself")
		return len(p.text)
	default: // a mention
		p.write(tag)
	}
	return end
}

// answered reads the answer whose opening tag stands at text[i:].
func (p *tagParser) answered(i int) int {
	body := i + len(p.Answer.Open)
	closing := p.tags.index(p.Answer.Close, body)
	end := min(closing+len(p.Answer.Close), len(p.text))
	if p.inThink {
		p.write(p.Answer.Open) // a mention
		return body
	}
	if next := p.tags.index(p.Answer.Open, body); next < closing {
		p.write(p.text[i:body]) // the nearest opening tag counts
		return body
	}
	answer := p.text[body:closing]
	if closing == len(p.text) { // it has no end of its own
		for _, token := range p.ends {
			answer, _, _ = strings.Cut(answer, token)
		}
		if m := wrongClose.FindStringIndex(answer); m != nil && !p.Strict {
			answer = answer[:m[0]]
		}
	}
	p.answer, p.answerAt = strings.TrimSpace(answer), i
	p.write(answer)
	return end
}

// limit gives the place where a call without a closing tag must have ended: that
// of the next opening tag, of a response or of an end token, or the end.
func (p *tagParser) limit(tag string, from int) int {
	limit := p.tags.index(tag, from)
	for _, t := range append(slices.Clip(p.ends), p.Response.Open, p.Answer.Open) {
		limit = min(limit, p.tags.index(t, from))
	}
	return limit
}

// counts reports whether calls count where the parser stands.
func (p *tagParser) counts() bool { return !p.inThink || p.Think.Calls }

// add records calls that stand at text[i:end].
func (p *tagParser) add(calls []Call, i, end int) {
	for _, c := range calls {
		c.Start, c.End = i, end
		p.turn.Calls = append(p.turn.Calls, c)
	}
	p.tried, p.afterCall, p.afterCallAt = true, len(p.rest), end
}

// complete handles what was read as calls at text[i:end], or the problem that
// it is none.
func (p *tagParser) complete(calls []Call, problem Problem, i, end int) {
	switch {
	case !p.counts():
		p.write(p.text[i:end])
		if problem.Kind == "" {
			p.problem(CallInThink, i, end, "a call inside the thinking part does not count")
		}
	case problem.Kind != "":
		p.bad(Problem{problem.Kind, i, end, problem.Message})
	default:
		p.add(calls, i, end)
	}
}

// bad records a call that cannot be made.
func (p *tagParser) bad(problem Problem) {
	p.tried = true
	p.turn.Problems = append(p.turn.Problems, problem)
	p.afterCall, p.afterCallAt = len(p.rest), problem.End
}

func (p *tagParser) problem(kind ProblemKind, start, end int, message string) {
	p.turn.Problems = append(p.turn.Problems, Problem{kind, start, end, message})
	p.invented = p.invented || kind == InventedResponse
}

// ended handles a token that ends the model's turn. A model whose server went
// on writes the next turns itself.
func (p *tagParser) ended(i, end int) int {
	if strings.TrimSpace(trimTokens(p.text[end:], p.ends)) != "" {
		p.problem(InventedResponse, i, len(p.text), "the model went on after the end of its turn")
	}
	return len(p.text)
}

func (p *tagParser) write(s string) {
	if p.inThink {
		p.think = append(p.think, s...)
	} else {
		p.rest = append(p.rest, s...)
	}
}

func (p *tagParser) finish() Turn {
	t := p.turn
	rest := string(p.rest)
	t.Think, t.Text, t.InThink = strings.TrimSpace(string(p.think)), strings.TrimSpace(rest), p.inThink
	p.readAnswer(&t, rest)
	if len(t.Calls) > 0 && !t.Answered && strings.TrimSpace(rest[p.afterCall:]) != "" {
		t.Problems = append(t.Problems, Problem{TextAfterCall, p.afterCallAt, len(p.text), "text after the last call"})
	}
	return t
}

// readAnswer finds the answer of the turn. Tags and a marker that follow a call
// win over it: the model went on without waiting for a response.
func (p *tagParser) readAnswer(t *Turn, rest string) {
	switch {
	case p.Answer.Open != "" && p.answerAt >= 0:
		if len(t.Calls) > 0 {
			if p.answerAt < p.afterCallAt {
				return
			}
			c := t.Calls[0]
			t.Problems = append(t.Problems, Problem{TextAfterCall, c.Start, c.End, "an answer follows the call, which is not made"})
			t.Calls = nil
		}
		t.Answer, t.Answered = p.answer, true
	case p.tried || p.inThink:
	case p.Answer.After != "" && lastMarker(rest, p.Answer.After) >= 0:
		t.Answer, t.Answered = strings.TrimSpace(rest[lastMarker(rest, p.Answer.After)+len(p.Answer.After):]), true
	case p.invented:
	case p.Answer == Answer{} || p.Answer.Optional:
		t.Answer, t.Answered = t.Text, t.Text != ""
	}
}

// A finder gives the next of several tags in a text. It remembers where each
// stands, so that a walk through the text is linear.
type finder struct {
	text string
	work *int // grows by what is searched
	tags []string
	seen map[string]sighting
}

// A sighting is where a tag stands first from an offset on; len(text) for nowhere.
type sighting struct{ from, at int }

func newFinder(text string, work *int, tags ...string) *finder {
	f := &finder{text: text, work: work, seen: map[string]sighting{}}
	f.tags = union(nil, tags)
	return f
}

// index gives the first place of the tag from offset from on, or len(text).
func (f *finder) index(tag string, from int) int {
	s, known := f.seen[tag]
	if !known || from < s.from || s.at < from {
		s = sighting{from, len(f.text)}
		if i := strings.Index(f.text[from:], tag); i >= 0 && tag != "" {
			s.at = from + i
		}
		*f.work += (s.at - from) / 16 // a search is faster than a reading
		f.seen[tag] = s
	}
	return s.at
}

// here reports whether one of the tags stands at text[at:].
func (f *finder) here(at int) bool {
	return slices.ContainsFunc(f.tags, func(t string) bool { return t != "" && strings.HasPrefix(f.text[at:], t) })
}

// next gives the first tag from offset from on and its place, or len(text). Of
// several at one place the longest counts.
func (f *finder) next(from int) (tag string, at int) {
	at = len(f.text)
	for _, t := range f.tags {
		if i := f.index(t, from); i < at || i == at && i < len(f.text) && len(t) > len(tag) {
			tag, at = t, i
		}
	}
	return tag, at
}
