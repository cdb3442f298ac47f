package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	markdown "github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The bounds of a page, whose tree takes many times its bytes.
const (
	maxPage     = 16 << 20
	maxElements = 100_000 // that readability looks at
	// minArticle is how many bytes an article has at least; below, the page is
	// taken as a list or a form and read as a whole.
	minArticle = 200
	// maxSpan bounds the columns and rows that a cell covers, each of which is
	// written out.
	maxSpan = 50
)

// html makes Markdown of a web page: of its article where it has one, else of
// all of it.
func (in input) html(w *writer, head []byte) error {
	page, err := io.ReadAll(io.LimitReader(decode(in.data, head, in.ContentType, true), maxPage+1))
	if err != nil {
		return err
	}
	if len(page) > maxPage {
		page = page[:maxPage]
		w.note("The page is larger than %s; the rest is left out.", size(maxPage))
	}
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil { // nested too deeply
		w.note("The page cannot be read as a page (%v); this is its bare text.", err)
		return bareText(w, page)
	}
	type result struct {
		title, text string
		err         error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%.100s", line(fmt.Sprint(p)))
			}
			done <- r
		}()
		r.title, r.text, r.err = in.article(doc)
	}()
	var r result
	select {
	case r = <-done:
	case <-time.After(in.Timeout / 2): // the process ends with its job, and this with it
		r.err = errors.New("it takes too long")
	}
	if r.err != nil {
		w.note("The page cannot be read as a page (%v); this is its bare text.", r.err)
		return bareText(w, page)
	}
	if !in.inside {
		w.title(r.title)
	}
	return w.block(r.text)
}

// article is the title of a page, and its article as Markdown.
func (in input) article(doc *html.Node) (title, text string, err error) {
	address, _ := url.Parse(in.BaseURL)
	if address != nil && !address.IsAbs() {
		address = nil
	}
	count, node, title := survey(doc)
	if count <= maxElements {
		parser := readability.NewParser()
		if article, err := parser.ParseDocument(doc, address); err == nil && article.Node != nil {
			title = cmp.Or(line(article.Title()), title)
			var plain strings.Builder
			if article.RenderText(&plain) == nil && len(strings.TrimSpace(plain.String())) >= minArticle {
				node = article.Node
			}
		}
	}
	options := []markdown.ConvertOptionFunc{}
	if address != nil {
		options = append(options, markdown.WithDomain(in.BaseURL))
	}
	out, err := markdown.NewConverter(markdown.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(),
	)).ConvertNode(node, options...)
	return title, string(out), err
}

// survey counts the elements of a page, finds its body and its title, and
// bounds what cells cover. It needs no recursion.
func survey(doc *html.Node) (count int, body *html.Node, title string) {
	body = doc
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count++
		switch n.DataAtom {
		case atom.Td, atom.Th:
			for i, a := range n.Attr {
				if span, err := strconv.Atoi(strings.TrimSpace(a.Val)); (a.Key == "colspan" || a.Key == "rowspan") && (err != nil || span > maxSpan) {
					n.Attr[i].Val = strconv.Itoa(maxSpan)
				}
			}
		case atom.Body:
			if body == doc {
				body = n
			}
		case atom.Title:
			if title == "" && n.FirstChild != nil {
				title = n.FirstChild.Data
			}
		}
	}
	return count, body, title
}

// bareText is the text of a page that has no tree.
func bareText(w *writer, page []byte) error {
	z := html.NewTokenizer(bytes.NewReader(page))
	skip := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			if z.Err() != io.EOF {
				return z.Err()
			}
			return nil
		case html.TextToken:
			if skip == 0 {
				if err := w.block(strings.TrimSpace(string(z.Text()))); err != nil {
					return err
				}
			}
		case html.StartTagToken, html.EndTagToken:
			t := z.Token()
			switch t.DataAtom {
			case atom.Script, atom.Style, atom.Noscript:
				if t.Type == html.StartTagToken {
					skip++
				} else if skip > 0 {
					skip--
				}
			}
		}
	}
}
