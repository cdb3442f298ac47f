package conformance

import (
	"slices"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// one is a call, and other a second one, of another tool where there is one.
func (s *stage) one() template.Call   { return s.calls[0] }
func (s *stage) other() template.Call { return s.calls[1%len(s.calls)] }

func (s *stage) singleCall() {
	s.follow("call", scene{lines: []line{{turn: s.calling(s.one())}, {turn: s.answering(answer)}}},
		slices.Concat(steps(s.one()), answered(answer))...)
}

func (s *stage) severalCalls() {
	s.follow("call", scene{lines: []line{{turn: s.calling(s.one(), s.other())}, {turn: s.answering(answer)}}},
		slices.Concat(steps(s.one(), s.other()), answered(answer))...)
}

// thinkBeforeCall also looks whether the thought is shown as one.
func (s *stage) thinkBeforeCall() {
	t := s.follow("think", scene{lines: []line{{turn: s.calling(s.one())}, {turn: s.answering(answer)}}},
		slices.Concat(steps(s.one()), answered(answer))...)
	shown := ""
	for _, ev := range t.events {
		if e, ok := ev.(runner.Text); ok && e.Turn == 1 && e.Span == template.SpanThink {
			shown += e.Text
		}
	}
	if !strings.Contains(shown, thought) {
		s.find("think", "the thought is not shown as the thinking part: %q", shown)
	}
}

func (s *stage) twoRounds() {
	s.follow("continue",
		scene{lines: []line{{turn: s.calling(s.one())}, {turn: s.calling(s.other())}, {turn: s.answering(answer)}}},
		slices.Concat(steps(s.one()), steps(s.other()), answered(answer))...)
}

func (s *stage) errorResponse() {
	failing := *s
	failing.tools = nil
	for _, p := range s.tools {
		f := *p
		f.fails = true
		failing.tools = append(failing.tools, &f)
	}
	failing.follow("continue", scene{lines: []line{{turn: s.calling(s.one())}, {turn: s.answering(answer)}}},
		slices.Concat([]string{callStep(s.one().Name, s.one().Arguments), returnStep(tools.Failed)}, answered(answer))...)
	s.found = failing.found
}

// brokenCall: a call that ends in the middle of its argument, or where it is
// spelled in lines before it, is answered with the format's words, and the next
// one is made.
func (s *stage) brokenCall() {
	call := s.one()
	value := lastText(call)
	if s.Call.Kind == template.LineCalls {
		value = call.Name
	}
	cut := func(text string) string { return upTo(text, value) }
	if value == "" {
		return // no call of the format has an argument
	}
	s.follow("problem",
		scene{lines: []line{{turn: s.calling(call), change: cut}, {turn: s.calling(call)}, {turn: s.answering(answer)}}},
		slices.Concat([]string{returnStep(tools.BadArguments)}, steps(call), answered(answer))...)
}

// upTo cuts a text behind the last place of a part; a text without it stays.
func upTo(text, part string) string {
	if i := strings.LastIndex(text, part); i >= 0 {
		return text[:i+len(part)]
	}
	return text
}

// unknownTool: a call of a tool that is not offered is answered, and the run
// goes on. Where tags are the tools, one of them is not offered.
func (s *stage) unknownTool() {
	call, set := s.one(), (*tools.Set)(nil)
	if s.Call.Kind == template.TagCalls {
		set = s.set(func(p *prop) bool { return p.spec.Name != call.Name })
	} else {
		call.Name = "no_such_tool"
	}
	s.follow("continue", scene{lines: []line{{turn: s.calling(call)}, {turn: s.answering(answer)}}, tools: set},
		slices.Concat([]string{callStep(call.Name, call.Arguments), returnStep(tools.UnknownTool)}, answered(answer))...)
}

// pondering is a turn that has neither a call nor an answer.
func (s *stage) pondering() template.Turn {
	t := s.thinks(template.Turn{})
	if s.Answer != (template.Answer{}) && !s.Answer.Optional && s.Call.Kind != template.LineCalls {
		t.Text = "Let me see."
	}
	return t
}

func (s *stage) neither() {
	s.follow("nudge", scene{lines: []line{{turn: s.pondering()}, {turn: s.answering(answer)}}},
		slices.Concat([]string{nudgeStep(string(template.NoCallNoAnswer))}, answered(answer))...)
}

// callInThink: whether a call inside the thinking part counts is what the head
// says.
func (s *stage) callInThink() {
	call := s.written(template.Turn{Calls: []template.Call{s.one()}}, false)
	if s.Call.Bare || s.Call.Kind == template.PythonCalls { // nothing marks such a call but that it begins the turn
		return
	}
	sc := scene{lines: []line{{turn: template.Turn{Think: thought + "\n" + call}}, {turn: s.answering(answer)}}}
	if s.Think.Calls {
		s.follow("think.calls", sc, slices.Concat(steps(s.one()), answered(answer))...)
		return
	}
	t := s.perform(sc)
	kinds := []string{nudgeStep(string(template.CallInThink)), nudgeStep(string(template.NoCallNoAnswer))} // a tag alone may be a word of the thought
	if len(t.path) == 0 || !slices.Contains(kinds, t.path[0]) || !slices.Equal(t.path[1:], answered(answer)) {
		s.find("think.calls", "a call in a thought should be noted and not made; the run goes: %s", strings.Join(t.path, ", "))
	}
}

// inventedResponse: a result that the model writes itself is neither believed
// nor kept, and the call before it is made.
func (s *stage) inventedResponse() {
	invents := func(text string) string {
		return text + "\n" + s.Response.Open + "\n" + invention + "\n" + s.Response.Close + "\n"
	}
	t := s.follow("stops", scene{lines: []line{{turn: s.calling(s.one()), change: invents}, {turn: s.answering(answer)}}},
		slices.Concat(steps(s.one()), answered(answer))...)
	if len(t.generations) > 0 && strings.Contains(t.generations[0], invention) {
		s.find("stops", "no stop ends the turn where the model begins to write %q itself: what it invents stays in the prompt", s.Response.Open)
	}
}

func (s *stage) forcedAnswer() {
	s.follow("force", scene{
		lines:  []line{{turn: s.calling(s.one())}, {turn: s.answering(answer)}},
		limits: runner.Limits{Turns: 1},
	}, slices.Concat(steps(s.one()), []string{
		nudgeStep(string(runner.TermTurnLimit)), answerStep(answer), "end: " + string(runner.TermAnsweredForced),
	})...)
}

// cutThought: the length limit ends a thought, and an answer is asked for. What
// the model had open must be closed.
func (s *stage) cutThought() {
	cut := func(text string) string { return upTo(text, thought) }
	t := s.follow("continue", scene{
		lines: []line{{turn: template.Turn{Think: thought}, change: cut, finish: models.FinishLength}, {turn: s.answering(answer)}},
	}, nudgeStep(string(runner.TermTokenLimit)), answerStep(answer), "end: "+string(runner.TermAnsweredForced))
	if len(t.prompts) < 2 || len(t.generations) == 0 {
		return
	}
	if between, _ := strings.CutPrefix(t.prompts[1], t.prompts[0]+t.generations[0]); !strings.Contains(between, s.Think.Close) {
		s.find("continue", "a thought that was cut is never closed: where .InThink is true and a note follows, write %q", s.Think.Close)
	}
}

// followUp: a conversation goes on, and the model's turn is opened for the
// second question as for the first.
func (s *stage) followUp() {
	t := s.follow("continue", scene{
		questions: []string{question, secondQuestion},
		lines: []line{
			{turn: s.calling(s.one())}, {turn: s.answering(answer)},
			{turn: s.calling(s.other())}, {turn: s.answering(secondAnswer)},
		},
	}, slices.Concat(steps(s.one()), answered(answer), steps(s.other()), answered(secondAnswer))...)
	if t.outcome.Ledger == nil {
		return
	}
	var opened []string // what follows each question
	var last template.Source
	for _, seg := range t.outcome.Ledger.Segments() {
		if last == template.FromUser && seg.Source == template.FromTemplate {
			opened = append(opened, seg.Text)
		}
		last = seg.Source
	}
	if len(opened) == 2 && opened[0] != opened[1] {
		s.find("continue", "the model's turn begins with %q after the first question, with %q after the next", opened[0], opened[1])
	}
}
