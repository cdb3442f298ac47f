package template

import (
	"strconv"
	"strings"
)

// A FormatError says what is wrong with a format or a format file.
type FormatError struct {
	Name  string // of the format: the file's path, or a shipped name
	Line  int    // of the file, from 1; zero where there is none
	Field string // the head's key, for example "stops[1].regex", or the block; may be empty
	Msg   string
	Err   error // the cause, for example of package io/fs; may be nil
}

// Error gives one line: name, line, field and message.
func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString("format " + e.Name)
	if e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	b.WriteString(": " + e.Msg)
	return b.String()
}

// Unwrap gives the cause.
func (e *FormatError) Unwrap() error { return e.Err }
