package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/internal/batch"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A clerk is a model that says what a script has for the question, the rollout
// and the turn, all from 0 on.
type clerk struct {
	script func(item, rollout, turn int) string
	asked  func() error // before each request; may refuse it
}

func (c clerk) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	prompt := ""
	for _, s := range req.Prompt {
		prompt += s.Text
	}
	turn := strings.Count(prompt, "<|im_start|>assistant\n") - 1 // without the one that is asked for
	var item, rollout int
	_, question, _ := strings.Cut(prompt, "Question number ")
	fmt.Sscanf(question, "%d", &item)
	for batch.Seed("compare", fmt.Sprintf("q%d", item), rollout) != *req.Sampling.Seed {
		rollout++
	}
	return func(yield func(models.Chunk, error) bool) {
		if c.asked != nil {
			if err := c.asked(); err != nil {
				yield(models.Chunk{}, err)
				return
			}
		}
		for _, word := range strings.SplitAfter(c.script(item, rollout, turn), " ") {
			if !yield(models.Chunk{Text: word}, nil) {
				return
			}
		}
		usage := models.Usage{Prompt: models.Known(len(prompt)), Evaluated: models.Known(len(prompt) / 4)}
		yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop, Usage: usage}}, nil)
	}
}

// look is a tool that finds a document for everything.
type look struct{}

func (look) Spec() tools.Spec {
	return tools.Spec{Name: "look", Description: "Look.", Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)}
}

func (look) Run(_ context.Context, args json.RawMessage) (string, error) {
	var in struct{ Q string }
	err := json.Unmarshal(args, &in)
	title := strings.ReplaceAll(in.Q, "END", "<|im_end|>") // what no model could spell
	return fmt.Sprintf("%s. It is %s. [%s.md] (score 1.50)", title, in.Q, strings.ToLower(in.Q)), err
}

// call spells a call of look.
func call(q string) string {
	return fmt.Sprintf("<tool_call>\n{\"name\": \"look\", \"arguments\": {\"q\": %q}}\n</tool_call>", q)
}

// candidate is a clerk with a format: qwen, with a line more in its file.
func candidate(t testing.TB, name string, c clerk) *Candidate {
	t.Helper()
	text, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("# "+name+"\n"), text...)
	f, err := template.Compile(name, text)
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet([]tools.Tool{look{}}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &batch.Server{
		Name: "clerk of " + name, Runner: &runner.Runner{Model: c, Format: f, Tools: set}, Task: runner.Task{Date: "2026-01-02"},
		About: trace.About{Version: "test", Model: "clerk", Format: name, Text: text},
	}
	conf, err := batch.NewConfiguration("clerk", text, s.Runner, s.Task)
	if err != nil {
		t.Fatal(err)
	}
	return &Candidate{Format: name, Model: "clerk", Configuration: conf, Servers: []*batch.Server{s}}
}

// asking makes a comparison of candidates on questions with gold answers.
func asking(dir string, rollouts int, gold []batch.Item, list ...*Candidate) *Comparison {
	d := &batch.Dataset{Path: filepath.Join("somewhere", "questions.jsonl"), Shape: batch.HotpotQA}
	for i, it := range gold {
		it.ID, it.Question, it.Line = fmt.Sprintf("q%d", i), fmt.Sprintf("Question number %d?", i), i+1
		d.Items = append(d.Items, it)
	}
	return &Comparison{
		Dir: dir, Data: d, Configurations: list, Rollouts: rollouts, Parallel: 3, Date: "2026-01-02", Seeds: "compare", Patience: time.Second,
	}
}

// compared makes a comparison and reads it.
func compared(t testing.TB, c *Comparison) *Report {
	t.Helper()
	if err := c.Open(); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, err := range c.Run(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return report(t, c.Dir)
}
