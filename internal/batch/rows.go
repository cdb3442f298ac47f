package batch

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A taker takes rows one by one, or what is wrong with them. Lines count from 1.
type taker func(line int, r row, err error)

// lineLimit is the longest line that is read, in bytes: datasets carry whole
// articles in a row.
const lineLimit = 64 << 20

// readJSON reads an array of objects, or an object a line, whichever the file
// is; BFCL's .json files are lines.
func readJSON(r io.Reader, take taker) error {
	in := bufio.NewReaderSize(skipBOM(r), 1<<16)
	for skipped := 0; ; skipped++ {
		c, err := in.Peek(skipped + 1)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("it does not begin with JSON: %w", err)
		case bytes.IndexByte([]byte(" \t\r\n"), c[skipped]) >= 0:
			continue
		case c[skipped] == '[':
			return readArray(in, take)
		}
		return readLines(in, take)
	}
}

// readLines reads an object a line. Empty lines are left out.
func readLines(in *bufio.Reader, take taker) error {
	for n := 1; ; n++ {
		line, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 {
			r, fault := newRow(line)
			take(n, r, fault)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// readLine gives the next line. At the end of the file the error is io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > lineLimit:
			return nil, fmt.Errorf("it is longer than %d MiB", lineLimit>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}

// readArray reads the objects of an array; the line of one is its number. An
// array that breaks off is an error of the whole file: what follows is not known.
func readArray(in io.Reader, take taker) error {
	dec := json.NewDecoder(in)
	if _, err := dec.Token(); err != nil {
		return err
	}
	for n := 1; dec.More(); n++ {
		var object json.RawMessage
		if err := dec.Decode(&object); err != nil {
			return fmt.Errorf("object %d: not JSON: %w", n, err)
		}
		r, fault := newRow(object)
		take(n, r, fault)
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the array has no end: %w", err)
	}
	return nil
}

// readCSV reads rows below a header.
func readCSV(r io.Reader, comma rune, take taker) error {
	in := csv.NewReader(skipBOM(r))
	in.Comma, in.FieldsPerRecord, in.LazyQuotes = comma, -1, comma == '\t'
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
			take(bad.StartLine, nil, bad.Err)
			continue
		}
		if err != nil {
			return err
		}
		line, _ := in.FieldPos(0)
		if len(cells) > len(header) {
			take(line, nil, fmt.Errorf("it has %d cells below %d columns", len(cells), len(header)))
			continue
		}
		fields := map[string]string{}
		for i, cell := range cells {
			fields[header[i]] = cell
		}
		object, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		row, fault := newRow(object)
		take(line, row, fault)
	}
}
