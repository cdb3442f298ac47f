package browser

import (
	"os/exec"
	"strconv"
)

func ownGroup(cmd *exec.Cmd) {
	cmd.Cancel = func() error {
		endGroup(cmd)
		return cmd.Process.Kill()
	}
}

// endGroup ends the browser's processes, which are its descendants.
func endGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	}
}
