package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/tools/sandbox"
)

// BenchmarkStartSandbox measures what a sandbox adds to the start of a program
// when it is this command that makes it: it starts anew inside, with all that
// it consists of.
func BenchmarkStartSandbox(b *testing.B) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Namespaces} {
		b.Run(string(m), func(b *testing.B) {
			var bare, boxed []time.Duration
			var busy time.Duration
			for b.Loop() {
				start := time.Now()
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, time.Since(start))
				start = time.Now()
				res, err := sandbox.Run(b.Context(), sandbox.Command{Args: []string{"/bin/true"}, Method: m})
				if err != nil {
					b.Fatal(err)
				}
				boxed = append(boxed, time.Since(start))
				busy += res.CPU
			}
			slices.Sort(bare)
			slices.Sort(boxed)
			over := func(percent int) float64 {
				i := len(bare) * percent / 100
				return float64((boxed[i] - bare[i]).Microseconds()) / 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(busy.Microseconds())/1000/float64(len(boxed)), "cpu-ms")
			b.ReportMetric(over(50), "over-p50-ms")
			b.ReportMetric(over(99), "over-p99-ms")
		})
	}
}

// TestOwnFilesStay: a command in a sandbox that may write a folder cannot change
// our own files in it, there or not: what they say is run the next time.
func TestOwnFilesStay(t *testing.T) {
	if _, err := sandbox.Run(t.Context(), sandbox.Command{Args: []string{"true"}}); err != nil {
		if os.Getenv("STOPGAP_REQUIRE_BWRAP") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	declared := "tools:\n  spoil: {description: d, command: [sh, -c, 'cd " + dir + " && for f in mine.yaml config.yaml tools.yaml other.yaml; do echo x >> $f; done; true'], sandbox: {write: [" + dir + "]}}\n"
	if err := os.WriteFile(file, []byte(declared), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("quiet: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := stopgap(t, strings.NewReader(""), "tool", "call", "spoil", "--config", config, "--tool-file", file, "--allow", "code", "--yes")
	left, err := os.ReadDir(dir)
	if b, _ := os.ReadFile(file); code != 0 || err != nil || string(b) != declared || len(left) != 3 || left[2].Name() != "other.yaml" {
		t.Errorf("exit code %d, %s; there is %v, and the declarations are %q", code, stderr, left, b)
	}
}
