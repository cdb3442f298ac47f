package article

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"stopgap/internal/research/cite"
)

// WriteMarkdown writes the report as Markdown: the answer, all sections in their
// order, the references, and what went wrong. A number with a question mark is a
// citation that is not supported. HTML, images and addresses other than http and
// https are text.
func (r *Report) WriteMarkdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	title, whole := r.heading()
	fmt.Fprintf(out, "# %s\n\n", escape(title))
	if !whole {
		fmt.Fprintf(out, "%s\n\n", escape(oneLine(r.Question)))
	}
	fmt.Fprintf(out, "*%s*\n", escape(strings.Join(r.about(), " · ")))
	for i, c := range r.compose() {
		text := r.fill(c, tidy(c.markdown))
		switch {
		case i == 0 && strings.TrimSpace(text) == "":
		case i == 0:
			fmt.Fprintf(out, "\n## Answer\n\n%s\n", text)
		default:
			fmt.Fprintf(out, "\n%s\n", text)
		}
	}
	if len(r.References) > 0 {
		fmt.Fprint(out, "\n## References\n")
		for _, ref := range r.References {
			writeReference(out, ref)
		}
	}
	if r.Unsupported() > 0 {
		fmt.Fprint(out, "\nA number with a question mark is a citation whose evidence does not stand in the page that was read.\n")
	}
	if len(r.Log) > 0 {
		fmt.Fprint(out, "\n## What went wrong\n\n")
		for _, e := range r.Log {
			fmt.Fprintf(out, "- %s\n", escape(e.line()))
		}
	}
	if line := r.totalsLine(); line != "" {
		fmt.Fprintf(out, "\n---\n\n*%s*\n", line)
	}
	r.writeAddresses(out)
	return out.Flush()
}

// about is what stands below the title.
func (r *Report) about() []string {
	out := []string{r.SummaryLine()}
	for _, s := range []string{r.Model, r.Date} {
		if s != "" {
			out = append(out, oneLine(s))
		}
	}
	return out
}

// line is an entry in one line.
func (e Entry) line() string {
	words := strings.ReplaceAll(e.Kind, "_", " ")
	if e.Phase != "" {
		words = e.Phase + ", " + words
	}
	return oneLine(words + ": " + e.Message)
}

func writeReference(w io.Writer, ref Reference) {
	name := escape(oneLine(ref.Title))
	if name == "" {
		name = escape(oneLine(ref.Source))
	}
	if address := webAddress(ref.Source); address != "" {
		name = fmt.Sprintf("[%s](%s)", name, inAngles(address))
	} else if ref.Title != "" {
		name += ", " + escape(oneLine(ref.Source))
	}
	fmt.Fprintf(w, "\n%d. %s  \n", ref.Number, name)
	pad := strings.Repeat(" ", len(strconv.Itoa(ref.Number))+2)
	fmt.Fprintf(w, "%sRead for: %s  \n", pad, escape(oneLine(ref.Goal)))
	verdict := ref.Words()
	if ref.Verdict != cite.Supported {
		verdict = "**" + verdict + "**"
	}
	fmt.Fprintf(w, "%s%s. Summary %d of the bank.\n", pad, verdict, ref.Bank)
	if ref.Evidence != "" {
		fmt.Fprintf(w, "\n%s> %s\n", pad, escape(oneLine(ref.Evidence)))
	}
}

// writeAddresses makes the numbers in the text links.
func (r *Report) writeAddresses(w io.Writer) {
	first := true
	for _, ref := range r.References {
		address := webAddress(ref.Source)
		if address == "" {
			continue
		}
		if first {
			fmt.Fprintln(w)
			first = false
		}
		fmt.Fprintf(w, "[%s]: %s\n", label(ref), inAngles(address))
	}
}

// label is how a reference is cited.
func label(ref Reference) string {
	if ref.Verdict != cite.Supported {
		return strconv.Itoa(ref.Number) + "?"
	}
	return strconv.Itoa(ref.Number)
}

// fill puts the citations in their places.
func (r *Report) fill(c composed, text string) string {
	var b strings.Builder
	at := 0
	for _, m := range place.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[at:m[0]])
		at = m[1]
		n, _ := strconv.Atoi(text[m[2]:m[3]])
		if n >= len(c.marks) {
			continue
		}
		var words []string
		for _, citation := range r.citations(c, n) {
			switch {
			case citation.Reference > 0:
				words = append(words, "["+label(r.References[citation.Reference-1])+"]")
			case citation.Bad != "":
				words = append(words, `\[no summary “`+escape(oneLine(citation.Bad))+`”\]`)
			default:
				words = append(words, fmt.Sprintf(`\[no summary %d\]`, citation.Bank))
			}
		}
		b.WriteString(strings.Join(words, " "))
		if at < len(text) && strings.IndexByte("([:", text[at]) >= 0 {
			b.WriteByte('\\') // it would make a link of the number
		}
	}
	b.WriteString(text[at:])
	return b.String()
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(unplaced.Replace(strings.ToValidUTF8(s, "\uFFFD"))), " ")
}

var special = regexp.MustCompile("[\\\\`*_\\[\\]<>|~]|&(?:#|[A-Za-z])")

// lineStart is what makes a block of a line, to the character that does.
var lineStart = regexp.MustCompile(`^(?:[#+=-]|\d{1,9}[.)])`)

// escape makes a text of one line plain in Markdown.
func escape(s string) string {
	s = special.ReplaceAllString(s, `\$0`)
	if n := len(lineStart.FindString(s)); n > 0 {
		s = s[:n-1] + `\` + s[n-1:]
	}
	return s
}

// inAngles writes an address as Markdown's links take it, whatever is in it.
func inAngles(address string) string {
	return "<" + strings.NewReplacer("<", "%3C", ">", "%3E", `\`, "%5C", "\n", "", " ", "%20").Replace(address) + ">"
}
