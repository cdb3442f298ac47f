//go:build unix

package sandbox

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOutputOnABusyMachine: what a command wrote is told although nobody came to
// read it for a while after its end.
func TestOutputOnABusyMachine(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var idle atomic.Bool
	defer idle.Store(true)
	for range 40 { // each has the processor for 10 ms
		go func() {
			for !idle.Load() {
			}
		}()
	}
	var all sync.WaitGroup
	defer all.Wait()
	for range 6 {
		all.Go(func() {
			res, err := Run(t.Context(), Command{Args: []string{"sh", "-c", "echo out; echo err >&2"}, Method: Unprotected})
			if err != nil || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.End != Exited {
				t.Errorf("%v: %+v, %q and %q", err, res.End, res.Stdout, res.Stderr)
			}
		})
	}
}

// TestEscapedWriter: who left the group of an unprotected command and holds its
// pipes is not waited for, and what was written until then is told.
func TestEscapedWriter(t *testing.T) {
	start := time.Now()
	res, err := Run(t.Context(), Command{Args: []string{"sh", "-c", "echo out; setsid sleep 20 & sleep 0.2; exit 3"}, Method: Unprotected})
	if err != nil || string(res.Stdout) != "out\n" || res.ExitCode != 3 || time.Since(start) > 15*time.Second {
		t.Errorf("%v: %+v, %q after %s", err, res.ExitCode, res.Stdout, time.Since(start))
	}
}
