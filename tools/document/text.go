package document

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// text copies a file of text. The title of Markdown is its first heading.
func (in input) text(w *writer, head []byte, k kind) error {
	r := bufio.NewReader(decode(in.data, head, in.ContentType, false))
	buffer := make([]byte, 0, 64<<10)
	for {
		n, err := io.ReadFull(r, buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		end := len(buffer)
		if err == nil { // a character or a pair of newlines may go on
			end = floorBytes(buffer)
		}
		if bad := w.write(string(buffer[:end])); bad != nil {
			return bad
		}
		buffer = buffer[:copy(buffer, buffer[end:])]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if k == kindMD && !in.inside {
		w.title(heading(w.text.String()))
	}
	return nil
}

// floorBytes is the last place where neither a line's end nor a character is
// cut.
func floorBytes(b []byte) int {
	for n := len(b) - 1; n > len(b)-5; n-- {
		if c := b[n]; c < 0x80 && c != '\r' {
			return n + 1
		} else if c >= 0xc0 {
			return n
		}
	}
	return len(b) - 1
}

// heading is the first heading of Markdown, if it stands before everything
// else.
func heading(text string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(text, "\n "), "\n")
	if rest, ok := strings.CutPrefix(first, "# "); ok {
		return strings.TrimRight(rest, "# ")
	}
	return ""
}

// The bounds of a table.
const (
	maxLine    = 4 << 20
	maxColumns = 16_384 // as in Excel
)

// table makes a Markdown table of CSV or TSV.
func (in input) table(w *writer, head []byte, k kind) error {
	limit := &rowLimit{r: decode(in.data, head, in.ContentType, false)}
	r := bufio.NewReaderSize(limit, 64<<10)
	peek, err := r.Peek(16 << 10)
	if len(peek) == 0 && err != io.EOF {
		return err
	}
	c := csv.NewReader(r)
	c.LazyQuotes, c.FieldsPerRecord, c.ReuseRecord = true, -1, true
	c.Comma = '\t'
	if k == kindCSV {
		c.Comma = separator(string(peek))
	}
	for first := true; ; first = false {
		record, err := c.Read()
		limit.n = 0
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errLine):
			return fail(ErrTooLarge, "has a row that is longer than %s", size(maxLine))
		case err != nil:
			return fail(ErrDamaged, "is a damaged table: %s", line(err.Error()))
		case len(record) > maxColumns:
			return fail(ErrTooLarge, "has a row with more than %d columns", maxColumns)
		}
		if err := w.row(record, first); err != nil {
			return err
		}
	}
}

// separator is what parts the columns of CSV: the one of the usual four that
// gives the first lines the same number of columns, the larger the better.
func separator(text string) rune {
	best, most := ',', 0
	for _, try := range []rune{',', ';', '\t', '|'} {
		c := csv.NewReader(strings.NewReader(text))
		c.Comma, c.LazyQuotes, c.FieldsPerRecord = try, true, -1
		columns, rows := 0, 0
		for rows < 10 {
			record, err := c.Read()
			if err != nil || rows > 0 && len(record) != columns {
				break
			}
			columns = len(record)
			rows++
		}
		if score := (columns - 1) * rows; score > most {
			best, most = try, score
		}
	}
	return best
}

var errLine = errors.New("a row is too long")

var newline = []byte("\n")

// A rowLimit fails where a row is too long: a row may have many lines, and
// must lie in memory.
type rowLimit struct {
	r io.Reader
	n int // bytes since the last row that was read
}

func (l *rowLimit) Read(p []byte) (int, error) {
	if l.n > maxLine {
		return 0, errLine
	}
	n, err := l.r.Read(p)
	l.n += n - bytes.Count(p[:n], newline) // empty lines are no row
	return n, err
}
