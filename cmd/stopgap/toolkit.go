package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stopgap/internal/config"
	"stopgap/tools"
	"stopgap/tools/corpus"
	"stopgap/tools/goal"
)

// A family is tools that come together, from one package.
type family struct {
	name string // in --tools it stands for all of them
	// open makes the tools, all of them or those that the workshop wants. It starts
	// no process and no connection that --tools does not name: what costs
	// something waits for the first call.
	open func(context.Context, *workshop) ([]tools.Tool, error)
}

// families are all that there are, in the order of "stopgap tool list".
func families() []family {
	return []family{
		{"corpus", openCorpusTools},
		{"web", openWebTools},
		{"files", openFilesTools},
		{"python", openPythonTools},
		{"project", openProjectTools},
		{"shell", openShellTools},
		{"own", openOwnTools},
		{"mcp", openMCPTools},
	}
}

// A workshop is what families make their tools with.
type workshop struct {
	*settings
	app *app
	// wanted are the names of --tools; listing says that all are wanted, to be
	// looked at.
	wanted  []string
	listing bool
	// model answers ask; nil where there is none.
	model func(ctx context.Context, prompt string, schema json.RawMessage) (string, error)
	// room is how many tokens that model's context has, zero for unknown; nil too.
	room func() int
	file toolFile // what the user has declared
	// closers are run when the tools are no longer used, the last one first.
	closers []func()
}

// close ends what the tools have open.
func (w *workshop) close() {
	for _, f := range slices.Backward(w.closers) {
		f()
	}
	w.closers = nil
}

// wants reports whether --tools names something: a tool, a family or a server,
// itself or one of its tools, whose names go on with a dot.
func (w *workshop) wants(name string) bool { return w.listing || w.named(name) }

// named is wants without listing: what is started or reached has to be named.
func (w *workshop) named(name string) bool {
	return slices.ContainsFunc(w.wanted, func(want string) bool {
		return want == name || strings.HasPrefix(want, name+".")
	})
}

// ask asks the model of the run something beside its task; schema may be empty.
func (w *workshop) ask(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
	if w.model == nil {
		return "", errNoModel
	}
	return w.model(ctx, prompt, schema)
}

// reader has the model of the run read texts.
func (w *workshop) reader() goal.Reader { return goal.Reader{Ask: w.ask, Room: w.room} }

// A shelf is the tools of one family.
type shelf struct {
	family string
	tools  []tools.Tool
	err    error // why there are none, or not all
}

// shelves opens all families. A file of declarations that cannot be read is an
// error for all of them.
func (w *workshop) shelves(ctx context.Context) ([]shelf, error) {
	if err := w.declare(); err != nil {
		return nil, err
	}
	var out []shelf
	for _, f := range families() {
		list, err := f.open(ctx, w)
		out = append(out, shelf{f.name, list, err})
	}
	return out, ctx.Err()
}

// tools gives the tools of the run: those of the corpus, and what --tools names,
// as far as --allow goes. What cannot be had is an error of the user.
func (w *workshop) tools(ctx context.Context) ([]tools.Tool, error) {
	shelves, err := w.shelves(ctx)
	if err != nil {
		return nil, err
	}
	list, err := shelves[0].tools, shelves[0].err // of the corpus
	if err != nil {
		return nil, err
	}
	seen := map[[2]string]bool{}
	for _, t := range list {
		seen[[2]string{shelves[0].family, t.Spec().Name}] = true
	}
	for _, name := range w.wanted {
		found, err := pick(shelves, name)
		if err != nil {
			return nil, err
		}
		for _, t := range found.tools {
			if key := [2]string{found.family, t.Spec().Name}; !seen[key] {
				seen[key] = true
				list = append(list, t)
			}
		}
	}
	return list, w.permit(list)
}

// pick gives what one name of --tools stands for: a tool, else all tools of a
// server, else those of a family.
func pick(shelves []shelf, name string) (shelf, error) {
	var failed error
	var names []string
	for _, s := range shelves {
		failed = errors.Join(failed, s.err)
		for _, t := range s.tools {
			if t.Spec().Name == name {
				return shelf{s.family, []tools.Tool{t}, nil}, nil
			}
			names = append(names, t.Spec().Name)
		}
	}
	for _, s := range shelves {
		under := slices.DeleteFunc(slices.Clone(s.tools), func(t tools.Tool) bool {
			return !strings.HasPrefix(t.Spec().Name, name+".")
		})
		switch {
		case len(under) > 0:
			return shelf{s.family, under, nil}, nil
		case s.family == name && (s.err != nil || len(s.tools) > 0):
			return s, s.err
		}
		names = append(names, s.family)
	}
	switch {
	case failed != nil:
		return shelf{}, failed
	case name == "search" || name == "read" || name == "corpus":
		return shelf{}, &usageError{fmt.Errorf("the tool %q has nothing to look in", name), "--corpus names a folder of documents; search and read come with it"}
	}
	hint := "\"stopgap tool list\" lists what there is"
	if near := config.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return shelf{}, &usageError{fmt.Errorf("there is no tool %q", name), hint}
}

// capabilities are what --allow takes.
var capabilities = []string{string(tools.Net), string(tools.Files), string(tools.Code)}

// allows reports whether a capability is one of --allow.
func (s *settings) allows(c tools.Capability) bool { return slices.Contains(s.allow, string(c)) }

// permit refuses tools that can do more than is allowed.
func (s *settings) permit(list []tools.Tool) error {
	var refused []string
	missing := map[tools.Capability]bool{}
	for _, t := range list {
		spec := t.Spec()
		var lacks []string
		for _, c := range spec.Capabilities {
			if !s.allows(c) {
				missing[c] = true
				lacks = append(lacks, string(c))
			}
		}
		if len(lacks) > 0 {
			refused = append(refused, fmt.Sprintf("%s needs %s", spec.Name, strings.Join(lacks, " and ")))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return notAllowed(s, strings.Join(refused, ", "), missing)
}

// notAllowed says what to add to --allow.
func notAllowed(s *settings, what string, missing map[tools.Capability]bool) error {
	var all []string
	for _, c := range capabilities {
		if missing[tools.Capability(c)] || slices.Contains(s.allow, c) {
			all = append(all, c)
		}
	}
	return &usageError{fmt.Errorf("%s, which this run does not allow", what), "--allow " + strings.Join(all, ",") + " allows it"}
}

// openCorpusTools gives search and read. They need not be named: --corpus is
// what names them, and they reach nothing else.
func openCorpusTools(ctx context.Context, w *workshop) ([]tools.Tool, error) {
	if w.listing {
		return new(corpus.Index).Tools(), nil // to be looked at: nothing is indexed or asked
	}
	if w.corpus == "" {
		return nil, nil
	}
	documents, err := w.app.openCorpus(ctx, w.settings)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, func() { _ = documents.Close() }) // they were only read
	return documents.Tools(), nil
}
