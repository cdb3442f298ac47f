package article

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
)

// sober makes sure that a page has no element and no attribute but those that
// this package writes, and no address but those of the web and its own.
func sober(t *testing.T, page string) {
	t.Helper()
	elements := strings.Fields(`html head meta title style body a div header h1 h2 h3 h4 h5 h6 details summary p span nav ol ul li main section blockquote
		footer script em strong code pre hr br table thead tbody tr th td`)
	attributes := strings.Fields(`lang charset http-equiv content name class href id rel role aria-label aria-labelledby aria-hidden tabindex data-note data-figures align start`)
	count := map[string]int{}
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		tok := z.Token()
		if tok.Type != html.StartTagToken && tok.Type != html.SelfClosingTagToken {
			continue
		}
		if count[tok.Data]++; !slices.Contains(elements, tok.Data) {
			t.Fatalf("there is <%s> in\n%s", tok.Data, page)
		}
		for _, a := range tok.Attr {
			if !slices.Contains(attributes, a.Key) {
				t.Fatalf("there is <%s %s=%q>", tok.Data, a.Key, a.Val)
			}
			if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && webAddress(a.Val) == "" {
				t.Fatalf("there is a link to %q", a.Val)
			}
			if a.Key == "class" && tok.Data == "code" && !strings.HasPrefix(a.Val, "language-") {
				t.Fatalf("there is <code class=%q>", a.Val)
			}
		}
	}
	if count["script"] != 1 || count["style"] != 1 || count["main"] != 1 || count["body"] != 1 {
		t.Fatalf("elements %v", count)
	}
}

// What is escaped is one line of text to a reader, as the name of a reference
// and as a line of the log.
func TestEscape(t *testing.T) {
	md := goldmark.New(goldmark.WithExtensions(extension.Table))
	for _, words := range []string{
		"2. The second chapter", "3) three", "1.", "1984. A novel", "# a", "- b", "+ c", "=", "> q", "a | b", "<b>", "*x*", "_y_", "&amp;", "&#60;",
		"```", "~~~ go", "[1]: x", "[a](b)", "![c](d)", "***", "---", "- - -", `a\`, "https://example.org/_a_", "Ilse Marrow, 41",
	} {
		for _, mark := range []string{"1. ", "- "} {
			source := []byte(mark + escape(words) + "\n")
			doc := md.Parser().Parse(text.NewReader(source))
			list, ok := doc.FirstChild().(*ast.List)
			if !ok || list.NextSibling() != nil || list.ChildCount() != 1 || list.FirstChild().ChildCount() != 1 {
				t.Errorf("%q is not one line of a list", source)
				continue
			}
			var said strings.Builder
			_ = ast.Walk(list, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				if t, ok := n.(*ast.Text); ok && entering {
					said.Write(t.Value(source))
				}
				return ast.WalkContinue, nil
			})
			if said := strings.ReplaceAll(said.String(), `\`, ""); said != strings.ReplaceAll(words, `\`, "") {
				t.Errorf("%q says %q", source, said)
			}
		}
	}
}
