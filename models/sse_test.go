package models

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestEventLines: what the standard allows passes, in reads of any size, and
// what it would skip in silence does not.
func TestEventLines(t *testing.T) {
	for body, ok := range map[string]bool{
		"data: a\n\n":          true,
		"data:a\r\n\r\n":       true,
		"data: a\rdata: b\r\r": true,
		"\ufeffdata: a\n\n":    true,
		": ping\n\nid: 1\nevent: x\nretry: 5\ndata": true,
		"\n\n\n:\n":                    true,
		"data: <html>\n\n":             true,
		"":                             true,
		"<html>\n":                     false,
		"error: {}\n\n":                false,
		"data: a\n\nda\n\n":            false,
		"datadata: a\n\n":              false,
		" data: a\n\n":                 false,
		"data: a\n\n\x00data: b\n\n":   false,
		"data: a\n\n\ufeffdata: b\n\n": false,
		"{\"error\": \"no\"}":          false,
	} {
		for _, r := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body)), iotest.DataErrReader(strings.NewReader(body))} {
			got, err := io.ReadAll(&eventReader{Reader: r, kind: "server"})
			var p *ProtocolError
			if !strings.HasPrefix(body, string(got)) || ok != (err == nil) || !ok && !errors.As(err, &p) {
				t.Errorf("%q: %q, %v", body, got, err)
			}
			if ok && string(got) != body {
				t.Errorf("%q comes through as %q", body, got)
			}
		}
	}
	r := &eventReader{Reader: iotest.TimeoutReader(strings.NewReader("data: a"))}
	if _, err := io.ReadAll(r); !errors.Is(err, iotest.ErrTimeout) || !errors.Is(r.err, iotest.ErrTimeout) {
		t.Errorf("the body's own error is %v", err)
	}
}

// TestHalfCharacters: escapes that decode to another text are found.
func TestHalfCharacters(t *testing.T) {
	for json, half := range map[string]bool{
		`"a"`: false, `"\ud83c\udf15"`: false, `"\\ud83c"`: false, `"\u00e9\n\\"`: false, `"\uD83C\uDF15\ud83c\udf15"`: false, `"\ufffd"`: false,
		`"\ud83c"`: true, `"\ud83cx"`: true, `"\udf15"`: true, `"\udf15\ud83c"`: true, `"\ud83c\ud83c\udf15"`: true, `{"a":"\ud83c\n"}`: true,
	} {
		check(t, "half a character in "+json, halfCharacter([]byte(json)), half)
	}
}
