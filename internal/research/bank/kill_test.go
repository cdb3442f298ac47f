package bank

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 8, "how often TestKill kills a process")

const childVariable = "STOPGAP_BANK_CHILD"

// TestChild is the process that TestKill kills. It adds what the call before
// was not sure of, then what is next, and tells each number that it was given.
func TestChild(t *testing.T) {
	path := os.Getenv(childVariable)
	if path == "" {
		t.Skip("TestKill starts it")
	}
	b := made(t, path)
	last, err := b.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := max(last, 1); ; n++ {
		s, page := reading(n)
		got := add(t, b, s, page+strings.Repeat("ä page that takes a while to write\n", 10_000))
		fmt.Printf("added %d as %d\n", n, got.Number)
	}
}

// A process that adds is killed at random moments, again and again: what it was
// told to be kept is there, under its number, and nothing is there twice.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bank.db")
	kept := 0
	for round := range *kills {
		child := exec.Command(os.Args[0], "-test.run=^TestChild$")
		child.Env = append(os.Environ(), childVariable+"="+path)
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		began, seen, patience := time.Now(), 0, 1+rand.IntN(6)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var n, number int
			if _, err := fmt.Sscanf(lines.Text(), "added %d as %d", &n, &number); err != nil {
				t.Fatalf("round %d: the child says %q", round, lines.Text())
			}
			if n != number {
				t.Errorf("round %d: summary %d has the number %d", round, n, number)
			}
			kept = max(kept, number)
			switch seen++; seen {
			case 1:
				began = time.Now() // a slow start is not all that is killed
			case patience + 1:
				time.AfterFunc(time.Duration(rand.Int64N(int64(time.Since(began))/int64(patience)+1)), func() { _ = child.Process.Kill() })
			}
		}
		if err := child.Wait(); child.ProcessState.ExitCode() >= 0 {
			t.Fatalf("round %d: %v", round, err)
		}
		if round%2 == 0 {
			look(t, path, kept)
		}
	}
	b := made(t, path)
	last, err := b.Last(t.Context())
	if err != nil || last < kept || last > kept+1 {
		t.Errorf("%d is the last number, %d was told, %v", last, kept, err)
	}
	inOrder(t, b, last)
	t.Logf("%d kills, %d summaries", *kills, last)
}

// look reads the bank right after a kill, before another process adds to it.
func look(t *testing.T, path string, kept int) {
	t.Helper()
	b, err := Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	last, err := b.Last(t.Context())
	if err := errors.Join(err, b.Close()); err != nil || last < kept {
		t.Errorf("%d is the last number, %d was told, %v", last, kept, err)
	}
}
