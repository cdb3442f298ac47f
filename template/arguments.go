package template

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// arguments makes an object of what stands for the arguments: an object, its
// text, nothing, a list, or the one value that the tool takes.
func (r *reader) arguments(name string, raw json.RawMessage) (json.RawMessage, []Repair, bool) {
	done := []Repair{RepairArguments}
	switch kindOf(raw) {
	case "object":
		return raw, nil, true
	case "null":
		return json.RawMessage("{}"), done, true
	case "string":
		var text string
		_ = json.Unmarshal(raw, &text) // it is a string
		return r.argumentsIn(name, text)
	case "array":
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list) // it is a list
		if len(list) == 0 {
			return json.RawMessage("{}"), done, true
		}
		if len(list) == 1 && kindOf(list[0]) == "object" {
			return list[0], done, true
		}
	}
	tool, known := r.anyTool(name)
	if key, p, ok := tool.only(r.budget); known && ok {
		if fitted, changed := p.fit(raw); changed || p.takes(kindOf(raw)) {
			return single(key, fitted), done, true
		}
	}
	return nil, nil, false
}

// keyValue finds arguments as Python writes them, key="value", key2=3; bareKeys
// finds those of a JSON object without its braces.
var (
	keyValue = regexp.MustCompile(`^([A-Za-z_]\w*)\s*=[^=]`)
	bareKeys = regexp.MustCompile(`^["'“]?([A-Za-z_]\w*)["'”]?\s*[:：]`)
)

// argumentsIn reads arguments that are a text: an object as JSON, in a fence or
// quoted twice; without its braces; key="value"; lines "key: value"; or the one
// value that the tool takes.
func (r *reader) argumentsIn(name, text string) (json.RawMessage, []Repair, bool) {
	done := []Repair{RepairArguments}
	text = strings.TrimSpace(text)
	if inner := strings.Trim(text, "`'"); len(inner) == len(text)-2 && composite(inner) { // '{"id": "7"}'
		text = inner
	}
	tool, known := r.anyTool(name)
	if text == "" || isNothing(text) {
		return json.RawMessage("{}"), done, known && len(tool.required()) == 0 || !known && text == ""
	}
	if i := strings.IndexAny(text, "{["); i == 0 || i > 0 && strings.HasPrefix(text, fenceMark) {
		if value, repairs, ok := r.mendedValue(text[i:]); ok {
			arguments, more, ok := r.arguments(name, value)
			return arguments, appendOnce(done, append(repairs, more...)...), ok
		}
		if i == 0 {
			return nil, nil, false
		}
	}
	var inner string
	if json.Unmarshal([]byte(text), &inner) == nil {
		if composite(strings.TrimSpace(inner)) {
			return r.argumentsIn(name, inner)
		}
		return r.onlyArgument(tool, known, inner)
	}
	if arguments, repairs, ok := r.keyed(tool, text); ok {
		return arguments, appendOnce(done, repairs...), true
	}
	if _, named := argumentKey(r.budget.parameters(tool), text); named { // not the value itself
		return nil, nil, false
	}
	return r.onlyArgument(tool, known, text)
}

// argumentKey gives the argument of the tool that a text begins with the name of.
func argumentKey(known map[string]parameter, text string) (key string, ok bool) {
	for _, pattern := range []*regexp.Regexp{keyValue, bareKeys} {
		if m := pattern.FindStringSubmatch(text); m != nil {
			_, ok = known[m[1]]
			return m[1], ok
		}
	}
	return "", false
}

// keyed reads arguments of the tool that stand behind their names, without braces.
func (r *reader) keyed(tool Tool, text string) (json.RawMessage, []Repair, bool) {
	known := r.budget.parameters(tool)
	if _, ok := argumentKey(known, text); !ok {
		return nil, nil, false
	}
	if keyValue.MatchString(text) {
		if calls, ok := r.pythonMended("f(" + text + ")"); ok && len(calls) == 1 {
			return calls[0].Arguments, calls[0].Repairs, true
		}
		if key, value, _ := strings.Cut(text, "="); !strings.ContainsAny(value, "=\n,\"'") { // id=doc-12
			return single(strings.TrimSpace(key), known[strings.TrimSpace(key)].fromText(strings.TrimSpace(value))), []Repair{RepairStrings}, true
		}
		return nil, nil, false
	}
	if arguments, ok := fromLines(known, text); ok {
		return arguments, nil, true
	}
	return r.mendedValue("{" + text + "}")
}

// fromLines reads arguments as lines, "key: value".
func fromLines(known map[string]parameter, text string) (json.RawMessage, bool) {
	var d dict
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		p, ok := known[strings.Trim(key, "-*` \t\"'")]
		if !found || !ok || strings.Contains(value, `":`) || strings.Contains(value, `": `) {
			return nil, false
		}
		d.set(strings.Trim(key, "-*` \t\"'"), p.fromText(strings.Trim(value, "\"'`,")))
	}
	return d.encode(), len(d.keys) > 0
}

// onlyArgument makes a text the value of the one argument that the tool takes.
func (r *reader) onlyArgument(tool Tool, known bool, text string) (json.RawMessage, []Repair, bool) {
	key, p, ok := tool.only(r.budget)
	if !known || !ok {
		return nil, nil, false
	}
	if !strings.Contains(text, "\n") {
		text = strings.Trim(text, "`'\"")
	}
	quoted, _ := encode(unfenced(text)) // a text always encodes
	fitted, changed := p.fit(quoted)
	if !changed && !p.takes("string") {
		return nil, nil, false
	}
	return single(key, fitted), []Repair{RepairArguments}, true
}

// isNothing reports whether a text says that there is none.
func isNothing(text string) bool {
	switch strings.ToLower(strings.Trim(text, "\"'`*()[]{}. \t\r\n")) {
	case "none", "null", "nil", "n/a", "na", "nothing", "-", "no input", "empty":
		return true
	}
	return false
}

// unnested takes arguments out of an object that stands around them: a copy of
// the tool's schema, the name of the tool, the key of the arguments once more.
func unnested(name string, known map[string]parameter, call Call) Call {
	keys, _ := object(call.Arguments)
	for key, inner := range keys {
		around := slices.Contains(usualArguments, key) || letters(key) == letters(name) || key == "properties"
		if _, own := known[key]; own || !around || kindOf(inner) != "object" {
			continue
		}
		for other := range keys {
			if other != key && other != "type" && other != "required" {
				return call
			}
		}
		call.Arguments, call.Repairs = inner, appendOnce(call.Repairs, RepairNesting)
		return call
	}
	return call
}

// plainArguments spells the names of arguments as the schema does, where they
// differ in case and punctuation alone.
func plainArguments(known map[string]parameter, call Call) Call {
	keys, _ := object(call.Arguments)
	renamed := false
	for key, value := range keys {
		if _, ok := known[key]; ok {
			continue
		}
		for name := range known {
			if _, taken := keys[name]; !taken && letters(name) == letters(key) {
				delete(keys, key)
				keys[name], renamed = value, true
			}
		}
	}
	if renamed {
		call.Arguments, _ = encode(keys) // valid values always encode
		call.Repairs = appendOnce(call.Repairs, RepairKeys)
	}
	return call
}

// unfinished reports whether a text at the end of a turn is cut: a bracket, a
// quote or a code block that it opens has no end.
func (b *budget) unfinished(text string) bool {
	switch {
	case strings.HasPrefix(text, fenceMark) || strings.Trim(text, "`") == "" && text != "":
		return !strings.HasSuffix(text, "\n"+fenceMark)
	case composite(text):
		return !b.measure(text).closed
	case strings.HasPrefix(text, "("), keyValue.MatchString(text), bareKeys.MatchString(text):
		return !b.measurePython("("+text+")").closed || strings.IndexByte(",:=", text[len(text)-1]) >= 0
	}
	return strings.HasPrefix(text, `"`) && strings.Count(text, `"`) == 1
}
