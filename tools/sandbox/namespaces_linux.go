//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces makes the command line of the own binary in namespaces of its own.
// It has the rights to mount there until it becomes the command.
func (b *box) namespaces() (*exec.Cmd, error) {
	if landlockVersion() < 1 {
		return nil, &setupError{fmt.Errorf("the kernel has no Landlock")}
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"stopgap", stageWord}
	attr := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: b.owner, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: b.group, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SETGID},
	}
	if b.command.Network {
		attr.Cloneflags &^= unix.CLONE_NEWNET
	}
	attr.GidMappingsEnableSetgroups = b.isRoot // to have none
	cmd.SysProcAttr = attr
	return cmd, nil
}

// noNamespaces says in words why the own binary could not be started in new
// namespaces.
func noNamespaces(err error) error {
	for _, errno := range []syscall.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, errno) {
			return fmt.Errorf("the kernel does not let this user make namespaces (%w)", errno)
		}
	}
	return err
}

// newRoot is where the root of the sandbox is made; the folder is everywhere.
const newRoot = "/tmp"

// enter makes the root of the sandbox and goes there. It runs in the new
// namespaces, so that nothing of it is seen outside.
func enter(mounts []mount) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make mounts private: %w", err)
	}
	// Sources below newRoot are out of sight as soon as it is mounted over.
	sources := make([]int, len(mounts))
	for i, m := range mounts {
		var err error
		if sources[i], err = detach(m); err != nil {
			return fmt.Errorf("cannot take %s: %w", m.Target, err)
		}
	}
	if err := becomeInside(); err != nil {
		return fmt.Errorf("cannot change the user: %w", err)
	}
	if err := unix.Mount("tmpfs", newRoot, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m,nr_inodes=4096"); err != nil {
		return fmt.Errorf("cannot mount a root: %w", err)
	}
	for i, m := range mounts {
		if err := attach(m, sources[i]); err != nil {
			return fmt.Errorf("cannot mount %s: %w", m.Target, err)
		}
	}
	if err := unix.Chdir(newRoot); err != nil {
		return err
	}
	// The old root comes to lie over the new one and is taken away from there.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot leave the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := restrictMount("/", unix.MOUNT_ATTR_RDONLY, 0); err != nil {
		return fmt.Errorf("cannot make the root read-only: %w", err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return err
	}
	return raiseLoopback()
}

// becomeInside makes root, who has no name in the new namespace, the user of the
// sandbox. Until then it can open what only root can. The rights in the
// namespace stay. All others have been mapped to that user.
func becomeInside() error {
	if unix.Getuid() == insideID {
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, insideID, insideID, insideID); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, insideID, insideID, insideID); errno != 0 {
		return errno
	}
	return nil
}

// detach takes a copy of what is to be mounted from the host, and -1 for others.
func detach(m mount) (int, error) {
	var attr uint64
	switch m.Kind {
	case readOnly:
		attr = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV
	case writable:
		attr = unix.MOUNT_ATTR_NODEV
	case device:
		attr = unix.MOUNT_ATTR_NOEXEC
	default:
		return -1, nil
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr | unix.MOUNT_ATTR_NOSUID})
}

// attach makes one thing below the new root.
func attach(m mount, source int) error {
	target := filepath.Join(newRoot, m.Target)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	switch m.Kind {
	case link:
		return os.Symlink(m.Source, target)
	case file:
		return os.WriteFile(target, []byte(m.Text), 0o444)
	case temporary:
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=755,size=%d", m.Size))
	case processes:
		return mountProc(target)
	}
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}
	if err := mountPoint(target, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return err
	}
	return unix.MoveMount(source, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mountPoint makes the place for a mount, where it is not there.
func mountPoint(target string, folder bool) error {
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	if folder {
		return os.MkdirAll(target, 0o755)
	}
	return os.WriteFile(target, nil, 0o444)
}

// kernelFiles are parts of /proc that are not about processes: what can be set
// there must not be.
var kernelFiles = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"}

// mountProc mounts the processes of the sandbox.
func mountProc(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, name := range kernelFiles {
		path := filepath.Join(target, name)
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err == unix.ENOENT {
			continue
		} else if err != nil {
			return err
		}
		if err := restrictMount(path, unix.MOUNT_ATTR_RDONLY, unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	return nil
}

func restrictMount(path string, attr uint64, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attr})
}

// raiseLoopback turns on the loopback of the new network, the only thing in it.
// Where the network is the host's, it is on and there is no right to set it.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // a kernel without IPv4
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	if ifr.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// lookPath finds a program by the PATH of an environment.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, kv := range env {
		list, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, folder := range filepath.SplitList(list) {
			path := filepath.Join(folder, name)
			if st, err := os.Stat(path); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("no such program is visible there")
}
