package template

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// A Reading is what Parse knows beside the text.
type Reading struct {
	// InThink says that the turn began inside the thinking part: f.Think.Opened
	// for the first one, then StartsInThink.
	InThink bool
	// Tools are those that were offered. A call of another name is listed, with
	// the problem UnknownTool. Without tools no name is looked at.
	Tools []Tool
	// Ended says that the text is whole: a stop criterion ended the call, so that
	// arguments without an end are not cut but badly spelled.
	Ended bool
	// Cut says that the text was cut at a limit of length: what ends where it
	// ends may have been meant to go on, also where that does not show.
	Cut bool
	// Strict reads only what is spelled as the format asks; nothing is repaired.
	Strict bool
	// foreign says that the text is read in another format's spelling than its
	// own, and in no third one.
	foreign bool
	budget  *budget
}

// A reader reads the calls of one turn.
type reader struct {
	*Format
	Reading
}

// Keys that models use where a format has others, the likeliest first.
var (
	usualNames     = []string{"name", "tool", "tool_name", "function", "function_name", "action", "api", "command", "recipient_name", "名称", "工具", "函数"}
	usualArguments = []string{
		"arguments", "parameters", "args", "input", "action_input", "tool_input", "params", "parameter", "kwargs",
		"argument", "tool_args", "inputs", "参数",
	}
	// envelopes are keys around a whole call.
	envelopes = []string{"function", "tool_call", "function_call", "call", "tool_calls", "calls"}
)

// calls reads the calls that a JSON value spells: mostly one. A problem has a
// kind where there is none, and never an offset.
func (r *reader) calls(value json.RawMessage) ([]Call, Problem) {
	var list []json.RawMessage
	if kindOf(value) == "array" && (!r.Strict || r.Call.List) && json.Unmarshal(value, &list) == nil && len(list) > 0 {
		var out []Call
		for _, e := range list {
			if !r.budget.step() {
				return nil, Problem{Kind: BadJSON, Message: "more calls than a turn may have"}
			}
			calls, problem := r.calls(e)
			if problem.Kind != "" {
				return nil, problem
			}
			out = append(out, calls...)
		}
		if !r.Call.List {
			repaired(out, RepairNesting)
		}
		return out, Problem{}
	}
	call, problem := r.Call.decode(value)
	spelled := problem.Kind == ""
	if !r.Strict {
		if spelled {
			call = r.beside(call, value)
		}
		if !spelled || r.doubtful(value) {
			if loose, ok := r.loosely(value); ok {
				return loose, Problem{}
			}
		}
	}
	if !spelled {
		return nil, problem
	}
	return []Call{r.fitted(call)}, Problem{}
}

// beside takes arguments into the call that stand beside its others.
func (r *reader) beside(call Call, value json.RawMessage) Call {
	tool, ok := r.anyTool(call.Name)
	keys, _ := object(value)
	if _, given := first(keys, r.Call.Arguments); !ok || !given {
		return call
	}
	var arguments map[string]json.RawMessage
	for key := range r.budget.parameters(tool) {
		v, there := keys[key]
		if !there || key == "id" || key == "type" || slices.Contains(r.Call.Name, key) || slices.Contains(r.Call.Arguments, key) {
			continue
		}
		if arguments == nil {
			arguments, _ = object(call.Arguments)
		}
		if _, twice := arguments[key]; !twice {
			arguments[key] = v
			call.Repairs = appendOnce(call.Repairs, RepairArguments)
		}
	}
	if len(call.Repairs) > 0 {
		call.Arguments, _ = encode(arguments) // valid values always encode
	}
	return call
}

// doubtful reports whether a call that reads well leaves out arguments: they
// stand beside the name.
func (r *reader) doubtful(value json.RawMessage) bool {
	keys, _ := object(value)
	_, given := first(keys, r.Call.Arguments)
	return !given && len(keys) > 1
}

// fitted gives the call with its name and its arguments as the tools spell them.
func (r *reader) fitted(call Call) Call {
	if r.Strict {
		return call
	}
	tool, ok := r.tool(call.Name)
	if !ok {
		if near, found := r.nearTool(call.Name); found {
			tool, ok = near, true
			call.Name, call.Repairs = near.Name, appendOnce(call.Repairs, RepairName)
		}
	}
	if ok {
		known := r.budget.parameters(tool)
		call = plainArguments(known, unnested(tool.Name, known, call))
		var changed bool
		if call.Arguments, changed = coerce(known, call.Arguments); changed && r.Call.Kind != XMLCalls && r.Call.Kind != TagCalls {
			call.Repairs = appendOnce(call.Repairs, RepairTypes)
		}
	}
	return call
}

// tool gives the offered tool of that name.
func (r *reader) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return r.Tools[i], true
}

// anyTool gives the offered tool that a name means.
func (r *reader) anyTool(name string) (Tool, bool) {
	if tool, ok := r.tool(name); ok {
		return tool, true
	}
	return r.nearTool(name)
}

// known reports whether a name means an offered tool.
func (r *reader) known(name string) bool {
	_, ok := r.anyTool(name)
	return ok
}

// nearTool gives the one offered tool that a name spells with other case,
// punctuation, or words around it: functions.search, Search(), "search tool".
func (r *reader) nearTool(name string) (Tool, bool) {
	if len(name) > maxName {
		return Tool{}, false
	}
	name, _, _ = strings.Cut(name, "(")
	if bare := strings.TrimRight(name, "0123456789"); strings.HasSuffix(bare, ":") { // search:0
		name = bare[:len(bare)-1]
	}
	if i := strings.LastIndexAny(name, ".:/"); i >= 0 && i < len(name)-1 {
		if t, ok := r.nearTool(name[i+1:]); ok {
			return t, true
		}
	}
	for _, bare := range []string{letters(name), letters(without(strings.Fields(name), fillers)), letters(without(parts(name), fillers[:4]))} {
		var found []Tool
		for _, t := range r.Tools {
			if bare != "" && letters(t.Name) == bare {
				found = append(found, t)
			}
		}
		if len(found) == 1 {
			return found[0], true
		}
	}
	return Tool{}, false
}

// fillers are words around a name, the first four also within it: search_tool;
// the others in a sentence: "Use the search tool".
var fillers = []string{"tool", "function", "action", "api", "use", "using", "call", "run", "the", "a", "i", "will"}

// without joins the words that are not in the list.
func without(words, list []string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return slices.Contains(list, strings.ToLower(w)) }), "")
}

// parts splits a name into words: at punctuation and before capitals.
func parts(name string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(name, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		from := 0
		for i, c := range word {
			if i > from && unicode.IsUpper(c) {
				out, from = append(out, word[from:i]), i
			}
		}
		out = append(out, word[from:])
	}
	return out
}

// letters gives the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, name)
}

// loosely reads an object that is a call in another shape than the format's.
func (r *reader) loosely(value json.RawMessage) ([]Call, bool) {
	keys, ok := object(value)
	if !ok {
		return nil, false
	}
	keys, respelled := r.plainKeys(keys)
	calls, ok := r.enveloped(keys)
	if respelled {
		repaired(calls, RepairKeys)
	}
	return calls, ok
}

// enveloped reads a call from keys that are spelled as usual.
func (r *reader) enveloped(keys map[string]json.RawMessage) ([]Call, bool) {
	for _, key := range envelopes {
		inner, ok := keys[key]
		if k := kindOf(inner); !ok || k != "object" && k != "array" {
			continue
		}
		if calls, problem := r.calls(inner); problem.Kind == "" {
			return repaired(calls, RepairNesting), true
		}
	}
	if call, ok := r.otherKeys(keys); ok {
		return []Call{r.fitted(call)}, true
	}
	if call, ok := r.nameAsKey(keys); ok {
		return []Call{r.fitted(call)}, true
	}
	return nil, false
}

// plainKeys spells the keys of a call as usual: "Name" is "name".
func (r *reader) plainKeys(keys map[string]json.RawMessage) (_ map[string]json.RawMessage, changed bool) {
	out := maps.Clone(keys)
	for _, list := range [][]string{r.Call.Name, r.Call.Arguments, usualNames, usualArguments, envelopes} {
		for _, usual := range list {
			for key, value := range keys {
				if _, taken := out[usual]; !taken && letters(key) == letters(usual) {
					out[usual], changed = value, true
					delete(out, key)
				}
			}
		}
	}
	return out, changed
}

// otherKeys reads a call whose keys are not the format's, or whose arguments
// are no object.
func (r *reader) otherKeys(keys map[string]json.RawMessage) (Call, bool) {
	var call Call
	nameKey := ""
	for _, key := range append(slices.Clip(r.Call.Name), usualNames...) {
		if raw, ok := keys[key]; ok && json.Unmarshal(raw, &call.Name) == nil && strings.TrimSpace(call.Name) != "" {
			nameKey = key
			break
		}
	}
	if nameKey == "" {
		return Call{}, false
	}
	call.Name = strings.TrimSpace(call.Name)
	if !slices.Contains(r.Call.Name, nameKey) {
		call.Repairs = appendOnce(call.Repairs, RepairKeys)
	}
	argumentsKey := ""
	for _, key := range append(slices.Clip(r.Call.Arguments), usualArguments...) {
		if _, ok := keys[key]; ok && key != nameKey {
			argumentsKey = key
			break
		}
	}
	if argumentsKey == "" {
		argumentsKey = r.misspelt(call.Name, nameKey, keys)
	}
	rest := map[string]json.RawMessage{}
	for k, v := range keys {
		if k != nameKey && k != argumentsKey && k != "type" && k != "id" && k != "call_id" {
			rest[k] = v
		}
	}
	if argumentsKey == "" || r.isParameter(call.Name, argumentsKey) && kindOf(keys[argumentsKey]) != "object" {
		if argumentsKey != "" {
			rest[argumentsKey] = keys[argumentsKey]
		}
		return r.flat(call, rest, keys)
	}
	if !slices.Contains(r.Call.Arguments, argumentsKey) {
		call.Repairs = appendOnce(call.Repairs, RepairKeys)
	}
	arguments, repairs, ok := r.arguments(call.Name, keys[argumentsKey])
	if !ok {
		return Call{}, false
	}
	call.Arguments = arguments
	call.Repairs = appendOnce(call.Repairs, repairs...)
	return call, true
}

// misspelt gives the key of the arguments where it is none of the usual ones:
// the only other key, with an object that is no argument of the tool.
func (r *reader) misspelt(name, nameKey string, keys map[string]json.RawMessage) string {
	found := ""
	for k, v := range keys {
		switch {
		case k == nameKey || k == "type" || k == "id" || k == "call_id":
		case found != "" || kindOf(v) != "object" || r.isParameter(name, k):
			return ""
		default:
			found = k
		}
	}
	return found
}

// usual reads JSON calls with the usual keys.
func (r *reader) usual() *reader {
	f := *r.Format
	if f.Call.Kind != JSONCalls {
		f.Call = Spelling{Kind: JSONCalls, Open: r.Call.Open, Close: r.Call.Close, Name: usualNames[:1], Arguments: usualArguments[:2]}
	}
	other := &reader{Format: &f, Reading: r.Reading}
	other.foreign = true
	return other
}

// isParameter reports whether a key is an argument of the tool itself.
func (r *reader) isParameter(name, key string) bool {
	tool, _ := r.anyTool(name)
	_, is := r.budget.parameters(tool)[key]
	return is
}

// flat reads a call whose arguments stand beside its name.
func (r *reader) flat(call Call, rest, keys map[string]json.RawMessage) (Call, bool) {
	if tool, known := r.tool(call.Name); known { // "type" and "id" may be arguments
		for k := range r.budget.parameters(tool) {
			if v, ok := keys[k]; ok && !slices.Contains(r.Call.Name, k) {
				rest[k] = v
			}
		}
	}
	arguments, err := encode(rest)
	if err != nil {
		return Call{}, false
	}
	call.Arguments = arguments
	if len(rest) > 0 {
		call.Repairs = appendOnce(call.Repairs, RepairArguments)
	}
	return call, true
}

// single is an object of one key.
func single(key string, value json.RawMessage) json.RawMessage {
	out, err := encode(map[string]json.RawMessage{key: value})
	if err != nil { // value is valid
		panic(fmt.Sprintf("template: %v", err))
	}
	return out
}

// nameAsKey reads {"search": {…}}.
func (r *reader) nameAsKey(keys map[string]json.RawMessage) (Call, bool) {
	if len(keys) != 1 {
		return Call{}, false
	}
	for key, raw := range keys {
		tool, ok := r.tool(key)
		if !ok {
			return Call{}, false
		}
		arguments, repairs, ok := r.arguments(tool.Name, raw)
		if !ok {
			return Call{}, false
		}
		return Call{Name: tool.Name, Arguments: arguments, Repairs: append([]Repair{RepairNesting}, repairs...)}, true
	}
	return Call{}, false
}

// appendOnce adds what the list has not.
func appendOnce(list []Repair, more ...Repair) []Repair {
	list = slices.Clip(list)
	for _, r := range more {
		if !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return list
}

// repaired notes a repair of all the calls.
func repaired(calls []Call, done ...Repair) []Call {
	for i := range calls {
		calls[i].Repairs = appendOnce(calls[i].Repairs, done...)
	}
	return calls
}
