//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRefusal: where the kernel makes no namespaces, Run says so and runs
// nothing. The kernel is asked to behave so in a namespace of this test's own.
func TestRefusal(t *testing.T) {
	if os.Getenv("STOPGAP_TEST_REFUSAL") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestRefusal$", "-test.v")
		cmd.Env = append(os.Environ(), "STOPGAP_TEST_REFUSAL=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: insideID, HostID: os.Getgid(), Size: 1}},
			AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "refused: ") {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the right to do so is a thread's, and bwrap minds it
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, m := range append([]Method{""}, methods...) {
		res, err := Run(t.Context(), Command{Args: []string{"touch", dir + "/ran"}, Write: []string{dir}, Method: m})
		var none *UnavailableError
		if !errors.As(err, &none) || res.ExitCode != 0 || res.Stdout != nil {
			t.Fatalf("%q: %v, %+v", m, err, res)
		}
		if want := map[bool]int{true: 2, false: 1}[m == ""]; len(none.Reasons) != want || none.Reasons[0].Err == nil {
			t.Errorf("%q: %v", m, none.Reasons)
		}
		for _, r := range none.Reasons {
			if !strings.Contains(strings.ToLower(r.Err.Error()), "namespace") {
				t.Errorf("%s: %v", r.Method, r.Err)
			}
		}
		t.Logf("refused: %v", err)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("it was run all the same")
	}
}

// TestPathsRefused: not every folder may be written to.
func TestPathsRefused(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for path, want := range map[string]string{
		home: "home folder", "/": "home folder", "/usr": "the system's", "/etc": "the system's", "/run": "not for a sandbox",
		"/proc/1": "not for a sandbox", "/proc/self/root" + dir: "not for a sandbox", "relative": "", dir + "/none": "cannot be opened",
	} {
		_, err := Run(t.Context(), Command{Args: []string{"true"}, Write: []string{path}})
		var refused *PathError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// The files of the machine's would count as those of the sandbox.
	if _, err := Run(t.Context(), Command{Args: []string{"true"}, Read: []string{WorkDir}}); err == nil || !strings.Contains(err.Error(), "name one below it") {
		t.Errorf("the folder that a sandbox has: %v", err)
	}
	if err := os.Symlink(home, dir+"/.git"); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Command{Args: []string{"true"}, Write: []string{dir}}); err == nil || !strings.Contains(err.Error(), "is a link") {
		t.Errorf("a repository that is a link: %v", err)
	}
}
