package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stopgap/tools"
)

// A tool is one of a server's.
type tool struct {
	server *Server
	remote string // its name there
	spec   tools.Spec
}

// Calls are also written as Python, so a name is made one there: odd characters
// become a line, and so does what stands before a digit and behind a keyword.
var (
	odd     = regexp.MustCompile(`[^A-Za-z0-9_.]+`)
	digit   = regexp.MustCompile(`(^|\.)([0-9])`)
	keyword = regexp.MustCompile(`(^|\.)(and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|load|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)(\.|$)`)
)

// nameOf is a server's name of a tool as the part of ours after the dot.
func nameOf(remote string) string {
	name := strings.Trim(odd.ReplaceAllString(remote, "_"), ".")
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	return keyword.ReplaceAllString(digit.ReplaceAllString(name, "${1}_$2"), "$1${2}_$3")
}

const mostName = 64 // bytes

// newTool describes a server's tool. The error is why it cannot be used.
func newTool(s *Server, remote *sdk.Tool) (*tool, error) {
	name := nameOf(remote.Name)
	switch {
	case name == "":
		return nil, errors.New("it has no name")
	case len(name) > mostName:
		return nil, fmt.Errorf("its name is longer than %d characters", mostName)
	}
	parameters, err := schemaOf(remote.InputSchema)
	if err != nil {
		return nil, err
	}
	t := &tool{server: s, remote: remote.Name, spec: tools.Spec{
		Name: s.config.Name + "." + name, Description: cut(mute(remote.Description), mostDescription),
		Parameters: parameters, SideEffects: remote.Annotations == nil || !remote.Annotations.ReadOnlyHint,
		Capabilities: s.config.Needs(),
	}}
	_, err = tools.NewSet([]tools.Tool{t}, tools.Options{}) // does the schema compile?
	if spec := (*tools.SpecError)(nil); errors.As(err, &spec) {
		return nil, spec.Err
	}
	return t, err
}

// Spec implements tools.Tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Deadline implements tools.Deadliner.
func (t *tool) Deadline() time.Duration { return t.server.config.Timeout }

// Run implements tools.Tool.
func (t *tool) Run(ctx context.Context, args json.RawMessage) (string, error) {
	l, err := t.server.current(ctx)
	if err != nil {
		return "", fmt.Errorf("the MCP server %s cannot be reached: %w", t.server.config.Name, err)
	}
	res, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: t.remote, Arguments: args})
	if err != nil {
		return "", fmt.Errorf("the MCP server %s: %w", t.server.config.Name, t.server.explain(ctx, l, err))
	}
	text := words(res)
	if res.IsError {
		if text == "" {
			text = "the server gives no reason"
		}
		return "", errors.New(strings.TrimPrefix(text, "Error: "))
	}
	return text, nil
}

// words are what a result says. What is no text is named.
func words(res *sdk.CallToolResult) string {
	var parts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(parts, fmt.Sprintf("[an image, %s, %d bytes, which is not shown]", kind(c.MIMEType), len(c.Data)))
		case *sdk.AudioContent:
			parts = append(parts, fmt.Sprintf("[audio, %s, %d bytes, which is not played]", kind(c.MIMEType), len(c.Data)))
		case *sdk.ResourceLink:
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", c.Name, c.URI, c.Description)))
		case *sdk.EmbeddedResource:
			parts = append(parts, resourceWords(c.Resource))
		}
	}
	if len(parts) == 0 && res.StructuredContent != nil {
		if b, err := json.Marshal(res.StructuredContent); err == nil {
			return string(b)
		}
	}
	return strings.Join(parts, "\n")
}

func resourceWords(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return ""
	case r.Text != "":
		return r.Text
	}
	return fmt.Sprintf("[the resource %s, %s, %d bytes, which is not shown]", r.URI, kind(r.MIMEType), len(r.Blob))
}

func kind(mime string) string {
	if mime == "" {
		return "of an unknown type"
	}
	return mime
}
