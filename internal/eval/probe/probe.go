package probe

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A Prober asks cases.
type Prober struct {
	// Runner is how the turns are played: model, format, sampling, limits. Its
	// tools are those of each case; no tool is ever run. A seed of its sampling
	// becomes one of its own for each case, which does not depend on the order.
	Runner runner.Runner
	Task   runner.Task // what all cases share: the date and the format's values
	// Propensity asks the server how likely a call's opening is, where it tells.
	Propensity bool
}

// A Result is what became of one case.
type Result struct {
	ID       string `json:"id"`
	Group    string `json:"group"`
	Language string `json:"language,omitempty"`
	Wanted   bool   `json:"wanted"` // a call is right
	Reply
	Problems []template.Problem `json:"problems,omitempty"`
	// Right says that the reply is right once it is repaired, Strict that nothing
	// had to be.
	Right   bool `json:"right"`
	Strict  bool `json:"strict"`
	Verdict      // what is wrong
	// Propensity is the natural logarithm of the probability that the model opens a
	// call behind its thoughts; nil where nobody tells.
	Propensity *float64 `json:"propensity,omitempty"`
	Pieces     int      `json:"pieces"` // generated chunks, about a token each
}

// Ask plays one case. The error is one that ends every case alike, such as a
// server that is not there; one that is this case's own stands in the result.
func (p *Prober) Ask(ctx context.Context, c *Case) (Result, error) {
	res := Result{ID: c.ID, Group: c.Group, Language: c.Language, Wanted: c.Wanted, Reply: Reply{Calls: []Call{}}}
	st, err := p.play(ctx, c, &res)
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	if err != nil {
		res.Verdict = fault(FaultError, "%v", err)
		return res, unlessOwn(err)
	}
	res.Verdict = c.judge(res.Reply)
	res.Right = res.Verdict.OK()
	res.Strict = res.Right
	for _, call := range res.Calls {
		res.Strict = res.Strict && len(call.Repairs) == 0
	}
	if p.Propensity {
		res.Propensity, err = p.propensity(ctx, c, st)
	}
	return res, err
}

// play lets the runner play a case and notes what happens in the model's turn.
// It leaves before the turn has an effect.
func (p *Prober) play(ctx context.Context, c *Case, res *Result) (*stage, error) {
	r := p.Runner
	st := &stage{Model: r.Model, format: r.Format, history: c.History}
	set, err := c.set()
	if err != nil {
		return st, err
	}
	r.Tools, r.Model, r.Prefill, r.Limits.Turns = set, st, false, len(c.History)+2
	r.Sampling.Seed = seedFor(r.Sampling.Seed, c.ID)
	task := p.Task
	task.Question = c.Question
	if c.System != "" {
		task.System = c.System
	}
	own := len(c.History) + 1
	for ev, err := range r.Run(ctx, task) {
		if err != nil {
			return st, err
		}
		switch ev := ev.(type) {
		case runner.Started:
			if ev.Format != r.Format.Name { // the server's template was recognised
				if st.format, err = template.Load(ev.Format); err != nil {
					return st, err
				}
			}
		case runner.Text:
			if ev.Turn == own {
				st.own.WriteString(ev.Text)
			}
		case runner.Stopped:
			if st.ended(); ev.Turn == own {
				res.Problems, res.Pieces = ev.Problems, ev.Pieces
			}
		case runner.Called:
			if ev.Turn == own {
				res.Calls = append(res.Calls, Call{ev.Name, ev.Arguments, ev.Repairs})
			}
		case runner.Answered:
			if ev.Turn == own {
				res.Answer = ev.Answer
				return st, nil
			}
		case runner.Returned:
			if ev.Turn == own {
				return st, nil
			}
		case runner.Nudged:
			if ev.Turn >= own {
				return st, nil
			}
		}
	}
	if st.turn < own {
		return st, errEarly
	}
	return st, nil
}

// errEarly says that a format cannot play what stands before a case's turn.
var errEarly = errors.New("the run ended before the model's turn")

// set is the case's tools, which do nothing.
func (c *Case) set() (*tools.Set, error) {
	var list []tools.Tool
	for _, spec := range c.Tools {
		list = append(list, newProp(spec, c.History))
	}
	return tools.NewSet(list, tools.Options{MaxTokens: -1})
}

// Describe gives the tools as a prompt describes them.
func (c *Case) Describe() []template.Tool {
	var out []template.Tool
	for _, t := range c.Tools {
		out = append(out, template.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	return out
}

// propensity asks how likely the words are that open a call, at the place where
// the model decides: behind its own thoughts.
func (p *Prober) propensity(ctx context.Context, c *Case, st *stage) (*float64, error) {
	scorer, ok := p.Runner.Model.(models.Scorer)
	if !ok || st.asked == nil || p.Runner.Choice.Mode != runner.Auto {
		return nil, nil
	}
	thought, words, ok := decision(st.format, c.Describe(), st.own.String())
	if !ok {
		return nil, nil
	}
	prompt := st.asked
	if thought != "" {
		prompt = append(slices.Clone(prompt), models.Segment{Text: thought})
	}
	tokens, err := scorer.Score(ctx, prompt, words)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // a server that does not tell: the case has its verdict all the same
		return nil, unlessOwn(err)
	}
	sum := 0.0
	for _, t := range tokens {
		sum += t.LogProb
	}
	if math.IsInf(sum, 0) || math.IsNaN(sum) {
		return nil, nil
	}
	return &sum, nil
}

// decision divides what a model wrote where it could have begun a call: behind
// its thinking part, in a format of lines before the first line that is an action
// or the answer, or at the beginning. words are those that open a call there. ok
// is false where the model never came that far, or a call has no opening words.
func decision(f *template.Format, offered []template.Tool, text string) (thought, words string, ok bool) {
	if f.Call.Kind == template.LineCalls {
		words = f.Call.Name[0]
		for _, marker := range []string{words, f.Answer.After} {
			before, _, found := strings.Cut("\n"+text, "\n"+marker)
			if marker != "" && found && (!ok || len(before) < len(thought)) {
				thought, ok = before, true
			}
		}
		if thought = strings.TrimPrefix(thought, "\n"); thought != "" {
			words = "\n" + words
		}
		return thought, words, ok
	}
	words, ok = f.Prefix("", offered, false)
	words = strings.TrimRight(words, " \n")
	if f.Think.Close == "" || f.Think.Calls {
		return "", words, ok
	}
	before, after, closed := strings.Cut(text, f.Think.Close)
	if !closed {
		thinking := f.Think.Opened || strings.Contains(text, f.Think.Open)
		return "", words, ok && !thinking
	}
	space := after[:len(after)-len(strings.TrimLeft(after, " \n"))]
	return before + f.Think.Close + space, words, ok
}

// unlessOwn gives an error that the next case would meet too, or nil.
func unlessOwn(err error) error {
	var gone *models.UnreachableError
	var missing *models.NotFoundError
	for _, same := range []bool{
		errors.As(err, &gone), errors.As(err, &missing),
		errors.Is(err, runner.ErrNoChat), errors.Is(err, runner.ErrNoRenderer), errors.Is(err, runner.ErrNoModel), errors.Is(err, runner.ErrNoFormat),
	} {
		if same {
			return err
		}
	}
	return nil
}

// seedFor is a seed for one case: the same whatever else is asked, and in
// whatever order. Nothing becomes of none.
func seedFor(seed *int, id string) *int {
	if seed == nil || *seed < 0 { // a negative one asks the server for a random one
		return seed
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	mixed := int(uint32(*seed)*2654435761^h.Sum32()) & math.MaxInt32
	return &mixed
}
