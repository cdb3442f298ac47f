package main

import (
	"context"
	"crypto/rand"
	"encoding/json"

	"stopgap/runner"
)

// ask asks the run's model something beside the task, in a prompt of its own
// without tools.
func (k *kit) ask(ctx context.Context, prompt string, _ json.RawMessage) (string, error) {
	if k.runner.Model == nil {
		return "", errNoModel
	}
	beside := runner.Runner{
		Model: k.runner.Model, Name: k.runner.Name, Format: k.runner.Format, Context: k.runner.Context,
		Sampling: k.runner.Sampling, Session: rand.Text(), Limits: k.runner.Limits,
	}
	answer := ""
	for ev, err := range beside.Run(ctx, runner.Task{Question: prompt, Date: k.task.Date}) {
		if err != nil {
			return "", err
		}
		if end, ok := ev.(runner.Ended); ok {
			answer = end.Outcome.Answer
		}
	}
	return answer, nil
}
