package template

import (
	"encoding/json"
	"regexp"
	"strings"
)

// jsonCalls reads calls as JSON: an object between two tags, after one, or bare;
// several in a list; the name before the object.
type jsonCalls struct{}

func (jsonCalls) opens(s Spelling) []string { return []string{s.Open} }

// bare reads JSON calls that begin the turn, several one after the other.
func (k jsonCalls) bare(p *tagParser, i int) int {
	if !p.Call.Bare || !composite(p.text[i:]) {
		return i
	}
	return k.run(p, i, i)
}

// read reads the call whose opening tag stands at text[i:].
func (k jsonCalls) read(p *tagParser, tag string, i int) int {
	body := i + len(tag)
	if p.Call.Close == "" {
		return k.unclosed(p, i, body)
	}
	value, size, err := p.json.read(p.text[body:])
	if err == nil {
		if end, calls, problem, ok := k.closed(p, value, body+size); ok {
			p.complete(calls, problem, i, end)
			return end
		}
	}
	next, closing := p.tags.index(tag, body), p.tags.index(p.Call.Close, body)
	switch {
	case !p.counts() || next <= closing && !looksLikeCall(p.text[body:]):
		p.write(tag) // a mention
		return body
	case next <= closing: // both are len(text) where there is neither
		return k.cut(p, i, body, next, err)
	}
	end := closing + len(p.Call.Close)
	if calls, ok := p.mended(p.text[body:closing]); ok {
		p.add(calls, i, end)
		return end
	}
	if err == nil {
		err = errAfterValue
	}
	p.bad(Problem{BadJSON, i, end, err.Error()})
	return end
}

// closed reads what follows a JSON value that ends at text[at:]: a body and the
// closing tag. ok is false where the closing tag is not there.
func (k jsonCalls) closed(p *tagParser, value json.RawMessage, at int) (end int, calls []Call, problem Problem, ok bool) {
	end = skipBlanks(p.text, at)
	body, hasBody := "", false
	if b := p.Call.Body; b.Open != "" && strings.HasPrefix(p.text[end:], b.Open) {
		from := end + len(b.Open)
		if n := strings.Index(p.text[from:], b.Close); n >= 0 {
			body, hasBody = p.text[from:from+n], true
			end = skipBlanks(p.text, from+n+len(b.Close))
		}
	}
	if !strings.HasPrefix(p.text[end:], p.Call.Close) {
		return 0, nil, Problem{}, false
	}
	calls, problem = p.calls(value)
	if hasBody && problem.Kind == "" {
		calls = p.withBody(calls, body)
	}
	return end + len(p.Call.Close), calls, problem, true
}

// cut reads a call without a closing tag, at text[i:next]. A value that is
// whole lacks only the tag; anything else is never made whole.
func (k jsonCalls) cut(p *tagParser, i, body, next int, err error) int {
	end, whole := extent(p.text[body:next])
	if !p.Strict && whole && err != errTooDeep && err != errTooLarge {
		segment := p.text[body : body+end]
		if otherClose(p.text[body+end : next]) {
			end = next - body
		}
		if calls, ok := p.mended(segment); ok && len(calls) > 0 {
			p.add(repaired(calls, RepairClose), i, body+end)
			return body + end
		}
	}
	p.bad(Problem{UnclosedCall, i, next, "the call has no closing tag"})
	return next
}

// misclosed finds what models write for a closing tag.
var misclosed = regexp.MustCompile(`^\s*(?:</?[|\w\s-]{1,24}\|?>\s*|\[/?[A-Z_]{1,24}\]\s*)+$`)

// otherClose reports whether a text is nothing but tags.
func otherClose(text string) bool { return len(text) < 200 && misclosed.MatchString(text) }

// unclosed reads calls of a format whose calls have no closing tag.
func (k jsonCalls) unclosed(p *tagParser, i, body int) int {
	if !p.counts() {
		p.write(p.text[i:body])
		return body
	}
	at := skipBlanks(p.text, body)
	if name, from, ok := p.namedCall(at); ok {
		return p.between(i, name, from)
	}
	if !p.Strict && !composite(p.text[at:]) {
		if end := (pythonCalls{}).dotted(p, i, at); end > at {
			return end
		}
	}
	if !composite(p.text[at:]) {
		if at == len(p.text) {
			p.bad(Problem{UnclosedCall, i, at, "the call has no JSON"})
			return at
		}
		p.write(p.text[i:body]) // a mention
		return body
	}
	return k.run(p, i, at)
}

// namedCall reads "name[ARGS]" at text[at:].
func (p *tagParser) namedCall(at int) (name string, from int, ok bool) {
	if p.Call.Between == "" {
		return "", 0, false
	}
	n := strings.Index(p.text[at:min(len(p.text), at+512)], p.Call.Between)
	if n <= 0 || strings.ContainsAny(p.text[at:at+n], "\n{") {
		return "", 0, false
	}
	return strings.TrimSpace(p.text[at : at+n]), at + n + len(p.Call.Between), true
}

// between reads the arguments that follow a name, at text[from:].
func (p *tagParser) between(i int, name string, from int) int {
	value, size, err := p.json.read(p.text[from:])
	end := from + size
	if err != nil {
		end = p.tags.index(p.Call.Open, from)
		n, whole := extent(p.text[from:end])
		if err == errNoEnd || !whole {
			p.bad(Problem{UnclosedCall, i, end, "the arguments have no end"})
			return end
		}
		end = from + n
		mended, repairs, ok := p.mend(p.text[from:end])
		if p.Strict || !ok {
			p.bad(Problem{BadJSON, i, end, err.Error()})
			return end
		}
		p.add([]Call{p.fitted(Call{Name: name, Arguments: mended, Repairs: repairs})}, i, end)
		return end
	}
	if _, ok := object(value); !ok {
		arguments, repairs, ok := p.arguments(name, value)
		if p.Strict || !ok {
			p.bad(Problem{BadJSON, i, end, "the arguments are not a JSON object"})
			return end
		}
		p.add([]Call{p.fitted(Call{Name: name, Arguments: arguments, Repairs: repairs})}, i, end)
		return end
	}
	p.add([]Call{p.fitted(Call{Name: name, Arguments: value})}, i, end)
	return end
}

// run reads JSON calls without closing tags, from text[at:] on: one, or several
// with a semicolon, a comma or white space between them. i is where the first
// one begins, its tag included.
func (k jsonCalls) run(p *tagParser, i, at int) int {
	for {
		end, ok := k.one(p, i, at)
		if !ok {
			return end
		}
		next := skipBlanks(p.text, end)
		if next < len(p.text) && (p.text[next] == ';' || p.text[next] == ',') {
			next = skipBlanks(p.text, next+1)
		}
		if next >= len(p.text) || !composite(p.text[next:]) {
			return end
		}
		i, at = next, next
	}
}

// one reads one value of a run. ok says that it was a call.
func (k jsonCalls) one(p *tagParser, i, at int) (end int, ok bool) {
	value, size, err := p.json.read(p.text[at:])
	end = at + size
	var calls []Call
	var problem Problem
	if err == nil {
		calls, problem = p.calls(value)
	} else {
		n, whole := extent(p.text[at:])
		switch {
		case err == errNoEnd || !whole:
			p.bad(Problem{UnclosedCall, i, len(p.text), "the JSON has no end"})
			return len(p.text), false
		case p.Strict:
			problem = Problem{Kind: BadJSON, Message: err.Error()}
		default:
			if calls, ok = p.mended(p.text[at : at+n]); !ok {
				problem = Problem{Kind: BadJSON, Message: err.Error()}
			}
		}
		end = at + n
	}
	if problem.Kind != "" && i == at && problem.Kind != BadJSON { // JSON that is no call: an answer
		return at, false
	}
	p.complete(calls, problem, i, end)
	return end, problem.Kind == ""
}

// mended reads calls from a text with a known end that is not quite JSON.
func (r *reader) mended(text string) ([]Call, bool) {
	if r.Strict {
		return nil, false
	}
	if calls, ok := r.sequence(text); ok {
		return repaired(calls, RepairNesting), true
	}
	if b := r.Call.Body; b.Open != "" {
		if before, rest, found := strings.Cut(text, b.Open); found {
			return r.mendedBody(before, rest)
		}
	}
	if calls, ok := r.foreignCalls(text); ok {
		return calls, true
	}
	value, repairs, ok := r.mend(text)
	if !ok {
		return nil, false
	}
	calls, problem := r.calls(value)
	return repaired(calls, repairs...), problem.Kind == "" && len(calls) > 0
}

// sequence reads several JSON values one after the other.
func (r *reader) sequence(text string) ([]Call, bool) {
	var out []Call
	n := 0
	for at := skipBlanks(text, 0); at < len(text); n++ {
		value, size, err := r.json.read(text[at:])
		if err != nil || kindOf(value) != "object" {
			return nil, false
		}
		calls, problem := r.calls(value)
		if problem.Kind != "" {
			return nil, false
		}
		out = append(out, calls...)
		if at = skipBlanks(text, at+size); at < len(text) && (text[at] == ',' || text[at] == ';') {
			at = skipBlanks(text, at+1)
		}
	}
	return out, n > 1
}

// mendedBody reads a call with a body whose JSON is not as it should be.
func (r *reader) mendedBody(before, rest string) ([]Call, bool) {
	b := r.Call.Body
	body, after, found := strings.Cut(rest, b.Close)
	if !found {
		return nil, false
	}
	if strings.TrimSpace(before) == "" && strings.TrimSpace(after) != "" {
		before = after
	}
	calls, ok := r.mended(before)
	if value := json.RawMessage(strings.TrimSpace(before)); !ok && json.Valid(value) {
		var problem Problem
		calls, problem = r.calls(value)
		ok = problem.Kind == ""
	}
	if !ok && b.Tool != "" {
		calls, ok = []Call{{Name: b.Tool, Arguments: json.RawMessage("{}"), Repairs: []Repair{RepairName}}}, true
	}
	if !ok {
		return nil, false
	}
	return repaired(r.withBody(calls, body), RepairAround), true
}

// withBody gives the last of the calls a body as an argument.
func (r *reader) withBody(calls []Call, body string) []Call {
	if len(calls) == 0 {
		return calls
	}
	c := &calls[len(calls)-1]
	keys, _ := object(c.Arguments)
	if keys == nil {
		keys = map[string]json.RawMessage{}
	}
	body = strings.TrimRight(strings.TrimPrefix(strings.TrimPrefix(body, "\r"), "\n"), blanks)
	keys[r.Call.Body.Argument], _ = encode(body)
	if arguments, err := encode(keys); err == nil {
		c.Arguments = arguments
	}
	return calls
}

// unopened reads the call that ends in the closing tag at text[i:] and has no
// opening one.
func (p *tagParser) unopened(i int) int {
	end := i + len(p.Call.Close)
	before := p.text[p.plainAt:i]
	if n := strings.IndexAny(before, "{["); n >= 0 && p.counts() && !p.inThink {
		if calls, ok := p.mendedOrWhole(before[n:]); ok && p.offered(calls) {
			p.rest = p.rest[:len(p.rest)-len(before[n:])]
			p.add(repaired(calls, RepairOpen), p.plainAt+n, end)
			return end
		}
	}
	p.write(p.Call.Close)
	return end
}

// mendedOrWhole reads calls from JSON, mended where it must be.
func (r *reader) mendedOrWhole(text string) ([]Call, bool) {
	if value := json.RawMessage(strings.TrimSpace(text)); len(value) <= maxRepair && json.Valid(value) && depth(value) <= maxDepth {
		calls, problem := r.calls(value)
		return calls, problem.Kind == "" && len(calls) > 0
	}
	return r.mended(text)
}

// offered reports whether all the calls are of offered tools.
func (r *reader) offered(calls []Call) bool {
	for _, c := range calls {
		if _, ok := r.tool(c.Name); !ok {
			return false
		}
	}
	return len(calls) > 0
}

// skipBlanks gives the place of the first character from offset at on that is
// not white space.
func skipBlanks(text string, at int) int {
	return len(text) - len(strings.TrimLeft(text[at:], blanks))
}
