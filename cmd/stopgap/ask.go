package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools/goal"
)

// ask asks the model of the kit something beside the task.
func (k *kit) ask(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
	return askAside(ctx, k.runner, prompt, schema)
}

// room is how many tokens a prompt of the kit's model may have, zero for unknown.
func (k *kit) room() int {
	if limit := k.runner.Limits.Tokens; limit > 0 && (k.runner.Context == 0 || limit < k.runner.Context) {
		return limit
	}
	return k.runner.Context
}

// askAside asks a runner's model for a tool, as a goal.Ask does.
func askAside(ctx context.Context, r *runner.Runner, prompt string, schema json.RawMessage) (string, error) {
	if r.Model == nil {
		return "", errNoModel
	}
	answer, _, err := r.Ask(ctx, prompt, schema)
	if long := (*runner.LimitError)(nil); errors.As(err, &long) || is[*models.OverflowError](err) {
		err = fmt.Errorf("%w: %w", goal.ErrTooLong, err)
	}
	return answer, err
}
