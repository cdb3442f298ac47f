package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stopgap/internal/research"
	"stopgap/tools"
	"stopgap/tools/corpus"
)

// A toolSource is a source of a research that two tools make: one finds pages,
// one reads a page by its address.
type toolSource struct {
	search tools.Tool // nil where nothing can be searched
	read   tools.Tool
	key    string // the argument of read that takes the address
	// takes says which addresses are this source's; nil for all.
	takes func(address string) bool
}

// Search implements research.Source.
func (s toolSource) Search(ctx context.Context, queries []string) (string, error) {
	if s.search == nil {
		return "", nil
	}
	args, err := json.Marshal(map[string][]string{"query": queries})
	if err != nil {
		return "", err
	}
	return s.search.Run(ctx, args)
}

// Read implements research.Source. What the tools give of a page begins with
//
//	Title [address]
//
// and an empty line.
func (s toolSource) Read(ctx context.Context, address string) (research.Page, error) {
	if s.takes != nil && !s.takes(address) {
		return research.Page{}, fmt.Errorf("%w: %s", research.ErrElsewhere, address)
	}
	args, err := json.Marshal(map[string]string{s.key: address})
	if err != nil {
		return research.Page{}, err
	}
	text, err := s.read.Run(ctx, args)
	if missing := (*corpus.NotFoundError)(nil); errors.As(err, &missing) {
		return research.Page{}, fmt.Errorf("%w: %w", research.ErrElsewhere, err)
	}
	if err != nil {
		return research.Page{}, err
	}
	head, body, _ := strings.Cut(text, "\n\n")
	p := research.Page{Address: address, Title: head, Text: body}
	if i := strings.LastIndex(head, " ["); i >= 0 && strings.HasSuffix(head, "]") {
		p.Title, p.Address = head[:i], head[i+2:len(head)-1]
	}
	return p, nil
}

// sources are what --corpus and --allow give a research: the user's documents,
// the web, and the files below --folder.
func (a *app) sources(ctx context.Context, s *settings, w *workshop) ([]research.Source, error) {
	var out []research.Source
	named := func(list []tools.Tool, name string) tools.Tool {
		if i := slices.IndexFunc(list, func(t tools.Tool) bool { return t.Spec().Name == name }); i >= 0 {
			return list[i]
		}
		return nil
	}
	if s.corpus != "" {
		list, err := openCorpusTools(ctx, w)
		if err != nil {
			return nil, err
		}
		out = append(out, toolSource{search: named(list, "search"), read: named(list, "read"), key: "id"})
	}
	if s.allows(tools.Net) {
		web := *s
		web.corpus = "" // its search would stand in the way of the web's
		list, err := openWebTools(ctx, &workshop{settings: &web, app: a, wanted: []string{"search", "read_url"}})
		switch {
		case errors.Is(err, errNoEngine) && s.corpus != "":
			a.note("the web can be read, not searched: no search engine is set up")
			list, err = openWebTools(ctx, &workshop{settings: &web, app: a, wanted: []string{"read_url"}})
		case errors.Is(err, errNoEngine):
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		out = append(out, toolSource{search: named(list, "search"), read: named(list, "read_url"), key: "url", takes: onServer})
	}
	if s.allows(tools.Files) {
		list, err := openFilesTools(ctx, w)
		if err != nil {
			return nil, err
		}
		out = append(out, toolSource{read: named(list, "parse_file"), key: "files", takes: func(address string) bool { return !onServer(address) }})
	}
	return out, nil
}
