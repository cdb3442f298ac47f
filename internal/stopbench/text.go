package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A sample is one text. All characters are ASCII: bytes and characters are the
// same.
type sample struct {
	name string
	text string
}

// samples are the three shapes that a stop criterion meets: one call that stays
// open, many calls that were closed, and no call at all.
func samples(size int) []sample {
	return []sample{
		{"one open call", openCall(size)},
		{"many closed calls", closedCalls(size)},
		{"plain prose", prose(size)},
	}
}

const words = `a after again all also and because before book but by call can city day down each every find first for
from give great hand have he help her here house if in is it keep kind know large last letter light line little long
look make man many may more most mountain must name never new next night no not now number of old on one only or other
our out over own page part people place read right river same say school sea see she should side small so some sound
still stone story such take than that the their then there these they thing think this three time to tree two under
until up use very walk want was water way we well were what when where which while white who why will with wood word
work world would write year you young`

// A writer makes sentences out of common words, always the same ones. It never
// repeats itself for long, as a repeated constant would.
type writer struct {
	strings.Builder
	random *rand.Rand
	words  []string
}

func newWriter() *writer {
	return &writer{random: rand.New(rand.NewPCG(1, 2)), words: strings.Fields(words)}
}

func (w *writer) word() string { return w.words[w.random.IntN(len(w.words))] }

func (w *writer) sentence() {
	first := w.word()
	w.WriteString(strings.ToUpper(first[:1]) + first[1:])
	for n := 5 + w.random.IntN(10); n > 0; n-- {
		w.WriteString(" " + w.word())
	}
	w.WriteString(". ")
}

func prose(size int) string {
	w := newWriter()
	for w.Len() < size {
		for n := 3 + w.random.IntN(5); n > 0; n-- {
			w.sentence()
		}
		w.WriteString("\n\n")
	}
	return w.String()[:size]
}

// openCall is a call whose argument, a long text, never ends.
func openCall(size int) string {
	w := newWriter()
	w.WriteString("<tool_call>\n{\"name\": \"write\", \"arguments\": {\"text\": \"")
	for w.Len() < size {
		w.sentence()
	}
	return w.String()[:size]
}

// closedCalls has a call about every thousand characters.
func closedCalls(size int) string {
	w := newWriter()
	for w.Len() < size {
		w.sentence()
		fmt.Fprintf(w, "\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"%s %s\"]}}\n</tool_call>\n", w.word(), w.word())
		for range 12 {
			w.sentence()
		}
	}
	return w.String()[:size]
}
