package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTerminalCompareInterrupt: one bar is for the whole comparison; Ctrl-C
// leaves it, says how to go on and draws what there is, and what goes on gives
// the report of one that nobody has left.
func TestTerminalCompareInterrupt(t *testing.T) {
	data, dir := questionsFile(t), t.TempDir()
	model, letGo := heldModel(t, 4)
	start := func(out string) *terminal {
		return startTerminal(t, 100, nil, "compare", "--formats", "qwen,qwen2.5", "--data", data, "--model", model, "--parallel", "1", "--out", filepath.Join(dir, out))
	}
	p := start("left")
	p.wait(1, `stopgap: qwen2\.5 \(2 of 2\)`)
	p.wait(1, `[^0-9]4/6`)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	screen := strings.Join(p.shows(100), "\n")
	for _, want := range []string{
		`(?m)^stopgap: qwen, qwen2\.5: 2 configurations × 3 questions × 1 rollout = 6 runs$`,
		`(?m)^stopgap: 3 questions, 6 rollouts, into .*left$`,
		`(?m)^! qwen2\.5: 2 of 3 rollouts have not been made$`,
		`\nstopgap: left with 4 of 6 rollouts done; the same command goes on from there\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("%s does not match the screen:\n%s", want, screen)
		}
	}
	if strings.Contains(screen, "%|") || strings.Contains(screen, "^C") {
		t.Errorf("the screen is:\n%s", screen)
	}
	letGo()
	p = start("left")
	p.wait(1, `6 rollouts, into [^\n]*; 4 done before`)
	if code := p.exit(); code != 0 {
		t.Errorf("going on: exit code %d:\n%s", code, p.output())
	}
	whole := start("whole")
	if code := whole.exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, name := range []string{"report.html", "report.json", "report.csv", "report.md"} {
		a, err := os.ReadFile(filepath.Join(dir, "left", name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "whole", name))
		if err != nil || string(a) != string(b) {
			t.Errorf("%s: left and gone on with it is another (%v)", name, err)
		}
	}
}
