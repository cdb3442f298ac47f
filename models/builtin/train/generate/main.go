// Generate writes samples as JSON lines on standard output:
//
//	go run ./models/builtin/train/generate -seed 1 -from 0 -n 1000 -ramp 0
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"stopgap/models/builtin/train"
)

func main() {
	seed := flag.Uint64("seed", 1, "of all that is drawn")
	from := flag.Uint64("from", 0, "number of the first sample")
	n := flag.Uint64("n", 10, "how many samples; 0 for no end")
	ramp := flag.Float64("ramp", 0, "samples until the hardest kind comes; 0 for the hardest from the start")
	exam := flag.Bool("exam", false, "names and words that training never has")
	flag.Parse()
	if err := write(train.Draw{Seed: *seed, Exam: *exam}, *from, *n, *ramp); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(d train.Draw, from, n uint64, ramp float64) error {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := from; n == 0 || i < from+n; i++ {
		d.Number, d.Hard = i, 1
		if ramp > 0 {
			d.Hard = min(1, float64(i)/ramp)
		}
		s, err := train.Write(d)
		if err != nil {
			return fmt.Errorf("sample %d: %w", i, err)
		}
		if err := enc.Encode(s); err != nil {
			return err // the reader has gone
		}
	}
	return out.Flush()
}
