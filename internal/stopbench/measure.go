package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"stopgap/stopping"
)

const (
	width   = 4                      // bytes in a token
	costly  = 500 * time.Millisecond // a search that takes longer is measured in one round only
	patient = 10 * time.Second       // a search that must be expected to take longer is left out
)

// An effort is how much is measured.
type effort struct {
	sizes  []int         // characters of the text before the token; growth is the third over the first
	rounds int           // rounds over all texts and checkers; figures are medians
	each   int           // samples of a matcher in a round; they are short
	tokens int           // tokens of one sample of a matcher,
	most   time.Duration // unless they take longer than this
	least  time.Duration // one sample of a search takes this long
}

// full is what the table of the documentation is measured with.
func full(rounds int) effort {
	return effort{sizes: []int{1_000, 10_000, 100_000, 1_000_000}, rounds: rounds,
		each: 9, tokens: 1 << 15, most: 250 * time.Millisecond, least: 5 * time.Millisecond}
}

// A job is a row and what it needs to be measured.
type job struct {
	*Row
	checker *checker
	set     *stopping.Set // nil for a search of the whole text
	text    string
	samples [][]float64 // nanoseconds, for each size
	left    []bool      // sizes that are measured no more
}

// measure runs every checker on every text in turn, several rounds of them, so
// that what disturbs the machine for a while disturbs all alike.
func measure(ctx context.Context, e effort, progress io.Writer) (*Report, error) {
	report := &Report{Machine: machine(), Sizes: e.sizes, Rounds: e.rounds}
	texts := samples(2 * slices.Max(e.sizes))
	jobs, err := newJobs(texts, e)
	if err != nil {
		return nil, err
	}
	for round := range e.rounds {
		fmt.Fprintf(progress, "round %d of %d\n", round+1, e.rounds)
		for _, j := range jobs {
			if err := j.round(ctx, e); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", j.Text, j.Checker, err)
			}
		}
	}
	fmt.Fprintln(progress, "Python")
	python, err := rescanPython(ctx, texts, e)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		report.Missing = "Python's re was not measured: " + err.Error()
	default:
		report.Machine += ", " + python.Version
	}
	for _, j := range jobs {
		if j.checker.python {
			j.samples = python.Samples[j.Text]
		} else if j.Allocs, err = j.allocations(e); err != nil {
			return nil, err
		}
		j.conclude(e.sizes)
		report.Rows = append(report.Rows, j.Row)
	}
	report.compare()
	report.Once, err = facts(texts)
	return report, err
}

func newJobs(texts []sample, e effort) ([]*job, error) {
	var out []*job
	for _, s := range texts {
		for _, c := range checkers() {
			if !c.reads(s.name) {
				continue
			}
			j := &job{Row: &Row{Text: s.name, Checker: c.name, Limit: missing, Allocs: missing}, checker: &c, text: s.text,
				samples: make([][]float64, len(e.sizes)), left: make([]bool, len(e.sizes))}
			if c.limit > 0 {
				j.Limit = number(c.limit)
			}
			if c.criteria != nil {
				set, err := stopping.Compile(c.criteria...)
				if err != nil {
					return nil, err
				}
				j.set, j.Engine = set, engines(set)
			}
			out = append(out, j)
		}
	}
	return out, nil
}

// round adds one sample for each size.
func (j *job) round(ctx context.Context, e effort) error {
	for i, size := range e.sizes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if j.checker.python || j.left[i] {
			continue
		}
		if j.set != nil {
			for range e.each {
				t, err := j.follow(size, e)
				if err != nil {
					return err
				}
				j.samples[i] = append(j.samples[i], t)
			}
			continue
		}
		if i > 0 && j.hopeless(i, e) {
			j.left[i] = true
			continue
		}
		t, err := j.rescan(size, len(j.samples[i]), e)
		if err != nil {
			return err
		}
		j.samples[i] = append(j.samples[i], t)
		j.left[i] = t > float64(costly)
	}
	return nil
}

// hopeless reports whether a search would take too long. It takes at worst the
// square of what it takes at the size before.
func (j *job) hopeless(i int, e effort) bool {
	before := j.samples[i-1]
	if len(before) == 0 {
		return true
	}
	longer := float64(e.sizes[i]) / float64(e.sizes[i-1])
	return before[0]*longer*longer > float64(patient)
}

// follow takes the time of the tokens after the first size characters, while
// the text doubles, so that the growth of the matcher's buffer is in the figure.
// It begins new matchers of the same set until enough tokens were written.
func (j *job) follow(size int, e effort) (float64, error) {
	var spent time.Duration
	written := 0
	for written < e.tokens && spent < e.most {
		m, err := j.prefix(size)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		n, err := write(m, j.text[size:2*size], start.Add(e.most))
		spent += time.Since(start)
		if err != nil {
			return 0, err
		}
		written += n
	}
	return float64(spent) / float64(written), nil
}

// prefix is a matcher that has read the first size characters.
func (j *job) prefix(size int) (*stopping.Matcher, error) {
	m := j.set.Matcher()
	step, err := m.Write(j.text[:size], size/width)
	return m, unstopped(step, err)
}

// write writes a text token by token until it ends or the time is over, and
// says how many tokens it wrote.
func write(m *stopping.Matcher, text string, until time.Time) (int, error) {
	n := 0
	for ; (n+1)*width <= len(text); n++ {
		step, err := m.Write(text[n*width:(n+1)*width], 1)
		if err != nil || step.Stop != nil {
			return n, unstopped(step, err)
		}
		if n%256 == 255 && time.Now().After(until) {
			return n + 1, nil
		}
	}
	return n, nil
}

// unstopped makes a stop an error: what is measured must go on.
func unstopped(step stopping.Step, err error) error {
	if err == nil && step.Stop != nil {
		err = fmt.Errorf("criterion %q fired at byte %d", step.Stop.Criterion.Name, step.Stop.MatchEnd)
	}
	return err
}

// rescan takes the time of one search over the first size characters and the
// next token; that the text is put together and decoded is not in the figure.
// In each round the text is a token longer.
func (j *job) rescan(size, round int, e effort) (float64, error) {
	text := j.text[:size+(round+1)*width]
	n := 0
	start := time.Now()
	for ; n == 0 || time.Since(start) < e.least; n++ {
		if found, err := j.checker.search(text); err != nil {
			return 0, err
		} else if found {
			return 0, fmt.Errorf("there is a match in the first %d bytes", len(text))
		}
	}
	return float64(time.Since(start)) / float64(n), nil
}

// allocations counts what a token at the third size allocates, on average.
func (j *job) allocations(e effort) (number, error) {
	const tokens = 1000
	size := e.sizes[2]
	var before, after runtime.MemStats
	if j.set == nil {
		runtime.ReadMemStats(&before)
		_, err := j.checker.search(j.text[:size])
		runtime.ReadMemStats(&after)
		return number(after.Mallocs - before.Mallocs), err
	}
	m, err := j.prefix(size)
	if err != nil {
		return missing, err
	}
	next := j.text[size:min(size+tokens*width, len(j.text))]
	runtime.ReadMemStats(&before)
	n, err := write(m, next, time.Now().Add(e.most))
	runtime.ReadMemStats(&after)
	return number(float64(after.Mallocs-before.Mallocs) / float64(n)), err
}

// conclude works out the figures of the row from its samples.
func (j *job) conclude(sizes []int) {
	for i := range sizes {
		t := missing
		if j.samples != nil {
			t = median(j.samples[i])
		}
		j.Times = append(j.Times, t)
	}
	j.Growth = j.Times[2] / j.Times[0]
}

// median is missing when there are no samples.
func median(samples []float64) number {
	if len(samples) == 0 {
		return missing
	}
	s := slices.Sorted(slices.Values(samples))
	return number((s[len(s)/2] + s[(len(s)-1)/2]) / 2)
}
