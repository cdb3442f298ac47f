//go:build !linux

package document

import (
	"os"
	"time"
)

// limitProcess does nothing: the process looks at its memory and its clock
// itself.
func limitProcess(int64, time.Duration) {}

func limitCommand(*os.Process, int64) {}
