package template

import (
	"encoding/json"
	"slices"
	"strings"
)

// A parameter is what a tool's schema says of one of its arguments, as far as
// it tells how a text is to be read.
type parameter struct {
	Name  string
	Types []string // JSON schema types, empty where the schema does not say
	Items []string // the types of the elements of a list
	// Required says that a call must have it.
	Required bool
	budget   *budget // of the turn
}

// UnmarshalJSON reads a schema. What is not as expected says nothing.
func (p *parameter) UnmarshalJSON(raw []byte) error {
	var s struct {
		Type  json.RawMessage `json:"type"`
		Items json.RawMessage `json:"items"`
		AnyOf []parameter     `json:"anyOf"`
		OneOf []parameter     `json:"oneOf"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	p.Types = typeNames(s.Type)
	for _, other := range append(s.AnyOf, s.OneOf...) {
		p.Types = append(p.Types, other.Types...)
		p.Items = append(p.Items, other.Items...)
	}
	var items struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(s.Items, &items) == nil {
		p.Items = append(p.Items, typeNames(items.Type)...)
	}
	return nil
}

// typeNames reads the value of "type": a name or a list of names.
func typeNames(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many)
	return many
}

// parameters gives what the tool's schema says of its arguments, in no order.
func (t Tool) parameters() map[string]parameter {
	var schema struct {
		Properties map[string]parameter `json:"properties"`
	}
	_ = json.Unmarshal(t.Parameters, &schema)
	return schema.Properties
}

// required gives the arguments that a call must have.
func (t Tool) required() []string {
	var schema struct {
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(t.Parameters, &schema)
	return schema.Required
}

// only gives the one parameter that a call with a single value means: the only
// one, or the only one that is required.
func (t Tool) only(b *budget) (name string, p parameter, ok bool) {
	all, required := b.parameters(t), t.required()
	switch {
	case len(all) == 1:
		for name, p := range all {
			return name, p, true
		}
	case len(required) == 1:
		name = required[0]
		p, ok = all[name]
	}
	return name, p, ok
}

// fromText reads an argument that is spelled as a text, as in XML: by the type
// that the schema has for it, else as a text.
func (p parameter) fromText(text string) json.RawMessage {
	quoted, _ := encode(text)
	if len(p.Types) == 0 {
		return quoted
	}
	plain := strings.TrimSpace(text)
	value := json.RawMessage(plain)
	if lower := strings.ToLower(plain); lower == "true" || lower == "false" || lower == "none" || lower == "null" {
		value = json.RawMessage(strings.Replace(lower, "none", "null", 1))
	}
	if len(p.Types) == 1 && p.Types[0] == "string" {
		return quoted
	}
	if json.Valid(value) && p.takes(kindOf(value)) {
		return value
	}
	if composite(plain) {
		if mended, _, ok := p.budget.mend(plain); ok && p.takes(kindOf(mended)) {
			return mended
		}
	}
	if fitted, ok := p.fit(quoted); ok {
		return fitted
	}
	return quoted
}

// item is an element of a list.
func (p parameter) item() parameter { return parameter{Types: p.Items, budget: p.budget} }

// takes reports whether a value of that kind fits the types.
func (p parameter) takes(kind string) bool {
	return len(p.Types) == 0 || slices.Contains(p.Types, kind) || kind == "integer" && slices.Contains(p.Types, "number")
}

// kindOf gives the JSON schema type of a valid JSON value.
func kindOf(value json.RawMessage) string {
	switch v := strings.TrimSpace(string(value)); {
	case v == "":
		return ""
	case v[0] == '{':
		return "object"
	case v[0] == '[':
		return "array"
	case v[0] == '"':
		return "string"
	case v == "null":
		return "null"
	case v == "true" || v == "false":
		return "boolean"
	case strings.ContainsAny(v, ".eE"):
		return "number"
	}
	return "integer"
}

// fit makes a value of another type the one that the schema asks for, where
// that has one plain reading: "5" for 5, 5 for "5", "true" for true, a text for
// a list of one. ok says that it changed.
func (p parameter) fit(value json.RawMessage) (_ json.RawMessage, ok bool) {
	kind := kindOf(value)
	if p.takes(kind) {
		if kind == "array" {
			return p.fitItems(value)
		}
		return value, false
	}
	item := p.item()
	var text string
	switch {
	case kind == "string" && json.Unmarshal(value, &text) == nil:
		if v, ok := p.fitText(strings.TrimSpace(text)); ok {
			return v, true
		}
	case p.takes("string") && (kind == "integer" || kind == "number" || kind == "boolean"):
		quoted, _ := encode(string(value))
		return quoted, true
	}
	if p.takes("array") && kind != "null" && kind != "object" {
		if v, ok := item.fit(value); ok {
			value, kind = v, kindOf(v)
		}
		if item.takes(kind) {
			return json.RawMessage("[" + string(value) + "]"), true
		}
	}
	return value, false
}

// fitText reads a text as a value of another type.
func (p parameter) fitText(text string) (json.RawMessage, bool) {
	lower := strings.ToLower(text)
	switch {
	case (lower == "true" || lower == "false") && p.takes("boolean"):
		return json.RawMessage(lower), true
	case lower == "null" && p.takes("null"):
		return json.RawMessage("null"), true
	}
	if digits := strings.TrimLeft(text, "0"); digits != "" && digits[0] >= '1' && digits[0] <= '9' && p.takes("integer") && !p.takes("string") {
		text = digits // 007
	}
	if value := json.RawMessage(text); json.Valid(value) && kindOf(value) != "string" && p.takes(kindOf(value)) {
		return value, true
	}
	if composite(text) {
		if mended, _, ok := p.budget.mend(text); ok && p.takes(kindOf(mended)) {
			return mended, true
		}
	}
	return nil, false
}

// fitItems fits the elements of a list.
func (p parameter) fitItems(value json.RawMessage) (json.RawMessage, bool) {
	var list []json.RawMessage
	if len(p.Items) == 0 || json.Unmarshal(value, &list) != nil {
		return value, false
	}
	item, changed := p.item(), false
	for i, e := range list {
		v, ok := item.fit(e)
		list[i], changed = v, changed || ok
	}
	if !changed {
		return value, false
	}
	fitted, err := encode(list)
	return fitted, err == nil
}

// Fit gives the arguments of a call as the tool's schema asks for them, where one
// is of another type and has one plain reading: a text for a list of one, "5"
// for 5. Parse does so with the calls that a model writes. What does not fit, or
// is no JSON object, comes back as it is.
func (t Tool) Fit(arguments json.RawMessage) json.RawMessage {
	fitted, _ := coerce(new(budget).parameters(t), arguments)
	return fitted
}

// coerce fits the arguments of a call to the tool's schema. changed says that
// one of them was not of its type.
func coerce(known map[string]parameter, arguments json.RawMessage) (_ json.RawMessage, changed bool) {
	var values map[string]json.RawMessage
	if len(known) == 0 || json.Unmarshal(arguments, &values) != nil {
		return arguments, false
	}
	for name, v := range values {
		p, ok := known[name]
		if !ok || len(p.Types) == 0 {
			continue
		}
		if kindOf(v) == "null" && !p.Required && !p.takes("null") { // as if it were left out
			delete(values, name)
			changed = true
			continue
		}
		fitted, ok := p.fit(v)
		values[name], changed = fitted, changed || ok
	}
	if !changed {
		return arguments, false
	}
	out, err := encode(values)
	if err != nil {
		return arguments, false
	}
	return out, true
}
