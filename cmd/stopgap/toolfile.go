package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"stopgap/internal/config"
	"stopgap/tools"
	"stopgap/tools/mcp"
	"stopgap/tools/own"
)

// A toolFile declares tools: commands and endpoints of the user's own, and
// servers that have more.
type toolFile struct {
	path  string
	Tools map[string]own.Declaration `yaml:"tools"`
	MCP   map[string]mcpServer       `yaml:"mcp"`
}

// An mcpServer is a server as the file declares it.
type mcpServer struct {
	Command      []string           `yaml:"command"`
	Dir          string             `yaml:"dir"`
	Env          map[string]string  `yaml:"env"` // ${NAME} is a variable of ours
	URL          string             `yaml:"url"`
	Headers      map[string]string  `yaml:"headers"` // likewise
	Timeout      time.Duration      `yaml:"timeout"`
	Capabilities []tools.Capability `yaml:"capabilities"`
}

// toolsFile is the name of the file beside the configuration file.
const toolsFile = "tools.yaml"

// declare reads the file that declares tools. Only one that was asked for must
// exist. It never lies in the current folder unasked: it says what is run.
func (w *workshop) declare() error {
	path, asked := w.toolFile, w.toolFile != ""
	if !asked {
		if w.configPath == "" {
			return nil
		}
		path = filepath.Join(filepath.Dir(w.configPath), toolsFile)
	}
	w.file = toolFile{path: path}
	err := config.Decode(path, &w.file)
	switch {
	case err == nil, !asked && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return &usageError{&config.Error{Path: path, Reason: "there is no such file"}, "--tool-file takes a YAML file that declares tools; docs/tools.md tells how"}
	}
	return &usageError{err, "docs/tools.md tells how tools are declared"}
}

// fault says which declaration is wrong.
func (f *toolFile) fault(what, name string, err error) error {
	return &usageError{fmt.Errorf("%s: %s %q: %w", f.path, what, name, err), "docs/tools.md tells how tools are declared"}
}

// openOwnTools gives the commands and endpoints that the user has declared.
func openOwnTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	file := &w.file
	var list []tools.Tool
	var faults error
	for _, name := range slices.Sorted(maps.Keys(file.Tools)) {
		d := file.Tools[name]
		if d.Sandbox != nil {
			d.Sandbox.Protect = w.protected()
		}
		t, err := own.New(name, d, w.app.lookup)
		if err != nil { // it concerns only those who want this one
			if w.wants(name) || w.wants("own") {
				faults = errors.Join(faults, file.fault("tool", name, err))
			}
			continue
		}
		list = append(list, t)
	}
	return list, faults
}

// openMCPTools gives the tools of the servers that --tools names. Before a
// server is started or reached, --allow has to allow it.
func openMCPTools(ctx context.Context, w *workshop) ([]tools.Tool, error) {
	file := &w.file
	var list []tools.Tool
	var faults error
	for _, name := range slices.Sorted(maps.Keys(file.MCP)) {
		if !w.named(name) {
			if w.listing {
				list = append(list, unopened{name, file.MCP[name].config(name)})
			}
			continue
		}
		found, err := w.openServer(ctx, file, name)
		faults = errors.Join(faults, err)
		list = append(list, found...)
	}
	return list, faults
}

// openServer starts or reaches one server.
func (w *workshop) openServer(ctx context.Context, file *toolFile, name string) ([]tools.Tool, error) {
	c := file.MCP[name].config(name)
	if err := c.Check(); err != nil {
		return nil, file.fault("MCP server", name, err)
	}
	for _, vars := range []map[string]string{c.Env, c.Header} {
		for key, text := range vars {
			value, secrets, err := w.app.expand(text)
			if err != nil {
				return nil, file.fault("MCP server", name, err)
			}
			vars[key], c.Secrets = value, append(c.Secrets, secrets...)
		}
	}
	if err := w.permit([]tools.Tool{unopened{name, c}}); err != nil {
		return nil, err
	}
	server, err := mcp.Open(ctx, c)
	if err != nil {
		return nil, &usageError{err, "\"stopgap tool list --tools " + name + "\" tries it again"}
	}
	w.closers = append(w.closers, server.Close)
	for _, left := range server.Left() {
		w.app.note("MCP server %s: left out: %s", name, left)
	}
	return server.Tools(), nil
}

// config is what tools/mcp takes.
func (s mcpServer) config(name string) mcp.Config {
	return mcp.Config{
		Name: name, Command: s.Command, Dir: s.Dir, Env: maps.Clone(s.Env), URL: s.URL, Header: maps.Clone(s.Headers),
		Timeout: s.Timeout, Capabilities: s.Capabilities, Version: readVersion().Version,
	}
}

// variableOf is a variable of the environment in a declaration.
var variableOf = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts variables of the environment into a text. Their values are secrets.
func (a *app) expand(text string) (out string, secrets []string, missing error) {
	out = variableOf.ReplaceAllStringFunc(text, func(m string) string {
		name := variableOf.FindStringSubmatch(m)[1]
		value := a.env(name)
		if value == "" {
			missing = fmt.Errorf("the environment variable %s, which it needs, is not set", name)
		}
		secrets = append(secrets, value)
		return value
	})
	return out, secrets, missing
}

// unopened stands in a list for a server that was not reached.
type unopened struct {
	name   string
	config mcp.Config
}

// Spec implements tools.Tool.
func (u unopened) Spec() tools.Spec {
	return tools.Spec{
		Name: u.name + ".*", Description: "The tools of an MCP server. \"stopgap tool show " + u.name + "\" lists them.",
		SideEffects: true, Capabilities: u.config.Needs(),
	}
}

// Run implements tools.Tool.
func (unopened) Run(context.Context, json.RawMessage) (string, error) {
	return "", errors.New("the server was not started")
}
