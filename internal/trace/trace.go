// Package trace writes and reads the journal of runs.
//
// A journal is a file of JSON lines that only grows. A run begins with a
// header, record 0; one record an event follows, numbered from 1. A file may
// hold several runs, one after the other; one process writes at a time. What
// matters is on the disk before a tool runs, after it has run, and at the end.
// The package never changes a record and never decides what a run means.
package trace

import (
	"fmt"
	"io"
	"os"
	"time"

	"stopgap/runner"
)

// A Header tells how a run was started.
type Header struct {
	Version string `json:"version"` // of stopgap
	Model   string `json:"model"`   // the reference that opened it
	Server  string `json:"server,omitempty"`
	Format  string `json:"format"` // its name or its file
	// FormatSHA256 is the hash of the format's text, in hex.
	FormatSHA256 string `json:"format_sha256,omitempty"`
	// Settings are those that differ from their defaults, as they were given.
	Settings map[string]string `json:"settings,omitempty"`
}

// kindHeader is the event name of a header.
const kindHeader = "header"

// A header is written as events are.
type header struct{ Header }

func (header) Kind() string { return kindHeader }

// A Writer appends runs to a journal. It is not safe for concurrent use.
type Writer struct {
	file journal
	now  func() time.Time
	seq  int
}

// A journal is what a Writer needs of a file.
type journal interface {
	io.WriteCloser
	Sync() error
}

// Open opens a journal to append to it, and makes it where it does not exist,
// readable by its owner alone: it holds prompts. A last line that was cut off
// by a crash is left as it is and ended, so that the next record stands on a
// line of its own.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := endLine(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Writer{file: f, now: time.Now}, nil
}

// endLine writes the newline that a torn last line lacks. A device or a pipe
// has no last line.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = f.Write([]byte("\n"))
	}
	return err
}

// Begin starts a run.
func (w *Writer) Begin(h Header) error {
	w.seq = 0
	return w.append(header{h})
}

// Write appends an event. Called, Returned and Ended are on the disk when it
// returns: whoever reads the journal after a crash knows whether a tool was
// under way.
func (w *Writer) Write(ev runner.Event) error {
	if err := w.append(ev); err != nil {
		return err
	}
	switch ev.(type) {
	case runner.Called, runner.Returned, runner.Ended:
		return w.file.Sync()
	}
	return nil
}

// append writes one record with one call, so that a crash tears at most the last.
func (w *Writer) append(ev runner.Event) error {
	body, err := runner.MarshalEvent(ev)
	if err != nil {
		return err
	}
	line := fmt.Appendf(nil, `{"seq":%d,"time":%q,`, w.seq, w.now().UTC().Format(time.RFC3339Nano))
	line = append(append(line, body[1:]...), '\n')
	if _, err := w.file.Write(line); err != nil {
		return err
	}
	w.seq++
	return nil
}

// Close puts everything on the disk and closes the file.
func (w *Writer) Close() error {
	err := w.file.Sync()
	if closing := w.file.Close(); err == nil {
		err = closing
	}
	return err
}
