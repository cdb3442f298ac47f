//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
)

// Child belongs first in main, see the documentation for Linux. Here it does
// nothing.
func Child() {}

func run(ctx context.Context, c Command) (Result, error) {
	if c.Method == Unprotected {
		return runUnprotected(ctx, c)
	}
	err := errors.New("needs Linux on amd64 or arm64")
	if c.Method != "" {
		return Result{}, &UnavailableError{[]Reason{{c.Method, err}}}
	}
	var e UnavailableError
	for _, m := range methods {
		e.Reasons = append(e.Reasons, Reason{m, err})
	}
	return Result{}, &e
}
