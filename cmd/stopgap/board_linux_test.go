package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"stopgap/internal/research/researchtest"
)

// held is a model that answers so many requests at once, and the others when it
// is let go: what a test does meanwhile may take as long as it likes.
func held(a researchtest.Author, first int32) (waits researchtest.Author, letGo func()) {
	var asked atomic.Int32
	free := make(chan struct{})
	waits = func(ctx context.Context, prompt string) (string, error) {
		if asked.Add(1) > first {
			select {
			case <-free:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return a(ctx, prompt)
	}
	return waits, sync.OnceFunc(func() { close(free) })
}

// heldModel is a held model that always says the same.
func heldModel(t *testing.T, first int32) (model string, letGo func()) {
	t.Helper()
	a, letGo := held(func(context.Context, string) (string, error) { return "one two three four five six seven eight", nil }, first)
	return a.Serve(t), letGo
}

// questionsFile has three questions.
func questionsFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "three.jsonl")
	text := `{"id": "a", "question": "Who?", "answer": "one"}` + "\n" + `{"id": "b", "question": "What?"}` + "\n" + `{"id": "c", "question": "When?"}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shows plays all output of a terminal and gives what stands there in the end.
func (p *terminal) shows(width int) []string {
	p.t.Helper()
	e := newEmulator(p.t, width)
	fmt.Fprint(e, p.output())
	return e.text()
}

// resize gives the terminal another width, which the process is told.
func (p *terminal) resize(width int) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil {
		p.t.Fatal(err)
	}
}

var workerLineShown = regexp.MustCompile(`(?m)^\x1b\[K  1 [0-9ms.]+ · [ab] #1 · `)

// TestTerminalBatch: the bar and the workers' lines fit the terminal and go away;
// a terminal that changes its width meanwhile ends as clean.
func TestTerminalBatch(t *testing.T) {
	data := questionsFile(t)
	for _, width := range []int{40, 80, 200} {
		model, letGo := heldModel(t, 0)
		p := startTerminal(t, width, nil, "batch", "--data", data, "--model", model, "--parallel", "2", "--out", filepath.Join(t.TempDir(), "o"))
		p.wait(1, workerLineShown.String())
		letGo()
		if code := p.exit(); code != 0 {
			t.Errorf("width %d: exit code %d", width, code)
		}
		for line := range strings.SplitSeq(p.output(), "\n") {
			if l, ok := strings.CutPrefix(line, "\x1b[K"); ok && cells(strings.TrimRight(l, "\r")) >= width {
				t.Errorf("width %d: a line of %d columns: %q", width, cells(l), line)
			}
		}
		got := p.shows(width)
		if len(got) != 5 || !strings.HasPrefix(got[0], "stopgap: using openai:") || !strings.HasPrefix(got[1], "stopgap: 3 questions, 3 rollouts, into ") ||
			!strings.HasPrefix(got[2], "3 of 3 rollouts · 3 answered · exact match 0 of 1 (0.0 %), contained 1 of 1") || !strings.HasPrefix(got[3], "results: ") || got[4] != "" {
			t.Errorf("width %d: the screen is\n%s", width, strings.Join(got, "\n"))
		}
	}
	model, letGo := heldModel(t, 0)
	p := startTerminal(t, 120, nil, "batch", "--data", data, "--model", model, "--parallel", "2", "--out", filepath.Join(t.TempDir(), "o"))
	p.wait(1, workerLineShown.String())
	p.resize(40)
	p.wait(1, `\x1b\[[0-9]+A\x1b\[J(.*\n)*\x1b\[K  1 [^\n]*…`) // drawn at its new width
	p.resize(90)
	letGo()
	code := p.exit()
	// The frame behind the first long way up is the first one at the new width.
	e, out := newEmulator(t, 120), p.output()
	narrow := regexp.MustCompile(`\r\x1b\[([4-9]|[0-9]{2})A`).FindStringIndex(out)
	if code != 0 || narrow == nil {
		t.Fatalf("resized: exit code %d:\n%q", code, out)
	}
	wide := narrow[1] + strings.Index(out[narrow[1]:], "\r\x1b[")
	fmt.Fprint(e, out[:narrow[0]])
	e.width = 40
	fmt.Fprint(e, out[narrow[0]:wide])
	e.width = 90
	fmt.Fprint(e, out[wide:])
	if got := e.text(); len(got) != 5 || !strings.HasPrefix(got[2], "3 of 3 rollouts") {
		t.Errorf("resized: the screen is\n%s", strings.Join(got, "\n"))
	}
}

// TestTerminalBoardsPlain: without colours there are none, a terminal that knows
// nothing gets nothing, and a pipe gets lines.
func TestTerminalBoardsPlain(t *testing.T) {
	model, data := modelFile(t, `turns: [{text: "one two"}]`), questionsFile(t)
	colours := regexp.MustCompile(`\x1b\[[0-9;]+m`)
	for _, args := range [][]string{
		{"batch", "--data", data, "--model", model, "--out"},
		{"probe", "--model", model, "--first", "1"},
	} {
		run := func(stdout *os.File, env string) string {
			all := args
			if args[0] == "batch" {
				all = append(args[:len(args):len(args)], filepath.Join(t.TempDir(), "o"))
			}
			p := startTerminalTo(t, stdout, 80, []string{env}, all...)
			if code := p.exit(); code != 0 {
				t.Errorf("%s %s: exit code %d: %q", args[0], env, code, p.output())
			}
			return p.output()
		}
		if out := run(nil, "NO_COLOR=1"); colours.MatchString(out) {
			t.Errorf("%s: colours in %q", args[0], out)
		}
		if out := run(nil, "TERM=dumb"); strings.Contains(out, "\x1b") || strings.Contains(strings.ReplaceAll(out, "\r\n", "\n"), "\r") {
			t.Errorf("%s: a dumb terminal gets %q", args[0], out)
		}
		pipe := fileIn(t, "out")
		run(pipe, "X=x")
		if text, err := os.ReadFile(pipe.Name()); err != nil || len(text) == 0 || bytes.ContainsAny(text, "\x1b\r") {
			t.Errorf("%s: into a pipe goes %q, %v", args[0], text, err)
		}
	}
}

func fileIn(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// same are the results of a folder without what was measured.
func same(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		delete(fields, "duration_ns")
		delete(fields, "usage") // what was read again
		text, _ := json.Marshal(fields)
		out.Write(append(text, '\n'))
	}
	return out.String()
}

// TestTerminalBatchInterrupt: Ctrl-C ends a batch, says how to go on, and what
// goes on gives what a batch gives that nobody has ended.
func TestTerminalBatchInterrupt(t *testing.T) {
	data, dir := questionsFile(t), t.TempDir()
	model, letGo := heldModel(t, 2)
	start := func(out string) *terminal {
		return startTerminal(t, 100, nil, "batch", "--data", data, "--model", model, "--rollouts", "2", "--parallel", "2", "--out", filepath.Join(dir, out))
	}
	p := start("left")
	p.wait(1, `\[[^\n]*\] \(2/6|[^0-9]2/6`)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	screen := strings.Join(p.shows(100), "\n")
	if !strings.HasSuffix(screen, "\nstopgap: left with 2 of 6 rollouts done; the same command goes on from there\n") || !strings.Contains(screen, "\n2 of 6 rollouts · 2 answered · ") || strings.Contains(screen, "^C") || strings.Contains(screen, "%|") {
		t.Fatalf("the screen is:\n%s", screen)
	}
	if n := strings.Count(same(t, filepath.Join(dir, "left")), "\n"); n != 2 {
		t.Errorf("%d results, not 2", n)
	}
	letGo()
	p = start("left")
	p.wait(1, `6 rollouts, into [^\n]*; 2 done before`)
	if code := p.exit(); code != 0 {
		t.Errorf("going on: exit code %d:\n%s", code, p.output())
	}
	whole := start("whole")
	if code := whole.exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if a, b := same(t, filepath.Join(dir, "left")), same(t, filepath.Join(dir, "whole")); a != b || strings.Count(a, "\n") != 6 {
		t.Errorf("left and gone on with:\n%s\nin one go:\n%s", a, b)
	}
}

// TestTerminalProbeBoard: the line of a probe fits the terminal and goes away,
// and so does its report.
func TestTerminalProbeBoard(t *testing.T) {
	model := modelFile(t, `turns: [{text: "one two three", delay: 30ms}]`)
	for _, width := range []int{40, 80, 200} {
		p := startTerminal(t, width, nil, "probe", "--model", model, "--first", "1")
		p.wait(1, `case 1 of `)
		if width == 80 {
			p.resize(40)
		}
		if code := p.exit(); code != 0 {
			t.Errorf("width %d: exit code %d", width, code)
		}
		e := newEmulator(t, width)
		for part := range strings.SplitAfterSeq(p.output(), "\x1b[J") { // each frame of its own
			fmt.Fprint(e, part)
			if line := e.text()[len(e.lines)-1]; strings.Contains(line, "case ") && cells(line) >= width {
				t.Errorf("width %d: %q", width, line)
			}
		}
		screen := strings.Join(e.text(), "\n")
		if strings.Contains(screen, "case 1 of") || strings.ContainsAny(screen, strings.Join(frames[:], "")) || !strings.Contains(screen, "\nwhat was wrong\n") {
			t.Errorf("width %d: the screen is\n%s", width, screen)
		}
		for _, line := range e.text() {
			if cells(line) > width && !strings.HasPrefix(line, "stopgap: ") {
				t.Errorf("width %d: %d columns: %q", width, cells(line), line)
			}
		}
	}
}

// TestTerminalProbeInterrupt: Ctrl-C ends a probe, which tells what there is, as
// the whole probe has it.
func TestTerminalProbeInterrupt(t *testing.T) {
	model, letGo := heldModel(t, 3)
	p := startTerminal(t, 80, nil, "probe", "--model", model, "--first", "2")
	p.wait(1, `case 4 of `)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	screen := strings.Join(p.shows(80), "\n")
	if !regexp.MustCompile(`\nstopgap: 3 of [0-9]+ cases were asked\n`).MatchString(screen) || !strings.Contains(screen, "\nwhat was wrong\n") || strings.Contains(screen, "^C") {
		t.Errorf("the screen is:\n%s", screen)
	}
	letGo()
	cases := func(model string, after int) []string {
		out := fileIn(t, "cases")
		p := startTerminalTo(t, out, 80, nil, "probe", "--model", model, "--first", "2", "--json")
		if after > 0 {
			p.wait(1, fmt.Sprintf(`case %d of `, after+1))
			p.write("\x03")
		}
		p.exit()
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, `{"event":"case",`) {
				list = append(list, line)
			}
		}
		return list
	}
	another, _ := heldModel(t, 4)
	some, all := cases(another, 4), cases(model, 0)
	if len(some) != 4 || len(all) < 6 || strings.Join(some, "") != strings.Join(all[:len(some)], "") {
		t.Errorf("%d of %d cases, and not the first ones of the whole probe", len(some), len(all))
	}
}
