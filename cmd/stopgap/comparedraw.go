package main

import (
	"fmt"

	"stopgap/internal/compare"
)

// drawComparison prints what a comparison found.
func (a *app) drawComparison(dir string, f compareFlags) error {
	if f.json {
		return nil
	}
	r, err := compare.Read(dir)
	if err != nil {
		return comparisonError(err)
	}
	m := r.Metric(r.Primary)
	for i := range r.Configurations {
		c := &r.Configurations[i]
		line := c.Name
		if m != nil {
			if s := c.Score(m.Key); s != nil {
				line += fmt.Sprintf(": %s %.3f (%.3f to %.3f)", m.Name, s.Estimate, s.Low, s.High)
			}
		}
		if _, err := fmt.Fprintln(a.stdout, printable(line)); err != nil {
			return err
		}
	}
	for _, w := range r.Warnings {
		a.note("%s", w)
	}
	return nil
}
