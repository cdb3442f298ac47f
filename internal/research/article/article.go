// Package article is the report that a research ends with: a value that is made
// of what the model wrote, and two writers, one of Markdown and one of a single
// HTML page.
//
// Its citations are checked against the bank and numbered in the order in which
// they are first read. What models and pages say never becomes markup, script or
// an address other than http and https. The same report gives the same bytes.
package article

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stopgap/internal/research/bank"
	"stopgap/internal/research/cite"
	"stopgap/internal/research/outline"
)

// A Report is all that came of a research. Fill it to Totals, then call Check.
type Report struct {
	Question string           `json:"question"`
	Model    string           `json:"model,omitempty"` // as the user named it
	Date     string           `json:"date,omitempty"`  // the day of the research, as its prompts told it
	Answer   string           `json:"answer,omitempty"`
	Outline  *outline.Outline `json:"outline,omitempty"` // the last one
	Sections []Section        `json:"sections"`
	Log      []Entry          `json:"log"`
	Totals   Totals           `json:"totals"`

	References []Reference `json:"references"` // in the order in which they are first cited
	Citations  []Citation  `json:"citations"`  // in the order of the text, the answer first
}

// A Section is what was written at once, in Markdown with citations as cite.Find
// reads them. A heading at its beginning stands in for Title.
type Section struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
}

// An Entry is one thing that went wrong and did not end the research.
type Entry struct {
	Phase   string `json:"phase,omitempty"`
	Kind    string `json:"kind"` // in one word, as "empty_summary"
	Message string `json:"message"`
}

// Totals count the work. What is zero is not printed.
type Totals struct {
	Searches     int `json:"searches,omitempty"`
	Pages        int `json:"pages,omitempty"` // read
	Summaries    int `json:"summaries,omitempty"`
	Outlines     int `json:"outlines,omitempty"`
	Requests     int `json:"requests,omitempty"`      // to the model
	PromptTokens int `json:"prompt_tokens,omitempty"` // read by it
	Tokens       int `json:"tokens,omitempty"`        // written by it
}

// A Reference is a summary that is cited.
type Reference struct {
	Number int `json:"number"` // in the report, from 1
	bank.Summary
	Bank int `json:"bank"` // the number in the bank
	cite.Finding
}

// A Citation is one number at one place.
type Citation struct {
	Section   int          `json:"section"`             // from 1; 0 is the answer
	Bank      int          `json:"bank,omitempty"`      // what is cited
	Bad       string       `json:"bad,omitempty"`       // what stands there and is no number
	Reference int          `json:"reference,omitempty"` // 0 where there is none
	Verdict   cite.Verdict `json:"verdict"`
	Claim     string       `json:"claim,omitempty"` // what it stands behind
	// Figures are the numbers of the claim that neither evidence nor summary of
	// what is cited there has. They are a hint.
	Figures []string `json:"figures,omitempty"`
}

// Supported reports whether the evidence stands in the page.
func (c Citation) Supported() bool { return c.Verdict == cite.Supported }

// Check finds the citations, looks each up in the bank, and looks for its
// evidence in the page that the bank keeps. The error is the bank's.
func (r *Report) Check(ctx context.Context, b *bank.Bank) error {
	c := checker{report: r, bank: b, looked: map[int]int{}}
	r.References, r.Citations = []Reference{}, []Citation{}
	for i, text := range r.texts() {
		if err := c.text(ctx, i, text); err != nil {
			return err
		}
	}
	return nil
}

// texts are what may cite: the answer and the sections.
func (r *Report) texts() []string {
	out := []string{r.Answer}
	for _, s := range r.Sections {
		out = append(out, s.Text)
	}
	return out
}

// A checker looks up what is cited, each number once.
type checker struct {
	report *Report
	bank   *bank.Bank
	looked map[int]int // the number in the report by that in the bank; 0 for unknown
}

func (c *checker) text(ctx context.Context, section int, text string) error {
	marks := cite.Find(text)
	for i, m := range marks {
		claim := ""
		if len(m.Numbers)+len(m.Bad) > 0 {
			claim = cite.Claim(text, marks, i)
		}
		first := len(c.report.Citations)
		var texts []string
		for _, n := range m.Numbers {
			reference, err := c.look(ctx, n)
			if err != nil {
				return err
			}
			at := Citation{Section: section, Bank: n, Reference: reference, Verdict: cite.Unknown, Claim: claim}
			if reference > 0 {
				ref := c.report.References[reference-1]
				at.Verdict = ref.Verdict
				texts = append(texts, ref.Evidence, ref.Summary.Summary)
			}
			c.report.Citations = append(c.report.Citations, at)
		}
		for _, words := range m.Bad {
			c.report.Citations = append(c.report.Citations, Citation{Section: section, Bad: words, Verdict: cite.Unknown, Claim: claim})
		}
		if len(texts) > 0 {
			figures := cite.Figures(claim, texts...)
			for j := range c.report.Citations[first:] {
				c.report.Citations[first+j].Figures = figures
			}
		}
	}
	return nil
}

// look gives the reference of a number in the bank, which it makes where there
// is none yet.
func (c *checker) look(ctx context.Context, n int) (int, error) {
	if at, ok := c.looked[n]; ok {
		return at, nil
	}
	found, _, err := c.bank.Get(ctx, n)
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		c.looked[n] = 0
		return 0, nil
	}
	ref := Reference{Number: len(c.report.References) + 1, Summary: found[0], Bank: n}
	ref.Call, ref.Time = "", time.Time{} // another run has others for the same report
	if ref.Page == "" {
		ref.Finding = cite.NewPage("").Look(ref.Evidence)
	} else if page, err := c.bank.Page(ctx, ref.Page); err == nil {
		ref.Finding = cite.NewPage(page.Text).Look(ref.Evidence)
	} else if errors.Is(err, bank.ErrNoPage) {
		ref.Finding = cite.NewPage("").Look(ref.Evidence)
	} else {
		return 0, err
	}
	c.report.References = append(c.report.References, ref)
	c.looked[n] = ref.Number
	return ref.Number, nil
}

// Unsupported counts the citations behind which there is no evidence.
func (r *Report) Unsupported() int {
	n := 0
	for _, c := range r.Citations {
		if !c.Supported() {
			n++
		}
	}
	return n
}

// SummaryLine says what the report is made of and how its citations stand, as
// "3 sections, 12 citations of 7 sources, 1 unsupported (8 %)".
func (r *Report) SummaryLine() string {
	parts := []string{count(len(r.Sections), "section")}
	sources := []string{}
	for _, ref := range r.References {
		if !slices.Contains(sources, ref.Source) {
			sources = append(sources, ref.Source)
		}
	}
	switch n, bad := len(r.Citations), r.Unsupported(); {
	case n == 0:
		parts = append(parts, "no citations")
	case bad == 0:
		parts = append(parts, count(n, "citation")+" of "+count(len(sources), "source"), "all supported")
	default:
		// Rounded up, so that one of many is not none.
		parts = append(parts, count(n, "citation")+" of "+count(len(sources), "source"), fmt.Sprintf("%d unsupported (%d %%)", bad, (100*bad+n-1)/n))
	}
	return strings.Join(parts, ", ")
}

// totalsLine says what was done.
func (r *Report) totalsLine() string {
	t := r.Totals
	var parts []string
	for _, p := range []struct {
		n     int
		words string
	}{
		{t.Searches, count(t.Searches, "search")}, {t.Pages, count(t.Pages, "page") + " read"},
		{t.Summaries, count(t.Summaries, "summary")}, {t.Outlines, count(t.Outlines, "outline")},
		{t.Requests, count(t.Requests, "request")}, {t.PromptTokens, count(t.PromptTokens, "token") + " read"},
		{t.Tokens, count(t.Tokens, "token") + " written"},
	} {
		if p.n > 0 {
			parts = append(parts, p.words)
		}
	}
	return strings.Join(parts, ", ")
}

// count is a number with its noun.
func count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "ch"):
		noun += "es"
	case strings.HasSuffix(noun, "ry"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + noun
}
