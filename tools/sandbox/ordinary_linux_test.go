//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// ordinaryID is a user that no file belongs to.
const ordinaryID = 54321

// TestOrdinaryUser runs the other tests as somebody who is not root, where they
// have been run as root.
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("nobody here is root: all tests are run so")
	}
	dir, err := os.MkdirTemp("", "stopgap-ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, ordinaryID, ordinaryID); err != nil {
		t.Fatal(err)
	}
	// The binary's folder is root's alone; through this link its file is reached.
	cmd := exec.Command("/proc/self/exe", "-test.run", "^(TestAttempts|TestBombs|TestBackground|TestTimeouts|TestSibling|TestParentKilled|TestRun|TestFolders|TestReadInWritable|TestLinksInFolders|TestNoCoreDumps|TestHeldTogether|TestNetwork|TestRefusal|TestPathsRefused)$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "STOPGAP_REQUIRE_BWRAP=" + os.Getenv("STOPGAP_REQUIRE_BWRAP")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAttempts") {
		t.Errorf("%v\n%s", err, out)
	}
}
