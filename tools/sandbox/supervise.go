package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"time"
)

// A supervisor kills a command when it goes beyond a limit, and remembers which
// was the first.
type supervisor struct {
	mu   sync.Mutex
	end  End
	over bool   // the process is gone: its id may be another's by now
	kill func() // kills the process and its group
}

// stop ends the command.
func (s *supervisor) stop(why End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == "" {
		s.end = why
	}
	if !s.over {
		s.kill()
	}
}

// finish says that the process is gone, and why it was ended, if it was.
func (s *supervisor) finish() End {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.end
}

// A capped writer keeps the first bytes of what is written and takes the rest
// without keeping it.
type capped struct {
	kept []byte
	room int64
	full func() // called at the first byte too many
}

func (w *capped) Write(p []byte) (int, error) {
	fits := min(int64(len(p)), w.room)
	w.kept = append(w.kept, p[:fits]...)
	w.room -= fits
	if fits < int64(len(p)) && w.full != nil {
		w.full()
		w.full = nil
	}
	return len(p), nil
}

// drain is how long output may still come when the process is gone. Nobody
// outside of a sandbox holds its pipes; without one a process that got away may.
const drain = 250 * time.Millisecond

// supervise starts a command and waits for its end. begun is called once it
// runs; what it returns is called when the process is gone.
func supervise(ctx context.Context, cmd *exec.Cmd, c Command, begun func(*supervisor) (ended func())) (Result, error) {
	s := &supervisor{}
	stdout := &capped{room: c.Limits.Output, full: func() { s.stop(OutputLimit) }}
	stderr := &capped{room: c.Limits.Output, full: func() { s.stop(OutputLimit) }}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c.Stdin, stdout, stderr, drain
	s.kill = func() { killGroup(cmd) }
	start := time.Now()
	s.mu.Lock() // nobody kills what has not started
	err := cmd.Start()
	s.mu.Unlock()
	if err != nil {
		return Result{}, &setupError{err}
	}
	ended := begun(s)
	timer := time.AfterFunc(c.Limits.Time-time.Since(start), func() { s.stop(TimeLimit) })
	unhook := context.AfterFunc(ctx, func() { s.stop(Cancelled) })
	err = cmd.Wait()
	timer.Stop()
	unhook()
	ended()
	res := Result{
		Stdout: stdout.kept, Stderr: stderr.kept, End: s.finish(),
		ExitCode: exitCode(cmd.ProcessState), Method: c.Method, Duration: time.Since(start),
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
	if res.End == "" {
		res.End = Exited
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && res.End == Exited {
		return res, err // the command's input could not be read
	}
	if res.End == Cancelled {
		return res, context.Cause(ctx)
	}
	return res, nil
}
