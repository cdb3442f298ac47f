package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Run is one run of a journal.
type Run struct {
	Header  Header
	Records []Record
	// Torn says that the run's last line was cut off: the process or the
	// machine went down while it was written. The line is not in Records.
	Torn bool
}

// Ended reports whether the run came to its end. One that did not was killed.
func (r Run) Ended() bool {
	return len(r.Records) > 0 && r.Records[len(r.Records)-1].Kind == "ended"
}

// A Record is one event of a run.
type Record struct {
	Seq  int // from 1
	Time time.Time
	Kind string // the event's name
	// Event is the whole record as it stands in the file.
	Event json.RawMessage
}

// A FormatError says that a file is not a journal, or was damaged.
type FormatError struct {
	Line   int // from 1
	Reason string
}

func (e *FormatError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

// lineLimit is the length of the longest line that is read, in bytes. The
// longest that are written hold a whole prompt.
const lineLimit = 256 << 20

// Read reads a whole journal. A line that was cut off is allowed where a crash
// leaves one, at the end of a run; anything else that is not a record in its
// place gives a *FormatError, together with the runs before it.
func Read(r io.Reader) ([]Run, error) {
	var runs []Run
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), lineLimit)
	torn := 0 // the number of a line that cannot be read, until it is clear what follows
	n := 0
	for lines.Scan() {
		n++
		var rec struct {
			Seq   *int      `json:"seq"`
			Time  time.Time `json:"time"`
			Event string    `json:"event"`
		}
		broken := json.Unmarshal(lines.Bytes(), &rec) != nil || rec.Seq == nil || rec.Event == ""
		header := !broken && rec.Event == kindHeader
		switch {
		case torn > 0 && !header:
			return runs, &FormatError{torn, "not a record of a journal"}
		case broken:
			torn = n
			if len(runs) == 0 || runs[len(runs)-1].Ended() { // it was to be a header
				runs = append(runs, Run{})
			}
			runs[len(runs)-1].Torn = true
		case header:
			var h Header
			if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
				return runs, &FormatError{n, "a header that cannot be read"}
			}
			runs, torn = append(runs, Run{Header: h}), 0
		case len(runs) == 0:
			return runs, &FormatError{n, "not a journal: it does not begin with a header"}
		default:
			last := &runs[len(runs)-1]
			if want := len(last.Records) + 1; *rec.Seq != want {
				return runs, &FormatError{n, fmt.Sprintf("record %d where %d is due", *rec.Seq, want)}
			}
			event := json.RawMessage(append([]byte(nil), lines.Bytes()...))
			last.Records = append(last.Records, Record{*rec.Seq, rec.Time, rec.Event, event})
		}
	}
	if err := lines.Err(); err != nil {
		return runs, &FormatError{n + 1, err.Error()}
	}
	if torn == 1 {
		return nil, &FormatError{1, "not a journal: it does not begin with a header"}
	}
	return runs, nil
}
