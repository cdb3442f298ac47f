package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/models"
	"stopgap/runner"
)

// A checkup is what the doctor found at one server.
type checkup struct {
	Server  string       `json:"server"`
	URL     string       `json:"url,omitempty"`
	Problem string       `json:"problem,omitempty"` // why it cannot be used
	Hint    string       `json:"hint,omitempty"`    // what to do about it
	Models  []modelRow   `json:"models,omitempty"`
	Chosen  *examination `json:"chosen,omitempty"`
	// Engines are what web_search can ask; in an entry of their own.
	Engines []engineRow `json:"engines,omitempty"`
	// Embedding is what is known of --embed; in an entry of its own.
	Embedding *embedRow `json:"embedding,omitempty"`
}

// An examination is what the doctor found about one model.
type examination struct {
	Ref     string       `json:"ref"`
	Why     string       `json:"why,omitempty"`
	Version string       `json:"version,omitempty"` // of the server
	Context models.Count `json:"context"`           // tokens a request may use, null where unknown
	Trained models.Count `json:"trained"`           // context length of the model's training
	Slots   models.Count `json:"slots"`
	Prompts *spelling    `json:"prompts,omitempty"`
	Prefix  *prefix      `json:"prefix,omitempty"`
	Problem string       `json:"problem,omitempty"`
	Hint    string       `json:"hint,omitempty"`
}

// A spelling says how prompts are sent, and how their tokens are counted.
type spelling struct {
	IDs     bool `json:"ids"`     // as token ids, else as text
	Special int  `json:"special"` // special tokens that are known, which text from others never becomes
	Counted bool `json:"counted"` // by the model's own vocabulary
}

// A prefix says whether two sessions that take turns keep their caches.
type prefix struct {
	Verdict models.PrefixVerdict `json:"verdict"`
	Exact   bool                 `json:"exact"` // from the server's counts, not from its times
	Advice  string               `json:"advice,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	s := newSettings()
	var asJSON, quick bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check which servers answer and how well they are set up",
		Long: `Check which servers answer, which models they have, how large their context is,
and whether the beginning of a prompt is really reused when two sessions take
turns; if not, the flag that helps. The measurement sends a dozen short prompts
to one model of each server, which loads that model. The built-in model, which
is used where no server has one, comes last.

With --model only that model is checked; the exit code is 3 when it cannot be
used.`,
		Example: "  stopgap doctor\n  stopgap doctor --model llamacpp:http://127.0.0.1:8080 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.settle(cmd, s); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.doctor(ctx, s, quick, asJSON)
		},
	}
	addFlags(cmd, s, groupModel, groupTools, groupOutput)
	hideFlags(cmd, "prefill", "trace")
	s.flags(groupTools).VisitAll(func(f *pflag.Flag) {
		if !strings.HasPrefix(f.Name, "search-") && f.Name != "embed" {
			hideFlags(cmd, f.Name)
		}
	})
	ownFlags(cmd, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print JSON")
		f.BoolVar(&quick, "quick", false, "do not measure the reuse of prompts")
	})
	a.completeFlags(cmd, s)
	return cmd
}

func (a *app) doctor(ctx context.Context, s *settings, quick, asJSON bool) error {
	busy := a.screen(a.stderr, s.color)
	if s.quiet {
		busy.cursor = false
	}
	spin := newSpinner(a.stderr, busy)
	defer spin.Close()
	spin.show("looking for servers")
	var all []checkup
	if s.model != "" {
		x := a.examine(ctx, s, spin, s.model, quick)
		x.Why = "from the " + s.origins["model"].String()
		server, _, _ := strings.Cut(x.Version, " ")
		all = []checkup{{Server: server, Chosen: x}}
	} else {
		for _, f := range models.Probe(ctx, a.modelOptions(s)) {
			c := checkup{Server: f.Server, URL: masked(f.URL), Models: modelRows([]models.Finding{f})}
			if f.Err != nil {
				c.Problem, c.Hint = f.Reason(), hint(f.Err)
			}
			if f.Ref != "" {
				c.Chosen = a.examine(ctx, s, spin, f.Ref, quick)
				c.Chosen.Why = f.Why
			}
			all = append(all, c)
		}
	}
	spin.hide()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.model == "" {
		all = append(all, checkup{Server: "web search", Engines: a.searchEngines(s)})
	}
	if s.embed != "" {
		all = append(all, checkup{Server: "embedding", Embedding: a.examineEmbedder(ctx, s)})
	}
	if err := a.printCheckups(s, all, asJSON); err != nil {
		return err
	}
	usable := slices.DeleteFunc(all, func(c checkup) bool { return c.Chosen == nil || c.Chosen.Problem != "" })
	if len(usable) == 0 {
		return &ending{termination: runner.TermServerError, err: errUnusable}
	}
	if s.model == "" && usable[0].Server == "builtin" && !s.quiet { // it comes last
		a.note("only the built-in model can be used; for a real one %s", startServer)
	}
	return nil
}

// errUnusable is the doctor's result where nothing can be used.
var errUnusable = errors.New("there is no usable model")

// examine asks a server about one model, and measures.
func (a *app) examine(ctx context.Context, s *settings, spin *spinner, ref string, quick bool) *examination {
	x := &examination{Ref: masked(ref)}
	fault := func(err error) *examination {
		x.Problem, x.Hint = err.Error(), hint(err)
		return x
	}
	m, err := a.openModel(ref, s)
	if err != nil {
		return fault(err)
	}
	if d, ok := m.(models.Describer); ok {
		info, err := d.Describe(ctx)
		if err != nil {
			return fault(err)
		}
		x.Version, x.Context, x.Trained, x.Slots = info.Server, info.Context, info.Trained, info.Slots
	}
	if sp, ok := m.(models.Speller); ok {
		known, err := sp.Spelling(ctx)
		if err != nil {
			return fault(err)
		}
		x.Prompts = &spelling{IDs: known.IDs, Special: len(known.Special), Counted: known.Encode != nil}
	} else {
		x.Prompts = &spelling{}
	}
	if quick {
		return x
	}
	spin.show("measuring the reuse of prompts with " + printable(x.Ref))
	report, err := models.MeasurePrefix(ctx, m)
	if err != nil {
		return fault(err)
	}
	x.Prefix = &prefix{report.Verdict, report.Exact, report.Advice}
	// A model that was not loaded is now, and its server knows more of it.
	if d, ok := m.(models.Describer); ok && !x.Context.Known {
		if info, err := d.Describe(ctx); err == nil {
			x.Context = info.Context
		}
	}
	return x
}

// printCheckups prints a report for people, or JSON.
func (a *app) printCheckups(s *settings, all []checkup, asJSON bool) error {
	if asJSON {
		return a.printJSON(all)
	}
	screen := a.screen(a.stdout, s.color)
	p := func(indent int, attribute, text string) {
		for _, line := range wrap(printable(text), screen.width(), indent) {
			fmt.Fprintln(a.stdout, screen.paint(attribute, line))
		}
	}
	for _, c := range all {
		switch {
		case len(c.Engines) > 0:
			for _, e := range c.Engines {
				p(0, e.attribute(), e.words())
			}
			continue
		case c.Embedding != nil:
			c.Embedding.print(p)
			continue
		case c.Chosen != nil && c.Chosen.Problem != "":
			p(0, yellow, strings.TrimSpace("! "+c.Server+" "+c.URL))
		case c.Chosen != nil:
			p(0, bold, strings.TrimSpace("✓ "+cmp.Or(c.Chosen.Version, c.Server)+" "+c.URL))
		case c.Problem != "":
			p(0, dim, fmt.Sprintf("- %s %s: %s", c.Server, c.URL, c.Problem))
		default:
			p(0, yellow, fmt.Sprintf("! %s %s: it has no model that writes text", c.Server, c.URL))
		}
		for _, m := range c.Models {
			size := ""
			if m.Size > 0 {
				size = " " + humanize.Bytes(uint64(m.Size))
			}
			p(2, plainText, strings.TrimSpace(m.Ref+size+" "+m.Detail))
		}
		if c.Chosen != nil {
			a.printExamination(p, c.Chosen)
		}
	}
	return a.stdout.err
}

const plainText = "0" // no attribute

func (a *app) printExamination(p func(int, string, string), x *examination) {
	p(2, plainText, fmt.Sprintf("checked: %s (%s)", x.Ref, x.Why))
	if x.Problem != "" {
		p(4, red, x.Problem)
		if x.Hint != "" {
			p(4, plainText, "hint: "+x.Hint)
		}
		return
	}
	context := "context: " + x.Context.String()
	if x.Trained.Known {
		context += fmt.Sprintf(" of %d tokens", x.Trained.N)
	}
	p(4, plainText, context)
	if x.Slots.Known {
		p(4, plainText, "slots: "+x.Slots.String())
	}
	p(4, plainText, "prompts: "+x.Prompts.words())
	if x.Prefix == nil {
		return
	}
	attribute, words := green, "prompts are reused when two sessions take turns"
	switch x.Prefix.Verdict {
	case models.PrefixLost:
		attribute, words = yellow, "prompts are read again when two sessions take turns"
	case models.PrefixUnknown:
		attribute, words = plainText, "whether prompts are reused is unknown: the server does not say"
	}
	if !x.Prefix.Exact && x.Prefix.Verdict != models.PrefixUnknown {
		words += " (judged by time)"
	}
	p(4, attribute, words)
	if x.Prefix.Advice != "" {
		p(4, plainText, "hint: start the server with "+x.Prefix.Advice)
	}
}

// words say what a user gets of it.
func (s *spelling) words() string {
	words := "sent as text"
	if s.IDs {
		words = "sent as token ids"
	}
	if s.Counted {
		words += ", counted exactly"
	} else {
		words += ", counted by an estimate"
	}
	if s.Special == 0 {
		return words + "; the server does not tell the model's special tokens"
	}
	return words + fmt.Sprintf("; %d special tokens of the model are kept out of text from others", s.Special)
}
