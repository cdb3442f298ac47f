package main

import (
	"bytes"
	"context"
	"errors"
	"path"
	"sync"

	"github.com/spf13/cobra"

	"stopgap/models"
	"stopgap/tools/corpus"
	"stopgap/tools/document"
)

// embedder gives the model of --embed, or nil.
func (a *app) embedder(s *settings) (corpus.Embedder, error) {
	if s.embed == "" {
		return nil, nil
	}
	host, err := models.OllamaURL(a.env("OLLAMA_HOST"))
	if err != nil {
		return nil, &usageError{err: errors.New("OLLAMA_HOST: " + err.Error())}
	}
	return corpus.NewEmbedder(s.embed, corpus.EmbedOptions{OllamaHost: host.String(), APIKey: a.env(s.apiKeyEnv)})
}

// onceWithout tells once that searches do without vectors.
func (a *app) onceWithout(s *settings) func(error) {
	var once sync.Once
	return func(err error) {
		if !s.quiet {
			once.Do(func() { a.note("searching by words alone: %s", printable(err.Error())) })
		}
	}
}

// completeEmbed offers Ollama's models to the shell.
func (a *app) completeEmbed(cmd *cobra.Command, s *settings) {
	complete := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		var refs []string
		for _, r := range modelRows(models.Probe(ctx, a.modelOptions(s))) {
			if r.Server == "ollama" {
				refs = append(refs, printable(r.Ref))
			}
		}
		return append(refs, "llamacpp:http://127.0.0.1:8080"), cobra.ShellCompDirectiveNoFileComp
	}
	if cmd.Flags().Lookup("embed") != nil {
		_ = cmd.RegisterFlagCompletionFunc("embed", complete) // the flag is there
	}
}

// readFiles lets an index read every type of file that parse_file reads.
func (s *settings) readFiles(cfg *corpus.Config) {
	options := s.documents()
	for _, extension := range document.Extensions() {
		cfg.Types = append(cfg.Types, "."+extension)
	}
	for extension := range options.Converters {
		cfg.Types = append(cfg.Types, "."+extension)
	}
	cfg.Parse = func(ctx context.Context, name string, data []byte) (corpus.Document, error) {
		d, err := document.Parse(ctx, path.Base(name), bytes.NewReader(data), options)
		if e, ok := errors.AsType[*document.Error](err); ok {
			err = errors.New(e.Reason) // the name is told beside it
		}
		return corpus.Document{Title: d.Title, Text: d.Markdown}, err
	}
}
