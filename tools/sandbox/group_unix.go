//go:build unix

package sandbox

import (
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

// systemEnv is what programs need on every system of this kind.
func systemEnv() []string { return nil }

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
