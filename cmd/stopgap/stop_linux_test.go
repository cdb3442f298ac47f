package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// callFile is a text with a call in it.
func callFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "call.txt")
	if err := os.WriteFile(path, []byte("I will look.\n<call>日本</call>\nNow I know."), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTerminalStop: in a terminal what is kept of a match is green, what is cut
// off red, what comes after it dim; all lines fit.
func TestTerminalStop(t *testing.T) {
	for _, width := range []int{80, 40, 20} {
		p := startTerminal(t, width, nil, "stop", "--stop-regex", "<call>(?<text>.*?)</call>", "--stop", "Now I", callFile(t))
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		for _, want := range []string{
			"\x1b[32m<call>日本</call>\x1b[0m\x1b[2m␊N", " \x1b[32m~~~~~~~~~~~~~~~~\x1b[0m\x1b[1m^\x1b[0m",
			"\x1b[31mNow I\x1b[0m\x1b[2m know.\x1b[0m", " \x1b[31m----\x1b[0m\x1b[1m^\x1b[0m", "\x1b[1mtogether\x1b[0m",
		} {
			if width == 80 && !strings.Contains(p.output(), want) {
				t.Errorf("no %q in %q", want, p.output())
			}
		}
		for _, line := range p.lines() {
			if cells(line) > width && !strings.Contains(line, "<call>(?<text>.*?)</call>") { // one long word
				t.Errorf("%d columns: %q", width, line)
			}
		}
		marks := 0
		lines := p.lines()
		for i, line := range lines {
			if at := strings.IndexByte(line, '^'); at >= 0 && strings.Trim(line, " ~-^") == "" {
				marks++
				above := []rune(lines[i-1])
				n := 0
				for n < len(above) && cells(string(above[:n+1])) <= at {
					n++
				}
				if n >= len(above) || above[n] != '>' && above[n] != 'I' {
					t.Errorf("%d columns:\n%s\n%s", width, lines[i-1], line)
				}
			}
		}
		if marks != 2 {
			t.Errorf("%d columns: %d marks in %q", width, marks, lines)
		}
	}
}

// TestTerminalStopWithoutColour: the end is marked all the same.
func TestTerminalStopWithoutColour(t *testing.T) {
	for _, c := range []struct{ environment, flag string }{{"NO_COLOR=1", "auto"}, {"TERM=dumb", "auto"}, {"A=b", "never"}} {
		p := startTerminal(t, 80, []string{c.environment}, "stop", "--color", c.flag, "--stop-regex", "</call>", callFile(t))
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen := strings.ReplaceAll(p.output(), "\r", "")
		if strings.Contains(screen, "\x1b[3") || !strings.Contains(screen, "    I will look.␊<call>日本</call>␊Now I know.\n                           ~~~~~~^\n") {
			t.Errorf("%v: %q", c, p.output())
		}
	}
	p := startTerminal(t, 80, nil, "stop", "--color", "always", "--stop-regex", "([", callFile(t))
	if code := p.exit(); code != 2 || strings.Contains(p.output(), "\x1b") {
		t.Errorf("exit code %d, %q", code, p.output())
	}
}

// TestTerminalStopTyped: without a file the text is what is typed.
func TestTerminalStopTyped(t *testing.T) {
	p := startTerminal(t, 80, nil, "stop", "--stop-regex", "two")
	p.wait(1, `reading the text from the terminal; Ctrl-D ends it`)
	p.write("one two three\n")
	p.write("\x04")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if screen := strings.Join(p.lines(), "\n"); !strings.Contains(screen, "\n  fires at byte 7 (1:7), the match begins at byte 4") {
		t.Errorf("the screen is:\n%s", screen)
	}
}

// TestTerminalStopInterrupted: Ctrl-C ends the reading and still tells what is
// known; as JSON it does not, for it would not be true of the whole text.
func TestTerminalStopInterrupted(t *testing.T) {
	for _, args := range [][]string{{}, {"--json"}} {
		p := startTerminal(t, 80, nil, append([]string{"stop", "--all", "--stop", "two", "--stop", "never"}, args...)...)
		p.wait(1, `Ctrl-D ends it`)
		p.write("one two three\n")
		p.wait(1, `4-7 \(1:7\) --stop two: |"match_start":4`)
		p.write("\x03")
		if code := p.exit(); code != exitInterrupted {
			t.Errorf("%v: exit code %d", args, code)
		}
		told := regexp.MustCompile(`(?s)interrupted: this is of the first 14 bytes.*does not fire`).MatchString(p.output())
		if told != (len(args) == 0) || !told && strings.Contains(p.output(), "never") {
			t.Errorf("%v: %q", args, p.output())
		}
	}
}
