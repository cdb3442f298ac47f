package document

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// limitProcess lets the kernel hold the limits. RLIMIT_AS is none for a Go
// program, which reserves addresses that it never uses; RLIMIT_DATA counts
// what can be written, which is what it uses.
func limitProcess(memory int64, timeout time.Duration) {
	set := func(what int, n uint64) { _ = unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n}) } // its own limits hold too
	if !raceEnabled {
		set(unix.RLIMIT_DATA, uint64(memory-reserve+threadStacks))
	}
	set(unix.RLIMIT_CPU, uint64(2*timeout/time.Second)+2)
	set(unix.RLIMIT_CORE, 0)
	set(unix.RLIMIT_FSIZE, 0)
	set(unix.RLIMIT_NOFILE, 64)
}

// limitCommand holds a command of the child to what the child leaves of its
// memory.
func limitCommand(p *os.Process, memory int64) {
	n := uint64(memory - 2*reserve)
	_ = unix.Prlimit(p.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: n, Max: n}, nil) // it inherits the child's own
}
