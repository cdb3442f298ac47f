package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// An oracle is a model whose words follow from the prompt and the seed. It makes
// a call first and then answers with the seed.
type oracle struct {
	asked func(seed, turn int) error // before each request; may refuse it
	alive func() error               // what Describe says
	pause time.Duration              // before each word
}

func (o *oracle) Describe(context.Context) (models.Info, error) {
	if o.alive != nil {
		return models.Info{}, o.alive()
	}
	return models.Info{}, nil
}

func (o *oracle) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	prompt := ""
	for _, s := range req.Prompt {
		prompt += s.Text
	}
	turn := strings.Count(prompt, "<|im_start|>assistant\n") // with the one that is asked for
	seed := *req.Sampling.Seed
	text := fmt.Sprintf("The seed is %d.", seed)
	if turn == 1 {
		text = fmt.Sprintf("I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"q\": \"%d\"}}\n</tool_call>", seed)
	}
	return func(yield func(models.Chunk, error) bool) {
		if o.asked != nil {
			if err := o.asked(seed, turn); err != nil {
				yield(models.Chunk{}, err)
				return
			}
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if o.pause > 0 {
				select {
				case <-ctx.Done():
				case <-time.After(o.pause):
				}
			}
			if err := ctx.Err(); err != nil {
				yield(models.Chunk{}, err)
				return
			}
			if !yield(models.Chunk{Text: word}, nil) {
				return
			}
		}
		yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop}}, nil)
	}
}

// look is a tool without side effects.
type look struct{}

func (look) Spec() tools.Spec {
	return tools.Spec{Name: "look", Description: "Look.", Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)}
}

func (look) Run(_ context.Context, args json.RawMessage) (string, error) {
	return "seen: " + string(args), nil
}

// server makes a server of a model.
func server(t testing.TB, name string, m models.Model) *Server {
	t.Helper()
	text, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	f, err := template.Compile("qwen", text)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet([]tools.Tool{look{}}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &Server{
		Name: name, Runner: &runner.Runner{Model: m, Format: f, Tools: set}, Task: runner.Task{Date: "2026-01-02"},
		About: trace.About{Version: "test", Model: name, Format: "qwen", Text: text},
	}
}

// questions are a dataset of so many.
func questions(n int) *Dataset {
	d := &Dataset{Path: "questions.jsonl"}
	for i := range n {
		d.Items = append(d.Items, Item{ID: fmt.Sprintf("q%d", i), Question: fmt.Sprintf("What is number %d?", i), Line: i + 1})
	}
	return d
}

// newBatch makes a batch in a folder, with a configuration of its servers. The
// ledger is closed at the end of the test.
func newBatch(t testing.TB, dir string, d *Dataset, servers ...*Server) *Batch {
	t.Helper()
	l, err := OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := NewConfiguration("oracle", servers[0].About.Text, servers[0].Runner, servers[0].Task)
	if err != nil {
		t.Fatal(err)
	}
	return &Batch{Dir: dir, Ledger: l, Data: d, Configuration: c, Servers: servers, Rollouts: 2, Parallel: 4}
}

// finish works on a batch to its end and gives what happened.
func finish(t testing.TB, b *Batch) ([]Event, error) {
	t.Helper()
	var events []Event
	for ev, err := range b.Run(t.Context()) {
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// of gives the events of a type.
func of[E Event](events []Event) []E {
	var out []E
	for _, ev := range events {
		if e, ok := ev.(E); ok {
			out = append(out, e)
		}
	}
	return out
}

// told are the results that must not depend on where and when they were made.
func told(t testing.TB, b *Batch) []string {
	t.Helper()
	var out []string
	err := b.Results(func(r Result) error {
		out = append(out, fmt.Sprintf("%s %d %d: %s, %d turns, %d calls, %d pieces: %s%s", r.Item, r.Rollout, r.Seed, r.Termination, r.Turns, r.Calls, r.Pieces, r.Answer, r.Error))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// whole makes sure that every rollout has its result, once, and that its
// journal plays.
func whole(t *testing.T, b *Batch) {
	t.Helper()
	n := 0
	err := b.Results(func(r Result) error {
		n++
		if want := fmt.Sprintf("The seed is %d.", r.Seed); r.Answer != want {
			t.Errorf("%s #%d answers %q, not %q: %s", r.Item, r.Rollout, r.Answer, want, r.Error)
		}
		runs, err := trace.ReadFile(filepath.Join(b.Dir, filepath.FromSlash(r.Journal)))
		if err != nil {
			return err
		}
		report, err := trace.NewDeck(runs).Replay(t.Context(), len(runs)-1)
		if err != nil || len(report.Differences) > 0 || report.Outcome.Answer != r.Answer {
			t.Errorf("%s: %+v, %v", r.Journal, report, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if want := len(b.Data.Items) * b.Rollouts; n != want {
		t.Errorf("%d results, not %d", n, want)
	}
}

// together lets nobody's first request go on before so many workers have made
// theirs, so that all of them work, and on all servers, however slow one is.
func together(workers int32) func() {
	var here atomic.Int32
	all := make(chan struct{})
	return func() {
		if here.Add(1) == workers {
			close(all)
		}
		<-all
	}
}

// A counter counts requests by seed and turn.
type counter struct {
	mu   sync.Mutex
	seen map[[2]int]int
}

func (c *counter) asked(seed, turn int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[[2]int]int{}
	}
	c.seen[[2]int{seed, turn}]++
	return nil
}
