package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A spinner shows that something is under way, on a line that disappears when
// anything else is written. Its methods are safe for concurrent use; a nil
// spinner shows nothing.
type spinner struct {
	mu     sync.Mutex
	w      io.Writer
	screen screen
	label  string // empty while hidden
	held   int    // nothing is drawn while it is not zero
	frame  int
	tick   *time.Ticker // nil where the frames stand still
	done   chan struct{}
}

var frames = [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

const frameTime = 100 * time.Millisecond

// cleared takes the line away, which is the last one, with what a terminal that
// has become narrower has put below it.
const cleared = "\r\x1b[J"

// newSpinner starts a spinner, hidden. Close ends it.
func newSpinner(w io.Writer, s screen) *spinner {
	if !s.cursor {
		return nil
	}
	sp := &spinner{w: w, screen: s, tick: time.NewTicker(frameTime), done: make(chan struct{})}
	go func() {
		for {
			select {
			case <-sp.done:
				return
			case <-sp.tick.C:
				sp.turn()
			}
		}
	}()
	return sp
}

func (s *spinner) turn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.label != "" {
		s.frame++
		s.draw()
	}
}

// hold clears the line and leaves it to others until the function is called
// that it gives.
func (s *spinner) hold() (release func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held++; s.label != "" {
		fmt.Fprint(s.w, cleared)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held--
	}
}

// show puts a label on the line.
func (s *spinner) show(label string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.label != label {
		s.label = label
		s.draw()
	}
}

// draw leaves the cursor at the start of the line, so that a Ctrl-C echoed by
// the terminal or another program's output does not stand behind the label.
func (s *spinner) draw() {
	if s.held > 0 {
		return
	}
	text := s.screen.fit(frames[s.frame%len(frames)]+" "+s.label, 1)
	fmt.Fprint(s.w, cleared+s.screen.paint(dim, text)+"\r")
}

// hide clears the line.
func (s *spinner) hide() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.label != "" {
		s.label = ""
		fmt.Fprint(s.w, cleared)
	}
}

// Close clears the line and ends the spinner.
func (s *spinner) Close() {
	if s == nil {
		return
	}
	s.hide()
	if s.tick != nil {
		s.tick.Stop()
		close(s.done)
	}
}
