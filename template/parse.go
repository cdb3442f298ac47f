package template

import (
	"slices"
	"strings"
)

// Parse parses what the model generated in one turn; inThink says that the
// turn began inside the thinking part (f.Think.Opened for the first one, then
// StartsInThink). Whatever the text, the result is calls, an answer or
// problems; Parse never fails.
//
// Calls as JSON: where several opening tags precede a closing one, the nearest
// counts, except that a tag inside the JSON's own strings is text. A key that
// occurs twice has its last value, as in Python and encoding/json. A call
// without arguments has {}. A closing think tag without an opening one makes
// what stands before it thinking, as chat templates do.
//
// Calls as lines: the last name before the last arguments, as ReAct's own
// parser does. An answer marker at the start of a line wins over a call.
func (f *Format) Parse(text string, inThink bool) Turn {
	var t Turn
	if f.Call.Kind == LineCalls {
		t = f.parseLines(text)
	} else {
		t = f.parseTags(text, inThink)
	}
	slices.SortStableFunc(t.Problems, func(a, b Problem) int { return a.Start - b.Start })
	if len(t.Calls) == 0 && !t.Answered && len(t.Problems) == 0 {
		t.Problems = []Problem{{Kind: NoCallNoAnswer, End: len(text), Message: "neither a call nor an answer"}}
	}
	return t
}

// A tagParser reads a turn whose calls are JSON between tags.
type tagParser struct {
	*Format
	text    string
	turn    Turn
	tags    *finder
	json    jsonReader
	inThink bool
	think   strings.Builder
	rest    strings.Builder // outside the thinking part, without calls
	// afterCall is where rest stood when the last call ended, and afterCallAt
	// the place in text.
	afterCall, afterCallAt int
	// tried says that there is a call, or something that was to be one.
	tried bool
}

func (f *Format) parseTags(text string, inThink bool) Turn {
	p := &tagParser{Format: f, text: text, inThink: inThink,
		tags: newFinder(text, f.Think.Open, f.Think.Close, f.Call.Open, f.Response.Open)}
	for at := 0; at < len(text); {
		tag, i := p.tags.next(at)
		p.write(text[at:i])
		if i == len(text) {
			break
		}
		at = p.step(tag, i)
	}
	return p.finish()
}

// step handles the tag at text[i:] and says where to go on.
func (p *tagParser) step(tag string, i int) int {
	end := i + len(tag)
	switch {
	case tag == p.Call.Open:
		return p.call(i)
	case tag == p.Think.Open && !p.inThink:
		p.inThink = true
	case tag == p.Think.Close && p.inThink:
		p.inThink = false
	case tag == p.Think.Close && !p.tried:
		p.think.WriteString(p.rest.String())
		p.rest.Reset()
	case tag == p.Response.Open && !p.inThink:
		p.problem(InventedResponse, i, len(p.text), "the model wrote a tool's response itself")
		return len(p.text)
	default: // a mention
		p.write(tag)
	}
	return end
}

// call handles the opening tag at text[i:].
func (p *tagParser) call(i int) int {
	counts := !p.inThink || p.Think.Calls
	body := i + len(p.Call.Open)
	value, size, err := p.json.read(p.text[body:])
	end := body + size
	if err == nil {
		end += len(p.text[end:]) - len(strings.TrimLeft(p.text[end:], " \t\r\n"))
		if strings.HasPrefix(p.text[end:], p.Call.Close) {
			end += len(p.Call.Close)
			p.complete(value, i, end, counts)
			return end
		}
	}
	next := p.tags.index(p.Call.Open, body)
	closing := p.tags.index(p.Call.Close, body)
	switch {
	case !counts || next <= closing && !looksLikeCall(p.text[body:]):
		p.write(p.Call.Open) // a mention
		return body
	case next <= closing: // both are len(text) where there is neither
		p.bad(Problem{UnclosedCall, i, next, "the call has no closing tag"})
		return next
	}
	if err == nil {
		err = errAfterValue
	}
	end = closing + len(p.Call.Close)
	p.bad(Problem{BadJSON, i, end, err.Error()})
	return end
}

// looksLikeCall tells the beginning of a call from a tag in prose.
func looksLikeCall(body string) bool {
	body = strings.TrimLeft(body, " \t\r\n")
	return body == "" || body[0] == '{' || body[0] == '['
}

// complete handles a JSON value between its two tags, at text[i:end].
func (p *tagParser) complete(value []byte, i, end int, counts bool) {
	call, problem := p.Call.decode(value)
	switch {
	case !counts:
		p.write(p.text[i:end])
		if problem.Kind == "" {
			p.problem(CallInThink, i, end, "a call inside the thinking part does not count")
		}
	case problem.Kind != "":
		p.bad(Problem{problem.Kind, i, end, problem.Message})
	default:
		call.Start, call.End = i, end
		p.turn.Calls = append(p.turn.Calls, call)
		p.tried, p.afterCall, p.afterCallAt = true, p.rest.Len(), end
	}
}

// bad records a call that cannot be made.
func (p *tagParser) bad(problem Problem) {
	p.tried = true
	p.turn.Problems = append(p.turn.Problems, problem)
}

func (p *tagParser) problem(kind ProblemKind, start, end int, message string) {
	p.turn.Problems = append(p.turn.Problems, Problem{kind, start, end, message})
	p.tried = p.tried || kind == InventedResponse
}

func (p *tagParser) write(s string) {
	if p.inThink {
		p.think.WriteString(s)
	} else {
		p.rest.WriteString(s)
	}
}

func (p *tagParser) finish() Turn {
	t := p.turn
	rest := p.rest.String()
	t.Think, t.Text, t.InThink = strings.TrimSpace(p.think.String()), strings.TrimSpace(rest), p.inThink
	if len(t.Calls) > 0 && strings.TrimSpace(rest[p.afterCall:]) != "" {
		t.Problems = append(t.Problems, Problem{TextAfterCall, p.afterCallAt, len(p.text), "text after the last call"})
	}
	switch {
	case p.tried || p.inThink:
	case p.Answer.After == "":
		t.Answer, t.Answered = t.Text, t.Text != ""
	default:
		if i := lastMarker(rest, p.Answer.After); i >= 0 {
			t.Answer, t.Answered = strings.TrimSpace(rest[i+len(p.Answer.After):]), true
		}
	}
	return t
}

// A finder gives the next of several tags in a text. It remembers where each
// stands, so that a walk through the text is linear.
type finder struct {
	text string
	tags []string
	at   map[string]int // the first occurrence from where it was last asked; len(text) for none
}

func newFinder(text string, tags ...string) *finder {
	f := &finder{text: text, at: map[string]int{}}
	f.tags = union(nil, tags)
	return f
}

// index gives the first place of the tag from offset from on, or len(text).
// from must not be smaller than in the call before for the same tag.
func (f *finder) index(tag string, from int) int {
	at, known := f.at[tag]
	if !known || at < from {
		at = len(f.text)
		if i := strings.Index(f.text[from:], tag); i >= 0 {
			at = from + i
		}
		f.at[tag] = at
	}
	return at
}

// next gives the first tag from offset from on and its place, or len(text).
func (f *finder) next(from int) (tag string, at int) {
	at = len(f.text)
	for _, t := range f.tags {
		if i := f.index(t, from); i < at {
			tag, at = t, i
		}
	}
	return tag, at
}
