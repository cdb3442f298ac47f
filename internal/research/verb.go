package research

import (
	"context"
	"encoding/json"
	"time"

	"stopgap/tools"
)

// The tools of the phases, as the formats call them.
const (
	searchTool    = "search"
	accessTool    = "access"
	outlineVerb   = "write_outline" // of the planner
	terminateTool = "terminate"
	outlineTool   = "outline" // of who writes it
	retrieveTool  = "retrieve"
	writeTool     = "write"
	writtenTool   = "write_terminate"
)

// A verb is a tool of a phase.
type verb struct {
	spec     tools.Spec
	deadline time.Duration // zero for that of the set
	run      func(ctx context.Context, args json.RawMessage) (string, error)
}

func (v verb) Spec() tools.Spec        { return v.spec }
func (v verb) Deadline() time.Duration { return v.deadline }
func (v verb) Run(ctx context.Context, args json.RawMessage) (string, error) {
	return v.run(ctx, args)
}

// newVerb makes a tool that takes its arguments as a T.
func newVerb[T any](name, description, parameters string, run func(context.Context, T) (string, error)) verb {
	return verb{
		spec: tools.Spec{Name: name, Description: description, Parameters: json.RawMessage(parameters)},
		run: func(ctx context.Context, args json.RawMessage) (string, error) {
			var in T
			if err := json.Unmarshal(args, &in); err != nil {
				return "", err
			}
			return run(ctx, in)
		},
	}
}

const noParameters = `{"type":"object","properties":{}}`

type none struct{}

// The arguments of the tools that have some.
type (
	searchArguments   struct{ Query json.RawMessage }
	accessArguments   struct{ URL, Goal string }
	outlineArguments  struct{ Outline string }
	retrieveArguments struct {
		ID   []int
		Goal string
	}
	writeArguments struct{ Text string }
)

// queries reads one query or several.
func (a searchArguments) queries() []string {
	var list []string
	if json.Unmarshal(a.Query, &list) == nil {
		return list
	}
	var one string
	if json.Unmarshal(a.Query, &one) != nil || one == "" {
		return nil
	}
	return []string{one}
}
