// Package shell lets a model run commands and write files, in one folder of the
// user's. Both change things, so both ask before they act.
//
// Commands run in the sandbox: they see the system's programs and the folder,
// nothing else of the user's, and no network unless that is allowed. Where there
// is no sandbox they are refused.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

// timeout is the time for a command.
const timeout = 60 * time.Second

// Options are what commands may do.
type Options struct {
	Folder  string // where commands start and may write
	Network bool
	// Protect are paths in the folder that stay as they are: our own files.
	Protect []string
	Method  sandbox.Method // empty means the first that works
}

// Tools gives shell and write_file.
func Tools(o Options) []tools.Tool { return []tools.Tool{command{o}, writer{o}} }

const commandParameters = `{"type":"object","properties":{"command":{"type":"string","minLength":1,"maxLength":20000,"description":"The command line, for a POSIX shell."}},"required":["command"]}`

type command struct{ options Options }

// Spec implements tools.Tool.
func (c command) Spec() tools.Spec {
	spec := tools.Spec{
		Name:         "shell",
		Description:  "Run a shell command in the working folder and get what it prints. There is no network, and files outside of the folder cannot be changed.",
		Parameters:   json.RawMessage(commandParameters),
		SideEffects:  true,
		Capabilities: []tools.Capability{tools.Code, tools.Files},
	}
	if c.options.Network {
		spec.Capabilities = append(spec.Capabilities, tools.Net)
		spec.Description = "Run a shell command in the working folder and get what it prints. Files outside of the folder cannot be changed."
	}
	return spec
}

// Deadline implements tools.Deadliner. The sandbox ends the command a little
// before, so that what it printed is told.
func (command) Deadline() time.Duration { return timeout + 2*time.Second }

// Run implements tools.Tool.
func (c command) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct{ Command string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	if strings.ContainsRune(in.Command, 0) {
		return "", errors.New("the command has a zero byte")
	}
	folder, err := filepath.Abs(c.options.Folder)
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return "", errors.New("the working folder is not there")
	}
	res, err := sandbox.Run(ctx, sandbox.Command{
		Args: []string{"sh", "-c", in.Command}, Dir: folder, Write: []string{folder}, Protect: c.options.Protect,
		Network: c.options.Network, Method: c.options.Method, Limits: sandbox.Limits{Time: timeout},
	})
	out := printed(res)
	switch {
	case err != nil:
		return out, err
	case res.End == sandbox.TimeLimit:
		return out, fmt.Errorf("the command did not end within %s and was killed", timeout)
	case res.End != sandbox.Exited:
		return out, fmt.Errorf("the command was killed at the limit of its %s", res.End)
	case res.ExitCode != 0:
		return out, fmt.Errorf("exit code %d", res.ExitCode)
	case out == "":
		return "The command printed nothing.", nil
	}
	return out, nil
}

// printed is what a command printed, with its two streams told apart.
func printed(res sandbox.Result) string {
	out, noise := strings.TrimRight(string(res.Stdout), "\n"), strings.TrimRight(string(res.Stderr), "\n")
	switch {
	case noise == "":
		return out
	case out == "":
		return "stderr:\n" + noise
	}
	return "stdout:\n" + out + "\nstderr:\n" + noise
}
