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
		return "", &usageError{errNoQuestion, `pass it as an argument in quotes, or on standard input`}
	}
	return strings.TrimRight(text, "\r\n"), nil
}

// systemText gives the system message. A file's last line end is none of it.
func (s *settings) systemText() (string, error) {
	text, err := s.fromFile(s.system, "the system message", "--system")
	if strings.HasPrefix(s.system, "@") {
		text = strings.TrimRight(text, "\r\n")
	}
	return text, err
}

// fromFile gives a text that was passed, or what is in the file that it names
// after an @. Its errors say what the text is and what takes it.
func (s *settings) fromFile(text, what, taker string) (string, error) {
	path, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	unreadable := func(err error) error {
		return &usageError{fmt.Errorf("cannot read %s: %w", what, err), taker + " takes a text, or @ and a file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", unreadable(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(s.maxQuestion)+1))
	switch {
	case err != nil:
		return "", unreadable(err)
	case uint64(len(b)) > s.maxQuestion:
		return "", &usageError{fmt.Errorf("%s %s is larger than %s", what, path, bytesWords(s.maxQuestion)), `shorten it; "stopgap run" takes more with --max-question`}
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return "", &usageError{fmt.Errorf("%s %s is not UTF-8 text", what, path), "save it as UTF-8"}
	}
	return string(b), nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
