package document

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stopgap-child-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "child")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/child")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		_, err = os.Stderr.Write(out)
	}
	return path, err
})

// child is a program that parses, built as the command is: without the race
// detector, which needs many times the memory.
func child(t testing.TB) string {
	path, err := built()
	if err != nil {
		t.Fatalf("the child cannot be built: %v", err)
	}
	return path
}

// A watcher looks at the memory of all that this process has started.
type watcher struct {
	done chan struct{}
	peak chan int64
}

func watch(t testing.TB) *watcher {
	w := &watcher{make(chan struct{}), make(chan int64)}
	go func() {
		var peak int64
		for {
			peak = max(peak, resident(os.Getpid(), childName))
			select {
			case <-w.done:
				w.peak <- peak
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w *watcher) stop() int64 {
	close(w.done)
	return <-w.peak
}

// resident is the most memory that the children of a process have had, with
// theirs, by what the kernel counts. Only those of a name are looked at; their
// own children all are.
func resident(parent int, name string) (total int64) {
	list, _ := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
	for _, path := range list {
		data, _ := os.ReadFile(path) // it may be gone
		for _, id := range strings.Fields(string(data)) {
			pid, _ := strconv.Atoi(id)
			command, _ := os.ReadFile("/proc/" + id + "/cmdline")
			if name != "" && !bytes.HasPrefix(command, []byte(name+"\x00")) {
				continue
			}
			total += highest(id) + resident(pid, "")
		}
	}
	return total
}

// highest is the VmHWM of a process, in bytes.
func highest(id string) int64 {
	data, _ := os.ReadFile("/proc/" + id + "/status")
	_, rest, ok := strings.Cut(string(data), "VmHWM:")
	if !ok {
		return 0
	}
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kib, 10, 64)
	return n << 10
}

// descendants are the processes that a process has started, and theirs.
func descendants(parent int) (list []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
	for _, path := range tasks {
		data, _ := os.ReadFile(path) // it may be gone
		for _, id := range strings.Fields(string(data)) {
			pid, _ := strconv.Atoi(id)
			list = append(append(list, pid), descendants(pid)...)
		}
	}
	return list
}

// wantNobody wants no process left that parses.
func wantNobody(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute) // the kernel takes its time with the dead
	for {
		list := descendants(os.Getpid())
		if len(list) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v are left", list)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
