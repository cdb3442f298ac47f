package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// locks counts the locks that processes hold on a file.
func locks(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Skipf("nobody tells of locks here: %v", err)
	}
	return strings.Count(string(all), fmt.Sprintf(":%d ", info.Sys().(*syscall.Stat_t).Ino))
}

// TestLocksStay: opening an index once more takes no lock off the one that is
// open, and with them what keeps other processes from its log. POSIX takes all
// of a process away with the first file of them that is closed.
func TestLocksStay(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	x := mustOpen(t, cfg)
	ids(t, x, "island")
	before := locks(t, cfg.Index)
	if before == 0 {
		t.Fatal("an open index has no lock")
	}
	mustOpen(t, cfg)
	if after := locks(t, cfg.Index); after < before {
		t.Errorf("%d locks, %d before", after, before)
	}
}

// TestIndexIsPrivate: nobody but its owner reads the texts of an index.
func TestIndexIsPrivate(t *testing.T) {
	cfg := newCorpus(t, files{"a.md": "island"})
	cfg.Index = filepath.Join(filepath.Dir(cfg.Index), "new", "index.db")
	mustOpen(t, cfg)
	for path, want := range map[string]os.FileMode{filepath.Dir(cfg.Index): 0o700, cfg.Index: 0o600, cfg.Index + "-wal": 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, not %v (%v)", filepath.Base(path), info.Mode(), want, err)
		}
	}
}
