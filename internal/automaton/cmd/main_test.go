package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	script, model := filepath.Join(dir, "model.yaml"), filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(script, []byte("turns:\n  - after: \"Thought:\"\n    text: \" I know.\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		output string
	}{
		{"writes", []string{script, model}, 0, "tokens"},
		{"no arguments", nil, 2, "usage"},
		{"no script", []string{filepath.Join(dir, "none.yaml"), model}, 1, "none.yaml"},
		{"no folder", []string{script, filepath.Join(dir, "none", "model.gguf")}, 1, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(c.args, &out, &out); code != c.code || !strings.Contains(out.String(), c.output) {
				t.Errorf("got %d, %q; want %d and %q", code, out.String(), c.code, c.output)
			}
		})
	}
	b, err := os.ReadFile(model)
	if err != nil || !bytes.HasPrefix(b, []byte("GGUF")) {
		t.Errorf("the model file is no GGUF file (%v)", err)
	}
}
