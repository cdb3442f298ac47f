package main

import (
	"context"
	"errors"
	"syscall"

	"stopgap/internal/export"
	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools/corpus"
)

// The exit codes.
const (
	exitAnswered    = 0 // or a criterion fired
	exitNoAnswer    = 1 // or none did, or a format does not pass a check
	exitUsage       = 2 // flags, configuration, format, criteria, corpus, question, text
	exitServer      = 3
	exitDifferent   = 4 // a recorded run does not play as it was recorded
	exitInterrupted = 130
	// exitReaderGone is what a shell shows for a process that SIGPIPE ended:
	// whoever read standard output has stopped reading.
	exitReaderGone = 141
)

// A usageError is a fault in what the user gave.
type usageError struct {
	err  error
	hint string // empty where the error itself has one in hint.go
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// An ending is the end of a run that gave no answer. The error that led to
// it, if there is one, is printed; the view has told the rest.
type ending struct {
	termination runner.Termination
	err         error
	halted      string // the name of the user's own criterion that ended the last turn
	phases      bool   // of a research, whose formats are its own
}

func (e *ending) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	if e.termination == runner.TermNoAnswer {
		return "there is no answer: the model ended without one"
	}
	return "there is no answer: " + endingWords(e.termination)
}

func (e *ending) Unwrap() error { return e.err }

// exitCode maps an error to the code of the process.
func exitCode(err error) int {
	var out *outputError
	var usage *usageError
	var end *ending
	var call failedCall
	switch {
	case err == nil:
		return exitAnswered
	case errors.Is(err, syscall.EPIPE):
		return exitReaderGone
	case errors.As(err, &out):
		return exitNoAnswer
	case errors.Is(err, errDifferent), is[*trace.DivergedError](err), is[*export.Error](err):
		return exitDifferent
	case errors.Is(err, context.Canceled), errors.As(err, &end) && end.termination == runner.TermCancelled:
		return exitInterrupted
	case errors.As(err, &call):
		return call.code()
	case isServer(err):
		return exitServer
	case errors.As(err, &usage), isUsage(err):
		return exitUsage
	case errors.As(err, &end) && end.termination == runner.TermServerError:
		return exitServer
	}
	return exitNoAnswer
}

// isServer reports whether a model server is at fault, or not there.
func isServer(err error) bool {
	return is[*models.UnreachableError](err) || is[*models.NotFoundError](err) || is[*models.LoadingError](err) ||
		is[*models.OverflowError](err) || is[*models.CutError](err) || is[*models.StallError](err) ||
		is[*models.ServerError](err) || is[*models.ProtocolError](err) || is[*runner.TruncatedError](err) ||
		is[*corpus.EmbedError](err) || is[*corpus.RemoteError](err)
}

// is reports whether an error of a type is in the chain.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
