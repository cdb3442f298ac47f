//go:build !linux && !darwin

package batch

import "time"

var started = time.Now()

// processorTime is the wall clock where the system's own is not at hand.
func processorTime() time.Duration { return time.Since(started) }
