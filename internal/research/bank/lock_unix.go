//go:build linux || darwin

package bank

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes from adding, by a file beside the bank: locks on
// the bank itself are SQLite's. It ends with the process. A file system without
// locks has none; then SQLite alone keeps numbers from being given twice.
func lock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(ErrBusy, f.Close())
		}
		// Whoever had it may have removed the file in between.
		mine, err := f.Stat()
		if there, gone := os.Stat(path); err == nil && gone == nil && os.SameFile(mine, there) {
			return f, nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
}

// unlock removes the file, while nobody else has the lock.
func unlock(f *os.File) error {
	err := os.Remove(f.Name())
	return errors.Join(err, f.Close())
}
