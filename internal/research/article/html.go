package article

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"html/template"
	"io"
	"net/url"
	"strings"

	"stopgap/internal/research/cite"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var pageStyle string

//go:embed page.js
var pageScript string

var pageOf = template.Must(template.New("page").Parse(pageTemplate))

// A page is what the template draws.
type page struct {
	Title        string
	Question     string // where the title is only its beginning
	About        []string
	Answer       template.HTML
	Body         []template.HTML
	Contents     []content
	References   []reference
	Log          []string
	Totals       string
	Unsupported  int
	Style        template.CSS
	Script       template.JS
	StyleSource  string // for the policy
	ScriptSource string
}

// A content is a line of the table of contents.
type content struct {
	ID, Title string
	Level     int
}

// A reference is drawn in the list, and in the card over a citation.
type reference struct {
	Reference
	Name     string
	Address  string // empty for what is no page of the web
	Host     string // or the document's id
	Good     bool
	Verdict  string
	CitedAt  []back
	Evidence string
}

// A back leads from a reference to where it is cited.
type back struct {
	ID     string
	Number int
}

func (p *page) citedAt(ref int, id string) {
	if ref <= len(p.References) {
		r := &p.References[ref-1]
		r.CitedAt = append(r.CitedAt, back{id, len(r.CitedAt) + 1})
	}
}

// WriteHTML writes the report as one page that needs nothing else: no network,
// no other file. Its policy allows its own style and its own script, by their
// hashes, and nothing more.
func (r *Report) WriteHTML(w io.Writer) error {
	p := &page{
		About: r.about(), Totals: r.totalsLine(), Unsupported: r.Unsupported(),
		Style: template.CSS(pageStyle), Script: template.JS(pageScript), StyleSource: source(pageStyle), ScriptSource: source(pageScript),
	}
	whole := false
	if p.Title, whole = r.heading(); !whole {
		p.Question = strings.ToValidUTF8(r.Question, "\uFFFD")
	}
	for _, ref := range r.References {
		p.References = append(p.References, newReference(ref))
	}
	n := &names{}
	for i, c := range r.compose() {
		if i == 0 && strings.TrimSpace(c.markdown) == "" {
			continue
		}
		d := drawing{report: r, of: c, names: n, out: p}
		if i == 0 {
			p.Contents = append(p.Contents, content{ID: "answer", Title: "Answer", Level: 2})
		}
		text, err := d.draw()
		if err != nil {
			return err
		}
		if i == 0 {
			p.Answer = text
		} else {
			p.Body = append(p.Body, text)
		}
	}
	if len(p.References) > 0 {
		p.Contents = append(p.Contents, content{ID: "references", Title: "References", Level: 2})
	}
	for _, e := range r.Log {
		p.Log = append(p.Log, e.line())
	}
	if len(p.Log) > 0 {
		p.Contents = append(p.Contents, content{ID: "log", Title: "What went wrong", Level: 2})
	}
	return pageOf.Execute(w, p)
}

func newReference(ref Reference) reference {
	out := reference{
		Reference: ref, Name: oneLine(ref.Title), Address: webAddress(ref.Source), Host: oneLine(ref.Source),
		Good: ref.Verdict == cite.Supported, Verdict: ref.Words(), Evidence: ref.Summary.Evidence,
	}
	if out.Name == "" {
		out.Name = out.Host
	}
	if u, err := url.Parse(out.Address); err == nil && out.Address != "" {
		out.Host = u.Host
	}
	return out
}

// source is how a policy names an inline style or script.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
