package main

import (
	"context"
	"fmt"
)

// An embedRow is what the doctor found about the model of --embed.
type embedRow struct {
	Ref     string `json:"ref"`
	Width   int    `json:"width,omitempty"` // numbers of a vector
	Problem string `json:"problem,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// examineEmbedder asks the embedding model for a vector.
func (a *app) examineEmbedder(ctx context.Context, s *settings) *embedRow {
	row := &embedRow{Ref: masked(s.embed)}
	embedder, err := a.embedder(s)
	var list [][]float32
	if err == nil {
		list, err = embedder.Embed(ctx, []string{"test"}, true)
	}
	if err != nil {
		row.Problem, row.Hint = err.Error(), hint(err)
		return row
	}
	row.Width = len(list[0])
	return row
}

// print tells it to people.
func (r *embedRow) print(p func(int, string, string)) {
	if r.Problem != "" {
		p(0, yellow, "! embedding "+r.Ref)
		p(4, red, r.Problem)
		p(4, plainText, "hint: "+r.Hint)
		return
	}
	p(0, bold, fmt.Sprintf("✓ embedding %s: vectors of %d numbers", r.Ref, r.Width))
}
