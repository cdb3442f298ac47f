package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"stopgap/internal/config"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools/corpus"
)

// TestErrors: every typed error has its exit code and, where a person can do
// something about it, a hint; both also when it is wrapped.
func TestErrors(t *testing.T) {
	refused := errors.New("connection refused")
	ended := func(term runner.Termination, err error) error { return &ending{termination: term, err: err} }
	for _, c := range []struct {
		err  error
		code int
		hint string // a part of it
	}{
		{&models.UnreachableError{Server: "ollama", URL: "http://a", Err: refused}, 3, "ollama serve"},
		{&models.UnreachableError{Server: "llama-server", URL: "http://a", Err: refused}, 3, "llama-server -m model.gguf"},
		{&models.UnreachableError{Server: "vllm", URL: "http://a", Err: refused}, 3, "stopgap doctor"},
		{&models.UnreachableError{Server: "ollama", URL: "http://a", Err: os.ErrDeadlineExceeded}, 3, "it may hang"},
		{&models.NotFoundError{Server: "ollama", Model: "x"}, 3, "ollama pull x"},
		{&models.NotFoundError{Server: "ollama", Model: "qwen", Available: []string{"qwen3"}}, 3, `did you mean "qwen3"?`},
		{&models.NotFoundError{Server: "ollama", Model: "demox", Available: []string{"demo:latest"}}, 3, `did you mean "demo"?`},
		{&models.NotFoundError{Server: "vllm", Model: "zz", Available: []string{"a1", "b2", "c3", "d4", "e5", "f6"}}, 3, "a1, b2, c3, d4, e5 and 1 more"},
		{&models.LoadingError{Waited: time.Minute}, 3, "wait"},
		{&models.OverflowError{PromptTokens: models.Known(9000)}, 3, "--context N (9000 tokens"},
		{&models.CutError{}, 3, "server's log"},
		{&models.StallError{Phase: models.StallFirstToken}, 3, "--first-token-timeout"},
		{&models.StallError{Phase: models.StallBetweenTokens}, 3, "--token-timeout"},
		{&models.ServerError{Status: 500}, 3, "server's log"},
		{&models.ServerError{Status: 401}, 3, "STOPGAP_API_KEY"},
		{&models.ProtocolError{}, 3, "--model"},
		{&models.RefError{Kinds: models.Kinds()}, 2, "stopgap models"},
		{&models.RefError{Kinds: models.Kinds()[:1]}, 2, models.Kinds()[0].Form},
		{&template.FormatError{Name: "x", Err: fs.ErrNotExist}, 2, "--format takes a name"},
		{&template.FormatError{Name: "x"}, 2, "correct the file"},
		{&stopping.CompileError{Position: -1}, 2, "--stop"},
		{&stopping.CompileError{Position: -1, Hint: "do this"}, 2, "do this"},
		{&stopping.BudgetError{}, 2, "backtracks"},
		{&corpus.ReadError{Err: fs.ErrNotExist}, 2, "name an existing folder"},
		{&corpus.ReadError{Err: fs.ErrPermission}, 2, "may read"},
		{&corpus.NoDocumentsError{}, 2, ".jsonl"},
		{&corpus.IndexError{}, 2, "--index FILE"},
		{&config.Error{Near: "model"}, 2, `did you mean "model"?`},
		{&config.Error{}, 2, "stopgap config"},
		{&config.ValueError{Err: refused}, 2, "--help"},
		{&usageError{errNoQuestion, "ask something"}, 2, "ask something"},
		{&outputError{refused}, 1, ""},
		{&outputError{syscall.EPIPE}, 141, ""},
		{context.Canceled, 130, ""},
		{ended(runner.TermCancelled, context.Canceled), 130, ""},
		{ended(runner.TermServerError, refused), 3, ""},
		{ended(runner.TermServerError, &models.CutError{}), 3, "server's log"},
		{ended(runner.TermTurnLimit, nil), 1, "--max-turns"},
		{ended(runner.TermTokenLimit, nil), 1, "--max-tokens"},
		{ended(runner.TermDeadline, nil), 1, "--timeout"},
		{ended(runner.TermLoop, nil), 1, "--format"},
		{ended(runner.TermNoAnswer, nil), 1, "--format"},
		{ended(runner.TermFormatError, nil), 1, "--format"},
		{ended(runner.TermFormatError, &template.FormatError{Name: "x"}), 2, "correct the file"},
		{&ending{termination: runner.TermNoAnswer, halted: "--stop x"}, 1, "--stop x ended the last turn"},
		{errNothingFired, 1, ""},
		{errors.New("anything else"), 1, ""},
		{nil, 0, ""},
	} {
		for _, err := range []error{c.err, fmt.Errorf("while asking: %w", c.err)} {
			if c.err == nil {
				err = nil
			}
			if got := exitCode(err); got != c.code {
				t.Errorf("%T %v: exit code %d, not %d", c.err, err, got, c.code)
			}
			if got := hint(err); !strings.Contains(got, c.hint) || (c.hint == "") != (got == "") {
				t.Errorf("%T %v: hint %q, not %q", c.err, err, got, c.hint)
			}
		}
	}
}

// TestExplainIsSafe: a server's words cannot reach the terminal as escapes.
func TestExplainIsSafe(t *testing.T) {
	var b bytes.Buffer
	a := &app{stderr: &b}
	a.explain(&models.ServerError{Server: "ollama", Status: 500, Message: "\x1b[2Jgone\r"})
	if got := b.String(); strings.ContainsAny(got, "\x1b\r") || !strings.Contains(got, "␛[2Jgone␍") || !strings.Contains(got, "\nhint: ") {
		t.Errorf("%q", got)
	}
	b.Reset()
	a.explain(&outputError{syscall.EPIPE})
	a.explain(&ending{termination: runner.TermCancelled, err: context.Canceled})
	a.explain(errNothingFired)
	a.explain(nil)
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
}
