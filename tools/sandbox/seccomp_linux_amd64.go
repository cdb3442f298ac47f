package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	otherABI  = 0x40000000 // the bit of calls with 32-bit pointers
)

// deniedHere are calls that only this architecture has.
var deniedHere = []uint32{
	unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_IOPERM, unix.SYS_IOPL, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_MODIFY_LDT, unix.SYS_NFSSERVCTL, unix.SYS_QUERY_MODULE, unix.SYS_USELIB, unix.SYS__SYSCTL,
}

// fileModesHere likewise.
var fileModesHere = []fileMode{
	{unix.SYS_CHMOD, argument1, 0}, {unix.SYS_MKNOD, argument1, 0}, {unix.SYS_CREAT, argument1, 0}, {unix.SYS_OPEN, argument2, argument1},
}
