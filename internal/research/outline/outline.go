// Package outline reads the plan of a report as a model wrote it: sections with
// titles, notes and the numbers of the summaries that they rest on.
//
// Whatever is written gives an outline; what is wrong with it comes beside it,
// in words that the model may be told. The package knows no bank: whoever calls
// says which numbers there are.
package outline

import (
	"fmt"
	"slices"
	"strings"

	"stopgap/internal/research/cite"
)

// An Outline is the plan of a report.
type Outline struct {
	Title    string     `json:"title,omitempty"` // a heading above all others
	Cites    []int      `json:"cites,omitempty"` // beside the title
	Notes    []Note     `json:"notes,omitempty"` // before the first section
	Sections []*Section `json:"sections,omitempty"`
}

// A Section is a part of an outline, with its own parts.
type Section struct {
	Title    string     `json:"title"`
	Cites    []int      `json:"cites,omitempty"` // beside the title, in their order and each once
	Notes    []Note     `json:"notes,omitempty"`
	Sections []*Section `json:"sections,omitempty"`
}

// A Note is a point of a section, or what else is said of it.
type Note struct {
	Text  string `json:"text"`
	Cites []int  `json:"cites,omitempty"`
}

// The bounds of an outline. What is beyond them is left out, or one level less
// deep, and told as a problem.
const (
	MaxBytes    = 64 << 10
	MaxSections = 1000
	MaxDepth    = 5
	MaxTitle    = 500  // characters
	MaxNote     = 4000 // characters
)

// A Kind says what is wrong with an outline.
type Kind string

// The kinds of problems.
const (
	Empty       Kind = "empty_outline"   // there is no section in it
	NoCitations Kind = "no_citations"    // no section cites anything
	UnknownID   Kind = "unknown_id"      // nothing has the number
	BadCitation Kind = "bad_citation"    // what is cited is no number
	TooLarge    Kind = "outline_too_big" // something was left out
)

// A Problem is one thing that is wrong.
type Problem struct {
	Kind    Kind   `json:"kind"`
	Section string `json:"section,omitempty"` // its title
	Number  int    `json:"number,omitempty"`
	Text    string `json:"text,omitempty"` // what stands there
}

// Error says it in words for the model.
func (p Problem) Error() string {
	in := ""
	if p.Section != "" {
		in = fmt.Sprintf(" in %q", p.Section)
	}
	switch p.Kind {
	case Empty:
		return "The outline has no sections. Write one heading or one numbered line for each section."
	case NoCitations:
		return "The outline cites nothing. Write behind each point the numbers of the summaries that it rests on, for example " + cite.Spell(1, 2) + "."
	case UnknownID:
		return fmt.Sprintf("There is no summary %d, which is cited%s.", p.Number, in)
	case BadCitation:
		return fmt.Sprintf("%q%s is cited, which is no number of a summary.", p.Text, in)
	}
	return "The outline is too long: " + p.Text + "."
}

// Check looks at the citations of an outline: whether there are any, and
// whether each has a summary. known says which numbers there are.
func (o *Outline) Check(known func(number int) bool) []Problem {
	var out []Problem
	if len(o.Sections) == 0 {
		out = append(out, Problem{Kind: Empty})
	} else if len(o.Cited()) == 0 {
		out = append(out, Problem{Kind: NoCitations})
	}
	look := func(title string, cites []int, notes []Note) {
		for _, n := range cited(cites, notes) {
			if !known(n) {
				out = append(out, Problem{Kind: UnknownID, Section: title, Number: n})
			}
		}
	}
	look(o.Title, o.Cites, o.Notes)
	for _, s := range o.All() {
		look(s.Title, s.Cites, s.Notes)
	}
	return out
}

// cited gives the numbers of a title and of what is said below it.
func cited(cites []int, notes []Note) []int {
	out := slices.Clone(cites)
	for _, n := range notes {
		out = union(out, n.Cites)
	}
	return out
}

// All gives the sections in their order, each before its own parts.
func (o *Outline) All() []*Section {
	var out []*Section
	var walk func([]*Section)
	walk = func(list []*Section) {
		for _, s := range list {
			out = append(out, s)
			walk(s.Sections)
		}
	}
	walk(o.Sections)
	return out
}

// Cited gives the numbers that are cited anywhere, in their order and each once.
func (o *Outline) Cited() []int {
	out := cited(o.Cites, o.Notes)
	for _, s := range o.All() {
		out = union(out, cited(s.Cites, s.Notes))
	}
	return out
}

// Cited gives the numbers that a section and its parts cite, in their order and
// each once: what has to be at hand when it is written.
func (s *Section) Cited() []int {
	return (&Outline{Sections: []*Section{s}}).Cited()
}

func union(a, b []int) []int {
	for _, n := range b {
		if !slices.Contains(a, n) {
			a = append(a, n)
		}
	}
	return a
}

// String writes an outline in one spelling, which Parse reads back the same:
// Markdown headings, the first level for the title, and list items for notes,
// each with its numbers behind it as cite.Spell writes them.
func (o *Outline) String() string {
	var b strings.Builder
	if o.Title != "" {
		line(&b, "# "+o.Title, o.Cites)
	}
	if len(o.Sections) == 0 { // a list would be one of sections
		for _, n := range o.Notes {
			line(&b, n.Text, n.Cites)
		}
	} else {
		notes(&b, o.Notes)
	}
	var walk func([]*Section, int)
	walk = func(list []*Section, level int) {
		for _, s := range list {
			line(&b, strings.Repeat("#", level)+" "+s.Title, s.Cites)
			notes(&b, s.Notes)
			walk(s.Sections, level+1)
		}
	}
	walk(o.Sections, 2)
	return strings.TrimSuffix(b.String(), "\n")
}

func notes(b *strings.Builder, list []Note) {
	for _, n := range list {
		line(b, "- "+n.Text, n.Cites)
	}
}

func line(b *strings.Builder, text string, cites []int) {
	b.WriteString(text)
	if len(cites) > 0 {
		b.WriteString(" " + cite.Spell(cites...))
	}
	b.WriteByte('\n')
}
