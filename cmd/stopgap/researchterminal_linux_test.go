package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stopgap/internal/research/researchtest"
)

// builders is a small research in the sample documents.
func builders() researchtest.Author {
	page := func(id, goal, evidence, summary string) researchtest.Page {
		return researchtest.Page{URL: id + ".md", Goal: goal, Evidence: evidence, Summary: summary}
	}
	r := &researchtest.Researcher{
		Sections: []researchtest.Section{
			{Title: "The bridge", Queries: []string{"Kesper Bridge"}, Pages: []researchtest.Page{
				page("kesper-bridge", "who designed it", "Kesper Bridge was designed by Ottla Brunec.", "Ottla Brunec designed it."),
			}},
			{Title: "Its designer", Queries: []string{"Ottla Brunec"}, Pages: []researchtest.Page{
				page("ottla-brunec", "where she was born", "She was born in Marzipel.", "Marzipel is where she was born."),
			}},
		},
		Answer: "Ottla Brunec of Marzipel.",
	}
	return r.Author()
}

// research is how the command is called in these tests, and the report's file.
func researchArgs(t *testing.T, model string, more ...string) ([]string, string) {
	out := filepath.Join(t.TempDir(), "report.md")
	return append([]string{"research", "--model", model, "--corpus", "sample", "--date", "2026-01-02", "--out", out, "Who built the bridge?"}, more...), out
}

// TestTerminalResearch: the board fits the terminal, shows the outline as it
// grows, and goes away; what was done stays.
func TestTerminalResearch(t *testing.T) {
	for _, c := range []struct {
		width    int
		env      []string
		coloured bool
	}{{40, nil, true}, {80, []string{"NO_COLOR=1"}, false}, {200, nil, true}} {
		model, letGo := held(builders(), 5) // behind the first outline
		args, _ := researchArgs(t, model.Serve(t))
		p := startTerminal(t, c.width, c.env, args...)
		p.wait(1, `planning · turn `)
		p.wait(1, `outline 1[^:]`)
		letGo()
		if code := p.exit(); code != 0 {
			t.Errorf("width %d: exit code %d:\n%s", c.width, code, p.output())
		}
		if got := strings.Contains(p.output(), "\x1b[1m"); got != c.coloured || strings.Contains(p.output(), "\x1b[3") != c.coloured {
			t.Errorf("width %d: in colour: %v", c.width, got)
		}
		for line := range strings.SplitSeq(p.output(), "\n") {
			line = regexp.MustCompile(`\x1b\[[0-9;]*[mKJA]|\r`).ReplaceAllString(line, "")
			if cells(line) > c.width && !strings.HasPrefix(line, "stopgap: ") {
				t.Errorf("width %d: a line of %d columns: %q", c.width, cells(line), line)
			}
		}
		screen := strings.Join(p.shows(c.width), "\n")
		for _, want := range []string{"research: Who built the bridge?", "searched: Kesper Bridge", "[1] Kesper Bridge: Ottla", "outline 2: 2 points", "section 1: The bridge", "section 2: Its designer", "\nOttla Brunec of Marzipel.\n"} {
			if !strings.Contains(screen, want) {
				t.Errorf("width %d: no %q on the screen:\n%s", c.width, want, screen)
			}
		}
		if strings.Contains(screen, "waiting for the model") || strings.Contains(screen, "✓") {
			t.Errorf("width %d: the board is still there:\n%s", c.width, screen)
		}
	}
}

// A pipe gets plain lines.
func TestResearchInAPipe(t *testing.T) {
	args, out := researchArgs(t, builders().Serve(t))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Args = append([]string{"stopgap"}, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm", "OLLAMA_HOST=127.0.0.1:1"}
	var answer, told strings.Builder
	cmd.Stdout, cmd.Stderr = &answer, &told
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	if answer.String() != "Ottla Brunec of Marzipel.\n" || strings.ContainsAny(told.String(), "\x1b\r") || strings.Count(told.String(), "\nsection ") != 2 {
		t.Errorf("%q, and on standard error\n%q", answer.String(), told.String())
	}
	for _, name := range []string{out, strings.TrimSuffix(out, ".md") + ".html"} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), "The bridge") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ctrl-C takes the board away and writes what there is; a command that is started
// again goes on from there.
func TestTerminalResearchInterrupted(t *testing.T) {
	model, letGo := held(builders(), 5)
	args, out := researchArgs(t, model.Serve(t))
	p := startTerminal(t, 80, nil, args...)
	p.wait(1, `outline 1:`)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	screen := strings.Join(p.shows(80), "\n")
	if text, err := os.ReadFile(out); err != nil || !strings.Contains(string(text), "did not come to its end") || !strings.Contains(screen, "goes on from there") {
		t.Errorf("%v\n%s\n%s", err, text, screen)
	}
	letGo()
	p = startTerminal(t, 80, nil, args...)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, p.output())
	}
	screen = strings.Join(p.shows(80), "\n")
	if !strings.Contains(screen, "goes on: 1 summary, 1 outline and 0 sections are there") || strings.Contains(screen, "searched: Kesper") || !strings.Contains(screen, "section 2: Its designer") {
		t.Errorf("the screen is\n%s", screen)
	}
}
