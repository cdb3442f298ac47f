//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestFolders: what is given can be read or written, at its own place.
func TestFolders(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		dir := openDir(t)
		for name, text := range map[string]string{"read/file": "here\n", "write/old": "old\n", "hidden/file": "hidden\n"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(dir+"/read", dir+"/link"); err != nil {
			t.Fatal(err)
		}
		res, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", `cat old ../read/file ../link/file; echo new > new; rm old; ls ..; echo x > ../read/no; ln ../read/file hard`},
			Dir:  dir + "/write", Read: []string{dir + "/read", dir + "/link"}, Write: []string{dir + "/write"}, Method: m,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(res.Stdout), "old\nhere\nhere\nlink\nread\nwrite\n"; got != want {
			t.Errorf("got %q and %q, want %q", got, res.Stderr, want)
		}
		if s := string(res.Stderr); !strings.Contains(s, "Read-only") || !strings.Contains(s, "ross-device") {
			t.Errorf("%q", s)
		}
		left, err := os.ReadDir(dir + "/write")
		if err != nil || len(left) != 1 || left[0].Name() != "new" {
			t.Errorf("%v %v", left, err)
		}
	})
}

// TestReadInWritable: what is to be read only stays so inside of what may be
// written, whichever stands first.
func TestReadInWritable(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		dir := openDir(t)
		for _, d := range []string{"whole/part", "deep/er/part"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		res, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", `for d in whole whole/part deep deep/er deep/er/part; do echo x > $d/new && echo $d; done; mv whole/part whole/other; mv deep/er deep/other; true`},
			Dir:  dir, Read: []string{dir, dir + "/whole/part", dir + "/deep/er/part", dir + "/deep"},
			Write: []string{dir + "/deep", dir + "/whole"}, Method: m,
		})
		if want := "whole\ndeep\ndeep/er\n"; err != nil || string(res.Stdout) != want {
			t.Errorf("%v: wrote in %q, want %q: %s", err, res.Stdout, want, res.Stderr)
		}
		for _, d := range []string{"whole/part", "deep/er/part"} {
			if list, err := os.ReadDir(filepath.Join(dir, d)); err != nil || len(list) > 0 {
				t.Errorf("%s: %v %v", d, list, err)
			}
		}
	})
}

// TestLinksInFolders: what is given besides a folder that has a link to it is seen
// through the link.
func TestLinksInFolders(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		dir := openDir(t)
		for _, d := range []string{"a", "far", "wide"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, d), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		for link, to := range map[string]string{"a/data": dir + "/far", "a/out": "../wide", "b": "a"} {
			if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(dir+"/far/text", []byte("far\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		try := func(read, write []string, want string) {
			t.Helper()
			res, err := Run(t.Context(), Command{
				Args: []string{"sh", "-c", "cat data/text; for d in data out; do echo x > $d/new && echo $d; done"}, Dir: dir + "/a", Read: read, Write: write, Method: m,
			})
			if err != nil || string(res.Stdout) != want {
				t.Errorf("read %v, write %v: %v %s%s", read, write, err, res.Stdout, res.Stderr)
			}
		}
		try([]string{dir + "/a", dir + "/a/data"}, []string{dir + "/a/out"}, "far\nout\n")
		try([]string{dir + "/a/data", dir + "/a"}, []string{dir + "/wide"}, "far\nout\n")
		try([]string{dir + "/a/data"}, []string{dir + "/a", dir + "/wide"}, "far\nout\n")
		try([]string{dir + "/b", dir + "/b/data", dir + "/a"}, nil, "far\n")
	})
}

// openDir is a folder that others may enter: for root, a sandbox is somebody else.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestHeldTogether: several sandboxes keep the same place free, and the last one
// leaves nothing behind.
func TestHeldTogether(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		dir := openDir(t)
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() {
				res, err := Run(t.Context(), Command{
					Args: []string{"sh", "-c", fmt.Sprintf("sleep 0.0%d; mkdir .git/hooks; rmdir .git; mv .git git; mkdir -p .git/hooks && echo escaped", i)},
					Dir:  dir, Write: []string{dir}, Method: m,
				})
				if err != nil || strings.Contains(string(res.Stdout), "escaped") {
					t.Errorf("%v: %s", err, res.Stdout)
				}
			})
		}
		group.Wait()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v %v", left, err)
		}
	})
}

// TestNetwork: with the network, what is the machine's can be reached, but not
// what only looks like a network.
func TestNetwork(t *testing.T) {
	w := newWorld(t)
	replace := strings.NewReplacer(w.values...)
	eachMethod(t, func(t *testing.T, m Method) {
		before := w.connections.Load()
		res, err := Run(t.Context(), Command{Args: []string{systemPython, "-c", replace.Replace(`
import socket
print(socket.create_connection(("127.0.0.1", {TCP}), 5).recv(100).decode())
for family, address in ((socket.AF_UNIX, "\0{ABSTRACT}"), (40, (2, 1))):
    try: socket.socket(family).connect(address); print("reached")
    except OSError as e: print(e)
`)}, Network: true, Method: m})
		lines := strings.Split(string(res.Stdout), "\n")
		if err != nil || len(lines) < 3 || lines[0] != secret || !strings.Contains(lines[2], "not supported") {
			t.Fatalf("%v: %s%s", err, res.Stdout, res.Stderr)
		}
		if landlockVersion() >= 6 && !strings.Contains(lines[1], "not permitted") {
			t.Errorf("an abstract socket of the machine: %s", lines[1])
		}
		if n := w.connections.Load() - before; n == 0 {
			t.Error("nobody came")
		}
	})
}
