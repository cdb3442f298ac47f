package main

import "context"

// drawComparison prints what a comparison found, and writes its files. One that
// was interrupted is only printed: to write all takes a while.
func (a *app) drawComparison(ctx context.Context, s *settings, dir string, f compareFlags) error {
	var to []string
	if !f.json {
		to = append(to, "terminal")
	}
	if ctx.Err() == nil {
		to = append(to, drawings[1:]...)
	}
	if len(to) == 0 {
		return nil
	}
	return a.report(ctx, s, dir, reportFlags{to: to})
}
