package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"stopgap/internal/batch"
)

// A batchBoard shows a batch on a terminal: a bar for the whole, and a line for
// each worker, which are drawn over and over. What is told stands above them.
type batchBoard struct {
	mu      sync.Mutex
	w       io.Writer
	screen  screen
	bar     *progressbar.ProgressBar
	done    int
	failed  int
	workers []workerLine
	drawn   []int // the columns of the lines that stand there now
	waiting strings.Builder
	end     chan struct{}
	ended   sync.WaitGroup
}

// A workerLine is what one worker does.
type workerLine struct {
	began  time.Time // zero where it does nothing
	job    batch.Job
	server string
	asks   string
	doing  string
}

// newBatchBoard starts a board. Close ends it.
func newBatchBoard(w io.Writer, s screen) *batchBoard {
	b := &batchBoard{w: w, screen: s, end: make(chan struct{})}
	b.ended.Go(func() {
		tick := time.NewTicker(frameTime)
		defer tick.Stop()
		for {
			select {
			case <-b.end:
				return
			case <-tick.C:
				b.mu.Lock()
				if b.bar != nil {
					b.draw()
				}
				b.mu.Unlock()
			}
		}
	})
	return b
}

// Write tells something above the lines.
func (b *batchBoard) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting.Write(p)
	if b.bar == nil { // nothing is drawn yet
		b.tell()
	}
	return len(p), nil
}

// tell writes what waits, as far as its lines are whole.
func (b *batchBoard) tell() {
	text := b.waiting.String()
	n := strings.LastIndexByte(text, '\n') + 1
	b.waiting.Reset()
	b.waiting.WriteString(text[n:])
	fmt.Fprint(b.w, strings.ReplaceAll(text[:n], "\n", "\x1b[K\n")) // standard error has nowhere to report to
}

// Event shows one event.
func (b *batchBoard) Event(ev batch.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case batch.Began:
		b.done, b.failed = ev.Done, ev.Failed
		b.bar = progressbar.NewOptions(ev.Rollouts, progressbar.OptionSetWriter(io.Discard), progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(max(5, min(40, b.screen.width()-50))), progressbar.OptionSetPredictTime(true))
		_ = b.bar.Set(b.done) // it only draws
	case batch.Started:
		b.line(ev.Worker).begin(ev)
	case batch.Moved:
		if l := b.line(ev.Worker); !l.began.IsZero() {
			l.doing = fmt.Sprintf("turn %d, %s", ev.Turn, ev.Doing)
			if ev.Pieces > 0 {
				l.doing += fmt.Sprintf(" %d", ev.Pieces)
			}
		}
	case batch.Finished:
		b.line(ev.Worker).began = time.Time{}
		if b.done++; ev.Failed() {
			b.failed++
			fmt.Fprintln(&b.waiting, finishedWords(&ev.Result))
		}
		_ = b.bar.Set(b.done) // it only draws
		return nil
	case batch.Returned:
		b.line(ev.Worker).began = time.Time{}
	}
	if words := batchWords(ev); words != "" {
		fmt.Fprintln(&b.waiting, words)
	}
	return nil
}

func (l *workerLine) begin(ev batch.Started) {
	*l = workerLine{began: time.Now(), job: ev.Job, server: ev.Server, asks: inOneLine(ev.Question), doing: "begins"}
	if ev.Resumed {
		l.doing = "goes on"
	}
}

func (b *batchBoard) line(worker int) *workerLine {
	for len(b.workers) < worker {
		b.workers = append(b.workers, workerLine{})
	}
	return &b.workers[worker-1]
}

// draw writes what waits, and the lines anew below it.
func (b *batchBoard) draw() {
	b.clear()
	b.tell()
	for _, l := range b.lines() {
		l = b.screen.fit(l, 1)
		fmt.Fprint(b.w, "\x1b[K"+l+"\n")
		b.drawn = append(b.drawn, cells(l))
	}
}

// clear goes to the first of the lines that are drawn and takes them away. In a
// terminal that has become narrower since, a line takes several.
func (b *batchBoard) clear() {
	if len(b.drawn) == 0 {
		return
	}
	up, width := 0, b.screen.width()
	for _, n := range b.drawn {
		up += max(1, (n+width-1)/width)
	}
	fmt.Fprintf(b.w, "\r\x1b[%dA\x1b[J", up)
	b.drawn = b.drawn[:0]
}

// lines are the bar and what the workers do, as far as the terminal is high
// enough.
func (b *batchBoard) lines() []string {
	bar := strings.TrimSpace(b.bar.String())
	if b.failed > 0 {
		bar += fmt.Sprintf(" %d failed", b.failed)
	}
	if cells(bar) >= b.screen.width() { // the numbers say more than what they are drawn as
		if from, to := strings.IndexByte(bar, '|'), strings.LastIndexByte(bar, '|'); from >= 0 {
			bar = bar[:from] + strings.TrimSpace(bar[to+1:])
		}
	}
	out := []string{bar}
	room := b.height() - 3
	busy := 0
	for i := range b.workers {
		l := &b.workers[i]
		if l.began.IsZero() {
			continue
		}
		if busy++; busy > room {
			continue
		}
		out = append(out, printable(fmt.Sprintf("%3d %s · %s · %s · %s · %s", i+1, inSeconds(time.Since(l.began)), jobWords(l.job), l.doing, l.server, l.asks)))
	}
	if busy > room {
		out = append(out, fmt.Sprintf("    … %d more", busy-room))
	}
	return out
}

// inSeconds is a time that goes on.
func inSeconds(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return duration(d.Truncate(time.Second))
}

// height is that of the terminal, in lines.
func (b *batchBoard) height() int {
	if f, ok := b.w.(*os.File); ok {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 5 {
			return h
		}
	}
	return 24
}

// Close takes the lines away and tells what is left to tell. It may be called
// again.
func (b *batchBoard) Close() {
	b.mu.Lock()
	select {
	case <-b.end:
		b.mu.Unlock()
		return
	default:
		close(b.end)
	}
	b.clear()
	b.tell()
	b.mu.Unlock()
	b.ended.Wait()
}
