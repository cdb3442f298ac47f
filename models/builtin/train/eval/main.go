// Eval examines a model that searches: questions with names and words that the
// built-in model was never trained with, over documents of their own, through
// the real runner and the real search. An answer counts where it is exact, with
// the right citation.
//
//	go run ./models/builtin/train/eval -n 200 -model builtin
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"stopgap/models"
	"stopgap/models/builtin/train"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
	"stopgap/tools/corpus"
)

type options struct {
	model   string
	formats []string
	n       int // questions of each kind and format
	seed    uint64
	jobs    int
	wrong   bool
	least   []float64 // share of right answers, by kind
}

func main() {
	var o options
	flag.StringVar(&o.model, "model", "builtin", "a model reference, as of stopgap run")
	flag.IntVar(&o.n, "n", 200, "questions of each kind, for each format")
	flag.Uint64Var(&o.seed, "seed", 20260101, "of the exam")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "questions at the same time")
	flag.BoolVar(&o.wrong, "wrong", false, "print what was answered wrong")
	least := flag.String("least", "0,0,0", "the shares of right answers, for each kind, below which it fails; 0.01 of the calls may be invalid then")
	formats := flag.String("formats", strings.Join(train.Formats, ","), "the formats")
	flag.Parse()
	o.formats = strings.Split(*formats, ",")
	for share := range strings.SplitSeq(*least, ",") {
		s, err := strconv.ParseFloat(share, 64)
		if err != nil || len(o.least) == len(train.Kinds) {
			fmt.Fprintln(os.Stderr, "eval: -least takes three numbers between commas")
			os.Exit(2)
		}
		o.least = append(o.least, s)
	}
	if err := examine(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

// A mark sums up the questions of one kind in one format.
type mark struct {
	asked, right, calls, invalid, problems, generated int
}

type job struct {
	format *template.Format
	kind   train.Kind
	number uint64
}

func examine(ctx context.Context, o options) error {
	model, err := models.Open(o.model, models.Options{})
	if err != nil {
		return err
	}
	var jobs []job
	for _, name := range o.formats {
		f, err := template.Load(name)
		if err != nil {
			return err
		}
		for k, kind := range train.Kinds {
			for i := range o.n {
				jobs = append(jobs, job{f, kind, uint64(i*len(train.Kinds) + k)})
			}
		}
	}
	start := time.Now()
	marks := map[string]mark{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan job)
	var failed error
	done := 0
	for range o.jobs {
		wg.Go(func() {
			for j := range next {
				m, wrong, err := ask(ctx, model, o.seed, j)
				mu.Lock()
				failed = cmp.Or(failed, err)
				key := j.format.Name + "|" + string(j.kind)
				marks[key] = marks[key].and(m)
				if o.wrong && wrong != "" {
					fmt.Fprintln(os.Stderr, wrong)
				}
				if done++; done%100 == 0 {
					fmt.Fprintf(os.Stderr, "%d of %d questions, %s\n", done, len(jobs), time.Since(start).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
	if failed != nil {
		return failed
	}
	table(o, marks)
	return o.check(marks)
}

// check says which shares are below what they must be.
func (o options) check(marks map[string]mark) error {
	var below []string
	for _, f := range o.formats {
		var all mark
		for i, k := range train.Kinds {
			m := marks[f+"|"+string(k)]
			all = all.and(m)
			if i < len(o.least) && float64(m.right) < o.least[i]*float64(m.asked) {
				below = append(below, fmt.Sprintf("%s, %s", f, k))
			}
		}
		if bad := all.invalid + all.problems; slices.Max(o.least) > 0 && bad*100 > all.calls+all.problems {
			below = append(below, f+", invalid calls")
		}
	}
	if len(below) > 0 {
		return fmt.Errorf("below what it must reach: %s", strings.Join(below, "; "))
	}
	return nil
}

func (m mark) and(n mark) mark {
	return mark{m.asked + n.asked, m.right + n.right, m.calls + n.calls, m.invalid + n.invalid, m.problems + n.problems, m.generated + n.generated}
}

// ask asks one question and marks what came of it.
func ask(ctx context.Context, model models.Model, seed uint64, j job) (mark, string, error) {
	q := train.Ask(seed, j.number, j.kind)
	index, err := corpus.Open(ctx, corpus.Config{FS: q.Files, Path: "exam"})
	if err != nil {
		return mark{}, "", err
	}
	defer index.Close()
	set, err := tools.NewSet(index.Tools(), tools.Options{})
	if err != nil {
		return mark{}, "", err
	}
	greedy := 0.0
	r := runner.Runner{Model: model, Format: j.format, Tools: set, Sampling: models.Sampling{Temperature: &greedy},
		Limits: runner.Limits{TurnTokens: 400, Turns: 6}, Session: fmt.Sprintf("%s-%s-%d", j.format.Name, j.kind, j.number)}
	m := mark{asked: 1}
	var outcome runner.Outcome
	for e, err := range r.Run(ctx, runner.Task{Question: q.Text}) {
		if err != nil {
			return mark{}, "", fmt.Errorf("%s, %q: %w", j.format.Name, q.Text, err)
		}
		switch e := e.(type) {
		case runner.Returned:
			m.calls++
			if e.Status != tools.OK {
				m.invalid++
			}
		case runner.Stopped:
			m.problems += len(e.Problems)
		case runner.Ended:
			outcome = e.Outcome
		}
	}
	m.generated = outcome.Pieces
	if strings.TrimSpace(outcome.Answer) == q.Answer {
		m.right = 1
		return m, "", nil
	}
	return m, fmt.Sprintf("--- %s, %s: %q wants %q, got %q (%s)\n%s", j.format.Name, j.kind, q.Text, q.Answer, outcome.Answer, outcome.Termination, outcome.Ledger.Text()), nil
}

func table(o options, marks map[string]mark) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "format\t%s\tinvalid calls\ttokens a question\t\n", strings.Join(kindNames(), "\t"))
	for _, f := range o.formats {
		var all mark
		fmt.Fprintf(w, "%s\t", f)
		for _, k := range train.Kinds {
			m := marks[f+"|"+string(k)]
			all = all.and(m)
			fmt.Fprintf(w, "%.1f %% (%d of %d)\t", 100*float64(m.right)/float64(m.asked), m.right, m.asked)
		}
		fmt.Fprintf(w, "%.1f %% (%d of %d)\t%d\t\n", 100*float64(all.invalid+all.problems)/float64(max(1, all.calls+all.problems)),
			all.invalid+all.problems, all.calls+all.problems, all.generated/all.asked)
	}
	w.Flush()
}

func kindNames() []string {
	var names []string
	for _, k := range train.Kinds {
		names = append(names, string(k))
	}
	return slices.Clip(names)
}
