package main

import (
	"os/exec"
	"slices"
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
