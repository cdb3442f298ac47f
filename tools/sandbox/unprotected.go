package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// runUnprotected runs a command as the user would, in a new folder and with the
// minimal environment.
func runUnprotected(ctx context.Context, c Command) (Result, error) {
	work, err := os.MkdirTemp("", "stopgap-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(work)
	if err := writeFiles(work, c.Files); err != nil {
		return Result{}, err
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = work
	if c.Dir != "" && c.Dir != WorkDir {
		cmd.Dir = c.Dir
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "TMPDIR=" + work, "LANG=C.UTF-8"}, c.Env...)
	cmd.Env = append(cmd.Env, systemEnv()...)
	ownGroup(cmd)
	res, err := supervise(ctx, cmd, c, func(*supervisor) func() {
		return func() { killGroup(cmd) } // what it left in the background
	})
	var setup *setupError
	if errors.As(err, &setup) {
		return res, &ProgramError{c.Args[0], setup.err}
	}
	return res, err
}

// writeFiles writes files below a folder, and nowhere else.
func writeFiles(folder string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, content := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
