//go:build !unix

package corpus

import "time"

func processTime() time.Duration { return 0 }
