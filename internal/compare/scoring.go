package compare

import (
	"slices"

	"stopgap/internal/batch"
	"stopgap/internal/eval/cite"
	"stopgap/internal/eval/match"
	"stopgap/runner"
)

// run scores a rollout: configuration c, item i, rollout k from 0. It is nil
// where the rollout has not been made.
func (rd *reading) run(c, i, k int) *Run {
	result, item := rd.results[c][i][k], &rd.items[i]
	if result == nil {
		return nil
	}
	r := &Run{
		Rollout: result.Rollout, Seed: result.Seed, Answer: result.Answer, Termination: result.Termination, Error: result.Error,
		Turns: result.Turns, Calls: result.Calls, Invented: result.Invented, Tokens: result.Pieces,
		Scores: map[string]float64{
			"answered": share(slices.Contains(arrived, result.Termination)),
			"invented": float64(result.Invented), "calls": float64(result.Calls), tokens: float64(result.Pieces), "turns": float64(result.Turns),
		},
	}
	var seen []cite.Document
	if err := rd.damaged[c][i][k]; err != nil {
		r.Damaged = err.Error()
	}
	r.Journal, _ = rd.journal(c, result) // its error stands in damaged
	if f := rd.facts[c][i][k]; f != nil {
		seen = f.seen
		r.calls(f)
	}
	if s, ok := item.Score(result); ok {
		r.Scores[rightCalls], r.Scores["right_calls_strict"] = share(s.Right), share(s.Strict)
	}
	rd.judge(r, item, result)
	scored := r.answer(item, seen)
	if scored != r.Answer {
		r.Scored = scored
	}
	return r
}

// arrived are the ends of runs that came to what they were asked for.
var arrived = []runner.Termination{runner.TermAnswered, runner.TermAnsweredForced, runner.TermCalled}

// calls takes what the journal tells of the run's calls.
func (r *Run) calls(f *facts) {
	n := 0
	for _, kind := range problemKinds {
		if f.problems[kind] > 0 {
			r.Problems = append(r.Problems, Tally{string(kind), f.problems[kind]})
			n += f.problems[kind]
		}
	}
	r.Scores["problems"] = float64(n)
	if f.attempts > 0 { // a run without calls has none that are not valid
		r.Scores["strict_calls"] = float64(f.strict) / float64(f.attempts)
		r.Scores["valid_calls"] = float64(f.valid) / float64(f.attempts)
	}
}

// answer scores the run's answer and gives what was scored: the answer without
// its citations. "Marzipel [ottla-brunec.md]" is no gold answer, and exact match
// would say so of every format that makes models cite.
//
// A rollout that failed has no answer, and is wrong.
func (r *Run) answer(item *batch.Item, seen []cite.Document) string {
	text := cite.Without(r.Answer, seen)
	if text == "" {
		text = r.Answer // it was nothing but citations
	}
	if len(item.Answers) > 0 {
		r.Scores[exactMatch] = share(match.Exact(text, item.Answers))
		r.Scores["sub_em"] = share(match.Contains(text, item.Answers))
		r.Scores[f1] = match.F1(text, item.Answers)
	}
	if r.Damaged != "" { // what an answer cites takes what the run has seen
		return text
	}
	s := cite.New(r.Answer, item.Documents, seen)
	for key, part := range map[string]func() (float64, bool){"citation_recall": s.Recall, "citation_precision": s.Precision, "evidence": s.Evidence} {
		if value, ok := part(); ok {
			r.Scores[key] = value
		}
	}
	return text
}

func share(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
