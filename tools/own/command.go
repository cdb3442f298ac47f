package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

// A command is a tool that is a program.
type command struct {
	tool
	env []string
}

func newCommand(t tool, lookup func(string) (string, bool)) (tools.Tool, error) {
	d := &t.declaration
	if d.Method != "" || len(d.Headers) > 0 {
		return nil, errors.New("method and headers are for a url")
	}
	t.needs(tools.Code, true)
	if placeholder.MatchString(d.Command[0]) {
		return nil, errors.New("the program itself cannot come from the call")
	}
	for i, arg := range d.Command {
		if err := t.checkPlaceholders(arg); err != nil {
			return nil, err
		}
		if placeholder.MatchString(arg) && interpreted(d.Command[:i]) {
			return nil, fmt.Errorf("%q would be run as code by %s: give the argument after the code, or read it from standard input", arg, d.Command[0])
		}
	}
	c := &command{tool: t}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		value, err := c.expand(d.Env[name], lookup)
		if err != nil {
			return nil, err
		}
		c.env = append(c.env, name+"="+value)
	}
	if d.Sandbox == nil {
		for _, name := range []string{"HOME", "USER", "LOGNAME"} { // it is the user's own program
			if v, ok := lookup(name); ok {
				c.env = append([]string{name + "=" + v}, c.env...)
			}
		}
	}
	return c, nil
}

// interpreters are programs that take code as an argument, runs are the options
// that say so. What is in remote takes everything as code.
var (
	interpreters = regexp.MustCompile(`^(?:(?:ba|da|z|k|c|tc|fi|a)?sh|busybox|cmd|powershell|pwsh|python[0-9.]*|perl|ruby|node|deno|bun|php|lua[0-9.]*|su|runuser|osascript|tclsh|Rscript|julia|awk|gawk|mawk|sed|jq|sqlite3|psql|mysql)(?:\.exe)?$`)
	remote       = regexp.MustCompile(`^(?:ssh|eval|watch|parallel)(?:\.exe)?$`)
	runs         = regexp.MustCompile(`(?i)^(?:-[a-z]*[ce]|/[ck]|-command|-encodedcommand|--eval|--command|--expression|-r|-p|--print)$`)
)

// interpreted reports whether what stands behind these arguments would be code:
// behind an option for code, or in the place of a script or a program.
func interpreted(before []string) bool {
	for i, arg := range before {
		name := filepath.Base(arg)
		if remote.MatchString(name) {
			return true
		}
		if !interpreters.MatchString(name) {
			continue
		}
		rest := before[i+1:]
		switch {
		case len(rest) > 0 && runs.MatchString(rest[len(rest)-1]):
			return true
		case slices.ContainsFunc(rest, runs.MatchString): // the code is there
			return false
		}
		return !slices.ContainsFunc(rest, func(a string) bool { return !strings.HasPrefix(a, "-") })
	}
	return false
}

// Run implements tools.Tool.
func (c *command) Run(ctx context.Context, args json.RawMessage) (string, error) {
	argv, err := c.argv(args)
	if err != nil {
		return "", err
	}
	run := sandbox.Command{
		Args: argv, Env: c.env, Dir: c.declaration.Dir, Stdin: bytes.NewReader(append(bytes.Clone(args), '\n')),
		Method: sandbox.Unprotected, Limits: sandbox.Limits{Time: time.Hour, Output: mostOutput}, // ctx has the deadline
	}
	if run.Dir == "" {
		if run.Dir, err = os.Getwd(); err != nil {
			return "", errors.New("the current folder is gone")
		}
	}
	if box := c.declaration.Sandbox; box != nil {
		run.Method, run.Read, run.Write, run.Protect, run.Network, run.Dir = "", box.Read, box.Write, box.Protect, box.Network, c.declaration.Dir
	}
	res, err := sandbox.Run(ctx, run)
	out, noise := c.hide(string(res.Stdout)), strings.TrimSpace(c.hide(string(res.Stderr)))
	switch {
	case err != nil:
		return out, errors.New(c.hide(err.Error()))
	case res.End == sandbox.OutputLimit:
		return "", fmt.Errorf("it wrote more than %d KiB and was ended", mostOutput>>10)
	case res.End != sandbox.Exited:
		return out, fmt.Errorf("it was ended at the limit of its %s", res.End)
	case res.ExitCode != 0 && noise != "":
		return out, fmt.Errorf("exit code %d: %s", res.ExitCode, last(noise, 2000))
	case res.ExitCode != 0:
		return out, fmt.Errorf("exit code %d", res.ExitCode)
	}
	return out, nil
}

// argv puts the arguments of a call where their placeholders stand. An argument
// that is nothing but one placeholder is left out where the call has no value
// for it.
func (c *command) argv(args json.RawMessage) ([]string, error) {
	given, err := values(args)
	if err != nil {
		return nil, err
	}
	argv, options := []string{c.declaration.Command[0]}, true
	for _, arg := range c.declaration.Command[1:] {
		names := placeholder.FindStringSubmatch(arg)
		if names != nil && names[0] == arg {
			if _, ok := given[names[1]]; !ok {
				continue
			}
		}
		out := placeholder.ReplaceAllStringFunc(arg, func(m string) string { return given[strings.Trim(m, "{}")] })
		switch {
		case strings.ContainsRune(out, 0):
			return nil, fmt.Errorf("the value for %s has a zero byte", arg)
		case names != nil && options && strings.HasPrefix(arg, "{") && strings.HasPrefix(out, "-"):
			return nil, fmt.Errorf("the value for %s begins with a dash, so that it would be taken for an option", arg)
		}
		options = options && arg != "--"
		argv = append(argv, out)
	}
	return argv, nil
}

// last is the end of a text.
func last(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-most:], "")
}
