//go:build unix

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"stopgap/internal/compare"
)

// drawn writes a report's page into a file.
func drawn(t *testing.T, r *compare.Report, runs Runs) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r, runs); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestScreens(t *testing.T) {
	b := openTab(t, drawn(t, made(abilities, 40, 2), madeRuns), 1280)
	run[any](b, `document.querySelectorAll(".opens")[2].click()`)
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 400} {
			b.width(width)
			b.media("screen", scheme)
			b.shoot(scheme + map[int]string{1280: "-1280", 400: "-400"}[width])
		}
	}
	b.quiet()
}
