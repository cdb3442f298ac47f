//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// apart gives a program a group of its own, so that it can be ended with all
// that it starts, and so that Ctrl-C in our terminal is not for it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks the group of a program to end.
func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) } // it may have ended

// kill ends the group of a program.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
