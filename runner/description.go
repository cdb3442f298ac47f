package runner

import (
	"encoding/json"

	"stopgap/models"
	"stopgap/template"
)

// described are the tools as the model is told of them. What a tool says of
// itself may be a server's or a file's: reserved strings in it are escaped once
// the run knows which there are, and so they are in the arguments that the model
// writes, until unescape.
func (s *state) described() []template.Tool {
	if s.told != nil {
		return s.told
	}
	return s.describe(template.Reserved{})
}

// describe escapes what the tools say of themselves. Names are the program's.
func (s *state) describe(reserved template.Reserved) []template.Tool {
	var out []template.Tool
	for _, spec := range s.offered.Specs() {
		out = append(out, template.Tool{
			Name: spec.Name, Description: template.Escape(spec.Description, reserved),
			Parameters: inStrings(spec.Parameters, func(text string) string { return template.Escape(text, reserved) }),
		})
	}
	return out
}

// anyReserved are the strings that are reserved in some format, for an opening of
// which the server does not tell in which it will be.
func (s *state) anyReserved() (template.Reserved, error) {
	var all template.Reserved
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			return all, err
		}
		all = all.With(f.Reserved.Strings...)
		all.Lines = append(all.Lines, f.Reserved.Lines...)
	}
	m, ok := s.Model.(models.Speller)
	if !ok {
		return all.With(s.Reserved...), nil
	}
	spelling, err := m.Spelling(s.ctx)
	if err != nil {
		return all, err
	}
	return all.With(s.Reserved...).With(spelling.Special...), nil
}

// inStrings changes the strings of a JSON text, names included, and leaves
// everything else as it is, to the byte.
func inStrings(text json.RawMessage, change func(string) string) json.RawMessage {
	return jsonString.ReplaceAllFunc(text, func(literal []byte) []byte {
		var before string
		if json.Unmarshal(literal, &before) != nil {
			return literal
		}
		if after := change(before); after != before {
			return []byte(quote(after))
		}
		return literal
	})
}
