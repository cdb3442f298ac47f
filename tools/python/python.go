// Package python runs Python code that a model wrote: in a sandbox, or on a
// SandboxFusion server that somebody else keeps. It never runs code without
// either, unless Options.Unsafe says so.
package python

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

// DefaultTimeout is how long code may run, as Tongyi DeepResearch has it.
const DefaultTimeout = 50 * time.Second

// Options say where code runs. The zero value runs it in a sandbox, with the
// python3 of the PATH.
type Options struct {
	// Python is the program, a name or an absolute path; empty means python3. One
	// that is not the system's, such as that of a virtual environment, is visible
	// in the sandbox with its libraries and nothing else of its folder's owner.
	Python string
	// Timeout ends the code; zero means DefaultTimeout.
	Timeout time.Duration
	// Limits bound the code in the sandbox. Time is Timeout.
	Limits sandbox.Limits
	// Method is the way into the sandbox; empty means the first that works.
	Method sandbox.Method
	// Unsafe runs the code as the user, without a sandbox.
	Unsafe bool
	// Endpoints are addresses of SandboxFusion servers, such as
	// "http://localhost:8080". Where there is one, no code runs on this machine.
	Endpoints []string
	// Client reaches the endpoints; nil means one that follows no redirects and
	// uses no proxy.
	Client *http.Client
}

// Interpreter is the tool PythonInterpreter.
type Interpreter struct {
	options  Options
	patience time.Duration // with an endpoint
	program  program
}

// New makes the tool. Nothing is started before the first call.
func New(o Options) *Interpreter {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Python == "" {
		o.Python = "python3"
	}
	if o.Client == nil {
		o.Client = &http.Client{
			Transport:     &http.Transport{},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Interpreter{options: o, patience: o.Timeout + slack/2}
}

// code is not required: its absence has words of its own, which models know.
const parameters = `{"type":"object","properties":{"code":{"type":"string","description":"The Python code to run."}}}`

// Spec implements tools.Tool.
func (p *Interpreter) Spec() tools.Spec {
	capabilities := []tools.Capability{tools.Code}
	if len(p.options.Endpoints) > 0 {
		capabilities = append(capabilities, tools.Net)
	}
	return tools.Spec{
		Name: "PythonInterpreter",
		Description: "Run Python code in a sandbox without network and files. Nothing is kept between calls. " +
			"Whatever is to be seen must be printed with print().",
		Parameters:   json.RawMessage(parameters),
		Capabilities: capabilities,
	}
}

// slack is what a call may take beside the code: start-up and network.
const slack = 10 * time.Second

// Deadline implements tools.Deadliner. The code's own limit comes first, so that
// what it printed until then is told.
func (p *Interpreter) Deadline() time.Duration {
	if len(p.options.Endpoints) > 0 {
		return attempts * (p.options.Timeout + slack)
	}
	return p.options.Timeout + slack
}

// What the model is told, in the words of Tongyi DeepResearch.
const (
	noCode   = "[Python Interpreter Error]: Formatting error."
	timedOut = "[PythonInterpreter Error] TimeoutError: Execution timed out."
	nothing  = "Finished execution."
)

// Run implements tools.Tool. What went wrong in the code is part of the text;
// an error says that the code could not be run.
func (p *Interpreter) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Code string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	if strings.TrimSpace(in.Code) == "" {
		return noCode, nil
	}
	if len(p.options.Endpoints) > 0 {
		return p.remote(ctx, in.Code)
	}
	return p.local(ctx, in.Code)
}

// report is what the model reads of a run: what was written, and in a last line
// what is wrong beside it.
func report(stdout, stderr, problem string) string {
	var parts []string
	if stdout != "" {
		parts = append(parts, "stdout:\n"+stdout)
	}
	if stderr != "" {
		parts = append(parts, "stderr:\n"+stderr)
	}
	if problem != "" {
		parts = append(parts, problem)
	}
	if text := strings.Join(parts, "\n"); strings.TrimSpace(text) != "" {
		return text
	}
	return nothing
}
