package article

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A drawing makes HTML of one composed text. Its Markdown knows neither HTML nor
// images; what is written as such is text.
type drawing struct {
	report *Report
	of     composed
	names  *names
	out    *page
}

// names gives every heading and citation of a page a name of its own.
type names struct{ headings, citations int }

// draw makes HTML of a composed text, and tells the page of its headings and
// citations.
func (d *drawing) draw() (template.HTML, error) {
	inline := parser.WithInlineParsers(
		util.Prioritized(citationParser{}, 50), util.Prioritized(parser.NewCodeSpanParser(), 100), util.Prioritized(parser.NewLinkParser(), 200),
		util.Prioritized(parser.NewAutoLinkParser(), 300), util.Prioritized(parser.NewEmphasisParser(), 500))
	block := parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100), util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300), util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500), util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700), util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000))
	md := goldmark.New(
		goldmark.WithParser(parser.NewParser(block, inline)),
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(d, 100))))
	var b strings.Builder
	if err := md.Convert([]byte(beside.ReplaceAllString(d.of.markdown, "$1"+placeOpen)), &b); err != nil {
		return "", err
	}
	// A place inside of code or of an address is nobody's.
	return template.HTML(place.ReplaceAllString(b.String(), "")), nil
}

// beside is the space between a word and its citation.
var beside = regexp.MustCompile("((?:[\\p{L}\\p{N})\"”’»%]|[^\\s\\d][.,;:!?…])[*_`]{0,3})[ \\t]+\\" + placeOpen)

var kindCitation = ast.NewNodeKind("Citation")

// A citationNode is a place in the parsed text.
type citationNode struct {
	ast.BaseInline
	mark int
}

func (*citationNode) Kind() ast.NodeKind { return kindCitation }

func (n *citationNode) Dump(source []byte, level int) {
	ast.DumpHelper(n, source, level, map[string]string{"mark": strconv.Itoa(n.mark)}, nil)
}

type citationParser struct{}

func (citationParser) Trigger() []byte { return []byte{placeOpen[0]} }

func (citationParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	at := place.FindSubmatchIndex(line)
	if at == nil || at[0] != 0 {
		return nil
	}
	mark, err := strconv.Atoi(string(line[at[2]:at[3]]))
	if err != nil {
		return nil
	}
	block.Advance(at[1])
	return &citationNode{mark: mark}
}

// RegisterFuncs registers what is drawn otherwise than goldmark does.
func (d *drawing) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(kindCitation, d.citation)
	reg.Register(ast.KindHeading, d.heading)
	reg.Register(ast.KindLink, d.link)
	reg.Register(ast.KindAutoLink, d.autoLink)
	reg.Register(ast.KindImage, d.image)
}

func (d *drawing) heading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	level := max(n.Level, 2)
	if !entering {
		fmt.Fprintf(w, "</h%d>\n", level)
		return ast.WalkContinue, nil
	}
	d.names.headings++
	id := fmt.Sprintf("s%d", d.names.headings)
	if level <= 3 {
		d.out.Contents = append(d.out.Contents, content{ID: id, Title: words(node, source), Level: level})
	}
	fmt.Fprintf(w, `<h%d id="%s">`, level, id)
	return ast.WalkContinue, nil
}

// words is the text of a node.
func words(node ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(util.UnescapePunctuations(n.Value(source)))
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		}
		return ast.WalkContinue, nil
	})
	return html.UnescapeString(strings.TrimSpace(b.String()))
}

func (d *drawing) link(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if address := webAddress(string(node.(*ast.Link).Destination)); address != "" {
		anchor(w, address, entering)
	}
	return ast.WalkContinue, nil
}

func (d *drawing) autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.AutoLink)
	if !entering {
		return ast.WalkContinue, nil
	}
	address := webAddress(string(n.URL(source)))
	if address != "" {
		anchor(w, address, true)
	}
	_, _ = w.WriteString(html.EscapeString(string(n.Label(source))))
	if address != "" {
		anchor(w, "", false)
	}
	return ast.WalkContinue, nil
}

// image is a link to it: nothing is loaded.
func (d *drawing) image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if address := webAddress(string(node.(*ast.Image).Destination)); address != "" {
		anchor(w, address, entering)
	}
	return ast.WalkContinue, nil
}

func anchor(w util.BufWriter, address string, entering bool) {
	if entering {
		_, _ = fmt.Fprintf(w, `<a href="%s" rel="noopener noreferrer">`, html.EscapeString(address))
	} else {
		_, _ = w.WriteString("</a>")
	}
}

// citation draws the numbers of one place.
func (d *drawing) citation(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*citationNode)
	if !entering || n.mark >= len(d.of.marks) {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<span class="cites">`)
	for i, c := range d.report.citations(d.of, n.mark) {
		if i > 0 {
			_ = w.WriteByte(' ')
		}
		d.names.citations++
		id := fmt.Sprintf("c%d", d.names.citations)
		if c.Reference == 0 {
			what := fmt.Sprintf("summary %d", c.Bank)
			if c.Bad != "" {
				what = "summary “" + oneLine(c.Bad) + "”"
			}
			fmt.Fprintf(w, `<span class="cite bad" id="%s" tabindex="0" role="note" data-note="There is no %s." aria-label="Citation of what there is not: %[2]s">?</span>`, id, html.EscapeString(what))
			continue
		}
		ref := d.report.References[c.Reference-1]
		class := "cite"
		if !c.Supported() {
			class += " bad"
		}
		figures := ""
		if len(c.Figures) > 0 {
			figures = fmt.Sprintf(` data-figures="%s"`, html.EscapeString(strings.Join(c.Figures, ", ")))
		}
		fmt.Fprintf(w, `<a class="%s" id="%s" href="#r%d" role="doc-noteref" aria-label="Reference %s. %s"%s>%s</a>`,
			class, id, c.Reference, label(ref), html.EscapeString(ref.Words()), figures, label(ref))
		d.out.citedAt(c.Reference, id)
	}
	_, _ = w.WriteString(`</span>`)
	return ast.WalkContinue, nil
}
