//go:build linux || darwin

package batch

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes out until the file is closed, or its process is
// gone. A file system without locks has none.
func lock(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}
