package template

import (
	"encoding/json"
	"regexp"
	"strings"
)

// xmlCalls reads calls whose name and arguments stand in tags and whose values
// are text:
//
//	<tool_call>
//	<function=search>
//	<parameter=query>
//	owl
//	</parameter>
//	</function>
//	</tool_call>
type xmlCalls struct{}

// The closing tags follow from the opening ones: "<function=" is closed by
// "</function>".
func closingOf(open string) string {
	return "</" + strings.TrimRight(strings.TrimLeft(open, "<"), "= ") + ">"
}

func (xmlCalls) opens(s Spelling) []string { return []string{s.Open, s.Name[0]} }

func (xmlCalls) bare(_ *tagParser, i int) int { return i }

func (k xmlCalls) read(p *tagParser, tag string, i int) int {
	body, wrapped := i+len(tag), tag == p.Call.Open
	at := body
	if wrapped {
		at = skipBlanks(p.text, body)
		switch rest := p.text[at:]; {
		case strings.HasPrefix(rest, p.Call.Name[0]):
			at += len(p.Call.Name[0])
		case !p.Strict && k.misnamed(p, rest):
			at += len(p.Call.Arguments[0])
		default:
			return k.other(p, i, body)
		}
	} else if p.Strict {
		p.write(tag)
		return body
	}
	x := xmlReader{p: p, at: at, limit: p.tags.index(p.Call.Open, at)}
	if !wrapped {
		x.limit = min(x.limit, p.tags.index(p.Call.Name[0], at))
	}
	call, problem := x.call()
	if limit := p.limit(p.Call.Open, at); problem.Kind == UnclosedCall && !p.Strict && limit < x.limit {
		x = xmlReader{p: p, at: at, limit: limit} // a response or an end token shows the end
		call, problem = x.call()
	}
	if call.Name == "" && problem.Kind == "" {
		problem = Problem{Kind: MissingName, Message: "the call does not say which tool"}
	}
	end := x.at
	after := skipBlanks(p.text, end)
	switch closed := strings.HasPrefix(p.text[after:], p.Call.Close); {
	case closed:
		end = after + len(p.Call.Close)
	case wrapped && p.Strict && problem.Kind == "":
		problem = Problem{Kind: UnclosedCall, Message: "the call has no closing tag"}
	case wrapped:
		call.Repairs = appendOnce(call.Repairs, RepairClose)
	}
	if !wrapped {
		call.Repairs = appendOnce(call.Repairs, RepairOpen)
	}
	if problem.Kind == UnclosedCall && !p.counts() {
		p.write(p.text[i:body]) // a mention
		return body
	}
	p.complete([]Call{p.fitted(call)}, problem, i, end)
	return end
}

// misnamed reports whether a call begins with <parameter=search>, the tag of an
// argument with the name of a tool.
func (xmlCalls) misnamed(p *tagParser, text string) bool {
	rest, ok := strings.CutPrefix(text, p.Call.Arguments[0])
	name, _, closed := strings.Cut(rest[:min(len(rest), maxName)], ">")
	return ok && closed && p.known(name)
}

// other reads what stands between the tags and is no function: JSON, as other
// models write it, or nothing that is a call.
func (xmlCalls) other(p *tagParser, i, body int) int {
	closing, next := p.tags.index(p.Call.Close, body), p.tags.index(p.Call.Open, body)
	if closing < next && p.counts() {
		if calls, ok := p.alternatives(p.text[body:closing]); ok {
			end := closing + len(p.Call.Close)
			p.add(repaired(calls, RepairSpelling), i, end)
			return end
		}
	}
	rest := strings.TrimSpace(p.text[body:])
	switch {
	case !p.counts() || next <= closing && rest != "" && !strings.HasPrefix(p.Call.Name[0], rest) && !composite(rest):
		p.write(p.Call.Open) // a mention
		return body
	case next <= closing:
		p.bad(Problem{UnclosedCall, i, next, "the call has no closing tag"})
		return next
	}
	end := closing + len(p.Call.Close)
	p.bad(Problem{MissingName, i, end, "the call does not say which tool"})
	return end
}

// An xmlReader reads one call.
type xmlReader struct {
	p     *tagParser
	at    int
	limit int // the next call, or a response, begins there
	known map[string]parameter
	dict  dict
}

// call reads from behind "<function=" on, up to and with its closing tag.
func (x *xmlReader) call() (Call, Problem) {
	var call Call
	var ok bool
	if call.Name, ok = x.attribute(); !ok {
		x.at = x.limit
		return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
	}
	tool, _ := x.p.anyTool(call.Name)
	x.known = x.p.budget.parameters(tool)
	for {
		x.at = skipBlanks(x.p.text, x.at)
		rest := x.p.text[x.at:]
		switch closeName := closingOf(x.p.Call.Name[0]); {
		case strings.HasPrefix(rest, x.p.Call.Arguments[0]):
			x.at += len(x.p.Call.Arguments[0])
			if !x.p.budget.step() {
				x.at = x.limit
				return call, Problem{Kind: BadJSON, Message: "more parameters than a turn may have"}
			}
			repairs, ok := x.parameter()
			if !ok {
				x.at = x.limit
				return call, Problem{Kind: UnclosedCall, Message: "a parameter has no end"}
			}
			call.Repairs = appendOnce(call.Repairs, repairs...)
		case strings.HasPrefix(rest, closeName):
			x.at += len(closeName)
			call.Arguments = x.dict.encode()
			return call, Problem{}
		case !x.p.Strict && (strings.HasPrefix(rest, x.p.Call.Close) || rest != "" && x.at >= x.limit):
			call.Arguments, call.Repairs = x.dict.encode(), appendOnce(call.Repairs, RepairClose)
			return call, Problem{}
		case rest == "":
			return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
		case !x.p.Strict && strings.HasPrefix(rest, closingOf(x.p.Call.Arguments[0])): // closed twice
			x.at += len(closingOf(x.p.Call.Arguments[0]))
			call.Repairs = appendOnce(call.Repairs, RepairTags)
		case !x.p.Strict && x.child():
			call.Repairs = appendOnce(call.Repairs, RepairTags)
		default:
			return x.stray(call)
		}
	}
}

// parameter reads a parameter from behind "<parameter=" on.
func (x *xmlReader) parameter() (repairs []Repair, ok bool) {
	key, ok := x.attribute()
	if !ok {
		return nil, false
	}
	end, after, ok := x.valueEnd()
	if !ok {
		return nil, false
	}
	if !strings.HasPrefix(x.p.text[end:], closingOf(x.p.Call.Arguments[0])) {
		repairs = []Repair{RepairClose}
	}
	x.set(key, x.p.text[x.at:end])
	x.at = after
	return repairs, true
}

func (x *xmlReader) set(key, value string) {
	value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
	x.dict.set(key, x.known[key].fromText(value))
}

// valueEnd gives the end of the value at hand and of its closing tag. A closing
// tag ends it where another parameter or the end of the call follows, elsewhere
// it is a part of it; if none does, the first one ends it.
func (x *xmlReader) valueEnd() (end, after int, ok bool) {
	tags, closing, argument := x.p.tags, closingOf(x.p.Call.Arguments[0]), x.p.Call.Arguments[0]
	closeName := closingOf(x.p.Call.Name[0])
	first := tags.index(closing, x.at)
	if !x.p.Strict { // the next parameter, or the end of the call, comes first
		next := min(tags.index("\n"+argument, x.at), tags.index("\n"+closeName, x.at))
		if first >= x.limit {
			next = min(next, tags.index(closeName, x.at), tags.index(x.p.Call.Close, x.at))
		}
		if next < min(first, x.limit) {
			return next, next, true
		}
	}
	stop := min(tags.index(closeName, x.at), x.limit)
	for c := first; c < x.limit; {
		next := skipBlanks(x.p.text, c+len(closing))
		for strings.HasPrefix(x.p.text[next:], closing) { // closed twice
			next = skipBlanks(x.p.text, next+len(closing))
		}
		x.p.budget.work += next - c
		rest := x.p.text[next:]
		if strings.HasPrefix(rest, argument) || strings.HasPrefix(rest, closeName) || strings.HasPrefix(rest, x.p.Call.Close) {
			return c, c + len(closing), true
		}
		if c > stop {
			break
		}
		c = tags.index(closing, next)
	}
	return first, first + len(closing), first < x.limit
}

// child reads an argument whose tag is its name: <city>Oslo</city>.
func (x *xmlReader) child() bool {
	m := childTag.FindStringSubmatch(x.p.text[x.at:min(len(x.p.text), x.at+maxTag)])
	if m == nil {
		return false
	}
	if _, ok := x.known[m[1]]; !ok {
		return false
	}
	from, closing := x.at+len(m[0]), "</"+m[1]+">"
	end := x.p.tags.index(closing, from)
	if end >= x.limit {
		return false
	}
	x.set(m[1], x.p.text[from:end])
	x.at = end + len(closing)
	return true
}

var childTag = regexp.MustCompile(`^<([\w-]+)>`)

// stray handles text where a parameter is expected: JSON arguments, or nothing
// that can be read.
func (x *xmlReader) stray(call Call) (Call, Problem) {
	from := x.at
	closeName := closingOf(x.p.Call.Name[0])
	end := min(x.p.tags.index(closeName, from), x.p.tags.index(x.p.Call.Close, from), x.limit)
	if x.at = end; end == len(x.p.text) {
		return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
	}
	if strings.HasPrefix(x.p.text[end:], closeName) {
		x.at += len(closeName)
	}
	call.Arguments = x.dict.encode()
	inner := strings.TrimSpace(x.p.text[from:end])
	switch {
	case x.p.Strict:
	case len(x.dict.keys) > 0:
		call.Repairs = appendOnce(call.Repairs, RepairAround)
		return call, Problem{}
	case composite(inner):
		if value, repairs, ok := x.p.mendedValue(strings.TrimRight(inner, ") \n")); ok && kindOf(value) == "object" {
			call.Arguments, call.Repairs = value, appendOnce(call.Repairs, append(repairs, RepairSpelling)...)
			return call, Problem{}
		}
	}
	return call, Problem{Kind: BadJSON, Message: "text where a parameter is expected"}
}

// attribute reads up to the ">" that ends a tag, on one line. A parenthesis or a
// brace, behind which JSON stands, ends it as well.
func (x *xmlReader) attribute() (string, bool) {
	n := strings.IndexAny(x.p.text[x.at:x.limit], ">\n({")
	if n < 0 || x.p.Strict && strings.IndexByte("({", x.p.text[x.at+n]) >= 0 {
		return "", false
	}
	name := strings.Trim(x.p.text[x.at:x.at+n], " \t\"'/")
	if x.at += n; x.p.text[x.at] != '{' {
		x.at++
	}
	return name, true
}

// A dict is a JSON object with its keys in order; a key that is set again keeps
// its place and has the last value.
type dict struct {
	keys   []string
	values map[string]json.RawMessage
}

func (d *dict) set(key string, value json.RawMessage) {
	if d.values == nil {
		d.values = map[string]json.RawMessage{}
	}
	if _, twice := d.values[key]; !twice {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

func (d *dict) encode() json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pythonString(k) + ": ")
		b.Write(d.values[k])
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}
