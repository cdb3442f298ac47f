package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"stopgap/internal/config"
	"stopgap/models"
	"stopgap/models/builtin"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A kit is everything that a run is made of. Close it after the run.
type kit struct {
	runner   *runner.Runner
	task     runner.Task // without the question
	ref      string      // of the model
	info     models.Info // what the server says of it
	workshop *workshop
	// approver is asked before a tool changes something.
	approver *approver
}

// Close closes what the run had open.
func (k *kit) Close() {
	if k.workshop != nil {
		k.workshop.close()
	}
}

// prepare makes a kit without a model, so that faults of the format and the
// criteria are told before a server is asked anything. discover says that one
// may be looked for where the documents depend on the model.
func (a *app) prepare(ctx context.Context, s *settings, discover bool) (*kit, error) {
	format, err := template.Load(s.format)
	if err != nil {
		return nil, err
	}
	if s.singleCall && !format.SingleCall {
		single := *format
		single.SingleCall = true
		format = &single
	}
	if s.constrain && format.Opening == template.OpenChat {
		return nil, &usageError{
			fmt.Errorf("--constrain means nothing with format %s: there the server reads and writes the calls", format.Name),
			"--format server takes the prompt from the same template and can hold calls to their schemas",
		}
	}
	system, err := s.systemText()
	if err != nil {
		return nil, err
	}
	criteria, err := a.criteria(s)
	if err != nil {
		return nil, err
	}
	k := &kit{
		runner: &runner.Runner{
			Format: format, Criteria: criteria, Sampling: s.sampling, Session: rand.Text(),
			SingleCall: s.singleCall, Choice: s.choice(), Constrain: s.constrain, Strict: s.strict, Prefill: s.prefill,
			CallsInThink: map[string]runner.Switch{"yes": runner.On, "no": runner.Off}[s.callsInThink],
			Limits:       s.limits(),
		},
		task: runner.Task{System: system, Date: s.date, Values: pairs(s.values)},
	}
	if discover || s.model != "" {
		if err := a.defaultCorpus(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := k.equip(ctx, a, s); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// limits are the budgets of the settings.
func (s *settings) limits() runner.Limits {
	l := runner.Limits{
		Turns: s.maxTurns, Tokens: s.maxTokens, TurnTokens: s.turnTokens, Think: s.thinkTokens,
		Time: s.timeout, Resumes: s.resumes,
	}
	if l.Resumes == 0 {
		l.Resumes = -1 // none
	}
	return l
}

// choice is --tool-choice: a word, or else a tool's name.
func (s *settings) choice() runner.Choice {
	switch s.toolChoice {
	case "auto", "":
		return runner.Choice{}
	case "none", "required":
		return runner.Choice{Mode: runner.ChoiceMode(s.toolChoice)}
	}
	return runner.Choice{Mode: runner.Named, Tool: s.toolChoice}
}

// criteria are the stop criteria of the settings. What one will do that it may
// not seem to do is told.
func (a *app) criteria(s *settings) ([]stopping.Criterion, error) {
	list, err := s.declaredCriteria()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	out := plainCriteria(list)
	set, err := stopping.Compile(out...)
	if err != nil {
		return nil, err
	}
	for _, w := range set.Warnings() {
		if !s.quiet {
			a.note("%s", w)
		}
	}
	return out, nil
}

// pairs splits key=value; the flag has checked the form.
func pairs(list []string) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		key, value, _ := strings.Cut(kv, "=")
		out[key] = value
	}
	return out
}

// equip gives the run its tools.
func (k *kit) equip(ctx context.Context, a *app, s *settings) error {
	k.approver = &approver{app: a, yes: s.yes}
	k.workshop = &workshop{settings: s, app: a, wanted: s.tools, model: k.ask, room: k.room}
	if s.functions != nil {
		return k.equipByItem(s)
	}
	list, err := k.workshop.tools(ctx)
	if err != nil {
		return err
	}
	if err := checkToolChoice(s.choice(), list); err != nil {
		return err
	}
	if len(list) == 0 && len(s.callLimits) == 0 {
		return nil
	}
	opts := tools.Options{Limit: s.maxCalls, Limits: map[string]int{}, Approve: k.approver.approve}
	if opts.Limit == 0 {
		opts.Limit = k.runner.Format.MaxCalls
	}
	for _, l := range s.callLimits {
		name, n, _ := strings.Cut(l, "=")
		if err := checkTool("--call-limit", name, list); err != nil {
			return err
		}
		opts.Limits[name], _ = strconv.Atoi(n) // the flag has checked it
	}
	set, err := tools.NewSet(list, opts)
	if err != nil {
		return &usageError{err, "leave one of them out of --tools"}
	}
	k.runner.Tools = set
	return nil
}

// checkToolChoice refuses a choice that the run has no tools for.
func checkToolChoice(c runner.Choice, list []tools.Tool) error {
	switch {
	case c.Mode == runner.Named:
		return checkTool("--tool-choice", c.Tool, list, "auto", "none", "required")
	case c.Mode == runner.Required && len(list) == 0:
		return &usageError{errors.New("--tool-choice required, but this run has no tools"), "--tools names tools; search and read come with --corpus"}
	}
	return nil
}

// checkTool refuses the name of a tool that the run does not have. The flag
// takes other words too.
func checkTool(flag, name string, list []tools.Tool, words ...string) error {
	for _, t := range list {
		if t.Spec().Name == name {
			return nil
		}
		words = append(words, t.Spec().Name)
	}
	err := &usageError{fmt.Errorf("%s names %q, which is no tool of this run", flag, name), "--tools names tools; search and read come with --corpus"}
	if near := config.Nearest(name, words); near != "" {
		err.hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(list) > 0 {
		err.hint = "it takes " + strings.Join(words, ", ")
	}
	return err
}

// modelOptions are how models are reached.
func (a *app) modelOptions(s *settings) models.Options {
	limit := func(d time.Duration) time.Duration {
		if d == 0 {
			return -1 // no limit
		}
		return d
	}
	return models.Options{
		OllamaHost: a.env("OLLAMA_HOST"), APIKey: a.env(s.apiKeyEnv), ContextSize: s.context,
		FirstToken: limit(s.firstToken), BetweenTokens: limit(s.between),
	}
}

// connect chooses and opens the model and asks its server what it is. A server
// that is not there and a model that it does not have are told at once;
// whatever else is wrong with the question is left to the run itself, which
// can wait.
func (a *app) connect(ctx context.Context, s *settings, k *kit) error {
	ref, why, err := a.chooseModel(ctx, s)
	if err != nil {
		return err
	}
	model, err := a.openModel(ref, s)
	if err != nil {
		return err
	}
	if d, ok := model.(models.Describer); ok {
		k.info, err = d.Describe(ctx)
		if is[*models.UnreachableError](err) || is[*models.NotFoundError](err) || ctx.Err() != nil {
			return err
		}
	}
	k.ref = ref
	k.runner.Model, k.runner.Name, k.runner.Context = model, masked(ref), k.info.Context.N
	switch {
	case s.quiet:
	case s.model == "" && s.found.URL == "":
		a.note("using the built-in model (%s); for a real one start Ollama or llama-server, or pass --model", why)
	default:
		a.note("using %s (%s)", masked(ref), why)
	}
	return nil
}

// openModel opens a reference. A script or a model file that cannot be read is
// the user's fault like any other file.
func (a *app) openModel(ref string, s *settings) (models.Model, error) {
	model, err := models.Open(ref, a.modelOptions(s))
	switch {
	case err == nil || is[*models.RefError](err):
		return model, err
	case errors.Is(err, fs.ErrNotExist):
		kind, _, _ := strings.Cut(ref, ":")
		return nil, &usageError{err, "--model " + kind + ":FILE takes a file that exists"}
	case is[*builtin.FileError](err):
		return nil, &usageError{err, "the built-in engine runs small Qwen2 and Qwen3 models; others need a server: \"llama-server -m FILE\""}
	}
	return nil, &usageError{err, "correct the file"}
}

// chooseModel gives the reference of the model to use, and why that one. What
// answers on this machine is looked for once.
func (a *app) chooseModel(ctx context.Context, s *settings) (ref, why string, err error) {
	if s.model != "" {
		return s.model, "from the " + s.origins["model"].String(), nil
	}
	if s.found.Ref == "" {
		if s.found, err = models.Discover(ctx, a.modelOptions(s)); err != nil {
			return "", "", err
		}
	}
	if s.found.URL == "" { // no server
		return s.found.Ref, s.found.Why, nil
	}
	return s.found.Ref, fmt.Sprintf("found %s at %s, %s", s.found.Server, s.found.URL, s.found.Why), nil
}
