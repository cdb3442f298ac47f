package compare

import (
	"fmt"
	"slices"
)

// named is how many damaged journals are named one by one.
const named = 5

// warn says what limits the report. asked is the metric that it was asked to be
// about, if any.
func (r *Report) warn(asked string) {
	for i := range r.Configurations {
		c := &r.Configurations[i]
		if c.Missing > 0 {
			r.say("%s: %d of %d rollouts have not been made", c.Name, c.Missing, c.Done+c.Missing)
		}
		if c.Failed > 0 {
			r.say("%s: %d of %d rollouts ended by an error and count as wrong", c.Name, c.Failed, c.Done)
		}
	}
	r.warnOfRuns()
	gold, documents := 0, 0
	for i := range r.Items {
		gold += int(share(r.scored(i)))
		documents += int(share(len(r.Items[i].Documents) > 0))
	}
	n := len(r.Items)
	switch {
	case n == 0:
		r.say("no question has been asked yet")
	case gold == 0:
		r.say("the dataset has no gold answers: what is right is not measured")
	case gold < n:
		r.say("%d of %d items have no gold answer and are not scored", n-gold, n)
	}
	if n > 0 && asked != "" && r.Primary == "" {
		all := metrics(r.Rollouts)
		i := slices.IndexFunc(all, func(m Metric) bool { return m.Key == asked })
		r.say("%s was not measured: no pair is compared by it", all[i].Name) // a plan has no others
	}
	if documents > 0 && documents < n {
		r.say("%d of %d items name no documents; citations are scored on the others", n-documents, n)
	}
}

func (r *Report) say(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// warnOfRuns says which runs are not scored by everything.
func (r *Report) warnOfRuns() {
	damaged, doubtful := 0, 0
	for i := range r.Items {
		for _, run := range slices.Concat(r.Items[i].Runs...) {
			if run == nil {
				continue
			}
			if _, ok := run.Scores[judged]; !ok && r.Judge != "" && len(r.Items[i].Answers) > 0 {
				doubtful++
			}
			if run.Damaged == "" {
				continue
			}
			if damaged++; damaged <= named {
				r.say("%s cannot be read: %s", run.Journal, run.Damaged)
			}
		}
	}
	if damaged > named {
		r.say("%d more journals cannot be read", damaged-named)
	}
	if doubtful > 0 {
		r.say("%d answers have no verdict of the judge, or one that says neither right nor wrong; they are not scored by it", doubtful)
	}
}

// scored reports whether an item can be right or wrong: it has a gold answer, or
// calls that are right.
func (r *Report) scored(i int) bool {
	it := &r.Items[i]
	return len(it.Answers) > 0 || slices.ContainsFunc(slices.Concat(it.Runs...), func(run *Run) bool {
		if run == nil {
			return false
		}
		_, ok := run.Scores[rightCalls]
		return ok
	})
}
