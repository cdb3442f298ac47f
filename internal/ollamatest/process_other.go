//go:build !unix

package ollamatest

import "os/exec"

func ownGroup(*exec.Cmd) {}

// end ends the process; there is no group to ask.
func end(c *exec.Cmd, _ bool) {
	_ = c.Process.Kill() // it may have ended by itself
}
