package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A spool is a file on its way: nobody sees half of it.
type spool struct {
	path string // where it goes; empty for standard output
	file *os.File
	done bool
}

// newSpool begins a file. It stands beside the one that it becomes.
func newSpool(path string) (*spool, error) {
	sp := &spool{path: path}
	dir := ""
	if path == "-" {
		sp.path = ""
	} else {
		if whole, err := filepath.EvalSymlinks(path); err == nil {
			sp.path = whole
		}
		if info, err := os.Stat(sp.path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			dir = os.TempDir() // a device or a pipe, which is written to at the end
		} else if dir = filepath.Dir(sp.path); err == nil && info.IsDir() {
			return nil, &usageError{fmt.Errorf("%s is a folder", path), "--out takes a file"}
		}
	}
	var err error
	if sp.file, err = os.CreateTemp(dir, ".stopgap-export-*"); err != nil {
		return nil, &usageError{fmt.Errorf("cannot write %s: %w", path, fileReason(err)), "--out takes a file in a folder where you may write"}
	}
	return sp, nil
}

func (sp *spool) Write(p []byte) (int, error) { return sp.file.Write(p) }

// commit puts the whole file where it belongs.
func (sp *spool) commit(stdout io.Writer) error {
	if info, err := os.Stat(sp.path); sp.path == "" || err == nil && !info.Mode().IsRegular() {
		if _, err := sp.file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if sp.path == "" {
			_, err := io.Copy(stdout, sp.file)
			return err
		}
		out, err := os.OpenFile(sp.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, sp.file)
		return errors.Join(err, out.Close())
	}
	if err := errors.Join(sp.file.Sync(), sp.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(sp.file.Name(), sp.path); err != nil {
		return err
	}
	sp.done = true
	return nil
}

// drop takes away what did not become the file.
func (sp *spool) drop() {
	if !sp.done {
		_ = sp.file.Close() // it may be closed
		_ = os.Remove(sp.file.Name())
	}
}
