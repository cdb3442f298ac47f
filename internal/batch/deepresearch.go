package batch

import (
	"fmt"
	"io"
	"strings"

	"stopgap/internal/trace"
	"stopgap/runner"
	"stopgap/template"
)

// A Message is one of a DeepResearch record.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A deepResearch is a line of DeepResearch's iterN.jsonl (inference/
// run_multi_react.py of Tongyi DeepResearch). A failed rollout has its number
// and its error.
type deepResearch struct {
	Question    string    `json:"question"`
	Answer      string    `json:"answer"` // the gold one
	RolloutIdx  *int      `json:"rollout_idx,omitempty"`
	RolloutID   *int      `json:"rollout_id,omitempty"`
	Error       string    `json:"error,omitempty"`
	Messages    []Message `json:"messages"`
	Prediction  string    `json:"prediction"`
	Termination string    `json:"termination,omitempty"`
}

// WriteDeepResearch writes the results as DeepResearch's batch does: iter1.jsonl
// has the first rollout of every question, and so on. A question that has no
// result yet has no line.
func (b *Batch) WriteDeepResearch() error {
	items := b.items()
	for k := 1; k <= b.Rollouts; k++ {
		var list []Result
		err := b.Results(func(r Result) error {
			if r.Rollout == k {
				list = append(list, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = b.replace(fmt.Sprintf("iter%d.jsonl", k), func(w io.Writer) error {
			for _, r := range list {
				record, err := b.deepResearch(items[r.Item], r)
				if err == nil {
					err = writeLine(w, record)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", r.Journal, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) deepResearch(it *Item, r Result) (deepResearch, error) {
	d := deepResearch{Question: it.Question, Messages: []Message{}}
	if len(it.Answers) > 0 {
		d.Answer = it.Answers[0]
	}
	if r.Failed() {
		index := r.Rollout
		d.RolloutIdx, d.RolloutID, d.Error, d.Prediction = &index, &index, r.Error, "[Failed]"
		return d, nil
	}
	run, err := b.lastRun(r)
	if err != nil {
		return d, err
	}
	events, err := eventsOf(run)
	if err != nil {
		return d, err
	}
	d.Messages = messages(run, events)
	d.Prediction, d.Termination = r.Answer, deepResearchTermination(r, events)
	if d.Prediction == "" {
		d.Prediction = "No answer found."
	}
	return d, nil
}

// deepResearchTermination gives an ending the name that DeepResearch has for it.
func deepResearchTermination(r Result, events []runner.Event) string {
	switch r.Termination {
	case runner.TermAnswered:
		return "answer"
	case runner.TermTokenLimit:
		return "format error: generate an answer as token limit reached"
	case runner.TermDeadline:
		return "No answer found after 2h30mins"
	case runner.TermTurnLimit, runner.TermLoop:
		return "exceed available llm calls"
	case runner.TermAnsweredForced:
		if forced(events) == string(runner.TermTokenLimit) {
			return "generate an answer as token limit reached"
		}
		return "answer"
	}
	return "answer not found"
}

// forced is why a last answer was asked for.
func forced(events []runner.Event) string {
	reason := ""
	for _, ev := range events {
		if n, ok := ev.(runner.Nudged); ok && n.Forced {
			reason = n.Reason
		}
	}
	return reason
}

// messages gives a run as DeepResearch keeps it: what the model wrote as it
// came, and responses of tools between their tags in the user's name.
func messages(run *trace.Run, events []runner.Event) []Message {
	var out []Message
	say := func(role, content string) { out = append(out, Message{role, content}) }
	var text strings.Builder
	var between []string
	flush := func() {
		if text.Len() > 0 {
			say("assistant", text.String())
			text.Reset()
		}
		if len(between) > 0 {
			say("user", strings.Join(between, "\n"))
			between = nil
		}
	}
	turn := 0
	for _, ev := range events {
		switch ev := ev.(type) {
		case runner.Started:
			out = opening(run, ev.Prompt)
		case runner.Text:
			if ev.Turn != turn {
				flush()
				turn = ev.Turn
			}
			text.WriteString(ev.Text)
		case runner.Returned:
			between = append(between, "<tool_response>\n"+ev.Content+"\n</tool_response>")
		case runner.Nudged:
			if ev.Reason != runner.ThinkLimit {
				between = append(between, ev.Note)
			}
		}
	}
	flush()
	return out
}

// opening gives the beginning of a prompt as messages: those of ChatML where
// that is what it is, else the question.
func opening(run *trace.Run, prompt []runner.Segment) []Message {
	const begin, end = "<|im_start|>", "<|im_end|>"
	hide, show := strings.NewReplacer(begin, "\x00<", end, "\x00>"), strings.NewReplacer("\x00<", begin, "\x00>", end)
	var text strings.Builder
	for _, s := range prompt {
		switch {
		case s.Source == template.FromTemplate:
			text.WriteString(s.Text)
		case s.Original != "":
			text.WriteString(hide.Replace(s.Original))
		default:
			text.WriteString(hide.Replace(s.Text))
		}
	}
	var out []Message
	for _, part := range strings.Split(text.String(), begin)[1:] {
		role, content, _ := strings.Cut(part, "\n")
		content, _, closed := strings.Cut(content, end)
		if closed && (role == "system" || role == "user") {
			out = append(out, Message{role, show.Replace(content)})
		}
	}
	if n := len(out); n > 0 && out[n-1].Role == "user" {
		return out
	}
	out = nil
	if s := run.Header.Task.System; s != "" {
		out = append(out, Message{"system", s})
	}
	return append(out, Message{"user", run.Header.Task.Question})
}
