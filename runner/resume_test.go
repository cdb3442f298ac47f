package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
)

// thorough says that sweeps try every place, not some of them.
var thorough = os.Getenv("STOPGAP_FAULTS") == "all"

// A lossyModel continues fixed texts, one a turn, wherever the prompt stands in
// them, as greedy decoding does. Its streams are cut after so many bytes.
type lossyModel struct {
	texts    []string
	cuts     []int // bytes after which the first streams are cut; -1 for none
	size     int   // bytes a chunk
	ids      bool  // chunks carry ids, the byte each begins at
	bare     bool  // a cut stream just ends, without an error
	lost     bool  // the last stream was cut
	base     string
	turn     int
	requests []models.Request
}

func (m *lossyModel) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		prompt := text(req.Prompt)
		if !m.lost {
			m.base, m.turn = prompt, m.turn+1
		}
		m.lost = false
		m.requests = append(m.requests, req)
		written, ok := strings.CutPrefix(prompt, m.base)
		whole := m.texts[min(m.turn, len(m.texts))-1]
		rest, fits := strings.CutPrefix(whole, written)
		if !ok || !fits {
			yield(models.Chunk{}, &models.ServerError{Message: fmt.Sprintf("the prompt ends with %q", written)})
			return
		}
		cut := -1
		if n := len(m.requests); n <= len(m.cuts) {
			cut = m.cuts[n-1]
		}
		for sent := 0; sent < len(rest); sent += m.size {
			end := min(sent+m.size, len(rest))
			if cut >= 0 {
				end = min(end, cut)
			}
			if c := (models.Chunk{Text: rest[sent:end]}); c.Text != "" {
				if m.ids {
					c.Tokens = []int{len(written) + sent}
				}
				if !yield(c, nil) {
					return
				}
			}
			if end == cut {
				break
			}
		}
		switch m.lost = cut >= 0; {
		case !m.lost:
			yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop}}, nil)
		case !m.bare:
			yield(models.Chunk{}, &models.CutError{Bytes: cut, Err: io.ErrUnexpectedEOF})
		}
	}
}

// told is what of a run must not depend on where its streams were cut.
func told(events []runner.Event, out runner.Outcome) string {
	var b strings.Builder
	var noticed []runner.Noticed
	turn, span := 0, template.SpanKind("")
	for _, ev := range events {
		switch ev := ev.(type) {
		case runner.Text: // where spans are cut does not matter
			if turn != ev.Turn || span != ev.Span {
				fmt.Fprintf(&b, "\n%d %s: ", ev.Turn, ev.Span)
			}
			turn, span = ev.Turn, ev.Span
			b.WriteString(ev.Text)
		case runner.Noticed: // after the chunk that it ends in
			noticed = append(noticed, ev)
		case runner.Stopped:
			fmt.Fprintf(&b, "\nstopped %q %s %s %d %d %d %v", ev.Criterion, ev.Means, ev.Finish, ev.MatchStart, ev.MatchEnd, ev.KeepEnd, ev.Problems)
		case runner.Called:
			fmt.Fprintf(&b, "\n%s %s", ev.Name, ev.Arguments)
		}
	}
	fmt.Fprintf(&b, "\n%+v\n%s %q %d %d\n%s", noticed, out.Termination, out.Answer, out.Turns, out.Calls, out.Ledger.Text())
	return b.String()
}

// A stream that is cut at any byte, and once more in the request that goes on,
// leads to the same run: the same text, stops, calls and ledger. Stops that
// lie across the cut fire, and cut off what they would have cut off.
func TestResumedRunIsTheUncutRun(t *testing.T) {
	mine := []stopping.Criterion{
		{Name: "mine", Regex: `far(?<tail> \[a)\.md\]`, StripGroup: "tail", Action: stopping.Finish},
		{Name: "watched", Literal: "éö月🌕", Action: stopping.Notify},
		{Name: "sentences", Sentences: 40},
	}
	for name, tc := range map[string]struct {
		format   string
		texts    []string
		criteria []stopping.Criterion
	}{
		"qwen, a response invented": {"qwen", []string{"<think>\nétude 月🌕\n</think>\n\n" + qwenCall + "\n<tool_response>\ncheese", qwenAnswer}, nil},
		"qwen, criteria":            {"qwen", []string{"Züge éö月🌕.\n" + qwenCall, "éö月🌕 It is far [a.md]. Or not."}, mine},
		"react":                     {"react", []string{reactCall + " cheese", reactDone + "\nObservation: x"}, nil},
		"qwq":                       {"qwq", []string{qwqCall, qwqAnswer}, nil},
	} {
		for _, m := range []lossyModel{{size: 1}, {size: 3, ids: true}, {size: 7, bare: true}} {
			t.Run(fmt.Sprintf("%s, %d bytes a chunk", name, m.size), func(t *testing.T) {
				run := func(cuts ...int) (string, []runner.Event, runner.Outcome, *lossyModel) {
					model := m
					model.texts, model.cuts = tc.texts, cuts
					r := newRunner(t, tc.format, &model, echo("search"))
					r.Criteria = tc.criteria
					events, out, err := trial(t, r, runner.Task{Question: "How far?"})
					if err != nil {
						t.Fatalf("cuts %v: %v", cuts, err)
					}
					return told(events, out), events, out, &model
				}
				want, _, _, _ := run()
				for at := range len(tc.texts[0]) {
					for _, cuts := range [][]int{{at}, {at, 4}, {-1, at}} {
						got, events, out, model := run(cuts...)
						if got != want {
							t.Fatalf("cuts %v:\n%s\nuncut:\n%s", cuts, got, want)
						}
						n := len(of[runner.Resumed](events))
						if out.Resumed != n || out.Requests != len(model.requests) {
							t.Fatalf("cuts %v: %d resumed in the outcome, %d events; %d requests, said %d", cuts, out.Resumed, n, len(model.requests), out.Requests)
						}
						if len(cuts) == 1 && at == 20 && n != 1 {
							t.Errorf("cuts %v: %d resumed", cuts, n)
						}
					}
				}
			})
		}
	}
}

// What is known of a cut: the event, the counts, the prompt that goes on from
// it, with ids as far as they spell whole characters, and what is left of the
// turn's tokens.
func TestResumed(t *testing.T) {
	cut := &models.CutError{Bytes: 7, Tokens: 3, Err: io.ErrUnexpectedEOF}
	m := &faultyModel{streams: []faulty{
		{chunks: []models.Chunk{{Text: "The ", Tokens: []int{1}}, {Text: "m", Tokens: []int{2}}, {Text: "o\xc3", Tokens: []int{3}}, {Tokens: []int{4}}}, err: cut},
		{chunks: []models.Chunk{{Text: "on is far.", Tokens: []int{5}, Usage: &models.Usage{Generated: models.Known(5)}}, end(models.FinishStop)}},
	}}
	r := newRunner(t, "qwen", m)
	r.Limits.TurnTokens = 50
	events, out, err := trial(t, r, runner.Task{Question: "q"})
	if err != nil {
		t.Fatal(err)
	}
	first, rest := m.requests[0], m.requests[1]
	tail := rest.Prompt[len(first.Prompt):]
	if len(tail) != 2 || tail[0].Text != "The m" || !slices.Equal(tail[0].Tokens, []int{1, 2}) || tail[1].Text != "o" || tail[1].Tokens != nil {
		t.Errorf("the next prompt ends with %+v", tail)
	}
	if first.MaxTokens != 50 || rest.MaxTokens != 46 {
		t.Errorf("asked for %d tokens, then for %d", first.MaxTokens, rest.MaxTokens)
	}
	if got := of[runner.Resumed](events); len(got) != 1 || got[0] != (runner.Resumed{Turn: 1, Bytes: 6, Error: cut.Error()}) {
		t.Errorf("resumed %+v", got)
	}
	st := of[runner.Stopped](events)[0]
	if st.Resumed != 1 || out.Resumed != 1 || st.Requests != 2 || st.Pieces != 4 || st.Usage.Generated != models.Known(11) || st.Usage.Prompt.Known {
		t.Errorf("stopped %+v, %d resumed", st, out.Resumed)
	}
	if out.Answer != "The moon is far." {
		t.Errorf("answer %q", out.Answer)
	}
}

// Where nobody counts, the ids do, each of them once.
func TestIDsOfResumedStreams(t *testing.T) {
	m := &faultyModel{streams: []faulty{
		{chunks: []models.Chunk{{Text: "a", Tokens: []int{1}}, {Text: "b\xc3", Tokens: []int{2}}}, err: &models.CutError{}},
		{chunks: []models.Chunk{{Text: "c", Tokens: []int{3}}, {Text: " STOP", Tokens: []int{4}}}},
	}}
	r := newRunner(t, "qwen", m)
	r.Criteria = []stopping.Criterion{{Name: "mine", Literal: " STOP", Strip: true}}
	if _, out, err := trial(t, r, runner.Task{}); err != nil || out.Answer != "abc" || out.Usage.Generated != models.Known(4) || out.Pieces != 4 {
		t.Errorf("%v, answer %q, %s generated, %d pieces", err, out.Answer, out.Usage.Generated, out.Pieces)
	}
}

// A faultyModel plays streams that end in errors.
type faultyModel struct {
	streams  []faulty
	requests []models.Request
}

type faulty struct {
	chunks []models.Chunk
	err    error
}

func (m *faultyModel) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		m.requests = append(m.requests, req)
		s := m.streams[min(len(m.requests), len(m.streams))-1]
		for _, c := range s.chunks {
			if !yield(c, nil) {
				return
			}
		}
		if s.err != nil {
			yield(models.Chunk{}, s.err)
		}
	}
}

// Only a cut is gone on with, only so often, and never past the limit of the
// turn, under a schema, by a chat endpoint or when the run is over.
func TestWhatIsNotResumed(t *testing.T) {
	part := []models.Chunk{{Text: "Half an "}}
	cut := faulty{part, &models.CutError{Bytes: 8}}
	for name, tc := range map[string]struct {
		stream   faulty
		set      func(*runner.Runner)
		requests int
	}{
		"a cut":              {cut, nil, 3},
		"a cut, one allowed": {cut, func(r *runner.Runner) { r.Limits.Resumes = 1 }, 2},
		"a cut, none":        {cut, func(r *runner.Runner) { r.Limits.Resumes = -1 }, 1},
		"the server's error": {faulty{part, &models.ServerError{Message: "no"}}, nil, 1},
		"silence":            {faulty{part, &models.StallError{Phase: models.StallBetweenTokens}}, nil, 1},
		"no server":          {faulty{nil, &models.UnreachableError{Err: io.EOF}}, nil, 1},
		"garbage":            {faulty{part, &models.ProtocolError{Reason: "garbage"}}, nil, 1},
		"a schema": {cut, func(r *runner.Runner) {
			r.Constrain, r.Choice = true, runner.Choice{Mode: runner.Named, Tool: "search"}
		}, 1},
	} {
		m := &faultyModel{streams: []faulty{tc.stream}}
		r := newRunner(t, "qwen", m, echo("search"))
		if tc.set != nil {
			tc.set(r)
		}
		events, out, err := trial(t, r, runner.Task{Question: "q"})
		if !errors.Is(err, tc.stream.err) || out.Termination != runner.TermServerError || len(m.requests) != tc.requests {
			t.Errorf("%s: %d requests, want %d; ended %s with %v", name, len(m.requests), tc.requests, out.Termination, err)
		}
		if n := len(of[runner.Resumed](events)); n != tc.requests-1 || out.Resumed != n {
			t.Errorf("%s: %d resumed, %d in the outcome", name, n, out.Resumed)
		}
	}

	// All that was asked for has come: the limit has ended the turn.
	m := &faultyModel{streams: []faulty{{[]models.Chunk{{Text: "one"}, {Text: " two"}}, &models.CutError{}}}}
	r := newRunner(t, "qwen", m)
	r.Limits.TurnTokens = 2
	events, out, err := trial(t, r, runner.Task{Question: "q"})
	if err != nil || len(m.requests) != 1 || out.Answer != "one two" || !of[runner.Answered](events)[0].Truncated {
		t.Errorf("%v, %d requests, %+v", err, len(m.requests), out)
	}

	// A call that is complete is made once, wherever the stream breaks after it.
	m = &faultyModel{streams: []faulty{{[]models.Chunk{{Text: qwenCall}, {Text: "\n<tool_response>"}}, &models.CutError{}}, {said(qwenAnswer, models.FinishStop), nil}}}
	tool := echo("search")
	if _, out, err := trial(t, newRunner(t, "qwen", m, tool), runner.Task{Question: "q"}); err != nil || tool.runs.Load() != 1 || out.Resumed != 0 {
		t.Errorf("%v, the tool ran %d times, %d resumed", err, tool.runs.Load(), out.Resumed)
	}

	ctx, cancel := context.WithCancel(t.Context())
	m = &faultyModel{streams: []faulty{cut}}
	for ev := range newRunner(t, "qwen", m).Run(ctx, runner.Task{Question: "q"}) {
		if _, ok := ev.(runner.Text); ok {
			cancel()
		}
	}
	if cancel(); len(m.requests) != 1 {
		t.Errorf("%d requests after the end of the context", len(m.requests))
	}
}

// A cuttingModel cuts the stream of one request of another model.
type cuttingModel struct {
	models.Model
	request, chunks int // the request, from 1, and how many chunks of it come
	n               int
	longest         int // chunks of the longest stream
}

func (m *cuttingModel) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		m.n++
		left, n := m.chunks, 0
		for c, err := range m.Model.Stream(ctx, req) {
			if m.n == m.request && left == 0 {
				yield(models.Chunk{}, &models.CutError{Bytes: n, Err: io.ErrUnexpectedEOF})
				return
			}
			left, n = left-1, n+1
			m.longest = max(m.longest, n)
			if !yield(c, err) {
				return
			}
		}
	}
}

// The built-in model writes the same tokens after a cut at any chunk as it does
// without one.
func TestResumedTokensOfTheBuiltinModel(t *testing.T) {
	model, err := models.Open("builtin", models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(request, chunks int) (runner.Outcome, *cuttingModel) {
		m := &cuttingModel{Model: model, request: request, chunks: chunks}
		r := newRunner(t, "qwen", m, echo("search"), echo("read"))
		r.Limits.Turns, r.Limits.TurnTokens = 2, 120
		_, out, err := trial(t, r, runner.Task{Question: "Who designed Kesper Bridge?"})
		if err != nil {
			t.Fatal(err)
		}
		return out, m
	}
	want, uncut := run(0, 0)
	step := 9
	if thorough {
		step = 1
	}
	for request := 1; request <= uncut.n; request++ {
		for at := 0; at < uncut.longest; at += step {
			out, _ := run(request, at)
			if got := out.Ledger.Text(); got != want.Ledger.Text() {
				t.Fatalf("cut in request %d after %d chunks:\n%q\nuncut\n%q", request, at, got, want.Ledger.Text())
			}
			if got, want := modelIDs(out.Ledger), modelIDs(want.Ledger); !slices.Equal(got, want) {
				t.Fatalf("cut in request %d after %d chunks: ids %v, uncut %v", request, at, got, want)
			}
		}
	}
	if uncut.n < 2 || uncut.longest < 10 {
		t.Errorf("%d requests, the longest of %d chunks: nothing was tried", uncut.n, uncut.longest)
	}
}

// modelIDs are the ids of what the model wrote.
func modelIDs(l *runner.Ledger) []int {
	var ids []int
	for _, s := range l.Segments() {
		if s.Source == template.FromModel {
			ids = append(ids, s.Tokens...)
		}
	}
	return ids
}
