package researchtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Page is one that the planner reads.
type Page struct {
	URL  string
	Goal string // unlike that of any other page; one page may have none
	// Evidence are words of the page. They are only told where the prompt has
	// them.
	Evidence string
	Summary  string
	Claim    string // what the report says of it; empty means the summary
	Unread   bool   // it gets no number, because it cannot be read
}

// A Section of the report cites all summaries of its pages.
type Section struct {
	Title   string
	Queries []string // what is searched before the pages are read
	Pages   []Page
	Brief   bool // one point of the outline cites all of them
}

// A Researcher does a whole run: for each section it searches, reads the pages
// and has the outline written; then it writes the sections and answers. It
// expects an empty bank, so that the summaries are numbered in the order of the
// pages.
type Researcher struct {
	Sections []Section
	Answer   string

	mu      sync.Mutex
	said    map[string]string // by prompt: the same prompt gets the same text
	planned int
	written int
}

// Author is the model. The same prompt gets the same text again, so that a run
// which is gone on with hears what it heard before.
func (r *Researcher) Author() Author {
	return func(_ context.Context, prompt string) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		text, ok := r.said[prompt]
		if !ok {
			text = r.write(prompt)
			if r.said == nil {
				r.said = map[string]string{}
			}
			r.said[prompt] = text
		}
		return text, nil
	}
}

// Skip leaves out the next turn of the planner, which somebody else writes. It is
// true.
func (r *Researcher) Skip() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.planned++
	return true
}

// A Kind says what a prompt asks for.
type Kind string

// The kinds of prompts, in the order in which a research begins with them.
const (
	Plan    Kind = "plan"
	Read    Kind = "read" // a page, for a goal
	Outline Kind = "outline"
	Write   Kind = "write"
	Answer  Kind = "answer"
)

// KindOf tells prompts apart by what only their instructions say.
func KindOf(prompt string) Kind {
	instructions, _, _ := strings.Cut(prompt, "<|im_end|>")
	switch {
	case strings.Contains(instructions, "- <write_outline>:"):
		return Plan
	case strings.Contains(instructions, "- <write_terminate>:"):
		return Write
	case strings.Contains(instructions, "Write the whole outline anew"):
		return Outline
	case strings.Contains(instructions, "Answer the question between"):
		return Answer
	}
	return Read
}

func (r *Researcher) write(prompt string) string {
	switch KindOf(prompt) {
	case Plan:
		return next(r.Plan(), &r.planned)
	case Write:
		return next(r.Report(), &r.written)
	case Outline:
		return r.outline(prompt)
	case Answer:
		return "<answer>" + r.Answer + "</answer>"
	}
	return r.summary(prompt)
}

// next gives the next of a list, and the last for ever.
func next(list []string, at *int) string {
	text := list[min(*at, len(list)-1)]
	*at++
	return text
}

// Plan is what the planner writes, turn by turn.
func (r *Researcher) Plan() []string {
	var turns []string
	for _, s := range r.Sections {
		for _, q := range s.Queries {
			turns = append(turns, fmt.Sprintf("<think>I look for %s.</think>\n<search> %s </search>", q, q))
		}
		for _, p := range s.Pages {
			goal := ""
			if p.Goal != "" {
				goal = " <goal> " + p.Goal + " </goal>"
			}
			turns = append(turns, fmt.Sprintf("<access> %s%s </access>", p.URL, goal))
		}
		turns = append(turns, fmt.Sprintf("<think>%s can be planned.</think>\n<write_outline>", s.Title))
	}
	return append(turns, "<think>The outline has all.</think>\n<terminate>")
}

// Report is what the writer writes, turn by turn.
func (r *Researcher) Report() []string {
	var turns []string
	number := 0
	for _, s := range r.Sections {
		var ids []string
		var body strings.Builder
		for _, p := range s.Pages {
			if p.Unread {
				continue
			}
			number++
			id := fmt.Sprintf("<id>%d</id>", number)
			ids = append(ids, id)
			fmt.Fprintf(&body, "%s <cite> %s </cite>\n", cmp.Or(p.Claim, p.Summary), id)
		}
		turns = append(turns,
			fmt.Sprintf("<retrieve> %s <goal> %s </goal> </retrieve>", strings.Join(ids, ", "), s.Title),
			fmt.Sprintf("<write>\n## %s\n\n%s</write>", s.Title, body.String()))
	}
	return append(turns, "<think>All is written.</think>\n<write_terminate>")
}

// summary is what is told of the page whose goal and evidence the prompt has.
func (r *Researcher) summary(prompt string) string {
	for _, s := range r.Sections {
		for _, p := range s.Pages {
			if !strings.Contains(prompt, p.Goal) || !strings.Contains(prompt, p.Evidence) {
				continue
			}
			text, _ := json.Marshal(struct { // strings
				Rational string `json:"rational"`
				Evidence string `json:"evidence"`
				Summary  string `json:"summary"`
			}{"The page tells it of " + s.Title + ".", p.Evidence, p.Summary})
			return string(text)
		}
	}
	return "The page does not tell it."
}

// number is how a prompt tells the number of a summary: before it, or in a
// citation of the outline so far.
var number = regexp.MustCompile(`\[[0-9]+(?:, [0-9]+)*\]`)

// outline has all points whose summaries stand in the prompt.
func (r *Researcher) outline(prompt string) string {
	_, prompt, _ = strings.Cut(prompt, "<|im_end|>")
	seen := map[string]bool{}
	for _, list := range number.FindAllString(prompt, -1) {
		for n := range strings.SplitSeq(strings.Trim(list, "[]"), ", ") {
			seen[n] = true
		}
	}
	var b strings.Builder
	b.WriteString("<outline>\n")
	at := 0
	for _, s := range r.Sections {
		var points, ids []string
		for _, p := range s.Pages {
			if p.Unread {
				continue
			}
			if at++; seen[strconv.Itoa(at)] {
				ids = append(ids, fmt.Sprintf("<id>%d</id>", at))
				points = append(points, fmt.Sprintf("- %s <cite> <id>%d</id> </cite>\n", cmp.Or(p.Goal, p.Summary), at))
			}
		}
		if s.Brief && len(ids) > 0 {
			points = []string{fmt.Sprintf("- All of it <cite> %s </cite>\n", strings.Join(ids, ", "))}
		}
		if len(points) > 0 {
			b.WriteString("## " + s.Title + "\n" + strings.Join(points, ""))
		}
	}
	return b.String() + "</outline>"
}
