package corpus

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

const (
	// maxLineBytes bounds one line of a JSONL file.
	maxLineBytes = 16 << 20
	// maxBadStart is after how many bad lines without a good one a file is
	// given up as no JSONL.
	maxBadStart = 1000
)

// Why a line is not in the index.
var (
	errNotJSON   = errors.New("no JSON object")
	errLongLine  = fmt.Errorf("line longer than %d MiB", maxLineBytes>>20)
	errNoText    = errors.New("no text: neither \"text\" nor \"contents\"")
	errBadID     = errors.New("id that is neither a short line of text nor a number")
	errDuplicate = errors.New("id that another document has")
)

// A position is a place between two lines of a file, or its beginning: how many
// bytes and lines are before it, and their hash.
type position struct {
	hash  hash.Hash
	bytes int64
	lines int
}

// Write takes what was read, up to a new place.
func (p *position) Write(b []byte) (int, error) {
	p.bytes += int64(len(b))
	return p.hash.Write(b)
}

// readLines calls add for each document of a JSONL file from a position on, and
// bad for each line that is none. Lines count from 1. When add is called, the
// position is behind its line. The error is that of the reader, of add, or
// errNotJSON for a file that does not look like JSONL at all.
func readLines(ctx context.Context, name string, r io.Reader, at *position, add func(int, Document) error, bad func(int, error)) error {
	in := bufio.NewReaderSize(r, 256<<10)
	good, wrong := at.lines, 0 // what was gone on with is JSONL
	for line := at.lines + 1; ; line++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, tooLong, err := readLine(in, at)
		at.lines = line
		if err != nil && err != io.EOF {
			return err
		}
		last := err == io.EOF
		if line == 1 {
			data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		}
		var d Document
		switch {
		case tooLong:
			err = errLongLine
		case len(bytes.TrimSpace(data)) == 0:
			if last {
				return nil
			}
			continue
		default:
			d, err = parseLine(name, line, data)
		}
		if err != nil {
			bad(line, err)
			wrong++
		} else {
			if err := add(line, d); err != nil {
				return err
			}
			good++
		}
		if good == 0 && wrong >= maxBadStart {
			if _, err := io.Copy(at, in); err != nil {
				return err
			}
			return errNotJSON
		}
		if last {
			return nil
		}
	}
}

// readLine reads a line without keeping more of it than maxLineBytes.
func readLine(in *bufio.Reader, at *position) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		_, _ = at.Write(part) // a hash takes everything
		if len(line)+len(part) > maxLineBytes {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, tooLong, err
		}
	}
}

// parseLine reads a line {"id", "title", "text"}, or {"id", "contents"} as
// Search-R1's corpora have it, where contents is a quoted title, a newline and
// the text. Without an id the file's name and the line's number are the id.
func parseLine(name string, line int, data []byte) (Document, error) {
	var in struct {
		ID       json.RawMessage `json:"id"`
		Title    *string         `json:"title"`
		Text     *string         `json:"text"`
		Contents *string         `json:"contents"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Document{}, errNotJSON
	}
	d := Document{ID: fmt.Sprintf("%s:%d", name, line)}
	if len(in.ID) > 0 && string(in.ID) != "null" {
		if err := json.Unmarshal(in.ID, &d.ID); err != nil {
			var number json.Number
			if err := json.Unmarshal(in.ID, &number); err != nil {
				return Document{}, errBadID
			}
			d.ID = number.String()
		}
		if !validID(d.ID) {
			return Document{}, errBadID
		}
	}
	switch {
	case in.Text != nil:
		d.Text = *in.Text
	case in.Contents != nil:
		d.Text = *in.Contents
		if first, rest, ok := strings.Cut(d.Text, "\n"); ok && in.Title == nil {
			d.Title, d.Text = strings.Trim(strings.TrimSpace(first), `"`), rest
		}
	}
	d.Text = strings.Trim(newlines.Replace(strings.ReplaceAll(d.Text, "\x00", " ")), "\n")
	if squeeze(d.Text) == "" {
		return Document{}, errNoText
	}
	if in.Title != nil {
		d.Title = *in.Title
	}
	if d.Title = squeeze(d.Title); d.Title == "" {
		d.Title = d.ID
	}
	return d, nil
}
