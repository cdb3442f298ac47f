package endtoend

import (
	"os"
	"os/exec"
	"syscall"
)

// unplug takes the network away from a command, this machine's own included,
// where the system lets it.
func unplug(cmd *exec.Cmd) {
	if namespaces() {
		cmd.SysProcAttr = withoutNetwork()
	}
}

func withoutNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
}

// namespaces reports whether a process may have a network of its own.
func namespaces() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = withoutNetwork()
	return cmd.Run() == nil
}
