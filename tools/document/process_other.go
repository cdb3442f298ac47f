//go:build !unix

package document

import "os/exec"

// asGroup does nothing: a child ends what it has started itself.
func asGroup(*exec.Cmd) {}

// killGroup ends a command. What it has started ends with its pipes.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may be gone
