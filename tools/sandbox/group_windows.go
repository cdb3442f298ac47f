package sandbox

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// systemEnv is what programs need on Windows to find their libraries.
func systemEnv() []string {
	return []string{"SystemRoot=" + os.Getenv("SystemRoot"), "TEMP=" + os.TempDir(), "TMP=" + os.TempDir()}
}

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
