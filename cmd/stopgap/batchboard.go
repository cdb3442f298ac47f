package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"stopgap/internal/batch"
)

// A batchBoard shows a batch on a terminal: a bar for the whole, and a line for
// each worker, which are drawn over and over. What is told stands above them.
type batchBoard struct {
	board
	bar     *progressbar.ProgressBar
	done    int
	failed  int
	workers []workerLine
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
	b := &batchBoard{board: board{w: w, screen: s}}
	b.start(b.frame)
	return b
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

// frame is the bar and what the workers do, as far as the terminal is high
// enough.
func (b *batchBoard) frame() []string {
	if b.bar == nil {
		return nil
	}
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
	room := max(b.height()-3, 1)
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
