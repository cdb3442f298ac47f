//go:build !unix

package mcp

import "os/exec"

func apart(*exec.Cmd) {}

func terminate(cmd *exec.Cmd) { kill(cmd) }

// kill ends a program. What it has started notices at the end of its input.
func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended
