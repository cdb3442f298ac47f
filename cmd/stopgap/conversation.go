package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/chzyer/readline"
	"golang.org/x/term"

	"stopgap/runner"
)

// converse asks what is typed, line by line; each question continues the
// prompt of the ones before.
func (a *app) converse(ctx context.Context, e *exchange, s *settings) error {
	lines, err := a.lineReader(s)
	if err != nil {
		return err
	}
	defer lines.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if !s.quiet {
		a.note("ask a question; Ctrl-D leaves")
		if s.corpus == sampleCorpus {
			a.suggest()
		}
	}
	var ledger *runner.Ledger
	for {
		text, err := readLine(ctx, lines)
		switch {
		case errors.Is(err, context.Canceled):
			return &ending{termination: runner.TermCancelled, err: err}
		case errors.Is(err, readline.ErrInterrupt):
			if text == "" && !s.quiet {
				a.note("Ctrl-D leaves")
			}
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &usageError{fmt.Errorf("cannot read from the terminal: %w", err), ""}
		case strings.TrimSpace(text) == "":
			continue
		}
		question, err := checkQuestion(text, s)
		if err != nil {
			a.explain(err)
			continue
		}
		if ledger, err = a.turn(ctx, e, question, ledger); err != nil {
			return err
		}
	}
}

// turn asks one question of a conversation. What goes wrong is told, and the
// conversation goes on; after a fault of the server it goes on from where it
// was before the question. Only a fault of standard output, or SIGTERM, ends it.
func (a *app) turn(ctx context.Context, e *exchange, question string, ledger *runner.Ledger) (*runner.Ledger, error) {
	before := ledger
	if ledger != nil {
		kept := *ledger // a ledger only grows, so its head is what it was
		before = &kept
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the command, see interruptible
	outcome, err := e.ask(ctx, question, ledger)
	switch {
	case err == nil:
		return outcome.Ledger, nil
	case is[*outputError](err):
		return nil, err
	}
	a.explain(err)
	if outcome.Ledger == nil || outcome.Termination == runner.TermServerError {
		return before, nil
	}
	return outcome.Ledger, nil
}

// A lineReader reads what a person types.
type lineReader interface {
	Read() (string, error) // io.EOF at the end, readline.ErrInterrupt for Ctrl-C
	Close()                // leaves the terminal as it was found, even while Read waits
}

const linePrompt = "> "

// readLine reads a line, or gives up when the context ends, or at a SIGINT that
// another process sent or that a terminal without a line editor made of Ctrl-C.
func readLine(ctx context.Context, lines lineReader) (string, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := lines.Read()
		typed <- line{text, err}
	}()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// lineReader chooses: with a history and keys where the terminal can do that.
func (a *app) lineReader(s *settings) (lineReader, error) {
	in, ok := a.stdin.(*os.File)
	if !ok || !a.screen(a.stderr, s.color).cursor {
		return plainLines{bufio.NewReader(a.stdin), a.stderr}, nil
	}
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("cannot use the terminal: %w", err)
	}
	rl, err := readline.NewEx(&readline.Config{
		Prompt: linePrompt, HistoryFile: historyFile(), HistoryLimit: 1000, HistorySearchFold: true,
		Stdin: readline.NewCancelableStdin(in), Stdout: a.stderr, Stderr: a.stderr,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the terminal: %w", err)
	}
	return editedLines{rl, func() { _ = term.Restore(int(in.Fd()), state) }}, nil
}

// historyFile is where the questions are kept, for their owner alone; empty
// where there is no place for it.
func historyFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return ""
		}
	}
	path := filepath.Join(dir, "stopgap", "history")
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return ""
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}

// editedLines are read with a line editor.
type editedLines struct {
	rl      *readline.Instance
	restore func()
}

func (l editedLines) Read() (string, error) { return l.rl.Readline() }

// Close leaves the editor as it is: its own Close may wait for another key.
func (l editedLines) Close() { l.restore() }

// plainLines are read as they come.
type plainLines struct {
	in     *bufio.Reader
	prompt io.Writer
}

func (l plainLines) Read() (string, error) {
	fmt.Fprint(l.prompt, linePrompt)
	text, err := l.in.ReadString('\n')
	if err == io.EOF && text != "" {
		err = nil
	}
	return strings.TrimRight(text, "\r\n"), err
}

func (l plainLines) Close() {}
