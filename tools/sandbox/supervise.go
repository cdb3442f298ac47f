package sandbox

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
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

// gone says that the process is: nobody kills it any more.
func (s *supervisor) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// why is the reason for which the command was ended, if it was.
func (s *supervisor) why() End {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// How long output may still come when the process and its group are gone. Nobody
// outside of a sandbox holds its pipes, so it is only this process that may be
// late to read; without one a process that got away may hold them.
const (
	drainBoxed = 10 * time.Second
	drainFree  = 250 * time.Millisecond
)

// inputDelay is how long nobody may read the command's input when it is gone.
const inputDelay = 250 * time.Millisecond

// An outlet is a pipe that a command writes to, and what came out of it.
type outlet struct {
	capped
	ours, theirs *os.File
	done         chan struct{} // closed at its end
}

// newOutlet makes the pipe; full is called when too much has come.
func newOutlet(most int64, full func()) (*outlet, error) {
	o := &outlet{capped: capped{room: most, full: full}, done: make(chan struct{})}
	var err error
	o.ours, o.theirs, err = os.Pipe()
	return o, err
}

// read reads until the end of the pipe.
func (o *outlet) read() {
	_, _ = io.Copy(&o.capped, o.ours) // it ends with the writers, or by finish
	close(o.done)
}

// finish waits for the end of the pipe, and takes what is in it when late is
// closed.
func (o *outlet) finish(late <-chan struct{}) []byte {
	defer o.ours.Close()
	select {
	case <-o.done:
		return o.kept
	case <-late:
	}
	if o.ours.SetReadDeadline(time.Now()) != nil { // pipes of this system have none
		_ = o.ours.Close()
	}
	<-o.done
	// What was written before is there, though nobody may have come to read it.
	if o.ours.SetReadDeadline(time.Time{}) == nil {
		rest(o.ours, &o.capped)
	}
	return o.kept
}

// supervise starts a command and waits for its end. begun is called once it
// runs; what it returns is called when the process is gone.
func supervise(ctx context.Context, cmd *exec.Cmd, c Command, begun func(*supervisor) (ended func())) (Result, error) {
	s := &supervisor{kill: func() { killGroup(cmd) }}
	var outlets []*outlet
	for _, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		o, err := newOutlet(c.Limits.Output, func() { s.stop(OutputLimit) })
		if err != nil {
			closeAll(outlets)
			return Result{}, err
		}
		*to, outlets = o.theirs, append(outlets, o)
	}
	cmd.Stdin, cmd.WaitDelay = c.Stdin, inputDelay
	start := time.Now()
	s.mu.Lock() // nobody kills what has not started
	err := cmd.Start()
	s.mu.Unlock()
	if err != nil {
		closeAll(outlets)
		return Result{}, &setupError{err}
	}
	for _, o := range outlets {
		_ = o.theirs.Close()
		go o.read()
	}
	ended := begun(s)
	timer := time.AfterFunc(c.Limits.Time-time.Since(start), func() { s.stop(TimeLimit) })
	unhook := context.AfterFunc(ctx, func() { s.stop(Cancelled) })
	err = cmd.Wait()
	timer.Stop()
	unhook()
	s.gone()
	ended()
	res := Result{
		ExitCode: exitCode(cmd.ProcessState), Method: c.Method, Duration: time.Since(start),
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
	}
	drain := drainBoxed
	if c.Method == Unprotected {
		drain = drainFree
	}
	late, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	res.Stdout, res.Stderr = outlets[0].finish(late.Done()), outlets[1].finish(late.Done())
	res.End = cmp.Or(s.why(), Exited)
	return res, outcome(ctx, res, err)
}

// closeAll lets go of pipes that nobody uses.
func closeAll(outlets []*outlet) {
	for _, o := range outlets {
		_, _ = o.ours.Close(), o.theirs.Close()
	}
}

// outcome is the error of a command that has ended.
func outcome(ctx context.Context, res Result, err error) error {
	var exit *exec.ExitError
	switch {
	case res.End == Cancelled:
		return context.Cause(ctx)
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) && res.End == Exited:
		return err // the command's input could not be read
	}
	return nil
}
