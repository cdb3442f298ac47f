package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"stopgap/stopping"
)

const (
	compileCost = "compile a set of eight"
	firstCost   = "the first token of a new set of eight"
	coldCost    = "each of the next 249 tokens"
	memoryCost  = "memory of a matcher that has read 1 MB: "
)

// weighed are the rows whose matchers' memory is measured.
var weighed = []string{"one criterion", "eight criteria", "backreference, no hit", "stripped"}

// facts measures what a set costs before it is warm, and what a matcher holds
// in memory.
func facts(texts []sample) ([]Fact, error) {
	out, err := cold(texts[len(texts)-1].text)
	if err != nil {
		return nil, err
	}
	for _, name := range weighed {
		set, err := stopping.Compile(named(name).criteria...)
		if err != nil {
			return nil, err
		}
		size, err := footprint(set, texts[0].text)
		if err != nil {
			return nil, err
		}
		out = append(out, Fact{memoryCost + name, number(size), "B"})
	}
	return out, nil
}

// cold measures the first tokens of new sets.
func cold(text string) ([]Fact, error) {
	var compiling, first, next []float64
	for range 25 {
		start := time.Now()
		set, err := stopping.Compile(eight()...)
		compiling = append(compiling, float64(time.Since(start)))
		if err != nil {
			return nil, err
		}
		m := set.Matcher()
		start = time.Now()
		if _, err := write(m, text[:width], start.Add(time.Minute)); err != nil {
			return nil, err
		}
		first = append(first, float64(time.Since(start)))
		start = time.Now()
		n, err := write(m, text[width:1000], start.Add(time.Minute))
		if err != nil {
			return nil, err
		}
		next = append(next, float64(time.Since(start))/float64(n))
	}
	return []Fact{{compileCost, median(compiling), "ns"}, {firstCost, median(first), "ns"}, {coldCost, median(next), "ns"}}, nil
}

// footprint is how many bytes of memory a matcher holds after it has read a
// million characters, as far as there are. What belongs to the set is not
// counted: another matcher has read the text before.
func footprint(set *stopping.Set, text string) (int, error) {
	text = text[:min(len(text), 1_000_000)]
	read := func() (*stopping.Matcher, error) {
		m := set.Matcher()
		_, err := write(m, text, time.Now().Add(time.Minute))
		return m, err
	}
	heap := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	if _, err := read(); err != nil {
		return 0, err
	}
	before := heap()
	m, err := read()
	size := heap() - before
	runtime.KeepAlive(m)
	return size, err
}

// machine names what the figures depend on: the processor and the versions.
func machine() string {
	parts := []string{processor(), fmt.Sprintf("%d cores", runtime.NumCPU()), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if strings.HasPrefix(m.Path, "github.com/dlclark/regexp2") {
				parts = append(parts, "regexp2 "+m.Version)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// processor is the name that Linux gives to the processor.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return "unknown processor"
}
