package browser

import "syscall"

// dieWithParent ends the browser when this process is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
