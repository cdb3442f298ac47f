package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// maxStderr is how much of what a dying process says is looked at.
const maxStderr = 8 << 10

// runChild parses a file in a process of its own.
func runChild(ctx context.Context, j job, s *spooled, o Options) (Document, error) {
	program, err := executable(o)
	if err != nil {
		return Document{}, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return Document{}, err
	}
	cmd := &exec.Cmd{Path: program, Args: []string{childName}, Stdin: s.file, Env: environment(
		jobVariable+"="+string(text), "GOMAXPROCS=2", "LC_ALL=C.UTF-8",
	)}
	// In JSON a byte of text is at most six.
	out, errText, err := runGroup(ctx, cmd, j.Timeout+time.Second, 6*j.MaxText+(4<<20))
	if ctx.Err() != nil {
		return Document{}, ctx.Err()
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	if err != nil {
		return Document{}, died(err, errText, j)
	}
	if a.Cause == "" {
		return a.Document, nil
	}
	for _, cause := range causes {
		if cause.Error() == a.Cause {
			return Document{}, &Error{Reason: a.Reason, Cause: cause}
		}
	}
	return Document{}, &Error{Reason: a.Reason, Cause: ErrDamaged}
}

// died says why a child has no answer.
func died(err error, errText string, j job) error {
	code := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = e.ExitCode()
	}
	starved := strings.Contains(errText, "out of memory") || strings.Contains(errText, "cannot allocate memory") ||
		strings.Contains(errText, "stack exceeds") || strings.Contains(errText, "failed to create new OS thread") ||
		strings.Contains(errText, "pthread_create failed")
	switch {
	case code == exitTimeout, errors.Is(err, errSlow), strings.Contains(err.Error(), "CPU time limit"):
		return fail(ErrTimeout, "takes longer than %s to read", j.Timeout)
	case code == exitMemory, starved:
		return outOfMemory(j.Memory)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(errText), "\n")
	if first == "" {
		first = err.Error()
	}
	return fail(ErrDamaged, "is damaged: its parser ended (%.200s)", line(first))
}

func outOfMemory(limit int64) error {
	return fail(ErrMemory, "needs more than %s of memory to read", size(limit))
}

// executable is the program to start. On Linux the link to the running one
// holds even when the file was replaced meanwhile.
func executable(o Options) (string, error) {
	if o.Executable != "" {
		return o.Executable, nil
	}
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// environment is all that a child sees of ours.
func environment(more ...string) []string {
	for _, name := range []string{"PATH", "SystemRoot", "TEMP", "TMP"} {
		if v, ok := os.LookupEnv(name); ok && (name == "PATH" || runtime.GOOS == "windows") {
			more = append(more, name+"="+v)
		}
	}
	return more
}

// Why runGroup ended a process.
var (
	errSlow   = errors.New("it took too long")
	errOutput = errors.New("it printed too much")
)

// runGroup runs a command with all that it starts as one group, which is
// killed when the time is over, the output is past most bytes, ctx is done, or
// the command itself has ended.
func runGroup(ctx context.Context, cmd *exec.Cmd, limit time.Duration, most int) (stdout []byte, stderr string, err error) {
	out, outWriter, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer out.Close()
	problems, problemsWriter, err := os.Pipe()
	if err != nil {
		outWriter.Close()
		return nil, "", err
	}
	defer problems.Close()
	cmd.Stdout, cmd.Stderr = outWriter, problemsWriter
	asGroup(cmd)
	err = cmd.Start()
	outWriter.Close()
	problemsWriter.Close()
	if err != nil {
		return nil, "", fmt.Errorf("cannot start %s: %w", cmd.Args[0], err)
	}
	var buffer, words bytes.Buffer
	full := make(chan struct{})
	read := make(chan struct{}, 2)
	go func() {
		n, _ := io.Copy(&buffer, io.LimitReader(out, int64(most)+1)) // it ends with the process
		if n > int64(most) {
			close(full)
		}
		read <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(&words, io.LimitReader(problems, maxStderr))
		_, _ = io.Copy(io.Discard, problems)
		read <- struct{}{}
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err = <-ended:
		killGroup(cmd)
	case <-ctx.Done():
		killGroup(cmd)
		<-ended
		err = ctx.Err()
	case <-timer.C:
		killGroup(cmd)
		<-ended
		err = errSlow
	case <-full:
		killGroup(cmd)
		<-ended
		err = errOutput
	}
	// The group is dead. Whoever left it may still hold the pipes: what it
	// writes is not waited for.
	deadline := time.Now().Add(time.Second)
	_ = out.SetReadDeadline(deadline)
	_ = problems.SetReadDeadline(deadline)
	<-read
	<-read
	return buffer.Bytes(), words.String(), err
}
