package main

import (
	"context"
	"path/filepath"

	"stopgap/tools"
	"stopgap/tools/shell"
)

// openShellTools gives shell and write_file.
func openShellTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	return shell.Tools(shell.Options{Folder: w.folder, Network: w.allows(tools.Net), Protect: w.protected()}), nil
}

// protected are our own files, which no tool changes: what they say is run.
func (s *settings) protected() []string {
	var out []string
	for _, path := range []string{s.configPath, s.toolFile, s.trace} {
		if path == "" {
			continue
		}
		if path == s.configPath {
			out = append(out, absolutePath(filepath.Join(filepath.Dir(path), toolsFile)))
		}
		out = append(out, absolutePath(path))
	}
	return out
}

func absolutePath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
