package models

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// errBounds is what a number such as 1e9999999 leads to, on which the schema
// library panics.
var errBounds = errors.New("is there a number out of all bounds?")

// followsSchema checks what a scripted model does under a schema: it cannot
// choose other words, so its turn must be a value that the schema allows, from
// the first byte to the last.
func followsSchema(text string, schema json.RawMessage) error {
	compiled, err := compileSchema(schema)
	if err != nil {
		return &SchemaError{Server: "script", Reason: excerpt(err.Error(), messageLimit)}
	}
	if !json.Valid([]byte(text)) || strings.TrimSpace(text) != text || validate(compiled, text) != nil {
		return &UnsupportedError{Server: "script", What: "a JSON schema that the text of its turn does not match"}
	}
	return nil
}

func compileSchema(schema json.RawMessage) (_ *jsonschema.Schema, err error) {
	defer unpanic(&err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	const place = "schema:///"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(place, doc); err != nil {
		return nil, err
	}
	return compiler.Compile(place)
}

// nowhere loads nothing: a schema must not open files.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errors.New("schemas elsewhere are not loaded") }

func validate(schema *jsonschema.Schema, text string) (err error) {
	defer unpanic(&err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func unpanic(err *error) {
	if recover() != nil {
		*err = errBounds
	}
}
