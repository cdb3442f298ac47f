package main

import (
	"context"
	"fmt"
	"strings"

	"stopgap/internal/config"
	"stopgap/internal/sample"
	"stopgap/tools/corpus"
)

// sampleCorpus is how --corpus names the documents that come along. A folder of
// that name is ./sample.
const sampleCorpus = "sample"

// defaultCorpus gives the built-in model the documents that come along, unless
// the user named others, or none, or other tools: it knows nothing by itself. That it does is
// told.
func (a *app) defaultCorpus(ctx context.Context, s *settings) error {
	if s.functions != nil || s.corpus != "" || len(s.tools) > 0 || s.origins["corpus"].Place != config.Default {
		return nil
	}
	ref, _, err := a.chooseModel(ctx, s)
	if err != nil {
		return err
	}
	if kind, _, _ := strings.Cut(ref, ":"); kind != "builtin" {
		return nil
	}
	s.corpus = sampleCorpus
	if !s.quiet {
		a.note("searching the sample documents, whose facts are made up; --corpus FOLDER searches yours")
	}
	return nil
}

// openSample opens the documents that come along.
func openSample(ctx context.Context) (*corpus.Index, error) {
	return corpus.Open(ctx, corpus.Config{Path: "the sample documents", FS: sample.Documents()})
}

// suggest prints questions that the sample documents answer, others each day.
func (a *app) suggest() {
	a.note("for example:")
	for _, q := range sample.Suggestions(a.now().YearDay()) {
		fmt.Fprintln(a.stderr, "  "+q.Question)
	}
}
