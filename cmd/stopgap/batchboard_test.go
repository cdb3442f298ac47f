package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"stopgap/internal/batch"
	"stopgap/runner"
)

// lastingBoard is a board whose clock does not draw.
func lastingBoard(e *emulator) *batchBoard {
	b := newBatchBoard(e, screen{cursor: true, width: func() int { return e.width }})
	close(b.end)
	b.ended.Wait()
	b.end = make(chan struct{})
	return b
}

func (b *batchBoard) drawNow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draw()
}

// A board fits its terminal, also one that is made narrower and wider meanwhile,
// and leaves nothing behind but what was told.
func TestBatchBoard(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		e := newEmulator(t, width)
		fmt.Fprint(e, "$ stopgap batch\n")
		b := lastingBoard(e)
		fmt.Fprintln(b, "stopgap: using a model")
		tell := func(ev batch.Event) {
			t.Helper()
			if err := b.Event(ev); err != nil {
				t.Fatal(err)
			}
			b.drawNow()
			for i, l := range e.text()[2:] {
				if strings.Contains(l, "stopgap: ") {
					continue // told, and may be as long as it likes
				}
				if n := cells(l); n >= e.width {
					t.Errorf("width %d: line %d has %d columns: %q", e.width, i, n, l)
				}
			}
		}
		job := func(n int) batch.Job { return batch.Job{Item: fmt.Sprintf("item-%d", n), Rollout: 1} }
		tell(batch.Began{Dir: "d", Items: 3, Rollouts: 3})
		for n := 1; n <= 3; n++ {
			tell(batch.Started{Worker: n, Job: job(n), Question: strings.Repeat("谁 is\n\x1b[31m it? ", 20), Server: "http://127.0.0.1:8080"})
			tell(batch.Moved{Worker: n, Turn: 2, Doing: "thinking", Pieces: 10 * n})
		}
		shown := strings.Join(e.text(), "\n")
		for n := 1; n <= 3; n++ {
			if !regexp.MustCompile(fmt.Sprintf(`\n%3d [0-9ms.]+ · item-%d #1 · `, n, n)).MatchString(shown) {
				t.Errorf("width %d: worker %d is not shown:\n%s", width, n, shown)
			}
		}
		for _, other := range []int{25, 60, 30, width} {
			e.width = other
			tell(batch.Moved{Worker: 1, Turn: 3, Doing: "writing", Pieces: 5})
		}
		b.mu.Lock()
		b.line(1).began = time.Now().Add(-3 * time.Minute)
		b.mu.Unlock()
		tell(batch.Finished{Worker: 1, Result: batch.Result{Job: job(1), Termination: runner.TermAnswered, Answer: "x"}})
		tell(batch.Finished{Worker: 2, Result: batch.Result{Job: job(2), Error: "it\nbroke"}})
		if shown := strings.Join(e.text(), "\n"); !strings.Contains(shown, "item-2 #1 · failed: it broke\n") || !strings.Contains(shown, "1 failed\n") || strings.Contains(shown, "item-1") {
			t.Errorf("width %d:\n%s", width, shown)
		}
		tell(batch.Finished{Worker: 3, Result: batch.Result{Job: job(3), Termination: runner.TermAnswered}})
		fmt.Fprint(b, "stopgap: and\nan end without ")
		fmt.Fprint(b, "a newline")
		b.Close()
		want := "$ stopgap batch|stopgap: using a model|stopgap: 3 questions, 3 rollouts, into d|item-2 #1 · failed: it broke|stopgap: and|"
		if got := strings.Join(e.text(), "|"); !strings.HasPrefix(got, want) || strings.Contains(got, "%") || len(e.text()) > 6 {
			t.Errorf("width %d: what stays is\n%s", width, got)
		}
	}
}
