//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter of system calls closes what namespaces leave open: families of
// sockets that no network namespace holds (AF_VSOCK reaches the host of a
// virtual machine), keys of the user's session, io_uring, which goes around
// filters, memory that no limit counts, and the kernel's larger surfaces. The
// common Go library for it lets calls of another architecture pass when the
// default is to allow (on amd64, int 0x80), so the program is written here.

// denied are calls that fail as not permitted.
var denied = append([]uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_ADJTIMEX, unix.SYS_BPF, unix.SYS_CHROOT, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE, unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSOPEN, unix.SYS_FSPICK, unix.SYS_INIT_MODULE, unix.SYS_KCMP, unix.SYS_KEXEC_LOAD,
	unix.SYS_KEYCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_PIDFD_GETFD, unix.SYS_PIVOT_ROOT, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_VM_READV,
	unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PTRACE, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT,
	unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY,
	unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2, unix.SYS_UNSHARE, unix.SYS_USERFAULTFD,
	unix.SYS_VHANGUP,
}, deniedHere...)

// absent are calls that fail as if the kernel did not have them: programs know
// how to do without. clone3 hides its flags from filters, and openat2 its mode; the
// others are memory that belongs to no process.
var absent = []uint32{
	unix.SYS_CLONE3, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_MEMFD_CREATE,
	unix.SYS_MEMFD_SECRET, unix.SYS_MSGGET, unix.SYS_OPENAT2, unix.SYS_SEMGET, unix.SYS_SHMGET,
}

// families are the kinds of sockets that network namespaces hold.
var families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
	unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// Offsets in struct seccomp_data. Of an argument the lower half is read, which
// is all that the kernel looks at in these; both architectures store it first.
const (
	callNumber   = 0
	architecture = 4
	argument0    = 16
	argument1    = 24
	argument2    = 32
	argument3    = 40
)

const (
	allowed  = unix.SECCOMP_RET_ALLOW
	killed   = unix.SECCOMP_RET_KILL_PROCESS
	refused  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
)

// A filter is a program in the making. Every call is decided in a block of its
// own, so that no jump is long.
type filter []unix.SockFilter

func (f *filter) op(code uint16, k uint32) { *f = append(*f, unix.SockFilter{Code: code, K: k}) }

func (f *filter) load(offset uint32) { f.op(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

func (f *filter) jump(test uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, Jt: yes, Jf: no, K: k})
}

func (f *filter) ret(action uint32) { f.op(unix.BPF_RET|unix.BPF_K, action) }

// filterProgram is the whole filter.
func filterProgram() []unix.SockFilter {
	var f filter
	f.load(architecture)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.ret(killed)
	f.load(callNumber)
	f.jump(unix.BPF_JGE, otherABI, 0, 1) // amd64 with 32-bit pointers
	f.ret(missing)
	for _, call := range denied {
		f.jump(unix.BPF_JEQ, call, 0, 1)
		f.ret(refused)
	}
	for _, call := range absent {
		f.jump(unix.BPF_JEQ, call, 0, 1)
		f.ret(missing)
	}
	f.jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4)
	f.load(argument0)
	f.jump(unix.BPF_JSET, newNamespaces, 0, 1)
	f.ret(refused)
	f.ret(allowed)
	f.jump(unix.BPF_JEQ, unix.SYS_PRCTL, 0, 4)
	f.load(argument0)
	f.jump(unix.BPF_JEQ, unix.PR_SET_PDEATHSIG, 0, 1) // who may change that outlives us
	f.ret(refused)
	f.ret(allowed)
	f.jump(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 5)
	f.load(argument1)
	f.jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0) // types into a terminal
	f.jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1)
	f.ret(refused)
	f.ret(allowed)
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		f.jump(unix.BPF_JEQ, call, 0, uint8(2*len(families)+2))
		f.load(argument0)
		for _, family := range families {
			f.jump(unix.BPF_JEQ, family, 0, 1)
			f.ret(allowed)
		}
		f.ret(noFamily)
	}
	f.refuseSetID()
	f.ret(allowed)
	return f
}

// A fileMode is a call that gives a file its mode, and where the arguments stand.
type fileMode struct{ call, mode, flags uint32 }

// fileModes are such calls; where flags are, the mode counts with O_CREAT alone.
// openat2, whose mode stands in memory, is absent.
var fileModes = append([]fileMode{
	{unix.SYS_FCHMOD, argument1, 0}, {unix.SYS_FCHMODAT, argument2, 0}, {unix.SYS_FCHMODAT2, argument2, 0},
	{unix.SYS_MKNODAT, argument2, 0}, {unix.SYS_OPENAT, argument3, argument2},
}, fileModesHere...)

// refuseSetID keeps the bits from files by which a program runs as its owner: in
// a folder of the user's it would do so for everybody, and after our end.
func (f *filter) refuseSetID() {
	for _, m := range fileModes {
		block := uint8(4)
		if m.flags != 0 {
			block += 2
		}
		f.jump(unix.BPF_JEQ, m.call, 0, block)
		if m.flags != 0 {
			f.load(m.flags)
			f.jump(unix.BPF_JSET, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 0, 3)
		}
		f.load(m.mode)
		f.jump(unix.BPF_JSET, unix.S_ISUID|unix.S_ISGID, 0, 1)
		f.ret(refused)
		f.ret(allowed)
	}
}

// filterSystemCalls puts the filter on the calling thread and what it becomes.
func filterSystemCalls() error {
	p := filterProgram()
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("cannot filter system calls: %w", errno)
	}
	return nil
}
