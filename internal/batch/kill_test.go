package batch

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 12, "how often TestKill kills a process")

const childVariable = "STOPGAP_BATCH_CHILD"

// killed is the batch that TestKill kills.
func killed(t testing.TB, dir string, asked func(seed, turn int) error) *Batch {
	b := newBatch(t, dir, questions(10), server(t, "s", &oracle{asked: asked, pause: 500 * time.Microsecond}))
	b.Rollouts = 3
	return b
}

// TestChild is the process that TestKill kills. Each request leaves a line in a
// file.
func TestChild(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		t.Skip("TestKill starts it")
	}
	b := killed(t, dir, func(seed, turn int) error { return appendLine(dir, fmt.Sprintf("%d/%d", seed, turn)) })
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // who is to be killed does not come to an end before
}

func appendLine(dir, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, "requests"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// A batch is killed at random moments, again and again: no rollout that was on
// the ledger is lost or asked for again, no turn is asked for again after the
// one that followed it, and the results are those of a batch that nobody killed.
func TestKill(t *testing.T) {
	reference := killed(t, t.TempDir(), nil)
	began := time.Now()
	if _, err := finish(t, reference); err != nil {
		t.Fatal(err)
	}
	patience := 2 * time.Since(began)
	want := told(t, reference)

	dir := t.TempDir()
	deaths, ends, done := 0, 0, map[int]bool{}
	for round := 0; ends == 0; round++ {
		before := requests(t, dir)
		child := exec.Command(os.Args[0], "-test.run=^TestChild$")
		child.Env = append(os.Environ(), childVariable+"="+dir)
		var out strings.Builder
		child.Stdout, child.Stderr = &out, &out
		if deaths < *kills {
			if _, err := child.StdinPipe(); err != nil {
				t.Fatal(err)
			}
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if deaths < *kills {
			// From the first request on, so that a slow start is not all that is killed.
			for deadline := time.Now().Add(10 * time.Second); len(requests(t, dir)) == len(before) && time.Now().Before(deadline) && rand.IntN(40) > 0; {
				time.Sleep(time.Millisecond)
			}
			time.AfterFunc(time.Duration(rand.Int64N(int64(patience)/6)), func() { _ = child.Process.Kill() })
		}
		switch err := child.Wait(); {
		case child.ProcessState.ExitCode() > 0:
			t.Fatalf("round %d: %v\n%s", round, err, out.String())
		case err != nil:
			deaths++
		default:
			ends++
		}
		for _, line := range requests(t, dir)[len(before):] {
			var seed, turn int
			fmt.Sscanf(line, "%d/%d", &seed, &turn)
			if done[seed] {
				t.Errorf("round %d: seed %d was on the ledger and is asked for again", round, seed)
			}
			if turn == 1 && slices.Contains(before, fmt.Sprintf("%d/2", seed)) {
				t.Errorf("round %d: seed %d is asked for turn 1 again after turn 2", round, seed)
			}
		}
		now := onLedger(t, dir)
		for seed := range done {
			if !now[seed] {
				t.Errorf("round %d: seed %d is lost", round, seed)
			}
		}
		done = now
	}
	b := killed(t, dir, nil)
	if got := told(t, b); !slices.Equal(got, want) {
		t.Errorf("killed:\n%s\nnot killed:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	whole(t, b)
	asked := requests(t, dir)
	t.Logf("%d kills, %d requests where %d are needed", deaths, len(asked), 2*len(want))
}

func requests(t *testing.T, dir string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "requests"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// onLedger gives the seeds of the results.
func onLedger(t *testing.T, dir string) map[int]bool {
	t.Helper()
	b := killed(t, dir, nil)
	out := map[int]bool{}
	if err := b.Results(func(r Result) error { out[r.Seed] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := b.Ledger.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}
