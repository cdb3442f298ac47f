//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel's limits hold for each process, some not for root's, and not for
// what many share. The watch looks at all processes of a sandbox together.

// watchInterval is how often; in that time a process can take some 100 MB.
const watchInterval = 20 * time.Millisecond

// maxFiles is how many files WorkDir may have: each takes memory of the kernel.
const maxFiles = 1 << 15

var pageSize = int64(os.Getpagesize())

// A watch looks at the processes of a sandbox from outside.
type watch struct {
	proc   *os.Root // /proc as the sandbox sees it
	work   *os.File // WorkDir
	limits Limits
}

// newWatch watches the sandbox that a process is in; it must be complete.
func newWatch(pid int, l Limits) (*watch, error) {
	root := fmt.Sprintf("/proc/%d/root", pid)
	proc, err := os.OpenRoot(root + "/proc")
	if err != nil {
		return nil, err
	}
	work, err := os.Open(root + WorkDir)
	if err != nil {
		_ = proc.Close()
		return nil, err
	}
	return &watch{proc, work, l}, nil
}

func (w *watch) close() {
	_ = w.proc.Close()
	_ = w.work.Close()
}

// run looks until it is told to stop or finds a limit passed.
func (w *watch) run(done <-chan struct{}, stop func(End)) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		if end := w.look(); end != "" {
			stop(end)
			return
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// look gives the limit that is passed, if one is.
func (w *watch) look() End {
	var tasks int
	var resident int64
	ids := w.ids()
	for _, id := range ids {
		threads, pages := w.stat(id)
		tasks += threads
		resident += pages * pageSize
	}
	var fs unix.Statfs_t
	switch {
	case tasks > w.limits.Processes:
		return ProcessLimit
	case resident > w.limits.Memory && w.proportional(ids) > w.limits.Memory:
		return MemoryLimit
	case unix.Fstatfs(int(w.work.Fd()), &fs) == nil && fs.Files-fs.Ffree > maxFiles:
		return FilesLimit
	}
	return ""
}

// ids are the processes of the sandbox.
func (w *watch) ids() []string {
	dir, err := w.proc.Open(".")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	ids := names[:0]
	for _, name := range names {
		if name[0] >= '1' && name[0] <= '9' {
			ids = append(ids, name)
		}
	}
	return ids
}

// stat gives the threads and the resident pages of a process, none if it is gone.
func (w *watch) stat(id string) (threads int, pages int64) {
	text, err := w.proc.ReadFile(id + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name before the last bracket is the process's own and may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 22 {
		return 0, 0
	}
	threads, _ = strconv.Atoi(fields[17])
	pages, _ = strconv.ParseInt(fields[21], 10, 64)
	return threads, pages
}

// proportional is the memory of all processes, with what several share counted
// once. It is slower to ask for.
func (w *watch) proportional(ids []string) int64 {
	var sum int64
	for _, id := range ids {
		text, err := w.proc.ReadFile(id + "/smaps_rollup")
		if err != nil {
			_, pages := w.stat(id)
			sum += pages * pageSize
			continue
		}
		if _, rest, ok := strings.Cut(string(text), "\nPss:"); ok {
			var kib int64
			_, _ = fmt.Sscan(rest, &kib)
			sum += kib << 10
		}
	}
	return sum
}
