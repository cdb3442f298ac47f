package research

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stopgap/runner"
	"stopgap/tools"
)

// plan is the first phase: the planner searches and reads, and has the outline
// written, until it ends the planning or its budget does.
func (s *state) plan() error {
	for {
		p, err := s.planner()
		if err != nil {
			return err
		}
		end, err := s.run(p)
		if err != nil {
			return err
		}
		reason := s.spent(Planning, s.budget(s.Limits.Plan), end)
		switch {
		case end.by == terminateTool, end.answer != "":
			reason = terminateTool
		case end.by == outlineVerb:
			if err := s.outlines(); err != nil {
				return err
			}
			if reason == "" {
				continue
			}
		case end.full && reason == "":
			continue
		default:
			reason = cmp.Or(reason, words(end.reason))
		}
		return s.planned(reason)
	}
}

// planned ends the planning. What was read since the last outline is taken up
// all the same.
func (s *state) planned(reason string) error {
	if reason != terminateTool {
		if err := s.note(Planning, whatBudget, "the planning was ended: "+reason); err != nil {
			return err
		}
	}
	switch {
	case len(s.known) == 0:
		if err := s.note(Planning, whatNothing, "no page was read, so there is nothing to write from"); err != nil {
			return err
		}
	case s.covered < len(s.known) || s.outline == "":
		if err := s.outlines(); err != nil {
			return err
		}
	}
	if err := s.ended(Outlining, "the planning has ended"); err != nil {
		return err
	}
	return s.ended(Planning, reason)
}

// planner is a leg of the planning. It begins with the outline, and with what
// was read and done since then.
func (s *state) planner() (part, error) {
	left := s.rest(Planning, s.budget(s.Limits.Plan))
	summaries, err := s.digest(s.known[s.covered:], s.share(6))
	return part{
		phase: Planning, script: s.Scripts.Plan, ends: []string{outlineVerb, terminateTool},
		turns: left.Turns, tokens: left.Tokens, time: left.Time, result: min(s.share(8), tools.DefaultMaxTokens), write: s.turnTokens(),
		texts: texts(map[string]string{
			"outline":   s.cut(plainCitations(s.outline), s.share(6)),
			"summaries": summaries,
			"history":   s.past(s.share(5)),
		}),
		tools: []tools.Tool{
			newVerb(searchTool, "Search. Gives a line for each hit, with the address of the page.",
				`{"type":"object","properties":{"query":{"type":["array","string"],"items":{"type":"string"},"minItems":1,"maxItems":10,"description":"What to look for: a few words, or a list of several queries."}},"required":["query"]}`, s.search),
			s.access(),
			newVerb(outlineVerb, "Have the outline written anew.", noParameters, s.askOutline),
			newVerb(terminateTool, "End the planning; the report is written next.", noParameters, func(context.Context, none) (string, error) {
				return "The planning is over.", nil
			}),
		},
	}, err
}

// search asks all sources.
func (s *state) search(ctx context.Context, in searchArguments) (string, error) {
	queries := in.queries()
	if len(queries) == 0 {
		return "", errors.New("there is no query")
	}
	var parts []string
	var failed []error
	for _, source := range s.Sources {
		found, err := source.Search(ctx, queries)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		switch {
		case err != nil:
			failed = append(failed, err)
		case found != "": // some can only be read
			parts = append(parts, found)
		}
	}
	switch {
	case len(parts) == 0 && len(failed) == 0:
		return "", errors.New("there is nothing to search here; read pages whose addresses you know")
	case len(parts) == 0:
		return "", errors.Join(failed...)
	}
	for _, err := range failed {
		parts = append(parts, "Elsewhere the search failed: "+err.Error())
	}
	return strings.Join(parts, "\n\n"), nil
}

// askOutline lets the leg end, where there is something to write down.
func (s *state) askOutline(context.Context, none) (string, error) {
	if s.covered == len(s.known) {
		return "", errors.New("nothing was read since the last outline; read pages first, or end the planning")
	}
	return "The outline is written now.", nil
}

// budget is a phase's budget with its defaults.
func (s *state) budget(b Budget) Budget {
	b.Turns = cmp.Or(b.Turns, defaultTurns)
	return b
}

// rest is what is left of a phase's budget. A leg has a turn at least.
func (s *state) rest(p Phase, b Budget) Budget {
	t := s.of(p)
	b.Turns = max(b.Turns-t.turns, 1)
	if b.Tokens > 0 {
		b.Tokens = max(b.Tokens-t.generated, 1)
	}
	if b.Time > 0 {
		b.Time = max(b.Time-t.duration, time.Millisecond)
	}
	return b
}

// spent says which budget of a phase is used up after a leg, in words, or
// nothing.
func (s *state) spent(p Phase, b Budget, leg ending) string {
	t := s.of(p)
	switch {
	case t.turns >= b.Turns:
		return fmt.Sprintf("the limit of %d turns is reached", b.Turns)
	case b.Tokens > 0 && t.generated >= b.Tokens:
		return fmt.Sprintf("the limit of %d generated tokens is reached", b.Tokens)
	case b.Time > 0 && (t.duration >= b.Time || leg.reason == runner.TermDeadline):
		return fmt.Sprintf("the limit of %s is reached", b.Time)
	}
	return ""
}

// words say how a run of the model ended.
func words(t runner.Termination) string {
	switch t {
	case runner.TermTurnLimit:
		return "the limit of turns is reached"
	case runner.TermTokenLimit:
		return "the prompt is full"
	case runner.TermDeadline:
		return "the time is over"
	case runner.TermLoop:
		return "the same actions were taken again and again"
	case runner.TermFormatError:
		return "too many actions could not be read"
	case runner.TermNoAnswer:
		return "the model took no action"
	}
	return strings.ReplaceAll(string(t), "_", " ")
}

// turnTokens is what the model may write in a turn.
func (s *state) turnTokens() int {
	return min(cmp.Or(s.Runner.Limits.TurnTokens, 4096), s.share(6))
}

// texts are those that are not empty.
func texts(all map[string]string) map[string]string {
	for name, text := range all {
		if strings.TrimSpace(text) == "" {
			delete(all, name)
		}
	}
	return all
}

// ended tells what a phase has cost.
func (s *state) ended(p Phase, reason string) error {
	t := s.of(p)
	if p == Outlining && t.turns == 0 {
		return nil
	}
	return s.emit(PhaseEnded{Phase: p, Reason: reason, Turns: t.turns, Calls: t.calls, Duration: t.duration})
}
