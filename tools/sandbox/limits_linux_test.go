//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var timeouts = flag.Int("timeouts", 15, "how many commands TestTimeouts lets run out of time, with each method")

// A bomb uses up something.
type bomb struct {
	name   string
	args   []string
	limits Limits
	end    End
	says   string // in what it wrote
}

func python(code string) []string { return []string{systemPython, "-c", code} }

var bombs = []bomb{
	{"forks", python(`
import os
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(60)
except OSError as e:
    print("refused", e)`), Limits{}, Exited, "refused [Errno 11]"},
	{"forks without end", []string{"bash", "-c", `f() { f | f & }; f; sleep 60`}, Limits{Time: time.Second}, TimeLimit, ""},
	{"threads", python(`
import threading, time
try:
    while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError as e:
    print("refused", e, flush=True)
    import os; os._exit(0)`), Limits{}, Exited, "refused can't start new thread"},
	{"private memory", python(`x = "x" * (2 << 30)`), Limits{}, Exited, "MemoryError"},
	{"much address space", python(`import mmap; mmap.mmap(-1, 1 << 40)`), Limits{}, Exited, "Cannot allocate memory"},
	{"shared memory", python(`
import mmap
m = mmap.mmap(-1, 480 << 20)
for i in range(480): m.write(b"x" * (1 << 20))`), Limits{Memory: 128 << 20}, MemoryLimit, ""},
	{"memory of many", python(`
import os, time
for i in range(8):
    if os.fork() == 0:
        x = bytearray(os.urandom(1 << 20) * 60)
        time.sleep(60)
time.sleep(60)`), Limits{Memory: 128 << 20}, MemoryLimit, ""},
	{"full disk", python(`
with open("/tmp/a", "wb") as f:
    while True: f.write(b"x" * (1 << 20))`), Limits{Disk: 8 << 20, FileSize: 1 << 30}, Exited, "No space left on device"},
	{"full shared memory", python(`
with open("/dev/shm/a", "wb") as f:
    while True: f.write(b"x" * (1 << 20))`), Limits{Disk: 8 << 20, FileSize: 1 << 30}, Exited, "No space left on device"},
	{"large file", python(`
with open("/tmp/a", "wb") as f:
    while True: f.write(b"x" * (1 << 20))`), Limits{FileSize: 1 << 20}, Exited, "File too large"},
	{"many files", python(`
import os
i = 0
while True:
    os.close(os.open("/tmp/%d" % i, os.O_CREAT)); i += 1`), Limits{}, FilesLimit, ""},
	{"output", []string{"head", "-c", "10G", "/dev/zero"}, Limits{Output: 1 << 20}, OutputLimit, ""},
	{"errors", []string{"bash", "-c", "yes >&2"}, Limits{Output: 1 << 20}, OutputLimit, ""},
	{"no end", python(`while True: pass`), Limits{Time: time.Second / 2}, TimeLimit, ""},
	{"signals ignored", python(`
import signal
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: print("deaf", flush=True)`), Limits{}, OutputLimit, "deaf"},
	{"a stopped process", []string{"bash", "-c", `kill -STOP $$; sleep 60`}, Limits{Time: time.Second / 2}, TimeLimit, ""},
}

func TestBombs(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		for _, b := range bombs {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				mark := newMark()
				if b.limits.Time == 0 {
					b.limits.Time = time.Hour // a slow machine is no bomb
				}
				res, err := Run(t.Context(), Command{Args: b.args, Env: []string{mark.env()}, Limits: b.limits, Method: m})
				if err != nil {
					t.Fatal(err)
				}
				out := string(res.Stdout) + string(res.Stderr)
				if res.End != b.end || !strings.Contains(out, b.says) {
					t.Errorf("%s, exit code %d, %.300q", res.End, res.ExitCode, out)
				}
				if limit := b.limits.WithDefaults().Output; int64(len(res.Stdout)) > limit || int64(len(res.Stderr)) > limit {
					t.Errorf("%d and %d bytes were kept", len(res.Stdout), len(res.Stderr))
				}
				mark.gone(t)
			})
		}
	})
}

// A mark is a variable in the environment of a sandbox by which its processes
// are found, wherever they have gone.
type mark string

func newMark() mark { return mark(fmt.Sprintf("%d.%d", os.Getpid(), time.Now().UnixNano())) }

func (m mark) env() string { return "STOPGAP_MARK=" + string(m) }

// left are the processes that bear the mark.
func (m mark) left() []string {
	var list []string
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), m.env()) {
			list = append(list, filepath.Dir(path))
		}
	}
	return list
}

// wait waits until so many processes bear the mark. They sleep for longer than it
// waits.
func (m mark) wait(t *testing.T, enough func(n int) bool) {
	t.Helper()
	var left []string
	for start := time.Now(); time.Since(start) < waitLimit; time.Sleep(10 * time.Millisecond) {
		if left = m.left(); enough(len(left)) {
			return
		}
	}
	t.Errorf("after %s there are %v", waitLimit, left)
}

// waitLimit is less than the sleepers sleep.
const waitLimit = 40 * time.Second

// gone waits for the processes to be gone, and up for so many to be there.
func (m mark) gone(t *testing.T) { t.Helper(); m.wait(t, func(n int) bool { return n == 0 }) }
func (m mark) up(t *testing.T, n int) {
	t.Helper()
	m.wait(t, func(there int) bool { return there >= n })
}

// TestBackground: what a command leaves behind is killed when it ends, and holds
// nobody up.
func TestBackground(t *testing.T) {
	for name, code := range map[string]string{
		"child that holds the pipe": `sleep 60 & echo done`,
		"orphan":                    `setsid -f bash -c 'setsid -f sleep 60'; echo done`,
		"deaf orphan":               `setsid -f bash -c 'trap "" HUP INT TERM; sleep 60 & sleep 60'; echo done`,
	} {
		t.Run(name, func(t *testing.T) {
			eachMethod(t, func(t *testing.T, m Method) {
				mark := newMark()
				res, err := Run(t.Context(), Command{Args: []string{"bash", "-c", code}, Env: []string{mark.env()}, Method: m})
				if err != nil || string(res.Stdout) != "done\n" || res.End != Exited || res.Duration > 30*time.Second {
					t.Errorf("%v, %+v", err, res)
				}
				mark.gone(t)
			})
		})
	}
}

// TestTimeouts kills commands at every moment of their start and their life,
// with children that try to stay.
func TestTimeouts(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		var seen atomic.Int64
		var group errgroup.Group
		group.SetLimit(4)
		for i := range *timeouts {
			group.Go(func() error {
				mark := newMark()
				c := Command{
					Args: []string{"bash", "-c", `setsid -f sleep 60; sleep 60 & trap "" TERM; echo up; sleep 60`}, Env: []string{mark.env()}, Method: m,
					Limits: Limits{Time: time.Duration(1+i*7%400) * time.Millisecond},
				}
				if i%3 == 0 { // killed for its output instead, which is sure to find it up
					c.Args[2] += "& yes"
					c.Limits.Time = 0
				}
				res, err := Run(t.Context(), c)
				if len(res.Stdout) > 0 {
					seen.Add(1)
				}
				mark.gone(t)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if int(seen.Load()) < *timeouts/3 {
			t.Errorf("%d had come up", seen.Load())
		}
	})
}

// TestParentKilled: when this program is killed, no command outlives it.
func TestParentKilled(t *testing.T) {
	if m := os.Getenv("STOPGAP_TEST_PARENT"); m != "" {
		method, env, _ := strings.Cut(m, " ")
		_, err := Run(t.Context(), Command{Args: []string{"bash", "-c", `setsid -f sleep 60; sleep 60; true`}, Env: []string{env}, Method: Method(method)})
		t.Fatal(err)
	}
	eachMethod(t, func(t *testing.T, m Method) {
		mark := newMark()
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestParentKilled$")
		cmd.Env = append(os.Environ(), "STOPGAP_TEST_PARENT="+string(m)+" "+mark.env())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		mark.up(t, 4) // itself, a shell and two sleepers
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		mark.gone(t)
	})
}

// TestSibling: two commands at a time see nothing of each other.
func TestSibling(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		mark := newMark()
		go func() {
			res, err := Run(ctx, Command{Args: []string{"sh", "-c", "echo $$ > /tmp/mine; sleep 60; true"}, Env: []string{"SECRET=" + secret, mark.env()}, Method: m})
			if res.End != Cancelled {
				err = fmt.Errorf("%v: %s %s", err, res.End, res.Stderr)
			}
			done <- err
		}()
		mark.up(t, 2) // a shell and a sleeper
		res, err := Run(t.Context(), Command{Args: []string{"sh", "-c", `ls /tmp /dev/shm; cat /proc/*/environ | tr '\0' '\n' | grep ` + secret + `; ls /proc | grep -c '^[0-9]'`}, Method: m})
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		lines := strings.Fields(string(res.Stdout))
		if err != nil || strings.Contains(string(res.Stdout), "mine") || strings.Contains(string(res.Stdout), secret) || len(lines) == 0 {
			t.Fatalf("%v %q", err, res.Stdout)
		}
		if n, _ := strconv.Atoi(lines[len(lines)-1]); n < 1 || n > 6 {
			t.Errorf("%q", res.Stdout)
		}
	})
}

// TestNoCoreDumps: what crashes is not handed to the machine's handler of
// crashes, which would keep its memory: that one is called where the limit is
// zero, too, and not where it is one.
func TestNoCoreDumps(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		res, err := Run(t.Context(), Command{Args: []string{"grep", "core file", "/proc/self/limits"}, Method: m})
		if fields := strings.Fields(string(res.Stdout)); err != nil || len(fields) < 6 || fields[4] != "1" || fields[5] != "1" {
			t.Errorf("%v: %s%s", err, res.Stdout, res.Stderr)
		}
	})
}
