package conformance

import (
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"strings"

	"stopgap/runner"
	"stopgap/template"
)

// more is what a model would go on with.
const more = "\nAnd then some more."

// stops: each stop of the head fires on a turn as the format spells it, and the
// run goes on as its meaning says.
func (s *stage) stops() {
	for i, stop := range s.Stops {
		where := fmt.Sprintf("stops[%d]", i)
		s.stop(where, stop)
		inside := stop.Means == template.MeansCall && !stop.OutsideThink && stop.After == ""
		if inside && s.Think.Close != "" && !s.Think.Calls && !s.endsThinking(stop) {
			s.find(where, "stop %q ends a thought at a call, and calls inside the thinking part do not count: say outside_think: true", stop.Name)
		}
	}
}

// endsThinking reports whether a stop lets a thought with a call in it go on.
func (s *stage) endsThinking(stop template.Stop) bool {
	call := s.written(template.Turn{Calls: []template.Call{s.one()}}, false)
	t := s.perform(scene{single: true, lines: []line{
		{turn: template.Turn{Think: thought + "\n" + call}}, {turn: s.answering(answer)},
	}})
	return firedFirst(t) != stop.Name
}

// A trial is a turn that a stop may end, and the way that the run then goes.
type trial struct {
	turn template.Turn
	want []string
}

// trials are the turns that a meaning is about.
func (s *stage) trials(means template.Meaning) []trial {
	var calls []trial
	for _, c := range s.calls {
		calls = append(calls, trial{s.calling(c), slices.Concat(steps(c), answered(answer))})
	}
	end := trial{s.answering(answer), answered(answer)}
	ponders := s.thinks(template.Turn{Text: "Let me see."})
	switch means {
	case template.MeansCall:
		return calls
	case template.MeansAnswer:
		return []trial{end}
	case template.MeansInvented:
		return append(calls, trial{ponders, slices.Concat([]string{nudgeStep(string(template.InventedResponse))}, answered(answer))})
	}
	lost := trial{s.pondering(), slices.Concat([]string{nudgeStep(string(template.NoCallNoAnswer))}, answered(answer))}
	return append([]trial{end, lost}, calls...)
}

// stop looks for a turn that the stop ends.
func (s *stage) stop(where string, stop template.Stop) {
	tails, certain := s.tails(stop)
	fired := map[string]bool{} // the stops that came first
	for _, tr := range s.trials(stop.Means) {
		for _, tail := range tails {
			quiet := *s // what a turn that is no trial of this stop does is not looked at
			t := quiet.perform(scene{
				single: stop.SingleCall,
				lines: []line{
					{turn: tr.turn, change: func(text string) string { return text + tail + more }}, {turn: s.answering(answer)},
				},
			})
			if name := firedFirst(t); name != stop.Name {
				fired[name] = true
				continue
			}
			if got, want := strings.Join(t.path, ", "), strings.Join(tr.want, ", "); got != want {
				s.find(where, "stop %q fires behind %q and means %s, so that the run should go: %s; it goes: %s", stop.Name, tail, stop.Means, want, got)
			}
			return
		}
	}
	others := ""
	if delete(fired, ""); len(fired) > 0 {
		others = fmt.Sprintf("; what fires there is %q", slices.Sorted(maps.Keys(fired)))
	}
	if certain || others != "" {
		s.find(where, "stop %q never fires on a turn as the format spells it%s", stop.Name, others)
	}
}

// firedFirst is the stop that ended the first generation, "" for none.
func firedFirst(t take) string {
	for _, ev := range t.events {
		if e, ok := ev.(runner.Stopped); ok {
			return e.Criterion
		}
	}
	return ""
}

// tails are what may follow a turn for the stop to fire. certain says that one
// of them must do.
func (s *stage) tails(stop template.Stop) (tails []string, certain bool) {
	tails = []string{"", "\n", "\n\n", "\n" + s.Response.Open, s.Response.Open}
	switch {
	case stop.Means == template.MeansCall: // on the call itself, or on what ends or answers the turn
		tails = append(tails, "\n"+s.Answer.After, "\n"+s.Answer.Open)
		for _, r := range s.Reserved.Strings {
			if control.MatchString(r) {
				tails = append(tails, r)
			}
		}
		return tails, true
	case stop.Literal != "":
		return append(tails, stop.Literal), true
	}
	parsed, err := syntax.Parse(stop.Regex, syntax.Perl|syntax.DotNL)
	if err != nil { // it is not one of RE2's
		return tails, false
	}
	example := example(parsed)
	return append(tails, example, "\n"+example), true
}

// example is a text that an expression matches, its assertions aside.
func example(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			return string(re.Rune[0])
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpCapture, syntax.OpPlus:
		return example(re.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(example(re.Sub[0]), re.Min)
	case syntax.OpAlternate:
		return example(re.Sub[0])
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(example(sub))
		}
		return b.String()
	}
	return ""
}
