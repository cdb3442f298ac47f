package compare

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"stopgap/internal/eval/stats"
	"stopgap/runner"
	"stopgap/template"
)

// resampling is how all intervals and probabilities are drawn. The seed is fixed,
// so that a report can be made again.
var resampling = stats.Resampling{Seed: 1, Draws: 10_000, Level: 0.95}

// The orders in which kinds are counted.
var (
	terminations = []runner.Termination{
		runner.TermAnswered, runner.TermAnsweredForced, runner.TermCalled, runner.TermNoAnswer, runner.TermTurnLimit, runner.TermTokenLimit,
		runner.TermDeadline, runner.TermLoop, runner.TermFormatError, runner.TermServerError,
	}
	problemKinds = []template.ProblemKind{
		template.UnclosedCall, template.BadJSON, template.MissingName, template.UnknownTool, template.BadArguments,
		template.CallInThink, template.InventedResponse, template.TextAfterCall, template.NoCallNoAnswer, template.RepeatedCall,
	}
)

// report makes the Report.
func (rd *reading) report() *Report {
	p := rd.plan
	r := &Report{
		Data: p.Data, Shape: p.Shape, Date: p.Date, Rollouts: p.Rollouts, Seeds: p.Seeds, Judge: p.Judge,
		Bootstrap: Bootstrap{resampling.Seed, resampling.Draws, resampling.Level}, Items: []Item{},
	}
	for i, it := range rd.items {
		item := Item{ID: it.ID, Question: it.Question, Answers: it.Answers, Documents: it.Documents}
		for c := range rd.results {
			runs := make([]*Run, p.Rollouts)
			for k := range runs {
				runs[k] = rd.run(c, i, k)
			}
			item.Runs = append(item.Runs, runs)
		}
		r.Items = append(r.Items, item)
	}
	r.Primary = r.primary(p.Primary)
	r.configurations(p)
	r.pair()
	r.warn(p.Primary)
	return r
}

// primary chooses the metric that the comparison is about: the one that was
// asked for, else exact match, right calls or the judge's word, the first that is
// there.
func (r *Report) primary(asked string) string {
	for _, key := range []string{asked, exactMatch, rightCalls, judged} {
		for c := range len(r.runs()) {
			if slices.ContainsFunc(r.values(c, key), func(v *float64) bool { return v != nil }) {
				return key
			}
		}
		if key != "" && key == asked {
			break // nothing else stands in for it
		}
	}
	return ""
}

// runs are those of the first item: as many as there are configurations.
func (r *Report) runs() [][]*Run {
	if len(r.Items) == 0 {
		return nil
	}
	return r.Items[0].Runs
}

// values gives the mean of each item's rollouts by a metric.
func (r *Report) values(c int, key string) []*float64 {
	out := make([]*float64, len(r.Items))
	for i := range r.Items {
		var list []float64
		for _, run := range r.Items[i].Runs[c] {
			if run == nil {
				continue
			}
			if v, ok := run.Scores[key]; ok {
				list = append(list, v)
			}
		}
		out[i] = mean(list)
	}
	return out
}

// atK gives what k rollouts of each item reach. An item with fewer has none.
func (r *Report) atK(c int, key string, k int, of func(scores []float64, k int) float64) []*float64 {
	out := make([]*float64, len(r.Items))
	for i := range r.Items {
		var list []float64
		for _, run := range r.Items[i].Runs[c] {
			if run != nil {
				if v, ok := run.Scores[key]; ok {
					list = append(list, v)
				}
			}
		}
		if v := of(list, k); !math.IsNaN(v) {
			out[i] = &v
		}
	}
	return out
}

func passAtK(scores []float64, k int) float64 {
	right := 0
	for _, s := range scores {
		right += int(s)
	}
	return stats.PassAtK(len(scores), right, k)
}

// configurations scores the configurations.
func (r *Report) configurations(p *Plan) {
	all := metrics(r.Rollouts)
	correct := right(all, r.Primary)
	for c, name := range names(p.Members) {
		m := p.Members[c]
		r.Configurations = append(r.Configurations, Configuration{Name: name, Format: m.Format, Model: m.Model, Folder: m.Folder, Hash: m.Hash, Scores: []Score{}})
	}
	atOnce(len(r.Configurations), func(c int) {
		conf := &r.Configurations[c]
		r.count(c, conf)
		for _, metric := range all {
			if s := r.score(c, metric, correct); s != nil {
				conf.Scores = append(conf.Scores, *s)
			}
		}
	})
	r.Metrics = present(all, func(key string) bool {
		return slices.ContainsFunc(r.Configurations, func(c Configuration) bool { return c.Score(key) != nil })
	})
	r.trim()
}

// atOnce does n things, several at once: resampling is work.
func atOnce(n int, do func(i int)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			do(i)
		})
	}
	wg.Wait()
}

// score gives what a configuration reached by a metric, nil for nothing.
func (r *Report) score(c int, m Metric, correct string) *Score {
	switch {
	case m.Group == AtK && r.Rollouts < 2:
		return nil // it is the metric itself
	case m.of > 0:
		return newScore(m, r.atK(c, correct, m.of, passAtK))
	case m.Key == "avg_at_k":
		return newScore(m, r.atK(c, correct, r.Rollouts, stats.AvgAtK))
	case m.Key == "best_at_k":
		return newScore(m, r.atK(c, f1, r.Rollouts, stats.BestAtK))
	case m.Key == "tokens_per_right":
		return ratio(m, r.values(c, tokens), r.values(c, correct))
	}
	return newScore(m, r.values(c, m.Key))
}

// newScore scores values, nil where there are none.
func newScore(m Metric, values []*float64) *Score {
	list := known(values)
	if len(list) == 0 {
		return nil
	}
	return &Score{Metric: m.Key, Items: len(list), Interval: interval(list, m.Unit), Values: values}
}

// interval gives the mean with its interval.
func interval(list []float64, unit Unit) Interval {
	first := list[0]
	if unit == Share && !slices.ContainsFunc(list, func(v float64) bool { return v != first }) {
		return Interval{Interval: stats.Wilson(first*float64(len(list)), len(list)), Wilson: true}
	}
	return Interval{Interval: stats.Mean(list, resampling)}
}

// ratio scores what a right answer costs, over the items that have both values.
func ratio(m Metric, cost, correct []*float64) *Score {
	var above, below []float64
	for i := range cost {
		if cost[i] != nil && correct[i] != nil {
			above, below = append(above, *cost[i]), append(below, *correct[i])
		}
	}
	iv := stats.Ratio(above, below, resampling)
	if math.IsNaN(iv.Estimate) {
		return nil
	}
	out := Interval{Interval: iv}
	if math.IsInf(iv.High, 1) {
		out.High, out.Unbounded = 0, true
	}
	if math.IsInf(iv.Low, 1) { // hardly any resample has a right answer
		out.Low = iv.Estimate
	}
	return &Score{Metric: m.Key, Items: len(above), Interval: out}
}

// known leaves out what was not measured.
func known(values []*float64) []float64 {
	var out []float64
	for _, v := range values {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out
}

// mean is nil for no values.
func mean(list []float64) *float64 {
	if len(list) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	sum /= float64(len(list))
	return &sum
}

// count counts rollouts and what happened in them.
func (r *Report) count(c int, conf *Configuration) {
	ends, problems := map[string]int{}, map[string]int{}
	for i := range r.Items {
		for _, run := range r.Items[i].Runs[c] {
			switch {
			case run == nil:
				conf.Missing++
				continue
			case run.Error != "":
				conf.Failed++
			}
			conf.Done++
			ends[string(run.Termination)]++
			for _, p := range run.Problems {
				problems[p.Kind] += p.N
			}
		}
	}
	for _, t := range terminations {
		conf.Terminations = append(conf.Terminations, Tally{string(t), ends[string(t)]})
	}
	for _, k := range problemKinds {
		conf.Problems = append(conf.Problems, Tally{string(k), problems[string(k)]})
	}
}

// trim leaves out the kinds that no configuration has.
func (r *Report) trim() {
	terminations := func(c *Configuration) *[]Tally { return &c.Terminations }
	problems := func(c *Configuration) *[]Tally { return &c.Problems }
	for _, list := range []func(*Configuration) *[]Tally{terminations, problems} {
		used := map[string]bool{}
		for c := range r.Configurations {
			for _, t := range *list(&r.Configurations[c]) {
				used[t.Kind] = used[t.Kind] || t.N > 0
			}
		}
		for c := range r.Configurations {
			l := list(&r.Configurations[c])
			*l = slices.DeleteFunc(*l, func(t Tally) bool { return !used[t.Kind] })
		}
	}
}
