package template

import (
	"encoding/json"
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
		if !strings.HasPrefix(p.text[at:], p.Call.Name[0]) {
			return k.other(p, i, body)
		}
		at += len(p.Call.Name[0])
	} else if p.Strict {
		p.write(tag)
		return body
	}
	x := xmlReader{p: p, at: at}
	call, problem := x.call()
	end := x.at
	if wrapped {
		after := skipBlanks(p.text, end)
		if strings.HasPrefix(p.text[after:], p.Call.Close) {
			end = after + len(p.Call.Close)
		} else if problem.Kind == "" {
			if p.Strict {
				problem = Problem{Kind: UnclosedCall, Message: "the call has no closing tag"}
			}
			call.Repairs = withRepair(call.Repairs, RepairClose)
		}
	} else {
		call.Repairs = withRepair(call.Repairs, RepairOpen)
		if after := skipBlanks(p.text, end); strings.HasPrefix(p.text[after:], p.Call.Close) {
			end = after + len(p.Call.Close)
		}
	}
	if problem.Kind == UnclosedCall && !p.counts() {
		p.write(p.text[i:body]) // a mention
		return body
	}
	p.complete([]Call{p.fitted(call)}, problem, i, end)
	return end
}

// other reads what stands between the tags and is no function: JSON, as other
// models write it, or nothing that is a call.
func (xmlCalls) other(p *tagParser, i, body int) int {
	closing, next := p.tags.index(p.Call.Close, body), p.tags.index(p.Call.Open, body)
	if closing < next && p.counts() {
		if calls, ok := p.mendedJSON(p.text[body:closing]); ok {
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

// mendedJSON reads a call as JSON with the usual keys.
func (r *reader) mendedJSON(text string) ([]Call, bool) {
	if r.Strict {
		return nil, false
	}
	usual := *r.Format
	usual.Call = Spelling{Kind: JSONCalls, Open: r.Call.Open, Close: r.Call.Close, Name: usualNames[:1], Arguments: usualArguments[:2]}
	other := reader{Format: &usual, Reading: r.Reading}
	return other.mendedOrWhole(strings.TrimSpace(text))
}

// An xmlReader reads one call.
type xmlReader struct {
	p  *tagParser
	at int
}

// call reads from behind "<function=" on, up to and with its closing tag.
func (x *xmlReader) call() (call Call, problem Problem) {
	name, ok := x.attribute()
	if !ok {
		return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
	}
	call = Call{Name: name}
	if name == "" {
		problem = Problem{Kind: MissingName, Message: "the call does not say which tool"}
	}
	tool, known := x.p.tool(name)
	if !known {
		tool, _ = x.p.nearTool(name)
	}
	known2 := tool.parameters()
	var keys []string
	values := map[string]json.RawMessage{}
	closeName, argument := closingOf(x.p.Call.Name[0]), x.p.Call.Arguments[0]
	for {
		rest := strings.TrimLeft(x.p.text[x.at:], blanks)
		x.at = len(x.p.text) - len(rest)
		switch {
		case strings.HasPrefix(rest, argument):
			x.at += len(argument)
			key, value, closed, ok := x.value()
			if !ok {
				return call, Problem{Kind: UnclosedCall, Message: "a parameter has no end"}
			}
			if !closed {
				call.Repairs = withRepair(call.Repairs, RepairClose)
			}
			if _, twice := values[key]; !twice {
				keys = append(keys, key)
			}
			values[key] = known2[key].fromText(value)
		case strings.HasPrefix(rest, closeName):
			x.at += len(closeName)
			call.Arguments = ordered(keys, values)
			return call, problem
		case !x.p.Strict && (strings.HasPrefix(rest, x.p.Call.Close) || rest == "" && len(keys) > 0):
			call.Arguments = ordered(keys, values)
			call.Repairs = withRepair(call.Repairs, RepairClose)
			return call, problem
		case rest == "":
			return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
		default:
			return x.stray(call, keys, values, rest)
		}
	}
}

// stray handles text where a parameter is expected: JSON arguments, or nothing
// that can be read.
func (x *xmlReader) stray(call Call, keys []string, values map[string]json.RawMessage, rest string) (Call, Problem) {
	end, found := x.end()
	inner := strings.TrimSpace(rest[:max(0, end-x.at)])
	x.at = end
	if !found {
		return call, Problem{Kind: UnclosedCall, Message: "the call has no end"}
	}
	call.Arguments = ordered(keys, values)
	if !x.p.Strict && len(keys) == 0 && composite(inner) {
		value := json.RawMessage(inner)
		if !json.Valid(value) {
			value, _, _ = x.p.mend(inner)
		}
		if _, ok := object(value); ok {
			call.Arguments, call.Repairs = value, withRepair(call.Repairs, RepairSpelling)
			return call, Problem{}
		}
	}
	if !x.p.Strict && len(keys) > 0 {
		call.Repairs = withRepair(call.Repairs, RepairAround)
		return call, Problem{}
	}
	return call, Problem{Kind: BadJSON, Message: "text where a parameter is expected"}
}

// end gives the place behind the function's closing tag, or where the call's stands.
func (x *xmlReader) end() (int, bool) {
	closeName := closingOf(x.p.Call.Name[0])
	n := strings.Index(x.p.text[x.at:], closeName)
	m := strings.Index(x.p.text[x.at:], x.p.Call.Close)
	switch {
	case n >= 0 && (m < 0 || n < m):
		return x.at + n + len(closeName), true
	case m >= 0:
		return x.at + m, true
	}
	return len(x.p.text), false
}

// attribute reads up to the ">" that ends a tag, on one line.
func (x *xmlReader) attribute() (string, bool) {
	n := strings.IndexAny(x.p.text[x.at:], ">\n")
	if n < 0 {
		return "", false
	}
	name := strings.Trim(x.p.text[x.at:x.at+n], " \t\"'/")
	x.at += n + 1
	return name, true
}

// value reads a parameter from behind "<parameter=" on. closed is false where
// its closing tag is missing and something else ends it.
func (x *xmlReader) value() (key, value string, closed, ok bool) {
	if key, ok = x.attribute(); !ok {
		return "", "", false, false
	}
	closing, argument := closingOf(x.p.Call.Arguments[0]), x.p.Call.Arguments[0]
	closeName := closingOf(x.p.Call.Name[0])
	text := x.p.text[x.at:]
	end, after := -1, 0
	// A closing tag ends the value where another parameter or the end of the
	// call follows; elsewhere it is part of the value.
	for from := 0; ; {
		n := strings.Index(text[from:], closing)
		if n < 0 {
			break
		}
		rest := strings.TrimLeft(text[from+n+len(closing):], blanks)
		if end < 0 {
			end, after = from+n, from+n+len(closing)
		}
		if strings.HasPrefix(rest, argument) || strings.HasPrefix(rest, closeName) || strings.HasPrefix(rest, x.p.Call.Close) {
			end, after = from+n, from+n+len(closing)
			break
		}
		if stop := strings.Index(text, closeName); stop >= 0 && stop < from+n || strings.HasPrefix(rest, "<") {
			break
		}
		from += n + len(closing)
	}
	closed = end >= 0
	if i := strings.Index(text, "\n"+argument); i >= 0 && (end < 0 || i < end) && !x.p.Strict {
		end, after, closed = i, i+1, false
	}
	if i := strings.Index(text, closeName); end < 0 && i >= 0 && !x.p.Strict {
		end, after = i, i
	}
	if end < 0 {
		return "", "", false, false
	}
	x.at += after
	value = strings.TrimPrefix(text[:end], "\n")
	return key, strings.TrimSuffix(value, "\n"), closed, true
}

// ordered is an object with its keys in order.
func ordered(keys []string, values map[string]json.RawMessage) json.RawMessage {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pythonString(k) + ": ")
		b.Write(values[k])
	}
	b.WriteByte('}')
	return json.RawMessage(b.String())
}
