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
)

// pythonJSON spells JSON as Python's json.dumps(json.loads(src),
// ensure_ascii=False) does, which is what the filter tojson of Hugging Face's
// chat templates is: ", " and ": " between things, keys in their order.
// A key that occurs twice stays twice.
func pythonJSON(src json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	w := pythonWriter{dec: dec}
	if err := w.value(); err != nil {
		return "", fmt.Errorf("not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return "", errors.New("not JSON: text after the value")
	}
	return w.out.String(), nil
}

type pythonWriter struct {
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
		w.out.WriteString(pythonString(tok))
	case json.Number:
		w.out.WriteString(pythonNumber(tok.String()))
	case bool:
		fmt.Fprint(&w.out, tok)
	case nil:
		w.out.WriteString("null")
	}
	return nil
}

// container writes an object or a list whose opening delimiter was read.
func (w *pythonWriter) container(open json.Delim) error {
	if w.depth++; w.depth > maxDepth {
		return errTooDeep
	}
	defer func() { w.depth-- }()
	w.out.WriteString(open.String())
	for i := 0; w.dec.More(); i++ {
		if i > 0 {
			w.out.WriteString(", ")
		}
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
	w.out.WriteString(end.(json.Delim).String())
	return nil
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
