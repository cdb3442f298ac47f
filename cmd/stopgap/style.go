package main

import (
	"os"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// A screen is what is known of a stream that people look at.
type screen struct {
	colour bool
	cursor bool       // the line may be rewritten
	width  func() int // columns, 0 where lines have no end
}

const (
	narrowest = 20 // columns that the layout still fits in
	plain     = 0  // no width: nothing is cut
)

// screen looks at a stream.
func (a *app) screen(stream any, colour string) screen {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	dumb := a.env("TERM") == "dumb"
	s := screen{colour: colour == "always", width: func() int { return plain }}
	f, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return s
	}
	s.cursor = !dumb
	if colour == "auto" {
		s.colour = !dumb && a.env("NO_COLOR") == ""
	}
	s.width = func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil || w <= 0 {
			return 80
		}
		return max(w, narrowest)
	}
	return s
}

// The attributes, as SGR parameters.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
	cyan    = "36"
)

// paint gives text an attribute, and takes it back at its end.
func (s screen) paint(attribute, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + attribute + "m" + text + "\x1b[0m"
}

// fit cuts one line to the width, less what stands before it.
func (s screen) fit(line string, before int) string {
	w := s.width()
	if w == plain {
		return line
	}
	return runewidth.Truncate(line, max(w-before, 1), "…")
}

// cells is how many columns a text takes.
func cells(s string) int { return runewidth.StringWidth(s) }

// wrap breaks a text into lines of at most width columns, all indented, the
// ones after the first a little more.
func wrap(text string, width, indent int) []string {
	pad := strings.Repeat(" ", indent)
	if width == plain {
		return []string{pad + text}
	}
	var lines []string
	line := pad
	for _, word := range strings.Fields(text) {
		if strings.TrimSpace(line) != "" && cells(line)+1+cells(word) > width {
			lines = append(lines, line)
			line = pad + "  "
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
