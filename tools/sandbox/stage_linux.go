//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// stageWord is the first argument of the own binary when it is re-executed as
// the stage: the process that gives up its rights and becomes the command.
const stageWord = "\x01sandbox-stage"

// A stage is what the own binary has to do inside.
type stage struct {
	Args     []string
	Env      []string
	Dir      string
	Files    map[string][]byte
	Limits   Limits
	Writable []string // where Landlock lets it write
	Mounts   []mount  // to be made first; empty where bubblewrap made them
	Network  bool
}

// stage describes what is done inside.
func (b *box) stage(mounts []mount) stage {
	c := b.command
	s := stage{Args: c.Args, Dir: c.Dir, Files: c.Files, Limits: c.Limits, Network: c.Network}
	if s.Dir == "" {
		s.Dir = WorkDir
	}
	s.Env = append([]string{
		"PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME=" + WorkDir, "TMPDIR=" + WorkDir,
		"USER=sandbox", "LOGNAME=sandbox", "LANG=C.UTF-8",
	}, c.Env...)
	for _, m := range mounts {
		if m.Kind == writable || m.Kind == temporary {
			s.Writable = append(s.Writable, m.Target)
		}
	}
	return s
}

// Child belongs first in main, and in TestMain, of every program that uses Run:
// where the process is a sandbox that is being made, it goes on as the command
// and never returns.
func Child() {
	if len(os.Args) != 2 || os.Args[1] != stageWord {
		return
	}
	runtime.LockOSThread() // rights belong to a thread
	status := os.NewFile(statusFD, "status")
	syscall.CloseOnExec(statusFD)
	if err := becomeCommand(status); err != nil {
		fmt.Fprint(status, err)
	}
	os.Exit(126)
}

// becomeCommand does not return when all goes well.
func becomeCommand(status io.Writer) error {
	config := os.NewFile(configFD, "config")
	var s stage
	if err := json.NewDecoder(config).Decode(&s); err != nil {
		return fmt.Errorf("cannot read what to do: %w", err)
	}
	// The kernel chooses the command where memory runs out.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	if len(s.Mounts) > 0 {
		if err := enter(s.Mounts); err != nil {
			return err
		}
	}
	if err := writeFiles(WorkDir, s.Files); err != nil {
		return fmt.Errorf("cannot write files: %w", err)
	}
	// What follows is an error of the command, not of the sandbox.
	var problem error
	program, err := lookPath(s.Args[0], s.Env)
	if err != nil {
		problem = err
	} else if err := os.Chdir(s.Dir); err != nil {
		problem = err
	}
	if err := restrict(&s); err != nil {
		return err
	}
	if _, err := io.WriteString(status, ready); err != nil || problem != nil {
		return problem
	}
	// Last, since this process may have more than the command is given. With memory
	// to spare it needs no more of the kernel until it is the command.
	runtime.GC()
	if err := setLimits(memoryLimits(s.Limits)); err != nil {
		return fmt.Errorf("cannot limit memory: %w", err)
	}
	return unix.Exec(program, s.Args, s.Env)
}

// restrict gives up every right that the command must not have. Nothing of it
// can be taken back.
func restrict(s *stage) error {
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("cannot close descriptors: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot give up new privileges: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("cannot drop capabilities: %w", err)
	}
	if err := setLimits(resourceLimits(s.Limits)); err != nil {
		return fmt.Errorf("cannot set limits: %w", err)
	}
	// The signal that follows the parent's death was forgotten with the user's
	// change. Where the parent is dead already, the next report finds no reader.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("cannot follow the parent: %w", err)
	}
	if err := landlock(s.Writable, len(s.Mounts) > 0); err != nil {
		return fmt.Errorf("cannot restrict files: %w", err)
	}
	return filterSystemCalls()
}

// dropCapabilities leaves none, also for programs that would give some.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// Without the right to do so there is nothing to drop.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// resourceLimits are limits that the kernel keeps for each process.
func resourceLimits(l Limits) map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_CORE:     1, // none; with zero the machine's handler of crashes would get it
		unix.RLIMIT_MSGQUEUE: 0,
		unix.RLIMIT_NOFILE:   1024,
		unix.RLIMIT_FSIZE:    uint64(l.FileSize),
		unix.RLIMIT_NPROC:    uint64(l.Processes),
	}
}

// memoryLimits bound private memory. What is only reserved does not count, so
// that programs that reserve a lot can run; how much they may is bounded too.
func memoryLimits(l Limits) map[int]uint64 {
	return map[int]uint64{unix.RLIMIT_DATA: uint64(l.Memory), unix.RLIMIT_AS: uint64(l.Memory) * 4}
}

func setLimits(limits map[int]uint64) error {
	for resource, value := range limits {
		var old unix.Rlimit
		if err := unix.Getrlimit(resource, &old); err != nil {
			return err
		}
		value = min(value, old.Max)
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return err
		}
	}
	return nil
}
