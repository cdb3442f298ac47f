// Package own makes tools of what the user declares: a command, or an HTTP
// endpoint, with a name, a description and a schema.
//
// The declaration is trusted, the arguments that a model writes are not: they
// reach a command as JSON on its standard input or as single arguments, never
// through a shell, and an endpoint as parts of its path, its query or its body,
// never of its host.
package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"stopgap/tools"
)

// mostOutput is how much a tool may give, in bytes.
const mostOutput = 1 << 20

// A Declaration is one tool as it stands in a file, under its name. Either it
// has a command or a url.
type Declaration struct {
	Description string `yaml:"description"`
	Parameters  Schema `yaml:"parameters"`
	// SideEffects says whether calls have to be allowed one by one. Without it
	// they have to, but for the methods GET and HEAD.
	SideEffects *bool `yaml:"side_effects"`
	// Capabilities come on top of code for a command and net for an endpoint.
	Capabilities []tools.Capability `yaml:"capabilities"`
	Timeout      time.Duration      `yaml:"timeout"`

	// Command is a program and its arguments. {name} stands for an argument of
	// the call. The whole call stands on its standard input, as JSON.
	Command []string `yaml:"command"`
	// Dir is where it starts; empty for the current folder.
	Dir string `yaml:"dir"`
	// Env is added to the few variables that every program needs. ${NAME} stands
	// for a variable of our own environment.
	Env map[string]string `yaml:"env"`
	// Sandbox keeps the command from everything that is not listed.
	Sandbox *Sandbox `yaml:"sandbox"`

	Method string `yaml:"method"` // GET, or POST where nothing is said and there is a body
	// URL is the address. {name} stands for an argument, in the path or the query.
	URL string `yaml:"url"`
	// Headers may have ${NAME} as Env has.
	Headers map[string]string `yaml:"headers"`
}

// A Sandbox is what a command may reach of the machine; all else is hidden.
type Sandbox struct {
	Read    []string `yaml:"read"`
	Write   []string `yaml:"write"`
	Network bool     `yaml:"network"`
	// Protect are paths that stay as they are although a folder of Write holds
	// them. They are the program's, no part of a file.
	Protect []string `yaml:"-"`
}

// A Schema is a JSON schema, in YAML or JSON. Its order is kept.
type Schema json.RawMessage

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (s *Schema) UnmarshalYAML(b []byte) error {
	out, err := yaml.YAMLToJSON(b)
	*s = Schema(bytes.TrimSpace(out))
	return err
}

var toolName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// New makes a tool of a declaration. lookup gives variables of the environment.
// The error is about the declaration, in a clause.
func New(name string, d Declaration, lookup func(string) (string, bool)) (tools.Tool, error) {
	t := tool{declaration: d, spec: tools.Spec{
		Name: name, Description: d.Description, Parameters: json.RawMessage(d.Parameters), SideEffects: true,
		Capabilities: slices.Clone(d.Capabilities),
	}}
	for _, c := range d.Capabilities {
		if c != tools.Net && c != tools.Files && c != tools.Code {
			return nil, fmt.Errorf("%q is no capability: there are net, files and code", c)
		}
	}
	if !toolName.MatchString(name) {
		return nil, errors.New("its name is not of letters, digits and _, at most 64, or begins with a digit")
	}
	if strings.TrimSpace(d.Description) == "" {
		return nil, errors.New("it has no description, which is all that a model knows of it")
	}
	if _, err := tools.NewSet([]tools.Tool{t}, tools.Options{}); err != nil {
		spec := (*tools.SpecError)(nil)
		if errors.As(err, &spec) {
			err = spec.Err
		}
		return nil, err
	}
	var made tools.Tool
	var err error
	switch {
	case len(d.Command) > 0 && d.URL != "":
		return nil, errors.New("it has both a command and a url")
	case len(d.Command) > 0:
		made, err = newCommand(t, lookup)
	case d.URL != "":
		made, err = newEndpoint(t, lookup)
	default:
		return nil, errors.New("it has neither a command nor a url")
	}
	return made, err
}

// A tool is what commands and endpoints share.
type tool struct {
	declaration Declaration
	spec        tools.Spec
	secrets     []string // that must not come back to the model
}

// Spec implements tools.Tool.
func (t tool) Spec() tools.Spec { return t.spec }

// Deadline implements tools.Deadliner.
func (t tool) Deadline() time.Duration { return t.declaration.Timeout }

// Run does nothing; commands and endpoints have their own.
func (t tool) Run(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("it does nothing")
}

// needs puts a capability and the effects into the spec.
func (t *tool) needs(c tools.Capability, effects bool) {
	if !slices.Contains(t.spec.Capabilities, c) {
		t.spec.Capabilities = append([]tools.Capability{c}, t.spec.Capabilities...)
	}
	t.spec.SideEffects = effects
	if t.declaration.SideEffects != nil {
		t.spec.SideEffects = *t.declaration.SideEffects
	}
}

// placeholder stands for an argument of the call, variable for one of the
// environment.
var (
	placeholder = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_-]*)\}`)
	variable    = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// parameters are the names that placeholders may have.
func (t *tool) parameters() map[string]bool {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(t.spec.Parameters, &schema) // it has compiled
	out := map[string]bool{}
	for name := range schema.Properties {
		out[name] = true
	}
	return out
}

// checkPlaceholders refuses placeholders of a text that are no parameters.
func (t *tool) checkPlaceholders(text string) error {
	known := t.parameters()
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if !known[m[1]] {
			return fmt.Errorf("%s stands for no property of its parameters", m[0])
		}
	}
	return nil
}

// expand puts variables of the environment into a text. Their values are
// secrets from then on, the longest first: one may be part of another.
func (t *tool) expand(text string, lookup func(string) (string, bool)) (string, error) {
	var missing error
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		name := variable.FindStringSubmatch(m)[1]
		value, ok := lookup(name)
		if !ok || value == "" {
			missing = fmt.Errorf("the environment variable %s, which it needs, is not set", name)
		}
		if len(value) >= shortestSecret {
			t.secrets = append(t.secrets, value)
		}
		return value
	})
	slices.SortStableFunc(t.secrets, func(a, b string) int { return len(b) - len(a) })
	return out, missing
}

// shortestSecret is how long a value is at least that is looked for in outputs;
// a shorter one stands there by chance.
const shortestSecret = 6

// hide takes secrets out of a text.
func (t *tool) hide(text string) string {
	for _, s := range t.secrets {
		text = strings.ReplaceAll(text, s, "****")
	}
	return text
}

// values are the arguments of a call as texts: a string as it is, everything
// else as JSON.
func values(args json.RawMessage) (map[string]string, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, raw := range in {
		var text string
		switch {
		case string(raw) == "null":
			continue
		case json.Unmarshal(raw, &text) == nil:
			out[name] = text
		default:
			out[name] = string(raw)
		}
	}
	return out, nil
}
