package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A board draws lines on a terminal, over and over. What is told stands above
// them.
type board struct {
	mu      sync.Mutex // of all that is here, and of what lines reads
	w       io.Writer
	screen  screen // of the frame: its width stays while the frame is drawn
	size    func() int
	lines   func() []string // none: nothing is drawn yet
	first   string          // the attribute of the first line, "" for none
	others  string
	drawn   []int // the columns of the lines that stand there now
	waiting strings.Builder
	end     chan struct{}
	ended   sync.WaitGroup
}

// start begins to draw lines. Close ends it.
func (b *board) start(lines func() []string) {
	b.size, b.lines, b.end = b.screen.width, lines, make(chan struct{})
	b.ended.Go(func() {
		tick := time.NewTicker(frameTime)
		defer tick.Stop()
		for {
			select {
			case <-b.end:
				return
			case <-tick.C:
				b.mu.Lock()
				b.draw()
				b.mu.Unlock()
			}
		}
	})
}

// Write tells something above the lines.
func (b *board) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Write(p)
	if len(b.drawn) == 0 {
		b.tell()
	}
	return len(p), nil
}

// tell writes what waits, as far as its lines are whole.
func (b *board) tell() {
	text := b.waiting.String()
	n := strings.LastIndexByte(text, '\n') + 1
	b.waiting.Reset()
	b.waiting.WriteString(text[n:])
	fmt.Fprint(b.w, strings.ReplaceAll(text[:n], "\n", "\x1b[K\n")) // standard error has nowhere to report to
}

// draw writes what waits, and the lines anew below it.
func (b *board) draw() {
	width := b.size()
	b.screen.width = func() int { return width }
	b.clear()
	b.tell()
	attribute := b.first
	for _, l := range b.lines() {
		l = b.screen.fit(l, 1)
		b.drawn = append(b.drawn, cells(l))
		if attribute != "" {
			l = b.screen.paint(attribute, l)
		}
		fmt.Fprint(b.w, "\x1b[K"+l+"\n")
		attribute = b.others
	}
}

// clear goes to the first of the lines that are drawn and takes them away. In a
// terminal that has become narrower since, a line takes several.
func (b *board) clear() {
	if len(b.drawn) == 0 {
		return
	}
	up, width := 0, b.screen.width()
	for _, n := range b.drawn {
		up++
		if width != plain && n > width {
			up += (n - 1) / width
		}
	}
	fmt.Fprintf(b.w, "\r\x1b[%dA\x1b[J", up)
	b.drawn = b.drawn[:0]
}

// height is that of the terminal, in lines.
func (b *board) height() int {
	if f, ok := b.w.(*os.File); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			return h
		}
	}
	return 24
}

// Close takes the lines away and tells what is left to tell. It may be called
// again.
func (b *board) Close() {
	b.mu.Lock()
	select {
	case <-b.end:
		b.mu.Unlock()
		return
	default:
		close(b.end)
	}
	b.screen.width = b.size
	b.clear()
	b.tell()
	b.mu.Unlock()
	b.ended.Wait()
}
