package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// TestFaultsInEveryRequest ends each request of a constrained run at every
// chunk in every way: what was shown is kept, nothing is called that is not
// whole, and the conversation can go on.
func TestFaultsInEveryRequest(t *testing.T) {
	texts := []string{"Look. <tool_call>", "\"read\"", "{\"id\": \"7\"}", "\n<tool_call>", "\"search\"", "{\"query\": \"月\"} ", "", "It is 7."}
	faults := map[string]struct {
		reply
		ends []runner.Termination
	}{
		"error":    {reply{err: &models.ServerError{Message: "out of memory"}}, []runner.Termination{runner.TermServerError}},
		"cut":      {reply{}, []runner.Termination{runner.TermServerError}},
		"overflow": {reply{err: &models.OverflowError{}}, []runner.Termination{runner.TermServerError, runner.TermTokenLimit}},
		"length":   {reply{finish: models.FinishLength}, []runner.Termination{runner.TermAnswered, runner.TermAnsweredForced}},
		"context":  {reply{finish: models.FinishContext}, []runner.Termination{runner.TermAnswered, runner.TermTokenLimit}},
	}
	for name, fault := range faults {
		for at := range texts {
			for n := 0; n < len(texts[at])+3; n += 3 {
				label := fmt.Sprintf("%s in request %d after %d bytes", name, at+1, n)
				m := script(texts...)
				play := m.play
				m.play = func(i int, req models.Request) reply {
					r := play(i, req)
					switch {
					case i == at+1:
						r = reply{text: r.text[:min(n, len(r.text))], finish: fault.finish, err: fault.err}
					case i > at+1 && len(req.Schema) == 0:
						r = wrote("It is 7.")
					case i > at+1 && strings.Contains(string(req.Schema), "enum"):
						r = wrote(`"read"`)
					}
					return r
				}
				if (at == 0 || at == 3) && n >= len(texts[at]) { // the criterion halts before the fault
					continue
				}
				r := constrained(t, "qwen", m)
				r.Limits.Resumes = -1
				events, out, err := trial(t, r, runner.Task{})
				if !slices.Contains(fault.ends, out.Termination) || (err != nil) != (out.Termination == runner.TermServerError || name == "overflow") {
					t.Errorf("%s: ended %s with %v", label, out.Termination, err)
				}
				if len(m.requests) != out.Requests || m.open.Load() != 0 || len(of[runner.Called](events)) != out.Calls {
					t.Errorf("%s: %d requests of %d, %d open", label, out.Requests, len(m.requests), m.open.Load())
				}
				m.growing(t)
				if !utf8.ValidString(out.Ledger.Text()) {
					t.Errorf("%s: the ledger ends inside a character", label)
				}
				next := script()
				again := constrained(t, "qwen", next)
				_, more, err := collect(t.Context(), again, runner.Task{Question: "And now?", Ledger: out.Ledger})
				if err != nil || more.Answer != "It is 7." || !strings.HasPrefix(more.Ledger.Text(), out.Ledger.Text()) {
					t.Errorf("%s: the next question: %v, answer %q", label, err, more.Answer)
				}
			}
		}
	}
}

// leaves ends a run at every event, by a break and by a cancel. Nothing stays
// open, and no tool begins afterwards.
func leaves(t *testing.T, setup func() (r *runner.Runner, open func() int32, runs func() int32)) {
	t.Helper()
	r, _, _ := setup()
	all, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
	if err != nil || len(of[runner.Called](all)) == 0 {
		t.Fatalf("%v: %s", err, kinds(all))
	}
	for stop := range all {
		for _, cancelled := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			r, open, runs := setup()
			n, at := 0, int32(-1)
			var last runner.Event
			var fault error
			for ev, err := range r.Run(ctx, runner.Task{Question: "q"}) {
				if err != nil {
					fault = err
					continue
				}
				last = ev
				if n++; n == stop+1 {
					at = runs()
					if !cancelled {
						break
					}
					cancel()
				}
			}
			label := fmt.Sprintf("event %d (%s), cancelled %v", stop, all[stop].Kind(), cancelled)
			if late := runs() - at; late != 0 || open() != 0 || !cancelled && n != stop+1 {
				t.Errorf("%s: %d late calls, %d open streams, %d events", label, late, open(), n)
			}
			if end, ok := last.(runner.Ended); cancelled && (!ok || end.Termination == runner.TermCancelled && !errors.Is(fault, context.Canceled)) {
				t.Errorf("%s: the last event is %+v, the error %v", label, last, fault)
			}
			cancel()
		}
	}
}

func TestLeavingAConstrainedRun(t *testing.T) {
	for _, choice := range []runner.Choice{{}, {Mode: runner.Required}, {Mode: runner.Named, Tool: "read"}} {
		for _, constrain := range []bool{true, false} {
			leaves(t, func() (*runner.Runner, func() int32, func() int32) {
				tool := echo("read")
				m := &playModel{play: func(n int, req models.Request) reply {
					switch prompt := text(req.Prompt); {
					case strings.Contains(prompt, "result of {"):
						return wrote("It is 7.")
					case strings.Contains(string(req.Schema), "enum"):
						return wrote(`"read"`)
					case len(req.Schema) > 0:
						return wrote(`{"id": "7"}`)
					case strings.HasSuffix(prompt, "</tool_call>"):
						return wrote("")
					case constrain:
						return wrote("Look. <tool_call>")
					case choice.Mode == runner.Required:
						return wrote("\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>")
					case choice.Mode == runner.Named:
						return wrote(" {\"id\": \"7\"}}\n</tool_call>")
					}
					return wrote("<tool_call>\n{\"name\": \"read\", \"arguments\": {\"id\": \"7\"}}\n</tool_call>")
				}}
				r := newRunner(t, "qwen", m, echo("search"), readTool{tool})
				r.Constrain, r.Choice = constrain, choice
				return r, m.open.Load, tool.runs.Load
			})
		}
	}
}

// TestValuesUnderASchema: whatever the server gives for a value is judged by
// the tools, and told to the model.
func TestValuesUnderASchema(t *testing.T) {
	for value, want := range map[string]struct {
		called  string // the arguments that the tool ran with
		problem template.ProblemKind
	}{
		`{"id": "7"}`:            {called: `{"id": "7"}`},
		" \n{\"id\": \"7\"}\n\n": {called: `{"id": "7"}`},
		`{"id": "</tool_call>"}`: {called: `{"id": "</tool_call>"}`},
		`{"id": "<|im_end|> {"}`: {called: `{"id": "<|im_end|> {"}`},
		`{"id": 7}`:              {problem: template.BadArguments},
		`{}`:                     {problem: template.BadArguments},
		`[]`:                     {problem: template.BadJSON},
		`5`:                      {problem: template.BadJSON},
		`"7"`:                    {problem: template.BadJSON},
	} {
		m := script("<tool_call>", `"read"`, value, "")
		var ran []string
		tool := echo("read")
		tool.run = func(_ context.Context, args json.RawMessage) (string, error) {
			ran = append(ran, string(args))
			return "7", nil
		}
		r := newRunner(t, "qwen", m, echo("search"), readTool{tool})
		r.Constrain, r.Strict = true, true
		events, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Answer != "It is 7." || strings.Join(ran, " ") != want.called {
			t.Errorf("%s: %v, the tool ran with %q, answer %q", value, err, ran, out.Answer)
		}
		var got template.ProblemKind
		if problems := of[runner.Stopped](events)[0].Problems; len(problems) > 0 {
			got = problems[0].Kind
		}
		if got != want.problem || (out.Problems > 0) != (want.problem != "") {
			t.Errorf("%s: problem %q, want %q; %d in the run", value, got, want.problem, out.Problems)
		}
	}
	for _, texts := range [][]string{{"<tool_call>", ""}, {"<tool_call>", `"read"`, ""}, {"<tool_call>", `"read"`, " \n"}, {"<tool_call>", `"read" "search"`}} {
		m := script(texts...)
		_, out, err := trial(t, constrained(t, "qwen", m), runner.Task{})
		var pe *models.ProtocolError
		if !errors.As(err, &pe) || out.Termination != runner.TermServerError || out.Calls != 0 {
			t.Errorf("%q: %v, ended %s", texts, err, out.Termination)
		}
	}
}

// TestConstrainWithoutTools has nothing to hold to a schema.
func TestConstrainWithoutTools(t *testing.T) {
	for _, choice := range []runner.ChoiceMode{runner.Auto, runner.None} {
		m := script("I may not <tool_call> it.")
		r := newRunner(t, "qwen", m)
		if choice == runner.None {
			r = newRunner(t, "qwen", m, echo("search"))
		}
		r.Choice.Mode, r.Constrain = choice, true
		_, out, err := trial(t, r, runner.Task{})
		if _, schemas, _ := m.requested(); err != nil || slices.ContainsFunc(schemas, func(s string) bool { return s != "" }) {
			t.Errorf("%v, schemas %q, ended %s", err, schemas, out.Termination)
		}
	}
}

// closing is qwen, and marks where a turn was cut.
func closing(t *testing.T) *template.Format {
	t.Helper()
	src, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	closing := strings.Replace(string(src), "{{define \"continue\" -}}", "{{define \"continue\" -}}{{if .Open}}[cut]{{end}}", 1)
	f, err := template.Compile("closing", []byte(closing))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNoRoomInACall: the limit of tokens can end a run in the middle of a call,
// and the next question closes what is open.
func TestNoRoomInACall(t *testing.T) {
	f := closing(t)
	for texts, want := range map[string]bool{"<tool_call>": true, "It is 7.": false} {
		m := script(strings.Split(texts, "|")...)
		r := newRunner(t, "qwen", m, namedTool{echo("search"), ""})
		r.Format, r.Constrain = f, true
		r.CountTokens = func(text string) int { // the words around a call are what is too much
			if strings.Contains(text, "\"name\"") && !strings.Contains(text, "<tools>") || strings.Contains(text, "</tool_call>") && !strings.Contains(text, "<tools>") {
				return 5000
			}
			return 1
		}
		r.Limits.Tokens = 4000
		_, out, err := trial(t, r, runner.Task{})
		if want && (err != nil || out.Termination != runner.TermTokenLimit || out.Calls != 0) {
			t.Errorf("%s: %v, ended %s after %d calls", texts, err, out.Termination, out.Calls)
		}
		next := &runner.Runner{Model: script(), Format: f}
		_, more, err := collect(t.Context(), next, runner.Task{Question: "And?", Ledger: out.Ledger})
		if err != nil || strings.Contains(more.Ledger.Text(), "[cut]") != want {
			t.Errorf("%s: %v, %q", texts, err, more.Ledger.Text())
		}
	}
}
