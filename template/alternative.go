package template

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// mended reads calls from a text with a known end that is not quite JSON: what
// stands between the tags, or a value with its brackets.
func (r *reader) mended(text string) ([]Call, bool) {
	if r.Strict {
		return nil, false
	}
	for _, read := range []func(*reader, string) ([]Call, bool){
		(*reader).sequence, (*reader).bodied, (*reader).quotedCall, (*reader).nameFirst, (*reader).pythonic, (*reader).foreignCalls, (*reader).elements, (*reader).pairs, (*reader).almostJSON, (*reader).unbraced, (*reader).yaml,
	} {
		if calls, ok := read(r, text); ok && len(calls) > 0 {
			return calls, true
		}
	}
	return nil, false
}

// alternatives reads what stands between the tags of a format whose calls are no
// JSON, as JSON with the usual keys.
func (r *reader) alternatives(text string) ([]Call, bool) {
	if r.Strict {
		return nil, false
	}
	return r.usual().mendedOrWhole(strings.TrimSpace(text))
}

// mendedOrWhole reads calls from JSON, mended where it must be.
func (r *reader) mendedOrWhole(text string) ([]Call, bool) {
	if value := json.RawMessage(strings.TrimSpace(text)); len(value) <= maxRepair && json.Valid(value) && depth(value) <= maxDepth {
		calls, problem := r.calls(value)
		return calls, problem.Kind == "" && len(calls) > 0
	}
	return r.mended(text)
}

// almostJSON reads what the repairs make JSON of.
func (r *reader) almostJSON(text string) ([]Call, bool) {
	var calls []Call
	_, repairs, ok := r.budget.mendTo(text, func(value json.RawMessage) bool {
		var problem Problem
		calls, problem = r.calls(value)
		return problem.Kind == "" && (len(r.Tools) == 0 || r.plausible(calls))
	})
	return repaired(calls, repairs...), ok
}

// plausible reports whether the calls have names as tools have them: a repair
// that guessed wrong leaves half of the call in the name.
func (r *reader) plausible(calls []Call) bool {
	return !slices.ContainsFunc(calls, func(c Call) bool {
		if keys, _ := object(c.Arguments); slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(key string) bool { return strings.ContainsAny(key, "\"{}[]\n") }) {
			return true
		}
		return len(c.Name) > maxTag || strings.ContainsAny(c.Name, "\"{}[]\n") || !r.known(c.Name) && strings.ContainsAny(c.Name, ",:'")
	})
}

// sequence reads several JSON values one after the other.
func (r *reader) sequence(text string) ([]Call, bool) {
	var out []Call
	n := 0
	for at := skipBlanks(text, 0); at < len(text); n++ {
		value, size, err := r.budget.readJSON(text[at:])
		if err != nil || kindOf(value) != "object" || !r.budget.step() {
			return nil, false
		}
		calls, problem := r.calls(value)
		if problem.Kind != "" {
			return nil, false
		}
		out = append(out, calls...)
		at = skipSeparator(text, at+size)
	}
	return repaired(out, RepairNesting), n > 1
}

// quotedCall reads a call that is a JSON string as a whole.
func (r *reader) quotedCall(text string) ([]Call, bool) {
	var inner string
	if !strings.HasPrefix(strings.TrimSpace(text), `"`) || json.Unmarshal([]byte(text), &inner) != nil || !composite(strings.TrimSpace(inner)) {
		return nil, false
	}
	calls, ok := r.mendedOrWhole(inner)
	return repaired(calls, RepairNesting), ok
}

// nameFirst reads the name of an offered tool and its arguments as JSON behind it,
// perhaps in a fence or in parentheses.
func (r *reader) nameFirst(text string) ([]Call, bool) {
	head := text[:min(len(text), maxName)]
	i := strings.IndexAny(head, "{[")
	if strings.HasPrefix(head[max(i, 0):], argsMark) {
		i += len(argsMark) + strings.IndexAny(head[i+len(argsMark):], "{[")
	}
	if i <= 0 {
		return nil, false
	}
	name, _, _ := strings.Cut(strings.TrimSpace(head[:i]), "\n"+fenceMark)
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(name), argsMark), r.Call.Between)
	name = strings.TrimRight(name, "(: \t\n")
	tool, ok := r.anyTool(name)
	value := text[i:]
	if e := r.budget.measure(value); !ok || !e.closed || strings.Trim(value[e.end:], ")`; \t\r\n") != "" {
		return nil, false
	}
	arguments, repairs, ok := r.mendedValue(strings.TrimRight(value, ")`; \t\r\n"))
	if !ok {
		return nil, false
	}
	arguments, more, ok := r.arguments(tool.Name, arguments)
	if !ok {
		return nil, false
	}
	call := Call{Name: name, Arguments: arguments, Repairs: appendOnce(repairs, more...)}
	return repaired([]Call{r.fitted(call)}, RepairSpelling), true
}

// argsMark is what Mistral's newer models write between name and arguments.
const argsMark = "[ARGS]"

// unbraced reads a call that lacks its first brace: its keys stand in lines, or
// behind one another.
func (r *reader) unbraced(text string) ([]Call, bool) {
	text = strings.TrimSpace(text)
	m := bareKeys.FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, "{") || !slices.Contains(usualNames, strings.ToLower(m[1])) && !slices.Contains(r.Call.Name, m[1]) {
		return nil, false
	}
	calls, ok := r.mendedOrWhole("{" + text)
	return repaired(calls, RepairBrackets), ok && r.offered(calls)
}

// yaml reads a call as lines: a name, and under the key of the arguments a line
// for each.
func (r *reader) yaml(text string) ([]Call, bool) {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	second, rest, _ := strings.Cut(rest, "\n")
	key, name, _ := strings.Cut(first, ":")
	tool, ok := r.anyTool(strings.Trim(name, " \t\"'"))
	if !ok || !slices.Contains(usualNames, strings.TrimSpace(key)) || !slices.Contains(usualArguments, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(second), ":"))) {
		return nil, false
	}
	arguments, ok := fromLines(r.budget.parameters(tool), rest)
	return repaired([]Call{r.fitted(Call{Name: tool.Name, Arguments: arguments})}, RepairSpelling), ok
}

// elements reads a call whose name and arguments are elements of XML:
// <name>search</name><arguments>{…}</arguments>.
func (r *reader) elements(text string) ([]Call, bool) {
	var d dict
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		m := childTag.FindStringSubmatch(text[:min(len(text), maxTag)])
		if m == nil || !r.budget.step() {
			return nil, false
		}
		inner, rest, found := strings.Cut(text[len(m[0]):], "</"+m[1]+">")
		if !found || strings.HasPrefix(strings.TrimSpace(inner), "<") {
			return nil, false
		}
		value := json.RawMessage(strings.TrimSpace(inner))
		if !composite(string(value)) || !json.Valid(value) {
			value, _ = encode(string(value)) // a text always encodes
		}
		d.set(m[1], value)
		text = rest
	}
	calls, ok := r.loosely(d.encode())
	return repaired(calls, RepairSpelling), ok && r.offered(calls)
}

// pairs reads a call as GLM spells it: the name, then <arg_key>query</arg_key>
// <arg_value>owl</arg_value> and so on.
func (r *reader) pairs(text string) ([]Call, bool) {
	name, rest, found := strings.Cut(text, "<arg_key>")
	tool, ok := r.anyTool(strings.TrimSpace(name))
	if !found || !ok {
		return nil, false
	}
	known := r.budget.parameters(tool)
	var d dict
	for more := true; more && r.budget.step(); _, rest, more = strings.Cut(rest, "<arg_key>") {
		key, after, ok := strings.Cut(rest, "</arg_key>")
		_, after, ok2 := strings.Cut(after, "<arg_value>")
		value, after, ok3 := strings.Cut(after, "</arg_value>")
		if !ok || !ok2 || !ok3 {
			return nil, false
		}
		key = strings.TrimSpace(key)
		d.set(key, known[key].fromText(value))
		rest = after
	}
	call := Call{Name: tool.Name, Arguments: d.encode()}
	return repaired([]Call{r.fitted(call)}, RepairSpelling), true
}

// mendedValue gives an object or a list that a text is, or was meant to be.
func (r *reader) mendedValue(text string) (json.RawMessage, []Repair, bool) {
	if value := json.RawMessage(strings.TrimSpace(text)); composite(string(value)) && json.Valid(value) {
		return value, nil, true
	}
	return r.budget.mend(text)
}

// pythonic reads calls as Python writes them.
func (r *reader) pythonic(text string) ([]Call, bool) {
	text = strings.TrimSpace(text)
	if head := text[:min(len(text), maxName)]; !r.closedPython(text) || !pythonCall.MatchString(head) && !pythonList.MatchString(head) {
		return nil, false
	}
	calls, ok := r.pythonMended(text)
	return repaired(calls, RepairSpelling), ok && r.offered(calls)
}

// bodied reads a call with a body: some of it is not as it should be.
func (r *reader) bodied(text string) ([]Call, bool) {
	b := r.Call.Body
	if b.Open == "" {
		return nil, false
	}
	before, rest, found := strings.Cut(text, b.Open)
	after := ""
	if found {
		rest, after, _ = strings.Cut(rest, b.Close)
	} else if before, rest, found = fencedBody(text); !found {
		return nil, false
	}
	if strings.TrimSpace(before) == "" && strings.TrimSpace(after) != "" {
		before = after
	}
	rest = unfenced(rest)
	calls, ok := []Call{{Name: b.Tool, Arguments: json.RawMessage("{}"), Repairs: []Repair{RepairName}}}, b.Tool != ""
	if some, read := r.mendedOrWhole(before); read {
		calls, ok = some, true
	}
	return repaired(r.withBody(calls, rest), RepairAround), ok
}

// fencedBody finds a code block behind a JSON value.
func fencedBody(text string) (before, body string, ok bool) {
	i := strings.Index(text, "{")
	if i < 0 {
		return "", "", false
	}
	e := measure(text[i:])
	rest := strings.TrimLeft(text[i+e.end:], blanks)
	if !strings.HasPrefix(rest, fenceMark) {
		return "", "", false
	}
	_, body, ok = strings.Cut(rest, "\n")
	body, _, closed := strings.Cut(body, "\n"+fenceMark)
	return text[:i+e.end], body, ok && closed
}

// unfenced takes the text out of a code block that it is as a whole.
func unfenced(text string) string {
	trimmed := strings.TrimSpace(text)
	inner, ok := strings.CutSuffix(trimmed, "\n"+fenceMark)
	_, inner, found := strings.Cut(inner, "\n")
	if !ok || !found || !strings.HasPrefix(trimmed, fenceMark) {
		return text
	}
	return inner
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

// offered reports whether all the calls are of offered tools.
func (r *reader) offered(calls []Call) bool {
	for _, c := range calls {
		if _, ok := r.tool(c.Name); !ok {
			return false
		}
	}
	return len(calls) > 0
}
