//go:build unix

package ollamatest

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the head of a process group: Ollama runs each
// model in a process of its own.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// end asks the whole group to end, or makes it.
func end(c *exec.Cmd, force bool) {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-c.Process.Pid, signal) // it may have ended by itself
}
