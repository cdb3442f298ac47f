package bfcl

import (
	"encoding/json"
	"slices"
	"strings"
)

// schemaTypes are BFCL's types as a JSON schema has them (GORILLA_TO_OPENAPI of
// bfcl_eval/constants/type_mappings.py). What is not listed is a string.
var schemaTypes = map[string]string{
	"integer": "integer", "number": "number", "float": "number", "string": "string", "boolean": "boolean", "bool": "boolean",
	"array": "array", "list": "array", "dict": "object", "object": "object", "tuple": "array", "any": "string",
	"byte": "integer", "short": "integer", "long": "integer", "double": "number", "char": "string",
	"ArrayList": "array", "Array": "array", "HashMap": "object", "Hashtable": "object", "Queue": "array", "Stack": "array",
	"Any": "string", "String": "string", "Bigint": "integer",
}

// Tools are the functions as tools with JSON schemas, made as the leaderboard
// makes them for models that call natively: other names of types, and a sentence
// where a number must be a float. underscores is as in Check.
func (it *Item) Tools(underscores bool) ([]Tool, error) {
	var out []Tool
	for _, f := range it.functions {
		name := checker{underscores: underscores}.name(f.name)
		schema := clone(f.parameters).(*dict)
		schema.set("type", "object")
		schema.set("properties", clone(f.properties))
		properties, _ := schema.get("properties")
		convertAll(properties.(*dict))
		b, err := json.Marshal(schema)
		if err != nil {
			return nil, err
		}
		out = append(out, Tool{name, f.description + " Note that the provided function is in Python 3 syntax.", b})
	}
	return out, nil
}

func convertAll(properties *dict) {
	for _, key := range properties.keys {
		if d, ok := properties.values[key].(*dict); ok {
			convert(d)
		}
	}
}

// convert makes the description of one value a schema.
func convert(d *dict) {
	name := d.text("type")
	if name == "float" {
		d.set("format", "float")
		d.set("description", strings.TrimSpace(d.text("description")+" This is a float type value."))
	}
	if typed, ok := schemaTypes[name]; ok {
		d.set("type", typed)
	} else {
		d.set("type", "string")
	}
	if properties, ok := d.values["properties"].(*dict); ok {
		convertAll(properties)
	}
	if items, ok := d.values["items"].(*dict); ok {
		if _, ok := items.values["type"]; ok {
			convertItem(items)
		}
	}
}

// convertItem is convert for elements, which have no sentence.
func convertItem(d *dict) {
	typed, ok := schemaTypes[d.text("type")]
	if !ok {
		typed = "string"
	}
	d.set("type", typed)
	if properties, ok := d.values["properties"].(*dict); ok {
		convertAll(properties)
	}
	if items, ok := d.values["items"].(*dict); ok {
		convertItem(items)
	}
}

func clone(v value) value {
	switch v := v.(type) {
	case list:
		out := list{}
		for _, w := range v {
			out = append(out, clone(w))
		}
		return out
	case *dict:
		out := &dict{keys: slices.Clone(v.keys), values: map[string]value{}}
		for k, w := range v.values {
			out.values[k] = clone(w)
		}
		return out
	}
	return v
}
