package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// errNoQuestion says that neither the arguments nor standard input ask anything.
var errNoQuestion = errors.New("the question is empty")

// question gives the question of the arguments, or of standard input where
// there are none.
func (a *app) question(args []string, s *settings) (string, error) {
	text := strings.Join(args, " ")
	if len(args) == 0 && !isTerminal(a.stdin) {
		b, err := io.ReadAll(io.LimitReader(a.stdin, int64(s.maxQuestion)+1))
		if err != nil {
			return "", &usageError{fmt.Errorf("cannot read the question from standard input: %w", err),
				`give it as an argument: stopgap run "…"`}
		}
		text = string(bytes.TrimPrefix(b, []byte("\ufeff")))
	}
	return checkQuestion(text, s)
}

// checkQuestion refuses what cannot be a question.
func checkQuestion(text string, s *settings) (string, error) {
	switch {
	case uint64(len(text)) > s.maxQuestion:
		return "", &usageError{fmt.Errorf("the question is larger than %s", bytesWords(s.maxQuestion)),
			"shorten it, put the material into a folder and use --corpus, or allow more with --max-question"}
	case strings.ContainsRune(text, 0) || !utf8.ValidString(text):
		return "", &usageError{errors.New("the question is not text: it has bytes that are not UTF-8, or zeros"),
			"pass text; documents go into a folder that --corpus names"}
	case strings.TrimSpace(text) == "":
		return "", &usageError{errNoQuestion, `ask something: stopgap run "…", or pass the question on standard input`}
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// systemText gives the system message, read from a file where it begins with @.
func (s *settings) systemText() (string, error) {
	path, ok := strings.CutPrefix(s.system, "@")
	if !ok {
		return s.system, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", &usageError{fmt.Errorf("cannot read the system message: %w", err), "--system takes a text, or @ and a file"}
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(s.maxQuestion)+1))
	switch {
	case err != nil:
		return "", &usageError{fmt.Errorf("cannot read the system message: %w", err), "--system takes a text, or @ and a file"}
	case uint64(len(b)) > s.maxQuestion:
		return "", &usageError{fmt.Errorf("the system message %s is larger than %s", path, bytesWords(s.maxQuestion)),
			"allow more with --max-question"}
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return "", &usageError{fmt.Errorf("the system message %s is not UTF-8 text", path), "save it as UTF-8"}
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
