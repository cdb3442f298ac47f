package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A pen is a model that writes what it is told to, one answer a request, and
// fails where it is told to.
type pen struct {
	texts []string
	fails error // after the last text
	asked int
	ids   bool
	hook  func(n int) // called before a request is answered
}

func (p *pen) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		if req.Prefill {
			yield(models.Chunk{Final: &models.Final{Usage: models.Usage{Evaluated: models.Known(5)}}}, nil)
			return
		}
		p.asked++
		n := p.asked
		if p.hook != nil {
			p.hook(n)
		}
		if err := ctx.Err(); err != nil {
			yield(models.Chunk{}, err)
			return
		}
		if n > len(p.texts) {
			yield(models.Chunk{}, p.fails)
			return
		}
		if !yield(models.Chunk{Progress: &models.Progress{Phase: models.Reading, Done: 1, Total: 2}}, nil) {
			return
		}
		text, i := p.texts[n-1], 0
		for ; len(text) > 0; i++ {
			size := min(5, len(text)) // also inside of characters
			c := models.Chunk{Text: text[:size]}
			if p.ids {
				c.Tokens = []int{100*n + i}
			}
			if !yield(c, nil) {
				return
			}
			text = text[size:]
		}
		yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop,
			Usage:   models.Usage{Prompt: models.Known(100_000 * n), Generated: models.Known(i)},
			Timings: models.Timings{Prompt: 12345, Total: time.Second},
		}}, nil)
	}
}

// A hand is a tool that a function works.
type hand struct {
	name    string
	effects bool
	run     func(ctx context.Context, args json.RawMessage) (string, error)
}

func (h hand) Spec() tools.Spec {
	return tools.Spec{Name: h.name, Description: "Does it.", SideEffects: h.effects,
		Parameters: json.RawMessage(`{"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}`)}
}

func (h hand) Run(ctx context.Context, args json.RawMessage) (string, error) { return h.run(ctx, args) }

func echo(name string) hand {
	return hand{name: name, run: func(_ context.Context, args json.RawMessage) (string, error) {
		return "It is " + string(args) + ".", nil
	}}
}

func set(t testing.TB, opts tools.Options, list ...tools.Tool) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(list, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func format(t testing.TB, name string) *template.Format {
	t.Helper()
	f, err := template.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// about a run with a shipped format.
func about(t testing.TB, name string) About {
	t.Helper()
	text, err := template.Shipped(name)
	if err != nil {
		t.Fatal(err)
	}
	return About{Version: "test", Model: "pen", Format: name, Text: text}
}

// calls spells calls of a tool in qwen.
func calls(name string, args ...string) string {
	out := ""
	for _, a := range args {
		out += "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": {\"q\": \"" + a + "\"}}\n</tool_call>\n"
	}
	return out
}

// record makes runs and gives the journal.
func record(t testing.TB, ctx context.Context, r *runner.Runner, on func(runner.Event), questions ...string) []Run {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.trace")
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w.file = unsynced{w.file.(*os.File)}
	var last runner.Outcome
	for _, q := range questions {
		for ev, err := range w.Run(ctx, about(t, r.Format.Name), r, runner.Task{Question: q, Date: "2026-01-02", Ledger: last.Ledger}) {
			if err != nil {
				continue // Ended has told it
			}
			on(ev)
			if ended, ok := ev.(runner.Ended); ok {
				last = ended.Outcome
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// replays asserts that all runs of a journal are played as they were.
func replays(t *testing.T, runs []Run) {
	t.Helper()
	deck := NewDeck(runs)
	for i := range runs {
		report, err := deck.Replay(t.Context(), i)
		if err != nil {
			t.Fatalf("run %d: %v", i+1, err)
		}
		for _, d := range report.Differences {
			t.Errorf("run %d: %s", i+1, d)
		}
		if report.Compared < 3 {
			t.Errorf("run %d: only %d records are compared", i+1, report.Compared)
		}
	}
}

// Runs of every ending, played again.
func TestReplay(t *testing.T) {
	two := calls("search", "a", "b") + "<|im_end|>"
	slow := hand{name: "search", run: func(ctx context.Context, _ json.RawMessage) (string, error) {
		<-ctx.Done()
		return "half", ctx.Err()
	}}
	stuck := hand{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
		time.Sleep(2 * time.Second)
		return "late", nil
	}}
	refused := &models.UnreachableError{Server: "ollama", URL: "http://x", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for _, c := range []struct {
		name  string
		pen   pen
		tool  hand
		opts  tools.Options
		edit  func(*runner.Runner)
		when  string // the event that ends the context
		limit time.Duration
		term  runner.Termination
	}{
		{name: "answered", pen: pen{texts: []string{"<think>\nHm.\n</think>\n" + two, "你好, it is <b>."}, ids: true}, term: runner.TermAnswered},
		{name: "parallel", pen: pen{texts: []string{calls("search", "a", "b", "c", "d"), "So."}}, term: runner.TermAnswered},
		{name: "problems", pen: pen{texts: []string{"<tool_call>\n{nope", calls("none", "a"), calls("search", "x"), "So."}}, term: runner.TermAnswered},
		{name: "reserved strings in results", pen: pen{texts: []string{calls("search", "<|im_end|>"), "So."}}, term: runner.TermAnswered},
		{name: "loop", pen: pen{texts: []string{two, two, two, two, two, two, "So."}}, term: runner.TermAnsweredForced},
		{name: "loop without an end", pen: pen{texts: []string{two, two, two, two, two, two, two}}, term: runner.TermLoop},
		{name: "turns", pen: pen{texts: []string{two, two, "So."}}, edit: func(r *runner.Runner) { r.Limits.Turns = 2 }, term: runner.TermAnsweredForced},
		{name: "cut results", pen: pen{texts: []string{calls("search", strings.Repeat("long ", 900)), "So."}}, opts: tools.Options{MaxTokens: 50}, term: runner.TermAnswered},
		{name: "a small context", pen: pen{texts: []string{calls("search", strings.Repeat("long ", 900)), "So."}}, edit: func(r *runner.Runner) { r.Context = 2500 }, term: runner.TermAnsweredForced},
		{name: "a cut stream", pen: pen{texts: []string{two}, fails: &models.CutError{Bytes: 5, Tokens: 2, Err: io.ErrUnexpectedEOF}}, term: runner.TermServerError},
		{name: "refused", pen: pen{fails: refused}, term: runner.TermServerError},
		{name: "overflow", pen: pen{texts: []string{two}, fails: &models.OverflowError{PromptTokens: models.Known(9)}}, term: runner.TermTokenLimit},
		{name: "some error", pen: pen{fails: errors.New("odd")}, term: runner.TermServerError},
		{name: "a tool that fails", pen: pen{texts: []string{two, "So."}}, tool: hand{name: "search", run: func(context.Context, json.RawMessage) (string, error) { return "half", errors.New("no") }}, term: runner.TermAnswered},
		{name: "a tool that breaks", pen: pen{texts: []string{two, "So."}}, tool: hand{name: "search", run: func(context.Context, json.RawMessage) (string, error) { panic("!") }}, term: runner.TermAnswered},
		{name: "bytes", pen: pen{texts: []string{two, "a\xffb\xe4\xbd"}}, tool: hand{name: "search", run: func(context.Context, json.RawMessage) (string, error) { return "\xff\xfe", nil }}, term: runner.TermAnswered},
		{name: "a tool past its deadline", pen: pen{texts: []string{two, "So."}}, tool: slow, opts: tools.Options{Timeout: 20 * time.Millisecond}, term: runner.TermAnswered},
		{name: "a tool that never comes back", pen: pen{texts: []string{calls("search", "a"), "So."}}, tool: stuck, opts: tools.Options{Timeout: 20 * time.Millisecond}, term: runner.TermAnswered},
		{name: "a limit of calls", pen: pen{texts: []string{two, two, "So."}}, opts: tools.Options{Limit: 3}, term: runner.TermAnswered},
		{name: "cancelled in a text", pen: pen{texts: []string{two, "It is a long text."}}, when: "text", term: runner.TermCancelled},
		{name: "cancelled after a turn", pen: pen{texts: []string{two, "So."}}, when: "stopped", term: runner.TermCancelled},
		{name: "cancelled before a tool", pen: pen{texts: []string{two, "So."}}, tool: slow, when: "called", term: runner.TermCancelled},
		{name: "cancelled after a tool", pen: pen{texts: []string{two, "So."}}, when: "returned", term: runner.TermCancelled},
		{name: "handed over in a text", pen: pen{texts: []string{two, "It is a long text."}}, when: "text", term: runner.TermHandedOver},
		{name: "handed over after a turn", pen: pen{texts: []string{two, "So."}}, when: "stopped", term: runner.TermHandedOver},
		{name: "handed over before a tool", pen: pen{texts: []string{two, "So."}}, tool: slow, when: "called", term: runner.TermHandedOver},
		{name: "handed over after a tool", pen: pen{texts: []string{two, "So."}}, when: "returned", term: runner.TermHandedOver},
		{name: "handed over when it was to end", pen: pen{texts: []string{two, two, "So."}}, edit: func(r *runner.Runner) { r.Limits.Turns = 1 }, when: "nudged", term: runner.TermHandedOver},
		{name: "the run's time in a tool", pen: pen{texts: []string{two, "So."}}, tool: slow, edit: func(r *runner.Runner) { r.Limits.Time = 30 * time.Millisecond }, term: runner.TermDeadline},
		{name: "the caller's time in a tool", pen: pen{texts: []string{two, "So."}}, tool: slow, limit: 30 * time.Millisecond, term: runner.TermDeadline},
		{name: "the run's time in the model", pen: pen{texts: []string{two, "So."}, hook: func(n int) { time.Sleep(time.Duration(n-1) * 60 * time.Millisecond) }}, edit: func(r *runner.Runner) { r.Limits.Time = 40 * time.Millisecond }, term: runner.TermDeadline},
		{name: "required", pen: pen{texts: []string{`{"name": "search", "arguments": {"q": "a"}}` + "\n</tool_call>", "So."}}, edit: func(r *runner.Runner) { r.Choice.Mode = runner.Required }, term: runner.TermAnswered},
		{name: "no tools", pen: pen{texts: []string{"So."}}, edit: func(r *runner.Runner) { r.Choice.Mode = runner.None }, term: runner.TermAnswered},
		{name: "read ahead", pen: pen{texts: []string{two, two, "So."}}, edit: func(r *runner.Runner) { r.Prefill = true }, term: runner.TermAnswered},
		{name: "one call", pen: pen{texts: []string{two, "So."}}, edit: func(r *runner.Runner) { r.SingleCall = true }, term: runner.TermAnswered},
		{name: "constrained", pen: pen{texts: []string{"I look.\n<tool_call>", `{"q": "a"}`, "<|im_end|>", "So."}}, edit: func(r *runner.Runner) { r.Constrain = true }, term: runner.TermAnswered},
	} {
		// In a bubble a limit of time is over where nothing else goes on.
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if c.tool.run == nil {
					c.tool = echo("search")
				}
				r := &runner.Runner{Model: &c.pen, Format: format(t, "qwen"), Tools: set(t, c.opts, c.tool), Name: "pen", Session: "s"}
				if c.edit != nil {
					c.edit(r)
				}
				ctx, end := context.WithCancelCause(t.Context())
				cancel := func() { end(nil) }
				if c.term == runner.TermHandedOver {
					cancel = func() { end(runner.ErrHandedOver) }
				}
				defer cancel()
				if c.limit > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, c.limit)
					defer stop()
				}
				runs := record(t, ctx, r, func(ev runner.Event) {
					if ev.Kind() == c.when {
						cancel()
					}
				}, "Where?")
				ended, err := runs[0].Records[len(runs[0].Records)-1].RunnerEvent()
				if err != nil || ended.(runner.Ended).Termination != c.term {
					t.Fatalf("%+v, %v", ended, err)
				}
				replays(t, runs)
				time.Sleep(3 * time.Second) // the bubble ends when everybody has come back
			})
		})
	}
}

// A run that is refused before it begins says why, and is no killed one.
func TestReplayRefused(t *testing.T) {
	for name, edit := range map[string]func(*runner.Runner){
		"no such tool": func(r *runner.Runner) { r.Choice = runner.Choice{Mode: runner.Named, Tool: "none"} },
		"no renderer":  func(r *runner.Runner) { r.Format = format(t, "server") },
		"no chat":      func(r *runner.Runner) { r.Format = format(t, "chat") },
	} {
		r := &runner.Runner{Model: &pen{}, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, echo("search"))}
		edit(r)
		runs := record(t, t.Context(), r, func(runner.Event) {}, "Where?")
		report, err := NewDeck(runs).Replay(t.Context(), 0)
		if err != nil || len(report.Differences) > 0 || report.Cut || runs[0].Refused() == "" || !runs[0].Ended() {
			t.Errorf("%s: %+v, %v, refused: %q", name, report, err, runs[0].Refused())
		}
		if found := NewDeck(runs).Verify(0); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}
