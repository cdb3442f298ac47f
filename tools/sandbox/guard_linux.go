//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// guard keeps a path in a writable folder as it is. The path becomes a mount,
// read-only, which nobody inside can remove or rename; so do the folders on the
// way to it, writable, since who can rename one of them can put another in its
// place. What is not there is held by an empty folder until the command is over.
func (b *box) guard(guards map[string]kind, folder, rel string) error {
	if rel == "." {
		return &PathError{folder, "is protected and cannot be writable in a sandbox"}
	}
	at := folder
	for part := range strings.SplitSeq(rel, "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode() == heldMode:
			if err := b.hold(at); err != nil {
				return &PathError{at, "cannot be protected: " + cause(err)}
			}
			guards[at] = readOnly
			return nil
		case err != nil:
			return &PathError{at, "cannot be protected: " + cause(err)}
		case info.Mode()&fs.ModeSymlink != 0:
			return &PathError{at, "is a link, which cannot be protected: name another writable folder"}
		}
		if guards[at] == "" {
			guards[at] = writable
		}
	}
	guards[at] = readOnly
	return nil
}

// heldMode tells folders that hold a place from those that somebody made.
const heldMode = fs.ModeDir | fs.ModeSticky | 0o555

// hold makes an empty folder. Several sandboxes may hold the same one: a lock
// tells who is the last.
func (b *box) hold(path string) error {
	for {
		if err := os.Mkdir(path, heldMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := b.share(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// share says that a folder is needed as long as the box is there.
func (b *box) share(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	// It is free but for the moment in which another sandbox looks whether it is
	// the last, or where a command inside of one holds it to be a nuisance.
	for range 20 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	// Between the opening and the lock it may have been removed.
	opened, err := f.Stat()
	if err == nil {
		var now fs.FileInfo
		if now, err = os.Lstat(path); err == nil && !os.SameFile(opened, now) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	b.held = append(b.held, f)
	return nil
}

// release removes the folders that were held and are still empty, unless another
// sandbox needs them.
func (b *box) release() {
	for _, f := range b.held {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && emptyFolder(f) {
			_ = os.Remove(f.Name())
		}
		_ = f.Close()
	}
}

func emptyFolder(f *os.File) bool {
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}
