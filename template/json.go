package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A dialect is one of the ways in which Python spells a JSON value. Keys stay in
// their order, and a key that occurs twice stays twice.
type dialect struct {
	text      func(string) string
	number    func(string) string
	null      string
	yes, no   string
	width     int // of one level of indentation; zero writes one line
	beginning int // the level at which an indented value begins
}

var (
	// dumps is json.dumps(value, ensure_ascii=False), which the filter tojson of
	// Hugging Face's chat templates is: ", " and ": " between things.
	dumps = dialect{text: pythonString, number: pythonNumber, null: "null", yes: "true", no: "false"}
	// repr is repr(value).
	repr = dialect{text: pythonRepr, number: reprNumber, null: "None", yes: "True", no: "False"}
	// literal is Python source with double quotes and the numbers as they were.
	literal = dialect{text: pythonString, number: func(s string) string { return s }, null: "None", yes: "True", no: "False"}
)

// pythonJSON spells JSON as Python's json.dumps(json.loads(src),
// ensure_ascii=False) does.
func pythonJSON(src json.RawMessage) (string, error) { return dumps.spell(src) }

// spell gives a JSON value as Python spells what it is there.
func (d dialect) spell(src json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	w := pythonWriter{dialect: d, dec: dec}
	if err := w.value(); err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return "", errors.New("not JSON: text after the value")
	}
	return w.out.String(), nil
}

type pythonWriter struct {
	dialect
	dec   *json.Decoder
	out   strings.Builder
	depth int
}

func (w *pythonWriter) value() error {
	tok, err := w.dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	switch tok := tok.(type) {
	case json.Delim:
		return w.container(tok)
	case string:
		w.out.WriteString(w.text(tok))
	case json.Number:
		w.out.WriteString(w.number(tok.String()))
	case bool:
		if tok {
			w.out.WriteString(w.yes)
		} else {
			w.out.WriteString(w.no)
		}
	case nil:
		w.out.WriteString(w.null)
	}
	return nil
}

// container writes an object or a list whose opening delimiter was read.
func (w *pythonWriter) container(open json.Delim) error {
	if w.depth++; w.depth > maxDepth {
		return errTooDeep
	}
	w.out.WriteString(open.String())
	n := 0
	for ; w.dec.More(); n++ {
		w.between(n)
		if open == '{' {
			if err := w.value(); err != nil { // the key
				return err
			}
			w.out.WriteString(": ")
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	end, err := w.dec.Token()
	if err != nil {
		return err
	}
	w.depth--
	if n > 0 {
		w.line()
	}
	w.out.WriteString(end.(json.Delim).String())
	return nil
}

// between writes what stands before the element with that number.
func (w *pythonWriter) between(n int) {
	switch {
	case w.width > 0 && n > 0:
		w.out.WriteString(",")
	case n > 0:
		w.out.WriteString(", ")
	}
	w.line()
}

// line begins a line, where the value is indented.
func (w *pythonWriter) line() {
	if w.width > 0 {
		w.out.WriteString("\n" + strings.Repeat(" ", w.width*(w.beginning+w.depth)))
	}
}

// pythonNumber spells a number as Python does: whole ones digit by digit,
// others as repr(float), also those that no float can hold.
func pythonNumber(s string) string {
	if !strings.ContainsAny(s, ".eE") {
		if s == "-0" {
			return "0"
		}
		return s
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range gives an infinity
	switch a := math.Abs(f); {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case a != 0 && (a < 1e-4 || a >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	if s = strconv.FormatFloat(f, 'f', -1, 64); !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// pythonString spells a string as Python's json.dumps does with
// ensure_ascii=False: only quotes, backslashes and control characters below
// U+0020 are escaped.
func pythonString(s string) string {
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '\f':
			b.WriteString(`\f`)
		case '\b':
			b.WriteString(`\b`)
		default:
			if c < 0x20 {
				fmt.Fprintf(&b, `\u%04x`, c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// reprNumber is pythonNumber with infinities as repr spells them.
func reprNumber(s string) string {
	return strings.Replace(pythonNumber(s), "Infinity", "inf", 1)
}

// pythonRepr spells a string as Python's repr does: in single quotes, unless it
// has some and no double ones, and with escapes for what is not printable.
func pythonRepr(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteRune('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
