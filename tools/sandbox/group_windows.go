package sandbox

import (
	"io"
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func rest(*os.File, io.Writer) {}

// systemEnv is what programs need on Windows to find their libraries.
func systemEnv() []string {
	return []string{"SystemRoot=" + os.Getenv("SystemRoot"), "TEMP=" + os.TempDir(), "TMP=" + os.TempDir()}
}

func exitCode(state *os.ProcessState) int { return state.ExitCode() }
