package models

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// checkSchema refuses what is no JSON schema that a generation can follow. All
// servers take an object; what true or a list means to them differs.
func checkSchema(schema json.RawMessage) error {
	if len(schema) > 0 && !isObject(schema) {
		return &SchemaError{Reason: "it is no JSON object"}
	}
	return nil
}

// schemaRefusal are the words in which servers refuse a schema: llama-server
// ("JSON schema conversion failed"), Ollama ("invalid JSON schema in format",
// with status 500), vLLM and SGLang with their grammar libraries.
var schemaRefusal = regexp.MustCompile(`(?i)json[ _]schema|\bgrammar\b|structured[ _]output|invalid format:`)

// refusedSchema makes the error of a schema that the server refuses, or nil.
// The reason is the server's, as it may be shown.
func (s *server) refusedSchema(f failure) error {
	refused := f.Status == http.StatusBadRequest || f.Status == http.StatusInternalServerError
	if !refused || !schemaRefusal.MatchString(f.Message) {
		return nil
	}
	return &SchemaError{Server: s.kind, Reason: s.excerpt(f.Message, messageLimit)}
}

// constrain puts the schema into the body of a generation, under the server's
// own name for it. A server that is not known to have one would ignore the
// field and write what it likes.
func (m *openai) constrain(ctx context.Context, body map[string]any, schema json.RawMessage, b brand) error {
	if len(schema) == 0 {
		return nil
	}
	switch b {
	case vllm:
		if m.older(ctx, 0, 11) {
			return &UnsupportedError{Server: m.kind, What: "a JSON schema: it takes vLLM 0.11 or newer"}
		}
		body["structured_outputs"] = map[string]any{"json": schema}
	case sglang:
		body["json_schema"] = string(schema)
	case llamaBrand:
		body["json_schema"] = schema
	default:
		return &UnsupportedError{Server: m.kind, What: "a JSON schema"}
	}
	return nil
}

var versionNumber = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// older reports whether vLLM says that it is older than a version. One that
// was built without a release number says 0.1.dev, and nothing of its age.
func (m *openai) older(ctx context.Context, major, minor int) bool {
	v, err := m.version(ctx)
	parts := versionNumber.FindStringSubmatch(v)
	if err != nil || parts == nil || strings.Contains(v, "dev") {
		return false
	}
	x, _ := strconv.Atoi(parts[1]) // digits
	y, _ := strconv.Atoi(parts[2])
	return x < major || x == major && y < minor
}

// version is what vLLM says of itself, asked for once.
func (m *openai) version(ctx context.Context) (string, error) {
	return m.release.get(func() (string, error) {
		var v struct {
			Version string `json:"version"`
		}
		err := m.call(ctx, http.MethodGet, "/version", nil, &v)
		return v.Version, err
	})
}
