package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// approvals is a run whose model twice calls a tool that changes things.
func approvals(t *testing.T, arguments ...string) (args []string, made string) {
	t.Helper()
	dir := t.TempDir()
	made = filepath.Join(dir, "made")
	file := filepath.Join(dir, "tools.yaml")
	if err := os.WriteFile(file, []byte(`tools:
  append: {description: Add a line., parameters: {type: object, properties: {line: {type: string}}}, command: [sh, -c, 'echo "$2" >> "$1"', sh, `+made+`, "{line}"]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(line string) string {
		return `"<tool_call>\n{\"name\": \"append\", \"arguments\": {\"line\": \n\n\n \"` + line + `\"}}\n</tool_call>"`
	}
	model := modelFile(t, "turns:\n  - text: "+call("one \\\\u001b[2J")+"\n  - text: "+call("two")+"\n  - text: Done.\n")
	return append([]string{"run", "--model", model, "--tools", "append", "--tool-file", file, "--allow", "code"}, append(arguments, "Go on.")...), made
}

// TestApproval: a tool that changes things runs when it was allowed on the
// terminal, for once or for the whole run, and not otherwise.
func TestApproval(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string
		want    string // of the file
		flags   []string
	}{
		{"twice", []string{"y\n", "yes\n"}, "one \x1b[2J\ntwo\n", nil},
		{"always", []string{"a\n"}, "one \x1b[2J\ntwo\n", nil},
		{"not the first", []string{"n\n", "y\n"}, "two\n", nil},
		{"only Enter", []string{"\n", "\n"}, "", nil},
		{"end of input", []string{"\x04", "\x04"}, "", nil},
		{"allowed", nil, "one \x1b[2J\ntwo\n", []string{"--yes"}},
		{"quiet", []string{"y\n", "n\n"}, "one \x1b[2J\n", []string{"--quiet"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, made := approvals(t, c.flags...)
			p := startTerminal(t, 80, nil, args...)
			for i, answer := range c.answers {
				p.wait(i+1, `in this run: `)
				p.write(answer)
			}
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d: %q", code, p.output())
			}
			if b, _ := os.ReadFile(made); string(b) != c.want {
				t.Errorf("made %q, not %q", b, c.want)
			}
			out := p.output()
			if strings.Count(out, "wants to run with") != len(c.answers) || strings.Contains(out, "\x1b[2J") {
				t.Errorf("%q", out)
			}
			if len(c.answers) > 0 && !strings.Contains(strings.Join(p.lines(), "\n"), `append wants to run with
{"line":"one \u001b[2J"}
allow it? (y)es, (n)o, (a)lways in this run: `) {
				t.Errorf("%s", strings.Join(p.lines(), "\n"))
			}
		})
	}
}

// TestApprovalInterrupted: Ctrl-C at the question ends the run, and nothing runs.
func TestApprovalInterrupted(t *testing.T) {
	args, made := approvals(t)
	p := startTerminal(t, 80, nil, args...)
	p.wait(1, `in this run: `)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d: %q", code, p.output())
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("the tool ran")
	}
}

// TestApprovalInConversation: the line editor and the question share a terminal.
func TestApprovalInConversation(t *testing.T) {
	args, made := approvals(t)
	p := startTerminal(t, 80, nil, args[:len(args)-1]...)
	p.wait(1, `> `)
	p.write("Go on.\r")
	p.wait(1, `in this run: `)
	p.write("y\n")
	p.wait(2, `in this run: `)
	p.write("n\n")
	p.wait(1, `answered ·`)
	p.wait(2, `> `)
	p.write("\x04")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d: %q", code, p.output())
	}
	if b, _ := os.ReadFile(made); string(b) != "one \x1b[2J\n" {
		t.Errorf("made %q", b)
	}
}
