package sandbox

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Child()
	if err := flag.Set("test.parallel", "8"); err != nil { // most of them sleep
		panic(err)
	}
	os.Exit(m.Run())
}

// eachMethod runs a test with bubblewrap and without.
func eachMethod(t *testing.T, f func(t *testing.T, m Method)) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("sandboxes need Linux")
	}
	for _, m := range methods {
		t.Run(string(m), func(t *testing.T) {
			if _, err := exec.LookPath("bwrap"); err != nil && m == Bubblewrap {
				if os.Getenv("STOPGAP_REQUIRE_BWRAP") != "" {
					t.Fatal("bubblewrap is not installed")
				}
				t.Skip("bubblewrap is not installed; \"make sandbox\" installs it")
			}
			f(t, m)
		})
	}
}

func TestRun(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		res, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", `cat; echo "$GREETING"; pwd; cat a/b >&2; exit 3`}, Stdin: strings.NewReader("in\n"),
			Env: []string{"GREETING=hello"}, Files: map[string][]byte{"a/b": []byte("file")}, Method: m,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.Stdout) + string(res.Stderr); got != "in\nhello\n/tmp\nfile" || res.ExitCode != 3 || res.End != Exited || res.Method != m {
			t.Errorf("%q, %+v", got, res)
		}
	})
}
