package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// noParameters is the schema of a tool that takes nothing.
const noParameters = `{"type":"object","properties":{}}`

// schemaURL names the schema inside the compiler. Nothing is loaded from it.
const schemaURL = "tool:///parameters"

// arguments checks the arguments of one tool.
type arguments struct {
	schema *jsonschema.Schema
	text   string // the schema as one line, for messages
}

// noLoader refuses every schema that is not part of the tool's own: a tool
// description may come from a server and must not open files or connections.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("schemas elsewhere are not loaded")
}

func compileArguments(parameters json.RawMessage) (_ *arguments, err error) {
	defer unpanic(&err)
	if len(bytes.TrimSpace(parameters)) == 0 {
		parameters = json.RawMessage(noParameters)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(parameters))
	if err != nil {
		return nil, fmt.Errorf("its parameters are not JSON: %w", err)
	}
	if object, ok := doc.(map[string]any); !ok || object["type"] != "object" {
		return nil, errors.New(`its parameters are not a JSON schema with "type": "object"`)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("its parameters are no JSON schema: %w", err)
	}
	schema, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("its parameters are no JSON schema: %w", err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, parameters); err != nil {
		return nil, fmt.Errorf("its parameters are not JSON: %w", err)
	}
	return &arguments{schema: schema, text: line.String()}, nil
}

// check gives the arguments that the tool gets: what the model wrote, or {}
// where it wrote nothing.
func (a *arguments) check(raw json.RawMessage) (_ []byte, err error) {
	defer unpanic(&err)
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("they are not valid JSON: %w", err)
	}
	return raw, a.schema.Validate(value)
}

// unpanic makes an error of a panic of the schema library, which breaks on
// numbers such as 1e9999999: both models and servers of tools may write them.
func unpanic(err *error) {
	if r := recover(); r != nil {
		*err = errors.New("they cannot be checked; is there a number out of all bounds?")
	}
}

// explain tells the model what was wrong with its arguments and what the tool
// takes.
func (a *arguments) explain(name string, err error) string {
	return fmt.Sprintf("Error: the arguments of %s do not fit: %s. Its parameters are %s", name, reason(err), a.text)
}

// reason says what is wrong with arguments.
func reason(err error) string {
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return strings.Join(violations(invalid), "; ")
	}
	return err.Error()
}

// maxViolations keeps the message short: a model mends one thing at a time.
const maxViolations = 5

// violations lists the innermost violations, each with its place. The outer
// ones only say that there are inner ones.
func violations(e *jsonschema.ValidationError) []string {
	printer := message.NewPrinter(language.English)
	var list []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		words := e.ErrorKind.LocalizedString(printer)
		if len(e.InstanceLocation) > 0 {
			words = fmt.Sprintf("%s: %s", strings.Join(e.InstanceLocation, "."), words)
		}
		list = append(list, words)
	}
	walk(e)
	sort.Strings(list) // the library goes through a map
	return list[:min(len(list), maxViolations)]
}

// maxNameEcho bounds the bytes of a wrong name that a message repeats and
// that the search for a similar name looks at.
const maxNameEcho = 64

// unknown tells the model that it has no such tool, and which it has.
func (s *Set) unknown(name string) string {
	if len(name) > maxNameEcho {
		name = strings.ToValidUTF8(name[:maxNameEcho], "") + "…"
	}
	if len(s.entries) == 0 {
		return fmt.Sprintf("Error: there is no tool named %q, and no other.", name)
	}
	var names []string
	nearest, best := "", 0
	for _, e := range s.entries {
		names = append(names, e.spec.Name)
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(e.spec.Name))
		if nearest == "" || d < best {
			nearest, best = e.spec.Name, d
		}
	}
	words := fmt.Sprintf("Error: there is no tool named %q.", name)
	if best <= max(2, len(nearest)/3) {
		words += fmt.Sprintf(" Did you mean %q?", nearest)
	}
	return words + " The tools are: " + strings.Join(names, ", ") + "."
}
