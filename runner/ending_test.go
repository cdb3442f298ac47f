package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

// Whatever the event at which the context is cancelled: one Ended, then the
// error, once, and no tool begins after it.
func TestCancelAtEveryEvent(t *testing.T) {
	script := []string{qwenCall, "", qwenAnswer}
	all, _, err := collect(t.Context(), newRunner(t, "qwen", &fakeModel{texts: script}, echo("search")), runner.Task{Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(all) - 1 {
		ctx, cancel := context.WithCancel(t.Context())
		m, tool := &fakeModel{texts: script}, echo("search")
		var out runner.Outcome
		var events []runner.Event
		errs, runs := 0, int32(0)
		for ev, err := range newRunner(t, "qwen", m, tool).Run(ctx, runner.Task{Question: "q"}) {
			if err != nil {
				errs++
				if len(of[runner.Ended](events)) != 1 {
					t.Errorf("cancelled at %d: an error before the end", at)
				}
				continue
			}
			events = append(events, ev)
			if e, ok := ev.(runner.Ended); ok {
				out = e.Outcome
			}
			if len(events) == at+1 {
				runs = tool.runs.Load()
				cancel()
			}
		}
		cancel()
		kind := all[at].Kind()
		if kinds(all[at+1:]) == "stopped answered ended" && errs == 0 {
			continue // the model had written all there is
		}
		if kind == "answered" || kind == "stopped" && all[at].(runner.Stopped).Turn == 3 {
			if out.Termination != runner.TermAnswered || errs != 0 {
				t.Errorf("cancelled at %d (%s): %s, %d errors", at, kind, out.Termination, errs)
			}
			continue
		}
		if out.Termination != runner.TermCancelled || errs != 1 || len(of[runner.Ended](events)) != 1 {
			t.Errorf("cancelled at %d (%s): %s, %d errors, %s", at, kind, out.Termination, errs, kinds(events))
		}
		if tool.runs.Load() != runs || len(of[runner.Called](events[at+1:])) > 0 {
			t.Errorf("cancelled at %d (%s): a tool began after that", at, kind)
		}
		if shown, kept := generated(events, out.Ledger); shown != kept {
			t.Errorf("cancelled at %d: shown %q, kept %q", at, shown, kept)
		}
		if m.open.Load() != 0 {
			t.Errorf("cancelled at %d: a stream is open", at)
		}
	}
}

// Whoever asked has enough at any event: the run ends without an error, nothing
// is begun any more, and only turns that began are counted.
func TestHandedOverAtEveryEvent(t *testing.T) {
	script := []string{qwenCall, "", qwenAnswer}
	all, _, err := collect(t.Context(), newRunner(t, "qwen", &fakeModel{texts: script}, echo("search")), runner.Task{Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(all) - 1 {
		ctx, end := context.WithCancelCause(t.Context())
		var out runner.Outcome
		var events []runner.Event
		for ev, err := range newRunner(t, "qwen", &fakeModel{texts: script}, echo("search")).Run(ctx, runner.Task{Question: "q"}) {
			if err != nil {
				t.Fatalf("handed over at %d: %v", at, err)
			}
			if events = append(events, ev); len(events) == at+1 {
				end(runner.ErrHandedOver)
			}
			if e, ok := ev.(runner.Ended); ok {
				out = e.Outcome
			}
		}
		end(nil)
		turns := 0
		for _, ev := range events {
			switch ev := ev.(type) {
			case runner.Waiting:
				turns = ev.Turn
			case runner.Text:
				turns = ev.Turn
			}
		}
		want := runner.TermHandedOver
		if len(of[runner.Answered](events)) > 0 {
			want = runner.TermAnswered
		}
		if out.Termination != want || out.Turns != turns || out.Error != "" || len(of[runner.Called](events[at+1:])) > 0 {
			t.Errorf("handed over at %d (%s): %+v, %s", at, all[at].Kind(), out, kinds(events))
		}
	}
}

// A tool that ignores its context does not hold the run.
func TestDeadlineInATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		deaf := &fakeTool{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
			<-release
			return "late", nil
		}}
		r := newRunner(t, "qwen", &fakeModel{texts: []string{qwenCall}}, deaf)
		r.Limits.Time = time.Second
		events, out, err := trial(t, r, runner.Task{})
		if err != nil || out.Termination != runner.TermDeadline || out.Calls != 1 {
			t.Errorf("ended %s with %v, %d calls", out.Termination, err, out.Calls)
		}
		if len(of[runner.Returned](events)) != 0 || strings.Contains(out.Ledger.Text(), "late") {
			t.Error("a result after the end")
		}
	})
}

func TestDeadlineOfTheCaller(t *testing.T) { synctest.Test(t, deadlineOfTheCaller) }

func deadlineOfTheCaller(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	m := &fakeModel{texts: []string{strings.Repeat("word ", 5000)}, pause: time.Millisecond}
	events, _, err := collect(ctx, newRunner(t, "qwen", m), runner.Task{Question: "q"})
	end := events[len(events)-1].(runner.Ended)
	if end.Termination != runner.TermDeadline || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended %s with %v", end.Termination, err)
	}
}

// A conversation goes on from wherever a run was ended, and its prompt is
// well-formed: what was open is closed before the next question.
func TestFollowUpOfACancelledRun(t *testing.T) {
	for _, tc := range []struct{ format, text, want string }{
		{"qwen", "<think>\nhalf a thou", "half a thou\n</think>\n\n<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen", "<think>\nx\n</think>\n\nHalf an ans", "Half an ans<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n"},
		{"qwen", qwenCall, "</tool_call><|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n"},
		{"qwq", "half a thou", "half a thou\n</think>\n<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n<think>\n"},
		{"qwq", "x\n</think>\n\nHalf an ans", "Half an ans<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n<think>\n"},
		{"react", " half a thou", " half a thou\n\nQuestion: next\nThought:"},
		{"react", " I know.\nFinal Answer: Half", "Half\n\nQuestion: next\nThought:"},
	} {
		m := &rawModel{turns: [][]models.Chunk{{{Text: tc.text}}, said("Done.", models.FinishStop)}} // cut: no Final
		r := newRunner(t, tc.format, m)
		r.Limits.Resumes = -1
		_, out, err := trial(t, r, runner.Task{})
		if err == nil {
			t.Fatal("a cut stream without an error")
		}
		_, _, _ = trial(t, r, runner.Task{Question: "next", Ledger: out.Ledger})
		if p := text(m.requests[1].Prompt); !strings.HasSuffix(p, tc.want) {
			t.Errorf("%s after %q: %q, want the end %q", tc.format, tc.text, p[max(0, len(p)-len(tc.want)-20):], tc.want)
		}
	}
}

// Two questions that continue one ledger do not know of each other.
func TestLedgerContinuedTwice(t *testing.T) {
	r := newRunner(t, "qwen", &fakeModel{texts: []string{qwenCall, qwenAnswer}}, echo("search"))
	_, first, err := trial(t, r, runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	before, tokens := first.Ledger.Text(), first.Ledger.Tokens()
	branch := func(q string) *runner.Ledger {
		r := newRunner(t, "qwen", &fakeModel{texts: []string{qwenAnswer}})
		_, out, err := trial(t, r, runner.Task{Question: q, Ledger: first.Ledger})
		if err != nil {
			t.Fatal(err)
		}
		return out.Ledger
	}
	a := branch("left")
	textA := a.Text()
	b := branch("right")
	if a.Text() != textA || strings.Contains(b.Text(), "left") || strings.Contains(textA, "right") {
		t.Error("one branch is in the other")
	}
	if first.Ledger.Text() != before || first.Ledger.Tokens() != tokens {
		t.Error("the ledger that was continued has changed")
	}
}

// What the matcher held back for a strip is shown and kept when a pattern
// gives up.
func TestPatternOverItsBudget(t *testing.T) {
	r := newRunner(t, "qwen", &fakeModel{texts: []string{"well, " + strings.Repeat("a", 60)}, cut: 100})
	r.Criteria = []stopping.Criterion{{Name: "slow", Regex: `^well, (a|aa)+\1(?=b)`, Strip: true, Budget: time.Nanosecond}}
	_, out, err := trial(t, r, runner.Task{})
	var over *stopping.BudgetError
	if !errors.As(err, &over) {
		t.Fatalf("ended %s with %v", out.Termination, err)
	}
	if !strings.Contains(out.Ledger.Text(), "well, ") {
		t.Error("the text is lost")
	}
}

// A stream that ends without saying why is a cut one, whoever wrote the model.
func TestStreamWithoutAnEnd(t *testing.T) {
	r := newRunner(t, "qwen", &rawModel{turns: [][]models.Chunk{{{Text: "The answer"}}}})
	r.Limits.Resumes = -1
	_, out, err := trial(t, r, runner.Task{})
	var cut *models.CutError
	if out.Termination != runner.TermServerError || !errors.As(err, &cut) || cut.Bytes != 10 {
		t.Errorf("ended %s with %v", out.Termination, err)
	}
}

func TestServerThatNeverEnds(t *testing.T) {
	endless := make([]models.Chunk, 1000)
	for i := range endless {
		endless[i].Text = strings.Repeat("x", 100)
	}
	r := newRunner(t, "qwen", &rawModel{turns: [][]models.Chunk{endless}})
	r.Limits.TurnTokens = 8
	_, out, err := trial(t, r, runner.Task{})
	var fault *models.ProtocolError
	if !errors.As(err, &fault) || out.Termination != runner.TermServerError || out.Pieces > 200 {
		t.Errorf("ended %s with %v after %d pieces", out.Termination, err, out.Pieces)
	}
}

// The beginning of a character at the end of a stream goes into no prompt.
func TestTornCharacter(t *testing.T) {
	m := &rawModel{turns: [][]models.Chunk{said("Zür\xc3", models.FinishLength)}}
	_, out, err := trial(t, newRunner(t, "qwen", m), runner.Task{})
	if err != nil || out.Answer != "Zür" || strings.HasSuffix(out.Ledger.Text(), "\xc3") {
		t.Errorf("answer %q, %v", out.Answer, err)
	}
}

func TestUsage(t *testing.T) {
	known := func(n int) *models.Usage { return &models.Usage{Generated: models.Known(n)} }
	halted := []models.Chunk{{Text: qwenCall}, {Text: "\n<tool_response>"}}
	counted := []models.Chunk{{Text: qwenCall, Usage: known(20)}, {Text: "\n<tool_response>", Usage: known(24)}}
	named := []models.Chunk{{Text: qwenCall, Tokens: []int{1, 2, 3}}, {Text: "\n<tool_response>", Tokens: []int{4, 5}}}
	last := append(halted[:1:1], models.Chunk{Text: "\n<tool_response>", Final: &models.Final{Finish: models.FinishStop, Usage: *known(30)}})
	for name, tc := range map[string]struct {
		turn []models.Chunk
		want models.Count
	}{
		"nothing said":              {halted, models.Count{}},
		"told on the way":           {counted, models.Known(31)},
		"an id a token":             {named, models.Known(12)},
		"the end in the same chunk": {last, models.Known(37)},
	} {
		m := &rawModel{turns: [][]models.Chunk{tc.turn, said(qwenAnswer, models.FinishStop)}}
		_, out, err := trial(t, newRunner(t, "qwen", m, echo("search")), runner.Task{})
		if err != nil || out.Usage.Generated != tc.want {
			t.Errorf("%s: generated %v, want %v (%v)", name, out.Usage.Generated, tc.want, err)
		}
	}
}

// Ids of tokens whose text was held back stand before the text that they
// spell; ids and text never drift apart.
func TestIdsOfHeldBackText(t *testing.T) {
	m := &rawModel{turns: [][]models.Chunk{
		{{Text: "a", Tokens: []int{1}}, {Tokens: []int{2}}, {Text: "é", Tokens: []int{3}}, {Text: "b"},
			{Tokens: []int{4}}, {Text: "c"}, {Text: "d", Tokens: []int{5}}, {Tokens: []int{6}}, end(models.FinishStop)},
	}}
	_, out, err := trial(t, newRunner(t, "qwen", m), runner.Task{})
	if err != nil {
		t.Fatal(err)
	}
	var got []runner.Segment
	for _, s := range out.Ledger.Segments() {
		if s.Source == template.FromModel {
			got = append(got, s)
		}
	}
	want := []runner.Segment{{Text: "aé", Tokens: []int{1, 2, 3}}, {Text: "bc"}, {Text: "d", Tokens: []int{5}}}
	if len(got) != len(want) {
		t.Fatalf("segments %+v", got)
	}
	for i, s := range got {
		if s.Text != want[i].Text || len(s.Tokens) != len(want[i].Tokens) || len(s.Tokens) > 1 && s.Tokens[1] != 2 {
			t.Errorf("segment %d is %+v, want %+v", i, s, want[i])
		}
	}
}

// Calls counts what was begun, also where the run was ended meanwhile.
func TestCallsOfACancelledTurn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tool := &fakeTool{name: "search", run: func(context.Context, json.RawMessage) (string, error) {
		cancel()
		return "done", nil
	}}
	events, _, _ := collect(ctx, newRunner(t, "qwen", &fakeModel{texts: []string{qwenCall}}, tool), runner.Task{Question: "q"})
	if end := events[len(events)-1].(runner.Ended); end.Calls != 1 || end.Termination != runner.TermCancelled {
		t.Errorf("%d calls, ended %s", end.Calls, end.Termination)
	}
}

func TestBlankQuestion(t *testing.T) {
	for _, err := range newRunner(t, "qwen", &fakeModel{}).Run(t.Context(), runner.Task{Question: " \n"}) {
		if !errors.Is(err, runner.ErrNoQuestion) {
			t.Errorf("error %v", err)
		}
	}
}

func TestEndings(t *testing.T) {
	boom := &models.CutError{}
	for name, tc := range map[string]struct {
		model *fakeModel
		set   func(*runner.Runner)
		want  runner.Termination
		err   bool
	}{
		"empty turns":       {&fakeModel{texts: make([]string, 9)}, nil, runner.TermNoAnswer, false},
		"broken calls":      {&fakeModel{texts: strings.Split(strings.Repeat("<tool_call>{]</tool_call>#", 9), "#")}, nil, runner.TermFormatError, false},
		"server error":      {&fakeModel{err: boom}, nil, runner.TermServerError, true},
		"cut in the middle": {&fakeModel{texts: []string{qwenAnswer}, err: boom, failAt: 10}, nil, runner.TermServerError, true},
		"overflow later": {&fakeModel{texts: []string{qwenCall}, err: &models.OverflowError{}}, nil,
			runner.TermTokenLimit, true},
		"thought cut at the length": {&fakeModel{texts: []string{"<think>\nand so on and", "still"}, finish: models.FinishLength},
			func(r *runner.Runner) { r.Model.(*fakeModel).texts = r.Model.(*fakeModel).texts[:1] }, runner.TermServerError, true},
		"deadline": {&fakeModel{texts: []string{strings.Repeat("word ", 1000)}, pause: time.Millisecond},
			func(r *runner.Runner) { r.Limits.Time = 30 * time.Millisecond }, runner.TermDeadline, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, "qwen", tc.model, echo("search"))
			if tc.set != nil {
				tc.set(r)
			}
			events, out, err := collect(t.Context(), r, runner.Task{Question: "q"})
			if out.Termination != tc.want || (err != nil) != tc.err {
				t.Errorf("ended %s with %v, want %s", out.Termination, err, tc.want)
			}
			if n := len(of[runner.Ended](events)); n != 1 || events[len(events)-1].Kind() != "ended" {
				t.Errorf("%d endings, last event %s", n, events[len(events)-1].Kind())
			}
			if tc.err != (out.Error != "") {
				t.Errorf("error in the outcome: %q", out.Error)
			}
		})
	}
}

func TestCutStreamLosesNothing(t *testing.T) {
	m := &fakeModel{texts: []string{"<think>\nhalf a thought that"}, err: &models.CutError{}, failAt: 20, cut: 1}
	events, out, err := collect(t.Context(), newRunner(t, "qwen", m), runner.Task{Question: "q"})
	var cut *models.CutError
	if !errors.As(err, &cut) {
		t.Fatalf("error %v", err)
	}
	var shown strings.Builder
	for _, ev := range of[runner.Text](events) {
		shown.WriteString(ev.Text)
	}
	if want := "<think>\nhalf a thought that"[:20]; shown.String() != want || !strings.HasSuffix(out.Ledger.Text(), want) {
		t.Errorf("shown %q, want %q", shown.String(), want)
	}
}

// A break at every event leaves no open stream and no late tool call.
func TestBreakAtEveryEvent(t *testing.T) {
	script := []string{qwenCall, qwenCall, qwenAnswer}
	all, _, err := collect(t.Context(), newRunner(t, "qwen", &fakeModel{texts: script}, echo("search")), runner.Task{Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for stop := range all {
		m, tool := &fakeModel{texts: script}, echo("search")
		n := 0
		for _, err := range newRunner(t, "qwen", m, tool).Run(t.Context(), runner.Task{Question: "q"}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n > stop {
				break
			}
		}
		runs, served := tool.runs.Load(), m.served
		if n != stop+1 {
			t.Fatalf("%d events after a break at %d", n, stop)
		}
		if open := m.open.Load(); open != 0 {
			t.Errorf("a break at event %d (%s) leaves %d open streams", stop, all[stop].Kind(), open)
		}
		want := int32(len(of[runner.Returned](all[:stop+1])))
		if all[stop].Kind() == "called" && runs != want || runs > want+1 {
			t.Errorf("a break at event %d (%s): the tool ran %d times, want %d", stop, all[stop].Kind(), runs, want)
		}
		runtime.Gosched()
		if m.served != served || tool.runs.Load() != runs {
			t.Errorf("a break at event %d: something went on", stop)
		}
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := &fakeModel{texts: []string{strings.Repeat("word ", 1000)}, pause: time.Millisecond}
	var out runner.Outcome
	var last error
	for ev, err := range newRunner(t, "qwen", m).Run(ctx, runner.Task{Question: "q"}) {
		last = err
		switch ev := ev.(type) {
		case runner.Text:
			cancel()
		case runner.Ended:
			out = ev.Outcome
		}
	}
	if out.Termination != runner.TermCancelled || !errors.Is(last, context.Canceled) || m.open.Load() != 0 {
		t.Errorf("ended %s with %v, %d open streams", out.Termination, last, m.open.Load())
	}
	if out.Ledger == nil || len(out.Ledger.Segments()) < 2 {
		t.Error("what was generated is lost")
	}
}
