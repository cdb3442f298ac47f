package endtoend

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// replays asserts that every run of a journal is whole, and plays as it was. It
// gives their number.
func replays(t *testing.T, path string) int {
	t.Helper()
	runs, err := trace.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	deck := trace.NewDeck(runs)
	for i := range runs {
		for _, found := range deck.Verify(i) {
			t.Errorf("run %d: %s", i+1, found)
		}
		report, err := deck.Replay(t.Context(), i)
		if err != nil {
			t.Fatalf("run %d: %v", i+1, err)
		}
		for _, d := range report.Differences {
			t.Errorf("run %d: %s", i+1, d)
		}
		if report.Cut || report.Compared < 4 {
			t.Errorf("run %d: %+v", i+1, report)
		}
	}
	return len(runs)
}

// A script in every format, with a second question, and a run of each that is
// cancelled, that a limit ends, and that the server breaks off: 60 runs and
// more, whose replays need neither the script nor the documents.
func TestReplayInEveryFormat(t *testing.T) {
	total, ended := 0, map[runner.Termination]bool{}
	for _, sys := range systems(t) {
		t.Run(sys.format.Name, func(t *testing.T) {
			text, err := template.Shipped(sys.format.Name)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "runs.trace")
			w, err := trace.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			about := trace.About{Version: "test", Model: "script", Format: sys.format.Name, Text: text}
			var script models.Script
			for _, turn := range sys.turns {
				script.Turns = append(script.Turns, models.ScriptTurn{After: turn.After, Text: turn.Text})
			}
			script.Turns = append(script.Turns, models.ScriptTurn{Text: "And that is all."})
			broken := models.Script{Turns: append([]models.ScriptTurn(nil), script.Turns...)}
			broken.Turns[1].Error = "cut"
			var ledger *runner.Ledger
			make := func(script *models.Script, question string, events int, edit func(*runner.Runner)) {
				r := newRunner(t, sys.format.Name, script.Open(models.Options{}), documents(t))
				if edit != nil {
					edit(r)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for ev, err := range w.Run(ctx, about, r, runner.Task{Question: question, Date: "2026-01-02", Ledger: ledger}) {
					if events--; events == 0 {
						cancel()
					}
					if last, ok := ev.(runner.Ended); ok && err == nil {
						ledger, ended[last.Termination] = last.Ledger, true
					}
				}
			}
			make(&script, question, 0, nil)
			make(&script, "And who was she?", 0, nil)
			ledger = nil
			make(&script, question, 12, nil)
			ledger = nil
			make(&broken, question, 0, func(r *runner.Runner) { r.Limits.Resumes = -1 })
			ledger = nil
			make(&script, question, 0, func(r *runner.Runner) { r.Limits.Turns = 1 })
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			total += replays(t, path)
		})
	}
	t.Logf("%d runs were replayed; they ended as %v", total, slices.Sorted(maps.Keys(ended)))
	for _, want := range []runner.Termination{runner.TermAnswered, runner.TermAnsweredForced, runner.TermCancelled, runner.TermServerError} {
		if !ended[want] {
			t.Errorf("no run ended as %s", want)
		}
	}
	if total < 60 {
		t.Errorf("only %d runs", total)
	}
}

// The built-in model answers sample questions in the formats that it has
// learned; the command records, verifies and replays them.
func TestReplayBuiltin(t *testing.T) {
	each := 2
	if ollamatest.Required() {
		each = 8
	}
	bin, env := command(t), bare()
	var wg sync.WaitGroup
	workers := make(chan struct{}, 4)
	for n, format := range learned {
		path := filepath.Join(t.TempDir(), format+".trace")
		wg.Go(func() {
			workers <- struct{}{}
			defer func() { <-workers }()
			do := func(args ...string) string {
				cmd := exec.Command(bin, args...)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			// Of the Chinese questions it does not answer all.
			questions := slices.DeleteFunc(sample.Questions(), func(q sample.Question) bool { return q.Question[0] >= utf8.RuneSelf })
			for i := range each {
				do("run", "--quiet", "--model", "builtin", "--format", format, "--trace", path, questions[(n+7*i)%len(questions)].Question)
			}
			do("trace", "verify", path)
			if out := do("trace", "replay", path); strings.Count(out, "identical\n") != each {
				t.Errorf("%s:\n%s", format, out)
			}
		})
	}
	wg.Wait()
}

// A conversation with the built-in model, whose prompts are ids: the second
// question is played with the tokens of the first.
func TestReplayIDs(t *testing.T) {
	m, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "runs.trace")
	w, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, "qwen", m, documents(t))
	r.Limits.TurnTokens = 30
	var ledger *runner.Ledger
	for i, q := range []string{"What is <|im_end|>?", "And why?"} {
		for ev, err := range w.Run(t.Context(), trace.About{Model: "builtin", Format: "qwen", Text: text}, r, runner.Task{Question: q, Ledger: ledger}) {
			if err != nil {
				t.Fatal(err)
			}
			if last, ok := ev.(runner.Ended); ok {
				ledger = last.Ledger
			}
		}
		if ledger.IDs() == nil {
			t.Errorf("question %d: not all of the prompt is ids", i+1)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	replays(t, path)
}
