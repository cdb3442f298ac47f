package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stopgap/internal/batch"
	"stopgap/internal/compare"
	"stopgap/internal/config"
	"stopgap/internal/eval/judge"
	"stopgap/models"
	"stopgap/runner"
)

// A referee is the model that judges, and what its verdicts are kept under: its
// name and the format it is asked in, as configurations are named.
type referee struct {
	kit  *kit
	name string
}

// judgeFor opens the model of --judge; nil where there is none. Where no format is
// named it is asked by the server's own template, or in the usual format where the
// server has none.
func (a *app) judgeFor(ctx context.Context, s *settings, f compareFlags, board *compareBoard) (*referee, error) {
	if f.judge == "" {
		return nil, nil
	}
	format := cmp.Or(f.judgeFormat, "server")
	b, err := a.openJudge(ctx, s, f.judge, format, board)
	if errors.Is(err, runner.ErrNoRenderer) && f.judgeFormat == "" {
		quiet := *s
		quiet.quiet = true // the model has been told
		b, err = a.openJudge(ctx, &quiet, f.judge, defaultFormat, board)
	}
	if errors.Is(err, runner.ErrNoRenderer) || errors.Is(err, runner.ErrNoChat) || is[*models.UnsupportedError](err) {
		return nil, &usageError{fmt.Errorf("--judge: %w", err), "--judge-format names a format, such as qwen"}
	}
	return b, err
}

// openJudge opens a judge that is asked in a format. It answers greedily and has
// no tools.
func (a *app) openJudge(ctx context.Context, s *settings, ref, format string, board *compareBoard) (*referee, error) {
	one, silent := newSettings(), *a
	one.model, one.format, one.quiet, one.context = ref, format, s.quiet, s.context
	one.firstToken, one.between, one.apiKeyEnv = s.firstToken, s.between, s.apiKeyEnv
	greedy := 0.0
	one.sampling.Temperature = &greedy
	flag := config.Origin{Place: config.Flag, Detail: "--judge"}
	one.origins = map[string]config.Origin{"model": flag, "corpus": flag} // it is given no documents
	silent.stderr = board
	k, err := silent.prepare(ctx, one, false)
	if err != nil {
		return nil, err
	}
	err = silent.connect(ctx, one, k)
	if err == nil { // before the first rollout, not behind the last one
		err = checkRun(ctx, &batch.Server{Runner: k.runner, Task: k.task}, nil)
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return &referee{k, k.runner.Format.Name + "@" + modelName(k)}, nil
}

// ask asks the judge's model.
func (b *referee) ask(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
	answer, _, err := b.kit.runner.Ask(ctx, prompt, schema)
	if is[*runner.LimitError](err) || is[*models.OverflowError](err) {
		err = fmt.Errorf("%w: %w", judge.ErrTooLong, err)
	}
	return answer, err
}

// judge has the answers of a comparison judged.
func (b *referee) judge(ctx context.Context, c *compare.Comparison, board *compareBoard) (err error) {
	store, err := judge.OpenStore(c.Verdicts())
	if err != nil {
		return folderError(&batch.FolderError{Dir: c.Dir, Err: err})
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = follow(c.Judge(ctx, &judge.Judge{Ask: b.ask, Model: b.name, Store: store}), board)
	return err
}
