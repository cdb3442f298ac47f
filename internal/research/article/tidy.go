package article

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

var (
	webTarget = regexp.MustCompile(`^\s*<?https?://[^\s]`)
	webLink   = regexp.MustCompile(`^<https?://[^\s<>]*>`)
	tagStart  = regexp.MustCompile(`^<[A-Za-z/!?]`)
	codeLine  = regexp.MustCompile("^`[^`|\n]*`")
)

// tidy makes Markdown of a model harmless in any reader: what would be HTML is
// text, an image is a link to it, and a link goes to http and https or is text;
// definitions of links are text. What came of it is read again by a parser; a
// text that still has something else is escaped as a whole.
func tidy(markdown string) string {
	var b strings.Builder
	fence := ""
	for i, line := range strings.Split(markdown, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		bare := strings.TrimLeft(line, " ")
		mark := fenceMark(bare)
		switch {
		case fence != "" && strings.HasPrefix(mark, fence) && strings.TrimSpace(bare[len(mark):]) == "":
			fence = ""
		case fence == "" && mark != "":
			fence = mark
		case fence == "":
			tidyLine(&b, line)
			continue
		}
		b.WriteString(line)
	}
	if out := b.String(); harmless(out) {
		return out
	}
	var lines []string
	for line := range strings.SplitSeq(markdown, "\n") {
		lines = append(lines, escape(strings.TrimSpace(line)))
	}
	return strings.Join(lines, "  \n")
}

// fenceMark is the run of characters that begins or ends a block of code.
func fenceMark(bare string) string {
	for _, c := range []string{"`", "~"} {
		run := bare[:len(bare)-len(strings.TrimLeft(bare, c))]
		if len(run) >= 3 && !(c == "`" && strings.Contains(bare[len(run):], "`")) {
			return run
		}
	}
	return ""
}

func tidyLine(b *strings.Builder, line string) {
	for i := 0; i < len(line); i++ {
		rest := line[i:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
			continue
		case rest[0] == '`':
			if n := len(codeLine.FindString(rest)); n > 0 {
				b.WriteString(rest[:n])
				i += n - 1
				continue
			}
		case tagStart.MatchString(rest):
			if n := len(webLink.FindString(rest)); n > 0 {
				b.WriteString(rest[:n])
				i += n - 1
				continue
			}
			b.WriteByte('\\')
		case strings.HasPrefix(rest, "!["):
			continue
		case strings.HasPrefix(rest, "]:"), strings.HasPrefix(rest, "](") && !webTarget.MatchString(rest[2:]):
			b.WriteByte('\\')
		}
		b.WriteByte(rest[0])
	}
}

// harmless reports whether a Markdown reader would find neither HTML nor images,
// and no links but those to http and https.
func harmless(markdown string) bool {
	source := []byte(markdown)
	for _, reader := range []goldmark.Markdown{goldmark.New(), goldmark.New(goldmark.WithExtensions(extension.Table))} {
		bad := false
		_ = ast.Walk(reader.Parser().Parse(text.NewReader(source)), func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.HTMLBlock, *ast.RawHTML, *ast.Image:
				bad = true
			case *ast.Link:
				bad = bad || webAddress(string(n.Destination)) == ""
			case *ast.AutoLink:
				bad = bad || n.AutoLinkType == ast.AutoLinkEmail || !bytes.HasPrefix(bytes.ToLower(n.URL(source)), []byte("http"))
			}
			if bad {
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
		if bad {
			return false
		}
	}
	return true
}
