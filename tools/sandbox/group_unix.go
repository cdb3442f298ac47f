//go:build unix

package sandbox

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a session of its own, without a terminal.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}

// killGroup kills a command that was started with ownGroup.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// rest reads what is in a pipe without waiting for more.
func rest(pipe *os.File, to io.Writer) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	var buf [64 << 10]byte
	_ = raw.Read(func(fd uintptr) bool {
		for range 16 { // a pipe holds no more than a megabyte
			n, err := syscall.Read(int(fd), buf[:])
			if n <= 0 || err != nil {
				break
			}
			_, _ = to.Write(buf[:n])
		}
		return true
	})
}

// systemEnv is what programs need on every system of this kind.
func systemEnv() []string { return nil }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
