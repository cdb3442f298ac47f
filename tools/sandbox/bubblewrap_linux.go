//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// bubblewrap makes the command line of bwrap, which mounts everything and starts
// the stage. Its arguments go through a pipe, so that nobody inside can read
// them; its environment is empty.
func (b *box) bubblewrap(mounts []mount) (*exec.Cmd, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, &setupError{fmt.Errorf("bwrap is not installed")}
	}
	args := []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--uid", strconv.Itoa(insideID), "--gid", strconv.Itoa(insideID), "--hostname", "sandbox",
		"--cap-drop", "ALL", "--die-with-parent",
	}
	if !b.command.Network {
		args = append(args, "--unshare-net")
	}
	for _, m := range mounts {
		switch m.Kind {
		case readOnly:
			args = append(args, "--ro-bind", m.Source, m.Target)
		case writable:
			args = append(args, "--bind", m.Source, m.Target)
		case device:
			args = append(args, "--dev-bind", m.Source, m.Target)
		case link:
			args = append(args, "--symlink", m.Source, m.Target)
		case temporary:
			args = append(args, "--size", strconv.FormatInt(m.Size, 10), "--tmpfs", m.Target)
		case processes:
			args = append(args, "--proc", m.Target)
		case file:
			fd, err := b.content(m.Text)
			if err != nil {
				return nil, err
			}
			args = append(args, "--perms", "0444", "--file", strconv.Itoa(fd), m.Target)
		}
	}
	info, err := b.report()
	if err != nil {
		return nil, err
	}
	args = append(args, "--remount-ro", "/", "--info-fd", strconv.Itoa(info))
	fd, err := b.content(strings.Join(args, "\x00") + "\x00")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--args", strconv.Itoa(fd), "--", fmt.Sprintf("/proc/self/fd/%d", binaryFD), stageWord)
	if b.isRoot {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(b.owner), Gid: uint32(b.group)}}
	}
	return cmd, nil
}
