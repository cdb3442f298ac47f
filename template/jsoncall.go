package template

import (
	"encoding/json"
	"regexp"
	"slices"
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
	value, size, err := p.value(body)
	if err == nil {
		if end, calls, problem, ok := k.closed(p, value, body+size); ok {
			if problem.Kind != "" {
				if other, ok := p.mended(p.text[body : end-len(p.Call.Close)]); ok {
					calls, problem = other, Problem{}
				}
			}
			if problem.Kind == "" && !p.Strict {
				calls, end = p.bodyBehind(calls, end)
			}
			p.complete(calls, problem, i, end)
			return end
		}
	}
	from := body
	if err == nil { // tags inside of the value are text
		from += size
	}
	next, closing := p.tags.index(tag, from), p.tags.index(p.Call.Close, from)
	switch {
	case !p.counts():
		p.write(tag) // a mention
		return body
	case err == errNoEnd && !p.Strict && p.budget.measure(p.text[body:]).quoted: // the tag stands in a string that is cut
		p.bad(Problem{UnclosedCall, i, len(p.text), "the JSON has no end"})
		return len(p.text)
	case next <= closing: // both are len(text) where there is neither
		return k.cut(p, i, body, p.limit(tag, from), err)
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

// value reads the JSON at text[at:], or JSON5 where the format has it.
func (p *tagParser) value(at int) (value json.RawMessage, size int, err error) {
	value, size, err = p.budget.readJSON(p.text[at:])
	start := skipBlanks(p.text, at)
	if err == nil || !p.Call.JSON5 || !composite(p.text[start:]) || p.budget.json5 {
		return value, size, err
	}
	e := p.budget.measurePython(p.text[start:min(len(p.text), start+maxRepair)])
	p.budget.json5 = !e.closed // it is looked for once at most where there is none
	text := p.text[start : start+e.end]
	if !e.closed || nesting(text) > maxRepairDepth {
		return value, size, err
	}
	if plain := json.RawMessage(fromJSON5(text)); json.Valid(plain) {
		return plain, start + e.end - at, nil
	}
	return value, size, err
}

// closed reads what follows a JSON value that ends at text[at:]: a body and the
// closing tag. ok is false where the closing tag is not there.
func (k jsonCalls) closed(p *tagParser, value json.RawMessage, at int) (end int, calls []Call, problem Problem, ok bool) {
	end = skipBlanks(p.text, at)
	body, hasBody := "", false
	if b := p.Call.Body; b.Open != "" && strings.HasPrefix(p.text[end:], b.Open) {
		from := end + len(b.Open)
		if n := p.tags.index(b.Close, from); n < len(p.text) {
			body, hasBody = p.text[from:n], true
			end = skipBlanks(p.text, n+len(b.Close))
		}
	}
	if !strings.HasPrefix(p.text[end:], p.Call.Close) {
		return 0, nil, Problem{}, false
	}
	calls, problem = p.calls(value)
	if hasBody && problem.Kind == "" {
		if code := unfenced(body); !p.Strict && code != body {
			body, calls = code, repaired(calls, RepairAround)
		}
		calls = p.withBody(calls, body)
	}
	return end + len(p.Call.Close), calls, problem, true
}

// lacking reports whether one of the calls has not all that its tool needs.
func (r *reader) lacking(calls []Call) bool {
	return slices.ContainsFunc(calls, func(c Call) bool {
		tool, _ := r.tool(c.Name)
		keys, _ := object(c.Arguments)
		return slices.ContainsFunc(tool.required(), func(name string) bool { return keys[name] == nil })
	})
}

// bodyBehind takes a body that stands behind the closing tag, at text[end:], into
// a call of the tool that has one.
func (p *tagParser) bodyBehind(calls []Call, end int) ([]Call, int) {
	b, at := p.Call.Body, skipBlanks(p.text, end)
	if b.Open == "" || len(calls) != 1 || calls[0].Name != b.Tool || string(calls[0].Arguments) != "{}" || !strings.HasPrefix(p.text[at:], b.Open) {
		return calls, end
	}
	n := p.tags.index(b.Close, at)
	if n == len(p.text) {
		return calls, end
	}
	return repaired(p.withBody(calls, p.text[at+len(b.Open):n]), RepairAround), n + len(b.Close)
}

// cut reads a call without a closing tag, at text[i:limit]. A value that is whole
// lacks only the tag. One that lacks its last brackets is made whole only where
// something follows, which shows that the model had come to the end of the call.
func (k jsonCalls) cut(p *tagParser, i, body, limit int, err error) int {
	inner := p.text[body:limit]
	at := strings.IndexAny(inner, "{[")
	if !p.Strict && at >= 0 && err != errTooDeep && err != errTooLarge {
		e := p.budget.measure(inner[at:])
		end := at + e.end
		switch rest := strings.TrimSpace(inner[end:]); {
		case strings.HasPrefix(rest, ","): // the object goes on
			e.closed = false
		case e.closed && p.Call.Body.Open != "" && strings.HasPrefix(rest, p.Call.Body.Open) && strings.HasSuffix(rest, p.Call.Body.Close):
			if calls, ok := p.bodied(inner); ok {
				p.add(repaired(calls, RepairClose), i, limit)
				return limit
			}
		case e.closed && p.Call.Body.Open != "" && (strings.HasPrefix(rest, p.Call.Body.Open)):
			e.closed = false // it is cut in the body
		case otherClose(rest):
			end = len(inner)
		}
		shown := limit < len(p.text) && !e.quoted // something shows the end
		if e.closed && !p.quoted.fenced || shown {
			if calls, ok := p.mendedOrWhole(inner[:at+e.end]); ok && (limit < len(p.text) || !p.lacking(calls)) {
				p.add(repaired(calls, RepairClose), i, body+end)
				return body + end
			}
		}
	}
	p.quoted.plain(p.text, body, limit) // the next call may stand in a code block
	p.bad(Problem{UnclosedCall, i, limit, "the call has no closing tag"})
	return limit
}

// misclosed finds what models write for a closing tag.
var misclosed = regexp.MustCompile(`^(?:<[/\\]?[|\w\s-]{1,24}/?\|?>?\s*|\[/?[A-Z_]{1,24}\]\s*)+$`)

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
		return p.named(i, name, from)
	}
	if !p.Strict && !composite(p.text[at:]) {
		if end := (pythonCalls{}).dotted(p, i, at); end > at {
			return end
		}
	}
	switch {
	case composite(p.text[at:]):
		return k.run(p, i, at)
	case word.FindString(p.text[at:min(len(p.text), at+maxTag)]) == p.text[at:]: // nothing, or a part of a name
		p.bad(Problem{UnclosedCall, i, len(p.text), "the call has no JSON"})
		return len(p.text)
	}
	p.write(p.text[i:body]) // a mention
	return body
}

// word finds what may be the name of a tool.
var word = regexp.MustCompile(`^[\w.-]*`)

// namedCall reads "name[ARGS]" at text[at:].
func (p *tagParser) namedCall(at int) (name string, from int, ok bool) {
	if p.Call.Between == "" {
		return "", 0, false
	}
	n := strings.Index(p.text[at:min(len(p.text), at+maxName)], p.Call.Between)
	if n <= 0 || strings.ContainsAny(p.text[at:at+n], "\n{") {
		return "", 0, false
	}
	name = p.text[at : at+n]
	if mark := strings.IndexAny(name, "[<"); mark >= 0 { // [CALL_ID] and an id, or other tokens
		name = name[:mark]
	}
	name = strings.TrimSpace(name)
	return name, at + n + len(p.Call.Between), name != ""
}

const maxName = 512 // bytes of the longest name of a tool

// named reads the call whose name is known and whose arguments stand at
// text[from:], and further ones behind a comma or a semicolon.
func (p *tagParser) named(i int, name string, from int) int {
	for {
		end := p.between(i, name, from)
		next := skipSeparator(p.text, end)
		if p.Strict || next == skipBlanks(p.text, end) {
			return end
		}
		var ok bool
		if name, from, ok = p.namedCall(next); !ok || !p.known(name) || !p.budget.step() {
			return end
		}
		i = next
	}
}

// between reads the arguments that follow a name, at text[from:].
func (p *tagParser) between(i int, name string, from int) int {
	call := Call{Name: name}
	value, size, err := p.budget.readJSON(p.text[from:])
	end := from + size
	if err != nil {
		limit := p.limit(p.Call.Open, from)
		e := p.budget.measure(p.text[from:limit])
		if !e.closed && (limit == len(p.text) || e.quoted || p.Strict) {
			p.bad(Problem{UnclosedCall, i, limit, "the arguments have no end"})
			return limit
		}
		end = from + e.end
		if mended, repairs, ok := p.budget.mend(p.text[from:end]); ok && !p.Strict {
			value, call.Repairs, err = mended, repairs, nil
		}
	}
	if err != nil {
		p.bad(Problem{BadJSON, i, end, err.Error()})
		return end
	}
	call.Arguments = value
	if _, ok := object(value); !ok {
		arguments, repairs, ok := p.arguments(name, value)
		if p.Strict || !ok {
			p.bad(Problem{BadJSON, i, end, "the arguments are not a JSON object"})
			return end
		}
		call.Arguments, call.Repairs = arguments, appendOnce(call.Repairs, repairs...)
	}
	p.add([]Call{p.fitted(call)}, i, end)
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
		next := skipSeparator(p.text, end)
		if and := strings.TrimPrefix(p.text[next:], "and"); !p.Strict && composite(strings.TrimLeft(and, blanks)) {
			next = skipBlanks(p.text, len(p.text)-len(and))
		}
		if next >= len(p.text) || !composite(p.text[next:]) || p.tags.here(next) || !p.budget.step() {
			return end
		}
		i, at = next, next
	}
}

// one reads one value of a run. ok says that it was a call.
func (k jsonCalls) one(p *tagParser, i, at int) (end int, ok bool) {
	value, size, err := p.budget.readJSON(p.text[at:])
	end = at + size
	var calls []Call
	var problem Problem
	if err == nil {
		calls, problem = p.calls(value)
	} else {
		limit := p.limit(p.Call.Open, at)
		e := p.budget.measure(p.text[at:limit])
		if !e.closed { // up to the next call, if there is one
			limit = at + p.budget.nextObject(p.text[at:limit])
			e = p.budget.measure(p.text[at:limit])
		}
		if text := strings.TrimRight(p.text[at:limit], blanks); e.open == "[" && !e.quoted && !p.Strict && strings.HasSuffix(text, "}") {
			if calls, ok := p.mendedOrWhole(text + "]"); ok { // all of the list's calls are there
				p.complete(repaired(calls, RepairBrackets), Problem{}, i, limit)
				return limit, true
			}
		}
		switch {
		case !e.closed && (limit == len(p.text) || e.quoted || p.Strict):
			p.bad(Problem{UnclosedCall, i, limit, "the JSON has no end"})
			return limit, false
		case p.Strict:
			problem = Problem{Kind: BadJSON, Message: err.Error()}
		default:
			if calls, ok = p.mended(p.text[at : at+e.end]); !ok {
				problem = Problem{Kind: BadJSON, Message: err.Error()}
			}
		}
		end = at + e.end
	}
	if problem.Kind != "" && i == at && problem.Kind != BadJSON { // JSON that is no call: an answer
		return at, false
	}
	p.complete(calls, problem, i, end)
	return end, problem.Kind == ""
}

// nextObject gives the place of a semicolon, outside of strings, behind which an
// object begins, or the end.
func (b *budget) nextObject(text string) int {
	b.work += len(text)
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ';' && !quoted && strings.HasPrefix(strings.TrimLeft(text[i+1:], blanks), "{"):
			return i
		}
	}
	return len(text)
}

// unopened reads the call that ends in the closing tag at text[i:] and has no
// opening one.
func (p *tagParser) unopened(i int) int {
	end := i + len(p.Call.Close)
	before := p.text[p.plainAt:i]
	if n := strings.IndexAny(before, "{["); n >= 0 && p.counts() && !p.inThink && !p.quoted.example(p, i) {
		if calls, ok := p.mendedOrWhole(before[n:]); ok && p.offered(calls) {
			p.rest = p.rest[:len(p.rest)-len(before[n:])]
			p.add(repaired(calls, RepairOpen), p.plainAt+n, end)
			return end
		}
	}
	p.write(p.Call.Close)
	return end
}

// skipBlanks gives the place of the first character from offset at on that is
// not white space.
func skipBlanks(text string, at int) int {
	return len(text) - len(strings.TrimLeft(text[at:], blanks))
}

// skipSeparator is skipBlanks, with a comma or a semicolon among the white space.
func skipSeparator(text string, at int) int {
	at = skipBlanks(text, at)
	if at < len(text) && (text[at] == ';' || text[at] == ',') {
		at = skipBlanks(text, at+1)
	}
	return at
}
