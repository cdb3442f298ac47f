package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Run is one run of a journal.
type Run struct {
	Header  Header
	Records []Record
	// Torn says that a line of the run was cut off: the process or the machine
	// went down while it was written. The line is not in Records.
	Torn bool
	// Revived counts how often the run was gone on with after its process was
	// killed. What had been written of a turn that was asked again is not in
	// Records.
	Revived int
}

// Ended reports whether the run came to its end. One that did not was killed,
// or is under way.
func (r *Run) Ended() bool {
	if len(r.Records) == 0 {
		return false
	}
	last := r.Records[len(r.Records)-1].Kind
	return last == kindEnded || last == kindFailed
}

// Refused is why the run never began, empty where it did.
func (r *Run) Refused() string {
	if len(r.Records) > 0 && r.Records[len(r.Records)-1].Kind == kindFailed {
		if f, err := as[failed](r.Records[len(r.Records)-1]); err == nil && f.Error != nil {
			return f.Error.Text
		}
	}
	return ""
}

// A Record is one line of a run.
type Record struct {
	Seq  int // from 1
	Time time.Time
	Kind string // the event's name
	// Event is the whole record as it stands in the file.
	Event json.RawMessage
}

// A FormatError says that a file is not a journal, or was damaged.
type FormatError struct {
	Line   int   // from 1
	Offset int64 // of the line, in bytes
	Reason string
	// Foreign says that the file is no journal at all.
	Foreign bool
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("line %d (byte %d): %s", e.Line, e.Offset, e.Reason)
}

// lineLimit is the length of the longest line that is read, in bytes. The
// longest that are written hold a whole prompt.
const lineLimit = 256 << 20

// ReadFile reads a whole journal from a file, see Read.
func ReadFile(path string) ([]Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// Read reads a whole journal. A line that was cut off is allowed where a crash
// leaves one: at the end of the file, or where a later run was appended.
// Anything else that is not a record in its place gives a *FormatError, together
// with what stands before it.
func Read(r io.Reader) ([]Run, error) {
	in := reader{lines: bufio.NewReader(r)}
	for {
		line, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return in.runs, err
		}
		if err := in.take(line); err != nil {
			return in.runs, err
		}
	}
	if in.torn && len(in.runs) == 0 {
		in.line, in.offset = in.from.Line, in.from.Offset
		return nil, in.foreign()
	}
	in.tear()
	return in.runs, nil
}

// A reader is a journal on its way.
type reader struct {
	lines  *bufio.Reader
	line   int   // the number of the line at hand
	offset int64 // of the line at hand
	after  int64 // of what follows it
	runs   []Run
	last   int  // the run that records belong to
	torn   bool // the last line was cut off, and it is not clear yet what follows
	from   FormatError
}

// next gives the next line without its line break.
func (in *reader) next() ([]byte, error) {
	in.line++
	in.offset = in.after
	var line []byte
	for {
		part, err := in.lines.ReadSlice('\n')
		in.after += int64(len(part))
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= lineLimit:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, in.fail("a line that is too long")
		case err == io.EOF && len(line) > 0: // a file system may leave zeros where data was to be
			if bare := bytes.TrimRight(line, "\x00"); len(bare) < len(line) && (len(bare) == 0 || conditionOf(bare) == torn) {
				in.mark()
				return nil, io.EOF
			}
			return line, nil
		case err != nil:
			return nil, err
		}
		return line[:len(line)-1], nil
	}
}

func conditionOf(line []byte) condition {
	_, c := readFrame(line)
	return c
}

func (in *reader) fail(reason string) error {
	return &FormatError{Line: in.line, Offset: in.offset, Reason: reason}
}

func (in *reader) foreign() error {
	return &FormatError{Line: in.line, Offset: in.offset, Reason: "not a journal: it does not begin with a header", Foreign: true}
}

// mark remembers a line that was cut off.
func (in *reader) mark() {
	in.torn, in.from = true, FormatError{Line: in.line, Offset: in.offset, Reason: "a record that was cut off, and more of its run after it"}
}

// tear says of the run at hand that its last line was cut off.
func (in *reader) tear() {
	if !in.torn {
		return
	}
	in.torn = false
	if len(in.runs) == 0 || in.runs[in.last].Ended() { // it was to be a header
		in.runs, in.last = append(in.runs, Run{}), len(in.runs)
	}
	in.runs[in.last].Torn = true
}

// take puts a line into its place.
func (in *reader) take(line []byte) error {
	body, c := readFrame(line)
	if c != whole {
		switch {
		case in.torn:
			from := in.from
			return &from
		case c == torn:
			in.mark()
			return nil
		case in.line == 1 && !beginsFrame(line[:min(len(line), frameHead)]):
			return in.foreign()
		}
		return in.fail("a record that is damaged: its length or its checksum does not fit")
	}
	var rec struct {
		Seq   *int      `json:"seq"`
		Time  time.Time `json:"time"`
		Event string    `json:"event"`
	}
	if json.Unmarshal(body, &rec) != nil || rec.Seq == nil || rec.Event == "" {
		return in.fail("not a record")
	}
	switch begins := rec.Event == kindHeader || rec.Event == KindRevived; {
	case in.torn && !begins:
		from := in.from
		return &from
	case !begins && len(in.runs) == 0:
		return in.foreign()
	}
	in.tear()
	switch rec.Event {
	case kindHeader:
		var h Header
		if err := json.Unmarshal(body, &h); err != nil || *rec.Seq != 0 {
			return in.fail("a header that cannot be read")
		}
		in.runs, in.last = append(in.runs, Run{Header: h}), len(in.runs)
		return nil
	case KindRevived:
		if err := in.revive(body, *rec.Seq); err != nil {
			return err
		}
	}
	last := &in.runs[in.last]
	want := 1 // after the header
	if n := len(last.Records); n > 0 {
		want = last.Records[n-1].Seq + 1
	}
	if *rec.Seq != want {
		return in.fail(fmt.Sprintf("record %d where %d is due", *rec.Seq, want))
	}
	last.Records = append(last.Records, Record{*rec.Seq, rec.Time, rec.Event, json.RawMessage(body)})
	return nil
}

// revive goes on with an earlier run, which loses what was under way when its
// process was killed.
func (in *reader) revive(body []byte, seq int) error {
	var r revived
	if json.Unmarshal(body, &r) != nil || seq != r.From+1 {
		return in.fail("the continuation of a run that cannot be read")
	}
	for i := range in.runs {
		run := &in.runs[i]
		if run.Header.ID != r.Run || r.Run == "" {
			continue
		}
		if run.Ended() || r.From > len(run.Records) {
			return in.fail("the continuation of a run that does not end there")
		}
		in.last, run.Torn, run.Records = i, false, run.Records[:r.From]
		run.Revived++
		return nil
	}
	return in.fail("the continuation of a run that is not in the file")
}
