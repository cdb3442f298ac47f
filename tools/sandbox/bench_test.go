package sandbox

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkStart measures what a sandbox adds to the start of a program, beside
// starts without one that are made in turns with it.
func BenchmarkStart(b *testing.B) {
	for _, m := range methods {
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
				res, err := Run(b.Context(), Command{Args: []string{"/bin/true"}, Method: m})
				if err != nil {
					b.Fatal(err)
				}
				boxed = append(boxed, time.Since(start))
				busy += res.CPU
			}
			slices.Sort(bare)
			slices.Sort(boxed)
			at := func(list []time.Duration, percent int) float64 {
				return float64(list[len(list)*percent/100].Microseconds()) / 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(busy.Microseconds())/1000/float64(len(boxed)), "cpu-ms")
			b.ReportMetric(at(bare, 50), "bare-p50-ms")
			b.ReportMetric(at(bare, 99), "bare-p99-ms")
			b.ReportMetric(at(boxed, 50)-at(bare, 50), "over-p50-ms")
			b.ReportMetric(at(boxed, 99)-at(bare, 99), "over-p99-ms")
			b.ReportMetric(at(boxed, 50)/at(bare, 50), "ratio-p50")
		})
	}
}
