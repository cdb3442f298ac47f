package compare

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"

	"stopgap/internal/batch"
	"stopgap/internal/eval/judge"
)

// Judging says that answers are going to be judged, and how many.
type Judging struct {
	Judge   string `json:"judge"`
	Answers int    `json:"answers"` // that have no verdict yet, each once
}

// Judged is a verdict.
type Judged struct {
	Item   string      `json:"item"`
	Answer string      `json:"answer"`
	Grade  judge.Grade `json:"verdict"`
}

func (Judging) Kind() string { return "judging_began" }
func (Judged) Kind() string  { return "answer_judged" }

// Verdicts is where the verdicts of a comparison are kept.
func (c *Comparison) Verdicts() string { return filepath.Join(c.Dir, judge.StoreName) }

// caseOf is what a judge reads of a rollout: the answer as it was.
func caseOf(item *batch.Item, r *batch.Result) judge.Case {
	return judge.Case{Question: item.Question, Gold: item.Answers, Answer: r.Answer}
}

// Judge has all answers judged that have no verdict yet; the comparison is open
// and names the judge. The same answer to the same question is judged once. The
// error is the judge's, and the last thing that is yielded; what has been judged
// is kept.
func (c *Comparison) Judge(ctx context.Context, j *judge.Judge) iter.Seq2[batch.Event, error] {
	return func(yield func(batch.Event, error) bool) {
		rd, err := read(c.Dir)
		if err != nil {
			yield(nil, err)
			return
		}
		jobs := rd.unjudged(j)
		if !yield(Judging{j.Model, len(jobs)}, nil) {
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		next, events := make(chan answered), make(chan Judged)
		var workers sync.WaitGroup
		for range min(max(c.Parallel, 1), len(jobs)) {
			workers.Go(func() {
				for job := range next {
					v, err := j.Judge(ctx, job.Case)
					if err != nil {
						cancel(fmt.Errorf("the judge: %w", err))
						return
					}
					events <- Judged{job.item, job.Answer, v.Grade}
				}
			})
		}
		go func() {
			defer close(events)
			defer workers.Wait()
			defer close(next)
			for _, job := range jobs {
				select {
				case next <- job:
				case <-ctx.Done():
					return
				}
			}
		}()
		stopped := false
		for ev := range events {
			if !stopped && !yield(ev, nil) {
				stopped = true
				cancel(nil)
			}
		}
		if err := context.Cause(ctx); err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// An answered is an answer that is to be judged.
type answered struct {
	item string
	judge.Case
}

// unjudged are the answers without a verdict, each once.
func (rd *reading) unjudged(j *judge.Judge) []answered {
	var out []answered
	seen := map[[2]string]bool{}
	for i := range rd.items {
		it := &rd.items[i]
		for c := range rd.results {
			for _, r := range rd.results[c][i] {
				if r == nil || seen[[2]string{it.ID, r.Answer}] {
					continue
				}
				seen[[2]string{it.ID, r.Answer}] = true
				a := answered{it.ID, caseOf(it, r)}
				if _, ok := j.Store.Verdict(j.Model, a.Case); !ok {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// judge takes the verdict on a run. An answer that the judge was not sure of is
// not scored.
func (rd *reading) judge(r *Run, item *batch.Item, result *batch.Result) {
	if rd.verdicts == nil {
		return
	}
	v, ok := rd.verdicts.Verdict(rd.plan.Judge, caseOf(item, result))
	if !ok {
		return
	}
	r.Verdict = string(v.Grade)
	if v.Reason != "" {
		r.Verdict += ": " + v.Reason
	}
	if v.Grade == judge.Correct || v.Grade == judge.Incorrect {
		r.Scores[judged] = share(v.Grade == judge.Correct)
	}
}
