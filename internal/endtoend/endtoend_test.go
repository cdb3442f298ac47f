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
	"stopgap/tools/document"
)

func TestMain(m *testing.M) {
	document.Child() // pages and files are parsed by this program, started again
	os.Exit(ollamatest.Main(m))
}

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
	format *template.Format
	turns  []automaton.Turn
	// halts are the names of the criteria that may end the first two turns;
	// none where the model's end-of-generation token does.
	halts []string
}

// usual are the formats that are tried in each run of the tests.
var usual = []string{"qwen", "qwq", "react", "search-r1", "deepresearch", "qwen3-coder", "fewshot"}

// systems are the formats in which a model can call search. What the model
// writes is spelled by the format itself, and begins where its prompts end.
func systems(t testing.TB) []system {
	t.Helper()
	var all []system
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Opening == template.OpenOwn && (len(f.Call.Tags) == 0 || slices.ContainsFunc(f.Call.Tags, func(c template.CallTag) bool { return c.Tag == "search" })) {
			all = append(all, newSystem(t, f))
		}
	}
	if len(all) < 12 {
		t.Fatalf("only %d formats", len(all))
	}
	return all
}

func newSystem(t testing.TB, f *template.Format) system {
	t.Helper()
	sys := system{format: f}
	for _, stop := range f.Stops {
		if stop.Means == template.MeansCall && (!stop.SingleCall || f.SingleCall) {
			sys.halts = append(sys.halts, stop.Name)
		}
	}
	must := func(parts []template.Part, err error) []template.Part {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	after := must(f.Open(template.Opening{Question: question, Tools: described(t), Date: "2026-01-02"}))
	inThink := f.Think.Opened
	for i, turn := range []template.Turn{
		{Think: "I look it up.", Calls: []template.Call{{Name: "search", Arguments: []byte(`{"query": ` + first + `}`)}}},
		{Think: "The Lantern it is.", Calls: []template.Call{{Name: "search", Arguments: []byte(`{"query": ` + second + `}`)}}},
		{Think: "Now I know.", Answer: answer, Answered: true},
	} {
		if f.Think.Open == "" {
			turn.Think = ""
		}
		turn.InThink = inThink && f.Think.Calls && len(turn.Calls) > 0
		text, err := f.Write(turn, inThink)
		if err != nil {
			t.Fatal(err)
		}
		inThink = f.Parse(text, template.Reading{InThink: inThink}).InThink
		if len(sys.halts) > 0 && i < 2 { // what a model would go on to write behind its call
			if f.Call.Kind == template.LineCalls {
				text += "\n" + f.Response.Open
			}
			text += " I make something up."
		}
		sys.turns = append(sys.turns, automaton.Turn{After: end(after, i), Text: text})
		c := template.Continuation{Results: []template.Result{{Name: "search", ID: fmt.Sprintf("call%05d", i+1), Content: "CONTENT"}}, InThink: inThink}
		after = must(f.Continue(c))
		inThink = f.StartsInThink(c)
	}
	return sys
}

// end is the end of a prompt, from the question or the end of a search's result on.
func end(parts []template.Part, turn int) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	text := b.String()
	if turn == 0 {
		return text[strings.LastIndex(text, question):]
	}
	_, rest, _ := strings.Cut(text, "CONTENT")
	return []string{firstEnds, secondEnds}[turn-1] + rest
}

// described are the documents' tools as prompts describe them.
func described(t testing.TB) []template.Tool {
	var out []template.Tool
	for _, s := range documents(t).Specs() {
		out = append(out, template.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return out
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

// named finds a system by its format.
func named(t testing.TB, format string) system {
	t.Helper()
	all := systems(t)
	return all[slices.IndexFunc(all, func(s system) bool { return s.format.Name == format })]
}

// The whole job in each format: thinking, a call, the halt inside the stream,
// the tool over real documents, a second call, the answer.
func TestWholeRun(t *testing.T) {
	for _, sys := range systems(t) {
		t.Run(sys.format.Name, func(t *testing.T) {
			if !ollamatest.Required() && !slices.Contains(usual, sys.format.Name) {
				t.Skip("four seconds more: make test runs it in every format")
			}
			s := ollamatest.Shared(t)
			m := model(t, s, sys.format.Name, sys.turns, automaton.Options{})
			check(t, sys, newRunner(t, sys.format.Name, m, documents(t)))
			if m.renewed == 0 {
				reused(t, s)
			}
		})
	}
}

// The same on llama-server with two slots, which counts what it reads: each
// turn costs the tokens that were appended and nothing else.
func TestWholeRunOnLlamaServer(t *testing.T) {
	for _, sys := range systems(t) {
		t.Run(sys.format.Name, func(t *testing.T) {
			url := ollamatest.LlamaServer(t, modelFile(t, sys.turns, automaton.Options{}), "-c", "16384", "-np", "2")
			m, err := models.Open("llamacpp:"+url, models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, sys.format.Name, textual{m}, documents(t))
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
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
		if ended := stops[i].Criterion; ended != "" != (len(sys.halts) > 0) || ended != "" && !slices.Contains(sys.halts, ended) {
			t.Errorf("turn %d was ended by %q, want one of %q", i+1, ended, sys.halts)
		}
	}
	if len(sys.halts) > 0 && strings.Contains(modelText(out.Ledger), "make something up") {
		t.Errorf("text past the stop is kept: %q", modelText(out.Ledger))
	}
	if sys.format.Think.Open != "" && !strings.Contains(spans[template.SpanThink], "look it up") || !strings.Contains(spans[template.SpanAnswer]+spans[template.SpanText], answer) {
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

// docs/demo/ollama.sh is what make demo-ollama does.
func TestOllamaDemonstration(t *testing.T) {
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
	stdout, stderr := demonstrate(t, "docs/demo/ollama.sh", os.Environ())
	if want := "Ilse Marrow ground the mirror"; !strings.HasPrefix(stdout, want) || !strings.Contains(stderr, "starting Ollama") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

// demonstrate does what a demonstration's target of the Makefile does.
func demonstrate(t *testing.T, script string, env []string) (stdout, stderr string) {
	t.Helper()
	build := exec.Command("make", "build")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	var out, told strings.Builder
	run := exec.Command(script)
	run.Dir, run.Env, run.Stdout, run.Stderr = root, env, &out, &told
	if err := run.Run(); err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	return out.String(), told.String()
}

// endless is a model that would write on for ever after its call, at the pace
// of a real one: the wider the feed-forward layer, the slower, 14 ms a token
// at 16384 on one core.
func endless(t testing.TB, s *ollamatest.Server, feedForward int) *runner.Runner {
	turn := named(t, "qwen").turns[0]
	turn.After = "<|im_start|>assistant\n" // whatever the question
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
