package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	regexp2v1 "github.com/dlclark/regexp2"
	"github.com/dlclark/regexp2/v2"

	"stopgap/stopping"
)

// call is the pattern that all rescans search for, and that the row "one
// criterion" compiles: a tool call after which the turn ends. None of the texts
// has one, so that every checker reads on to the end.
const call = `<tool_call>(.*?)</tool_call>\s*<\|im_end\|>`

// A checker is one way to look for a stop after each token: a row of the table.
type checker struct {
	name string
	// criteria are compiled to one set of this package.
	criteria []stopping.Criterion
	// search looks for the call in the whole text.
	search func(text string) (bool, error)
	// python is measured by rescan.py.
	python bool
	// samples are the names of the texts that it reads, nil for all.
	samples []string
	// limit is the time for one token that is to be reached, 0 for none.
	limit time.Duration
}

func (c *checker) reads(sample string) bool {
	return c.samples == nil || slices.Contains(c.samples, sample)
}

// regexes are eight criteria as a run has them: calls, answers and headings of
// several formats.
var regexes = []string{
	call,
	`\nObservation:`,
	`<answer>(.*?)</answer>`,
	`<\|(?:im_start|endoftext|eot_id)\|>`,
	`Final Answer: (\d+)\D`,
	`(?i)\bi (?:don't|do not) know\b\W`,
	`\n(?:Human|User|Question):\s`,
	"\n```\\w*\n(.*?)\n```\n",
}

func eight() []stopping.Criterion {
	var out []stopping.Criterion
	for i, r := range regexes {
		out = append(out, stopping.Criterion{Name: string(rune('a' + i)), Regex: r})
	}
	return out
}

// first is the row that the others are compared with.
const first = "one criterion"

// checkers are the rows, for each text in this order.
func checkers() []checker {
	never := 1 << 30
	one := func(c stopping.Criterion) []stopping.Criterion {
		c.Name = "stop"
		return []stopping.Criterion{c}
	}
	open := []string{"one open call"}
	v1 := regexp2v1.MustCompile(call, regexp2v1.Singleline)
	v2 := regexp2.MustCompile(call, regexp2.Singleline)
	standard := regexp.MustCompile(`(?s)` + call)
	return []checker{
		{name: first, criteria: one(stopping.Criterion{Regex: call}), limit: 12},
		{name: "eight criteria", criteria: eight(), limit: 25},
		{name: "lookbehind", criteria: one(stopping.Criterion{Regex: "(?<!`)</answer>"}), limit: 12},
		{name: "backreference, no hit", criteria: one(stopping.Criterion{Regex: `<(?<tag>answer|result)>.*?</\k<tag>>`}), limit: 100},
		{name: "lookahead, no hit", criteria: one(stopping.Criterion{Regex: `\n(?!Observation:)[A-Z]\w+:`}), limit: 100},
		{name: "stripped", criteria: one(stopping.Criterion{Regex: call, Strip: true})},
		{name: "repetition", criteria: one(stopping.Criterion{Repetition: &stopping.Repetition{Count: 6}}), samples: open},
		{name: "JSON value", criteria: one(stopping.Criterion{JSON: true}), samples: open},
		{name: "sentences", criteria: one(stopping.Criterion{Sentences: never}), samples: open},
		{name: "tokens", criteria: one(stopping.Criterion{Tokens: never}), samples: open},
		{name: "bytes", criteria: one(stopping.Criterion{Bytes: never}), samples: open},
		{name: "rescan, Go regexp", search: func(s string) (bool, error) { return standard.MatchString(s), nil }},
		{name: "rescan, regexp2 v2", search: v2.MatchString},
		{name: "rescan, regexp2 v1", search: v1.MatchString},
		{name: yardstick, python: true},
	}
}

// named is the checker with this name.
func named(name string) *checker {
	for _, c := range checkers() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

// engines names the engines of a set, each once.
func engines(s *stopping.Set) string {
	var out []string
	for _, p := range s.Plan() {
		if !slices.Contains(out, string(p.Engine)) {
			out = append(out, string(p.Engine))
		}
	}
	return strings.Join(out, ", ")
}
