// Package endtoend runs the main job on a real Ollama: a model file that
// follows a script, a real folder of documents, the real loop.
package endtoend

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
	"stopgap/tools/corpus"
)

func TestMain(m *testing.M) { os.Exit(ollamatest.Main(m)) }

const (
	root     = "../.."
	question = "Who ground the mirror of the telescope that found Comet Voss?"
	first    = `["Anneke Voss comet telescope"]`
	second   = `["Lantern telescope mirror ground"]`
	answer   = "Ilse Marrow ground the mirror [the-lantern.md]."
	// What the last line of each search's results ends in: a generation of the
	// automaton begins where the prompt ends in a text of its own.
	firstEnds  = " (score 1.69)"
	secondEnds = " (score 1.51)"
)

// A system is a format and what its model writes in three turns.
type system struct {
	format string
	turns  []automaton.Turn
	// halts is the name of the criterion that ends the first two turns; empty
	// where the model's end-of-generation token does.
	halts string
	// tail is what the model would have gone on to write.
	tail string
}

var systems = []system{
	{
		format: "qwen",
		turns: []automaton.Turn{
			{After: "<|im_start|>assistant\n", Text: "<think>\nI look it up.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": " + first + "}}\n</tool_call>"},
			{After: firstEnds + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n", Text: "<think>\nThe Lantern.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": " + second + "}}\n</tool_call>"},
			{After: secondEnds + "\n</tool_response><|im_end|>\n<|im_start|>assistant\n", Text: "<think>\nNow I know.\n</think>\n\n" + answer},
		},
	},
	{
		format: "qwq",
		turns: []automaton.Turn{
			{After: "<|im_start|>assistant\n<think>\n", Text: "I look it up.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": " + first + "}}\n</tool_call>\nNow I wait for it."},
			{After: firstEnds + "\n</tool_response>\n", Text: "The Lantern.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": " + second + "}}\n</tool_call>\nAnd I wait once more."},
			{After: secondEnds + "\n</tool_response>\n", Text: "Now I know.\n</think>\n\n" + answer},
		},
		halts: "call", tail: "wait",
	},
	{
		format: "react",
		turns: []automaton.Turn{
			{After: question + "\nThought:", Text: " I look it up.\nAction: search\nAction Input: {\"query\": " + first + "}\nObservation: I make something up."},
			{After: firstEnds + "\nThought:", Text: " The Lantern it is.\nAction: search\nAction Input: {\"query\": " + second + "}\nObservation: And make up more."},
			{After: secondEnds + "\nThought:", Text: " I now know the final answer\nFinal Answer: " + answer},
		},
		halts: "observation", tail: "make",
	},
}

// modelFile writes the script as a GGUF.
func modelFile(t testing.TB, turns []automaton.Turn, opts automaton.Options) string {
	t.Helper()
	a, err := automaton.Compile(automaton.Script{Turns: turns})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := a.WriteFile(path, opts); err != nil {
		t.Fatal(err)
	}
	return path
}

// model gives the script to Ollama as a model file and opens it.
func model(t testing.TB, s *ollamatest.Server, name string, turns []automaton.Turn, opts automaton.Options) models.Model {
	t.Helper()
	s.Create(t, name, modelFile(t, turns, opts), nil)
	m, err := models.Open("ollama:"+name, models.Options{OllamaHost: s.URL, ContextSize: 8192})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// documents are the demonstration's, indexed into a temporary file.
func documents(t testing.TB) *tools.Set {
	t.Helper()
	x, err := corpus.Open(context.Background(), corpus.Config{
		Path: filepath.Join(root, "docs/demo/corpus"), Index: filepath.Join(t.TempDir(), "corpus.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	set, err := tools.NewSet(x.Tools(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func newRunner(t testing.TB, format string, m models.Model, set *tools.Set) *runner.Runner {
	t.Helper()
	f, err := template.Load(format)
	if err != nil {
		t.Fatal(err)
	}
	return &runner.Runner{Model: m, Format: f, Tools: set, Context: 8192}
}

// The whole job in each format: thinking, a call, the halt inside the stream,
// the tool over real documents, a second call, the answer.
func TestWholeRun(t *testing.T) {
	for _, sys := range systems {
		t.Run(sys.format, func(t *testing.T) {
			s := ollamatest.Shared(t)
			r := newRunner(t, sys.format, model(t, s, sys.format, sys.turns, automaton.Options{}), documents(t))
			check(t, sys, r)
			reused(t, s)
		})
	}
}

// The same on llama-server with two slots, which counts what it reads: each
// turn costs the tokens that were appended and nothing else.
func TestWholeRunOnLlamaServer(t *testing.T) {
	for _, sys := range systems {
		t.Run(sys.format, func(t *testing.T) {
			url := ollamatest.LlamaServer(t, modelFile(t, sys.turns, automaton.Options{}), "-c", "16384", "-np", "2")
			m, err := models.Open("llamacpp:"+url, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, sys.format, m, documents(t))
			r.Session = "one"
			stops := check(t, sys, r)
			for i, stop := range stops {
				u := stop.Usage
				if !u.Evaluated.Known || !u.Reused.Known || !u.Prompt.Known {
					t.Fatalf("turn %d: usage %+v", i+1, u)
				}
				if i == 0 {
					continue
				}
				// Generated counts the tokens of a stop text that was stripped
				// too (up to four here), and one that the server was at work on
				// when it was halted.
				before := stops[i-1].Usage
				appended := u.Prompt.N - before.Prompt.N - before.Generated.N
				t.Logf("turn %d: %d of %d prompt tokens evaluated, %d appended", i+1, u.Evaluated.N, u.Prompt.N, appended)
				if u.Evaluated.N > appended+5 {
					t.Errorf("turn %d: %d tokens evaluated, %d appended", i+1, u.Evaluated.N, appended)
				}
			}
		})
	}
}

// check runs a system's question and asserts what every server must give.
func check(t *testing.T, sys system, r *runner.Runner) (stops []runner.Stopped) {
	t.Helper()
	var returned []runner.Returned
	var out runner.Outcome
	spans := map[template.SpanKind]string{}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ev, err := range r.Run(ctx, runner.Task{Question: question, Date: "2026-01-02"}) {
		if err != nil {
			t.Fatal(err)
		}
		switch ev := ev.(type) {
		case runner.Text:
			spans[ev.Span] += ev.Text
		case runner.Stopped:
			stops = append(stops, ev)
		case runner.Returned:
			returned = append(returned, ev)
		case runner.Ended:
			out = ev.Outcome
		}
	}
	if out.Termination != runner.TermAnswered || out.Answer != answer || out.Turns != 3 || out.Calls != 2 {
		t.Fatalf("ended %s after %d turns and %d calls with %q\n%s", out.Termination, out.Turns, out.Calls, out.Answer, out.Ledger.Text())
	}
	for i, ends := range []string{firstEnds, secondEnds} {
		if !strings.HasSuffix(returned[i].Content, ends) || returned[i].Status != tools.OK {
			t.Errorf("result %d: %s %q", i, returned[i].Status, returned[i].Content)
		}
		if stops[i].Criterion != sys.halts {
			t.Errorf("turn %d was ended by %q, want %q", i+1, stops[i].Criterion, sys.halts)
		}
	}
	if sys.tail != "" && strings.Contains(modelText(out.Ledger), sys.tail) {
		t.Errorf("text past the stop is kept: %q", modelText(out.Ledger))
	}
	if !strings.Contains(spans[template.SpanThink], "look it up") || !strings.Contains(spans[template.SpanAnswer]+spans[template.SpanText], answer) {
		t.Errorf("spans: %q", spans)
	}
	return stops
}

func modelText(l *runner.Ledger) string {
	var b strings.Builder
	for _, s := range l.Segments() {
		if s.Source == template.FromModel {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// reused asserts what the server itself logged: each prompt was found in its
// cache up to and with the whole prompt before.
func reused(t *testing.T, s *ollamatest.Server) {
	t.Helper()
	slots := s.Slots()
	if len(slots) < 3 {
		t.Fatalf("the log tells of %d requests", len(slots))
	}
	for i := len(slots) - 2; i < len(slots); i++ {
		if slots[i].Reused < slots[i-1].Prompt {
			t.Errorf("request %d: %d of %d prompt tokens reused, the prompt before had %d", i+1, slots[i].Reused, slots[i].Prompt, slots[i-1].Prompt)
		}
	}
}

// docs/demo/run.sh is what make run does.
func TestDemonstration(t *testing.T) {
	ollama, err := ollamatest.Binary()
	if err != nil {
		if os.Getenv("STOPGAP_REQUIRE_OLLAMA") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(ollama) != filepath.Join(abs, "build") {
		t.Skip("the Ollama of these tests is not the one in build/, which the demonstration uses")
	}
	build := exec.Command("make", "build")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	var stdout, stderr strings.Builder
	run := exec.Command("docs/demo/run.sh")
	run.Dir, run.Stdout, run.Stderr = root, &stdout, &stderr
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if want := "Ilse Marrow ground the mirror"; !strings.HasPrefix(stdout.String(), want) || !strings.Contains(stderr.String(), "starting Ollama") {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
}

// endless is a model that would write on for ever after its call, at the pace
// of a real one: the wider the feed-forward layer, the slower, 14 ms a token
// at 16384 on one core.
func endless(t testing.TB, s *ollamatest.Server, feedForward int) *runner.Runner {
	turn := systems[0].turns[0]
	turn.Text += "\nThen I go on without an end, and on."
	turn.Finish = automaton.FinishLength
	m := model(t, s, "endless", []automaton.Turn{turn}, automaton.Options{FeedForward: feedForward})
	r := newRunner(t, "qwen", m, nil)
	r.SingleCall = true
	return r
}

// haltOnce runs until the call is complete and gives how many tokens the
// server generated past it, and the time to the end of the request.
func haltOnce(t testing.TB, s *ollamatest.Server, r *runner.Runner) (tokens int, halt time.Duration) {
	t.Helper()
	before := len(s.Slots())
	pieces := 0
	for ev, err := range r.Run(t.Context(), runner.Task{Question: fmt.Sprint("question ", before)}) {
		if err != nil {
			t.Fatal(err)
		}
		if stop, ok := ev.(runner.Stopped); ok {
			if stop.Criterion != "call" {
				t.Fatalf("stopped by %q", stop.Criterion)
			}
			pieces, halt = stop.Pieces, stop.Halt
			break // the call is not run
		}
	}
	// A short request waits for the slot; its log line tells what is left there.
	for _, err := range r.Model.Stream(t.Context(), models.Request{Prompt: []models.Segment{{Text: "x"}}, MaxTokens: 1}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	slots := s.Slots()
	if len(slots) < before+2 {
		t.Fatalf("the log tells of %d new requests", len(slots)-before)
	}
	return slots[before+1].Cached - slots[before].Prompt - pieces, halt
}

// Ollama's runner draws lots between handing out a token and noticing that its
// client has left, so each further token is about half as likely as the one
// before: three or fewer is what happens in most halts, not in each.
func TestHalt(t *testing.T) {
	s := ollamatest.Start(t)
	r := endless(t, s, 1<<14)
	var tokens []int
	for range 15 {
		n, halt := haltOnce(t, s, r)
		tokens = append(tokens, n)
		t.Logf("%d tokens generated past the call, request ended after %s", n, halt)
	}
	slices.Sort(tokens)
	if median := tokens[len(tokens)/2]; median > 3 {
		t.Errorf("%d tokens were generated past the one that completes the call (median of %v), want at most 3", median, tokens)
	}
}

// Ctrl-C in the middle of a text ends the generation at the server, tells what
// is known and exits with 130.
func TestInterruptReachesTheServer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt on Windows")
	}
	s := ollamatest.Start(t)
	r := endless(t, s, 1<<14)
	cmd := exec.Command(command(t), "run", "--model", "ollama:endless", "--context", "8192", "--turn-tokens", "2000", "A question?")
	cmd.Env = []string{"HOME=" + t.TempDir(), "OLLAMA_HOST=" + s.URL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for sc := bufio.NewScanner(stderr); sc.Scan(); {
		shown += sc.Text() + "\n"
		if strings.Contains(sc.Text(), "look it up") { // the thought is out, the text goes on
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(shown, "interrupted") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
	before := len(s.Slots())
	for _, err := range r.Model.Stream(t.Context(), models.Request{Prompt: []models.Segment{{Text: "x"}}, MaxTokens: 1}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	slots := s.Slots()
	if generated := slots[before].Cached - slots[before-1].Prompt; generated > 500 {
		t.Errorf("the server generated %d tokens of 2000 although the command was interrupted near the beginning", generated)
	}
}

// BenchmarkHalt prints how many tokens the server generates past the one that
// completes the call, and how long the request outlives the match.
func BenchmarkHalt(b *testing.B) {
	s := ollamatest.Start(b)
	r := endless(b, s, 1<<14)
	var tokens []int
	var halts []time.Duration
	for b.Loop() {
		n, halt := haltOnce(b, s, r)
		tokens, halts = append(tokens, n), append(halts, halt)
	}
	slices.Sort(tokens)
	slices.Sort(halts)
	b.ReportMetric(float64(tokens[len(tokens)/2]), "tokens-past-call-median")
	b.ReportMetric(float64(tokens[len(tokens)-1]), "tokens-past-call-max")
	within, _ := slices.BinarySearch(tokens, 4)
	b.ReportMetric(100*float64(within)/float64(len(tokens)), "percent-within-3")
	b.ReportMetric(float64(halts[len(halts)/2].Microseconds()), "us-to-cancel-median")
	b.ReportMetric(float64(halts[len(halts)-1].Microseconds()), "us-to-cancel-max")
}
