package models

import (
	"bytes"
	"io"
	"slices"
)

// sseFields are the fields of an event; a comment has no name.
var sseFields = []string{"", "data", "event", "id", "retry"}

// An eventReader passes on the body of an event stream, as long as each of its
// lines is a comment or begins with the name of a field, and is not too long.
// By the standard any other line is skipped (WHATWG HTML, "Interpreting an
// event stream"), so that an event whose beginning is garbled, or an error in
// the words of another protocol, would be missing without a trace.
type eventReader struct {
	io.Reader
	kind  string
	name  []byte // of the line's field, while it is not complete
	named bool
	begun bool // the first line has been looked at
	long  int  // bytes of the line after that
	err   error
}

func (r *eventReader) Read(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.Reader.Read(b)
	for i := 0; i < n; i++ {
		if r.named { // the rest of the line may say anything
			rest := bytes.IndexAny(b[i:n], "\r\n")
			if rest < 0 {
				rest = n - i
			}
			i, r.long = i+rest, r.long+rest
			if r.long > lineLimit {
				return r.fail(i, "a line is too long", "")
			}
			if i == n {
				break
			}
		}
		if !r.take(b[i]) {
			return r.fail(i, "a line that is of no event", string(r.name))
		}
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// fail ends the body after n bytes.
func (r *eventReader) fail(n int, reason, said string) (int, error) {
	r.err = &ProtocolError{Server: r.kind, Reason: reason, Excerpt: excerpt(said, excerptLimit)}
	return n, r.err
}

// take looks at the next byte and reports whether the line may be one.
func (r *eventReader) take(c byte) bool {
	end := c == '\n' || c == '\r'
	if r.named { // then this is the end
		r.named = false
		return true
	}
	if !end && c != ':' {
		r.name = append(r.name, c)
		return len(r.name) < 10
	}
	name := r.name
	if !r.begun {
		name = bytes.TrimPrefix(name, []byte("\ufeff"))
	}
	if !slices.Contains(sseFields, string(name)) {
		r.name = append(r.name, c)
		return false
	}
	r.name, r.named, r.begun, r.long = r.name[:0], !end, true, 0
	return true
}
