package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A line is what the model writes in one generation.
type line struct {
	turn   template.Turn
	change func(spelled string) string // nil for as it is spelled
	finish models.Finish               // "" for stop
}

// A scene is a run, or several that continue each other.
type scene struct {
	lines     []line
	questions []string   // none for the usual one
	tools     *tools.Set // nil for all
	limits    runner.Limits
	single    bool // Runner.SingleCall
	chunk     int  // bytes; zero for a word a chunk
}

// A take is what happened in a scene.
type take struct {
	path        []string // what the run did, step by step
	events      []runner.Event
	prompts     []string // as the model got them
	generations []string // what was kept of each
	outcome     runner.Outcome
}

// perform plays a scene and makes the checks that every run must pass.
func (s *stage) perform(sc scene) take {
	a := &actor{stage: s, scene: sc}
	r := &runner.Runner{Model: a, Format: s.Format, Tools: sc.tools, Limits: sc.limits, SingleCall: sc.single}
	if r.Tools == nil {
		r.Tools = s.set(func(*prop) bool { return true })
	}
	if len(sc.questions) == 0 {
		sc.questions = []string{question}
	}
	for _, q := range sc.questions {
		for ev, err := range r.Run(context.Background(), runner.Task{Question: q, Date: "2026-01-02", Ledger: a.take.outcome.Ledger}) {
			if err != nil {
				a.step("error: %v", err)
				continue
			}
			a.see(ev)
		}
	}
	if a.take.outcome.Ledger != nil { // there was a run
		s.grows(a.take)
		s.keeps(a.take, sc.questions)
	}
	return a.take
}

// An actor is the model of a scene: it spells its lines as the format does,
// where the runner left off.
type actor struct {
	*stage
	scene
	take
	inThink bool   // the generation at hand began inside the thinking part
	text    string // of the generation at hand, as far as it is kept
	next    template.Continuation
}

// Stream implements models.Model.
func (a *actor) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	n := len(a.prompts)
	var prompt strings.Builder
	for _, seg := range req.Prompt {
		prompt.WriteString(seg.Text)
	}
	a.prompts = append(a.prompts, prompt.String())
	if n >= len(a.lines) {
		return func(yield func(models.Chunk, error) bool) {
			yield(models.Chunk{}, errors.New("the model is asked for more turns than it should need"))
		}
	}
	if a.inThink = a.Think.Opened; n > 0 {
		a.inThink = a.StartsInThink(a.next)
	}
	l := a.lines[n]
	text := a.written(l.turn, a.inThink)
	if l.change != nil {
		text = l.change(text)
	}
	script := models.Script{Turns: []models.ScriptTurn{{Text: text, Finish: l.finish, Chunk: a.chunk}}}
	return script.Open(models.Options{}).Stream(ctx, req)
}

func (a *actor) step(words string, args ...any) {
	a.path = append(a.path, fmt.Sprintf(words, args...))
}

// see follows the run.
func (a *actor) see(ev runner.Event) {
	a.events = append(a.events, ev)
	switch e := ev.(type) {
	case runner.Started:
		a.next.Question = e.Question
	case runner.Text:
		a.text += e.Text
	case runner.Stopped:
		a.generations = append(a.generations, a.text)
		turn := a.Parse(a.text, template.Reading{InThink: a.inThink})
		a.text, a.next = "", template.Continuation{InThink: turn.InThink}
	case runner.Called:
		a.path = append(a.path, callStep(e.Name, e.Arguments))
	case runner.Returned:
		a.next.Results = append(a.next.Results, template.Result{Name: e.Name, Content: e.Content})
		a.path = append(a.path, returnStep(e.Status))
	case runner.Nudged:
		a.next.Note = e.Note
		a.path = append(a.path, nudgeStep(e.Reason))
	case runner.Answered:
		a.path = append(a.path, answerStep(e.Answer))
	case runner.Ended:
		a.step("end: %s", e.Termination)
		a.outcome = e.Outcome
	}
}

// The steps of a path.
func callStep(name string, arguments json.RawMessage) string {
	var v any
	_ = json.Unmarshal(arguments, &v) // the runner passes on nothing else
	return fmt.Sprintf("call %s%s", name, encode(v))
}

func returnStep(status tools.Status) string { return "result: " + string(status) }
func nudgeStep(reason string) string        { return "note: " + reason }
func answerStep(text string) string         { return fmt.Sprintf("answer %q", text) }

// steps are those of a turn whose calls all succeed.
func steps(calls ...template.Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, callStep(c.Name, c.Arguments))
	}
	for range calls {
		out = append(out, returnStep(tools.OK))
	}
	return out
}

// answered are the steps of a turn with the answer.
func answered(text string) []string {
	return []string{answerStep(text), "end: " + string(runner.TermAnswered)}
}

// grows: each prompt begins with the last one and what was generated after it.
func (s *stage) grows(t take) {
	for i := 1; i < len(t.prompts) && i <= len(t.generations); i++ {
		if !strings.HasPrefix(t.prompts[i], t.prompts[i-1]+t.generations[i-1]) {
			s.find("continue", "the prompt of generation %d does not begin with the one before it and what was generated", i+1)
		}
	}
}

// keeps: what the tools answered, what the runner noted and what the user asked
// stands in the prompt, in this order.
func (s *stage) keeps(t take, questions []string) {
	segments := t.outcome.Ledger.Segments()
	at := 0
	want := func(where, what, text string, from template.Source) {
		for i := at; i < len(segments); i++ {
			if seg := segments[i]; seg.Source == from && holds(seg, text) {
				at = i
				return
			}
		}
		s.find(where, "%s is not in the prompt, or not where it belongs: %.80q", what, text)
	}
	asked := 0
	for _, ev := range t.events {
		switch e := ev.(type) {
		case runner.Started:
			where := "prompt"
			if asked++; asked > 1 {
				where = "continue"
			}
			want(where, "the question", e.Question, template.FromUser)
		case runner.Returned:
			want("continue", "a tool's result", e.Content, template.FromTool)
		case runner.Nudged:
			want("continue", "the note", e.Note, template.FromRunner)
		}
	}
}

// holds reports whether a segment is a text, as it was or quoted.
func holds(seg runner.Segment, text string) bool {
	original := seg.Original
	if original == "" {
		original = seg.Text
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a text always has a spelling
	quoted := strings.Trim(b.String(), "\"\n")
	return strings.Contains(original, strings.TrimSpace(text)) || strings.Contains(original, strings.TrimSpace(quoted))
}

// follow plays a scene and compares the way that it goes. where is what to look
// at if it goes another one.
func (s *stage) follow(where string, sc scene, want ...string) take {
	t := s.perform(sc)
	if got := strings.Join(t.path, ", "); got != strings.Join(want, ", ") {
		s.find(where, "the run should go: %s; it goes: %s", strings.Join(want, ", "), got)
	}
	return t
}

// Call is a call as the format spells it, "" where it has none of its own.
func Call(f *template.Format) string {
	if Unplayable(f) != "" {
		return ""
	}
	s := newStage(f)
	return s.written(template.Turn{Calls: s.calls[:1]}, false)
}

// Play gives the segments of an example run: a thought, calls, their results
// and the answer, as far as the format has them. The error says why there is
// none.
func Play(f *template.Format) ([]runner.Segment, error) {
	if reason := Unplayable(f); reason != "" {
		return nil, fmt.Errorf("format %s has no run of its own: %s", f.Name, reason)
	}
	s := newStage(f)
	calls := s.calls[:1]
	if !f.SingleCall {
		calls = s.calls[:min(2, len(s.calls))]
	}
	t := s.perform(scene{lines: []line{{turn: s.calling(calls...)}, {turn: s.answering(answer)}}})
	if len(t.generations) == 0 {
		return nil, fmt.Errorf("format %s cannot be played: %s", f.Name, strings.Join(t.path, ", "))
	}
	return t.outcome.Ledger.Segments(), nil
}
