// Package trace writes and reads the journal of runs, and plays it back.
//
// A journal is a file of lines that only grows; each has its length and its
// checksum in front. A run begins with a header, record 0; the records of what
// happened follow, numbered from 1: the events of the runner, and with them all
// that the run got from outside, which is the requests to the model with what
// it streamed, and what the tools gave. So the run can be played again without
// a server (Replay), gone on with after its process was killed (Writer.Resume),
// and left at a turn for another way (Fork). A file may hold several runs, one
// after the other; one process writes at a time.
//
// The package never changes a record, never decides what a run means, and never
// runs a tool with side effects a second time.
package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"stopgap/runner"
)

// ErrBusy says that another process writes the journal.
var ErrBusy = errors.New("another process writes to it")

// A Writer appends to a journal. It is safe for concurrent use. After an error
// nothing more is written: a journal with a gap would be a lie.
type Writer struct {
	now  func() time.Time
	mu   sync.Mutex
	file journal
	seq  int
	err  error

	pending []byte // lines that wait to be written together
	written time.Time
	dirty   bool // what is written may not be on the disk

	spellers spellers // of the runs so far
}

// A journal is what a Writer needs of a file.
type journal interface {
	io.WriteCloser
	Sync() error
}

// Generated text comes a few bytes an event. Its records are written together
// once there are so many bytes of them, or so much time has passed; every other
// record is written at once, with those that wait.
const (
	pendingBytes = 64 << 10
	pendingTime  = 100 * time.Millisecond
)

// Open opens a journal to append to it, and makes it where it does not exist,
// readable by its owner alone: it holds prompts. A last line that was cut off
// by a crash is left as it is and ended, so that the next record stands on a
// line of its own. ErrBusy says that another process has it open.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
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

// Err is the error that ended the writing, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// begin starts a run with its header.
func (w *Writer) begin(h Header) error {
	return w.section(0, kindHeader, h)
}

// section starts records that are numbered from seq.
func (w *Writer) section(seq int, kind string, v any) error {
	w.mu.Lock()
	w.seq = seq
	w.mu.Unlock()
	return w.append(kind, v)
}

// append writes one record. Where no more can be written it gives the error.
func (w *Writer) append(kind string, v any) error {
	body, err := marshal(kind, v)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err != nil {
		w.err = err
		return err
	}
	now := w.now()
	line := fmt.Appendf(nil, `{"seq":%d,"time":"%s",`, w.seq, now.UTC().Format(time.RFC3339Nano))
	w.pending = appendFrame(w.pending, append(line, body[1:]...))
	w.seq++
	if !lazy(kind) || len(w.pending) >= pendingBytes || now.Sub(w.written) >= pendingTime {
		return w.flush(now)
	}
	return nil
}

// lazy reports whether records of a kind come in numbers.
func lazy(kind string) bool { return kind == kindText || kind == kindWaiting }

var kindText, kindWaiting = runner.Text{}.Kind(), runner.Waiting{}.Kind()

// flush writes what waits, with one call, so that a crash tears at most the
// last of the lines.
func (w *Writer) flush(now time.Time) error {
	if w.err != nil || len(w.pending) == 0 {
		return w.err
	}
	_, w.err = w.file.Write(w.pending)
	w.pending, w.written, w.dirty = w.pending[:0], now, true
	return w.err
}

// sync puts on the disk what has been appended so far.
func (w *Writer) sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flush(w.now()) == nil && w.dirty {
		w.err = w.file.Sync()
		w.dirty = false
	}
	return w.err
}

// Close puts everything on the disk and closes the file.
func (w *Writer) Close() error {
	err := w.sync()
	if closing := w.file.Close(); err == nil {
		err = closing
	}
	return err
}

// marshal gives a record as one JSON object on one line, whose first field is
// its kind. Tags stand there as they are, not as escapes that are meant for HTML.
func marshal(kind string, v any) ([]byte, error) {
	if ev, ok := v.(runner.Event); ok {
		return runner.MarshalEvent(ev)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	head := []byte(`{"event":"` + kind + `"`)
	if len(body) > 2 {
		head = append(head, ',')
	}
	return append(head, body[1:]...), nil
}
