package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// An emulator is what a terminal shows of what is written to it: lines that are
// as long as they were written, and break at its width, as terminals do that
// break them anew when they are made narrower. It knows the few sequences that
// stopgap writes; any other is a fault.
type emulator struct {
	t     *testing.T
	width int
	// lines are what a newline ended, and the one under way; the cursor is in
	// line at, behind col of its columns.
	lines [][]rune
	at    int
	col   int
}

func newEmulator(t *testing.T, width int) *emulator {
	return &emulator{t: t, width: width, lines: [][]rune{nil}}
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([mKJA])`)

// Write implements io.Writer. What comes with a newline alone begins a line: the
// terminal's driver does that.
func (e *emulator) Write(p []byte) (int, error) {
	for rest := string(p); rest != ""; {
		if m := sequence.FindStringSubmatch(rest); m != nil {
			e.control(m[1], m[2])
			rest = rest[len(m[0]):]
			continue
		}
		r := []rune(rest)[0]
		rest = rest[len(string(r)):]
		switch {
		case r == '\n':
			e.at, e.col = e.at+1, 0
			if e.at == len(e.lines) {
				e.lines = append(e.lines, nil)
			}
		case r == '\r':
			e.col -= e.col % e.width
		case r < ' ':
			e.t.Errorf("a control character that is not known: %q", string(r)+rest)
		default:
			e.put(r)
		}
	}
	return len(p), nil
}

// put writes a character. A wide one takes two places.
func (e *emulator) put(r rune) {
	line := e.lines[e.at]
	for range runewidth.RuneWidth(r) {
		for len(line) <= e.col {
			line = append(line, ' ')
		}
		line[e.col] = r
		e.col++
		r = 0 // the second half
	}
	e.lines[e.at] = line
}

func (e *emulator) control(parameter, what string) {
	switch what {
	case "K", "J":
		if line := e.lines[e.at]; e.col < len(line) && (what == "J" || len(line)-e.col < e.width) {
			e.lines[e.at] = line[:e.col]
		}
		if what == "J" {
			e.lines = e.lines[:e.at+1]
		}
	case "A":
		n, _ := strconv.Atoi(parameter)
		for ; n > 0; n-- {
			e.up()
		}
	}
}

// up goes to the row above.
func (e *emulator) up() {
	if e.col >= e.width {
		e.col -= e.width
		return
	}
	if e.at == 0 {
		e.t.Error("the cursor goes above the first line")
		return
	}
	e.at--
	rows := max(1, (len(e.lines[e.at])+e.width-1)/e.width)
	e.col += (rows - 1) * e.width
}

// text is what stands there, without what ends lines.
func (e *emulator) text() []string {
	var out []string
	for _, l := range e.lines {
		out = append(out, strings.TrimRight(strings.ReplaceAll(string(l), "\x00", ""), " "))
	}
	return out
}

// The screen of an emulator is that of a terminal.
func TestEmulator(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"one\ntwo\n", "one|two|"},
		{"one\rtw", "twe"},
		{"one\r\x1b[Jtw", "tw"},
		{"a\nb\nc\n\x1b[2A\x1b[Jd", "a|d"},
		{"0123456789ab\nx\n\x1b[2A\x1b[J", "0123456789"},
		{"0123456789ab\nx\n\x1b[3A\x1b[J", ""},
		{"0123456789ab\nx\n\x1b[2Ay", "0123456789yb|x|"},
		{"a\n0123456789ab\n\x1b[1A\x1b[Jz", "a|0123456789z"},
		{"\x1b[1m字\x1b[0mx", "字x"},
	} {
		e := newEmulator(t, 10)
		e.Write([]byte(c.in))
		if got := strings.Join(e.text(), "|"); got != c.want {
			t.Errorf("%q shows %q, not %q", c.in, got, c.want)
		}
	}
}
