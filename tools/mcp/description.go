package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// The bounds of what a server says of a tool.
const (
	mostDescription = 4 << 10  // bytes
	mostSchema      = 64 << 10 // bytes
	deepest         = 24       // levels of a schema
)

// What is told of a tool stands in the prompt where the template's own words
// stand. marks finds what a model or a format could take for structure there:
// control tokens, tags, and the words that begin a part.
var marks = regexp.MustCompile(`<[^\s=·-]|\[/?[A-Z][A-Z_]+\]|✿[A-Z]|(?i)\b(?:observation|action|action input|final answer|answer|thought|question|tools|user|assistant|system|human):`)

// mute makes text one line that is no structure: a mark gets a dot after its
// first character, so that a person sees that something was there.
func mute(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.C, r) // control and format characters
	}), " ")
	return marks.ReplaceAllStringFunc(text, func(mark string) string {
		for i := range mark {
			if i > 0 {
				return mark[:i] + "·" + mark[i:]
			}
		}
		return mark + "·"
	})
}

// cut shortens a text to so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

var errMarks = errors.New("its parameters have names or values that look like a prompt's structure")

// schemaOf gives the schema of a tool's arguments as the model is told it:
// within bounds, with descriptions muted. Names and values cannot be muted,
// because the server would not know them; where they look like structure the
// schema is refused.
func schemaOf(schema any) (json.RawMessage, error) {
	if schema == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	schema, err := muted(schema, "", deepest)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(schema); err != nil {
		return nil, errors.New("its parameters are not JSON")
	}
	if b.Len() > mostSchema {
		return nil, fmt.Errorf("its parameters are larger than %d KiB", mostSchema>>10)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// spoken are the keys of a schema whose values are for people and models.
var spoken = map[string]bool{"description": true, "title": true, "$comment": true}

// muted goes through a schema.
func muted(v any, key string, deeper int) (any, error) {
	if deeper == 0 {
		return nil, errors.New("its parameters are nested too deeply")
	}
	switch v := v.(type) {
	case string:
		if spoken[key] {
			return cut(mute(v), mostDescription), nil
		}
		if v != mute(v) && marks.MatchString(v) {
			return nil, errMarks
		}
	case []any:
		for i := range v {
			var err error
			if v[i], err = muted(v[i], "", deeper-1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k, inner := range v {
			if marks.MatchString(k) {
				return nil, errMarks
			}
			if text, ok := inner.(string); ok && k == "pattern" && marks.MatchString(text) {
				delete(v, k) // the server checks it
				continue
			}
			var err error
			if v[k], err = muted(inner, k, deeper-1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
