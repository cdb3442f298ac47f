// Package document turns the bytes of a file into Markdown.
//
// It reads web pages, PDFs, Office files, tables, archives and plain text, and
// gives everything else to a command that the user has configured. Every file
// is taken for hostile: it is parsed in a child process with limits on memory,
// time and output, what its headers and its name promise is never believed,
// and whatever goes wrong is one clear sentence. It never opens a connection
// and never follows a name that stands in a file.
package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// The defaults of Options.
const (
	DefaultMaxBytes         = 64 << 20
	DefaultMaxText          = 8 << 20
	DefaultMemory           = 256 << 20
	DefaultTimeout          = 10 * time.Second
	DefaultConverterTimeout = 5 * time.Minute
)

// A Document is what a file says.
type Document struct {
	// Type is what the bytes are, whatever the name says: "html", "pdf",
	// "docx", "pptx", "xlsx", "csv", "tsv", "md", "json", "jsonl", "txt",
	// "zip", or the extension that a converter has read.
	Type string `json:"type"`
	// Title is the file's own, or else its name without the extension.
	Title string `json:"title"`
	// Markdown is the text, valid UTF-8 without control characters other than
	// newlines and tabs. The same bytes give the same text.
	Markdown string `json:"markdown"`
	// Parts are the pages, slides, sheets or files of it, in their order;
	// none where the file has no such thing.
	Parts []Part `json:"parts,omitempty"`
	// Notes say what is not in the text, one sentence each.
	Notes []string `json:"notes,omitempty"`
}

// A Part is a page, a slide, a sheet or a file of an archive.
type Part struct {
	Name string `json:"name"` // "page 3", "slide 3", the sheet's or the file's name
	// Offset is the byte of Markdown where it begins. It ends where the next
	// one begins.
	Offset int `json:"offset"`
}

// Options are the limits of a Parse. The zero value has useful ones.
type Options struct {
	// ContentType is what a server says that the bytes are. It is a hint for
	// the charset, and for text that could be several things.
	ContentType string
	// BaseURL is what the links of a web page are relative to. Empty leaves
	// them as they are.
	BaseURL string
	// MaxBytes bounds the file, counted as it is read.
	MaxBytes int64
	// MaxText bounds Document.Markdown, in bytes; the rest is left out with a
	// note.
	MaxText int
	// Memory bounds the child process in bytes, and Timeout its time.
	Memory  int64
	Timeout time.Duration
	// Converters are commands for files that are not read here, or that
	// something else reads better: by the extension without the dot, the
	// command and its arguments, with "{file}" where the file's path belongs.
	// What the command prints is the text. It runs with the user's rights and
	// without the child's limits on memory.
	Converters map[string][]string
	// ConverterTimeout bounds one run of a converter.
	ConverterTimeout time.Duration
	// Executable is the program that parses: one whose main function calls
	// Child first. Empty means the running one.
	Executable string
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxText <= 0 {
		o.MaxText = DefaultMaxText
	}
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.ConverterTimeout <= 0 {
		o.ConverterTimeout = DefaultConverterTimeout
	}
	return o
}

// Why a file gives no document.
var (
	// ErrUnsupported: nothing here reads such files.
	ErrUnsupported = errors.New("unsupported")
	// ErrConverter: such files are read by a command, and none is configured,
	// or it failed.
	ErrConverter = errors.New("converter")
	// ErrDamaged: the bytes are not what they should be.
	ErrDamaged = errors.New("damaged")
	// ErrEmpty: the file is read, and there is no text in it.
	ErrEmpty = errors.New("empty")
	// ErrTooLarge: the file or what it unpacks to is past a limit.
	ErrTooLarge = errors.New("too large")
	// ErrMemory and ErrTimeout: the parser reached the limits of its process.
	ErrMemory  = errors.New("memory")
	ErrTimeout = errors.New("timeout")
)

// causes are the errors that cross the border of the process, by their words.
var causes = []error{ErrUnsupported, ErrConverter, ErrDamaged, ErrEmpty, ErrTooLarge, ErrMemory, ErrTimeout}

// An Error says why a file gives no document. It unwraps to one of the errors
// above.
type Error struct {
	Name   string // the file
	Reason string // "is …" or "has …": what follows the name in a sentence
	Cause  error
}

func (e *Error) Error() string { return e.Name + " " + e.Reason }
func (e *Error) Unwrap() error { return e.Cause }

// fail makes an error of which only Parse knows the name.
func fail(cause error, format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...), Cause: cause}
}

// Parse reads a file to its end and gives its text. name is its base name or
// path; the extension is a hint where the bytes do not tell. A file that
// cannot be read gives an *Error; ctx ends the child at once.
func Parse(ctx context.Context, name string, r io.Reader, o Options) (Document, error) {
	o = o.withDefaults()
	d, err := parse(ctx, name, r, o)
	if e, ok := errors.AsType[*Error](err); ok && e.Name == "" {
		e.Name = label(name)
	}
	if err == nil && d.Title == "" {
		base := label(name)
		d.Title = strings.TrimSuffix(base, path.Ext(base))
	}
	return d, err
}

func parse(ctx context.Context, name string, r io.Reader, o Options) (Document, error) {
	if os.Getenv(jobVariable) != "" {
		return Document{}, errors.New("document: the program does not call document.Child first in its main function")
	}
	s, err := spool(r, o.MaxBytes)
	if err != nil {
		return Document{}, err
	}
	defer s.close()
	if command, ext := converter(name, o); command != nil {
		return convert(ctx, command, ext, s, o)
	}
	return runChild(ctx, job{
		Name: name, ContentType: o.ContentType, BaseURL: o.BaseURL, MaxText: o.MaxText,
		Memory: o.Memory, Timeout: o.Timeout, PDFToText: pdftotext(),
	}, s, o)
}

// label is the name of a file as messages and headings say it.
func label(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	name = path.Base(clean(strings.ReplaceAll(name, "\n", " ")))
	if name == "." || name == "/" {
		return "the file"
	}
	return name
}

// A spooled is a file of which every byte has been counted.
type spooled struct {
	file *os.File
	head []byte // its beginning
	size int64
}

// headBytes is how much of a file tells what it is.
const headBytes = 64 << 10

// spool copies a file to a temporary one, so that neither process holds it in
// memory and the child can read it at any place.
func spool(r io.Reader, most int64) (_ *spooled, err error) {
	file, err := os.CreateTemp("", "stopgap-document-*")
	if err != nil {
		return nil, err
	}
	s := &spooled{file: file}
	_ = os.Remove(file.Name()) // an open file stays; where it cannot be removed yet, close does
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.size, err = io.Copy(file, io.LimitReader(r, most+1)); err != nil {
		return nil, fmt.Errorf("cannot read it: %w", err)
	}
	if s.size > most {
		return nil, fail(ErrTooLarge, "is larger than %s", size(most))
	}
	if s.size == 0 {
		return nil, fail(ErrEmpty, "is empty")
	}
	s.head = make([]byte, min(s.size, headBytes))
	if _, err = file.ReadAt(s.head, 0); err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return s, err
}

func (s *spooled) close() {
	_ = s.file.Close()
	_ = os.Remove(s.file.Name()) // gone already, or cannot be helped
}

// size says a number of bytes in words.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
