package article

import (
	"slices"
	"strings"
	"testing"

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
