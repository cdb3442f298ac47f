package document

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"

	"golang.org/x/net/html/charset"
)

// maxDepth bounds the nesting of XML, and with it every recursion over it.
const maxDepth = 256

// An xmlReader reads one part of an Office file, token by token. A DOCTYPE,
// which no Office file has, ends it, and with it all entities.
type xmlReader struct {
	*xml.Decoder
	closer io.Closer
	name   string
	depth  int
}

// member opens an XML part of an archive; nil where there is none.
func (a *archive) member(name string) (*xmlReader, error) {
	f := a.find(name)
	if f == nil {
		return nil, nil
	}
	return a.xml(f)
}

func (a *archive) xml(f *zip.File) (*xmlReader, error) {
	r, err := a.open(f)
	if err != nil {
		return nil, err
	}
	x := &xmlReader{Decoder: xml.NewDecoder(r), closer: r, name: f.Name}
	x.CharsetReader = charset.NewReaderLabel
	return x, nil
}

func (x *xmlReader) close() { _ = x.closer.Close() } // it was only read

// next is the next token; io.EOF ends the part.
func (x *xmlReader) next() (xml.Token, error) {
	t, err := x.Token()
	if err == io.EOF {
		return nil, err
	}
	if err != nil {
		if _, ours := errors.AsType[*Error](err); ours {
			return nil, err
		}
		return nil, fail(ErrDamaged, "is damaged: %s: %s", label(x.name), line(err.Error()))
	}
	switch t.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > maxDepth {
			return nil, fail(ErrDamaged, "is damaged: %s is nested deeper than %d elements", label(x.name), maxDepth)
		}
	case xml.EndElement:
		x.depth--
	case xml.Directive:
		return nil, fail(ErrDamaged, "has a DOCTYPE in %s, which no Office file has", label(x.name))
	}
	return t, nil
}

// each calls do for every element of the part, in its order. do may read on,
// up to the end of its element.
func (x *xmlReader) each(do func(xml.StartElement) error) error {
	for {
		t, err := x.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e, ok := t.(xml.StartElement); ok {
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

// within calls do for every token inside of the element that was just begun.
// do may read on, up to the end of an element.
func (x *xmlReader) within(do func(xml.Token) error) error {
	for outside := x.depth - 1; ; {
		t, err := x.next()
		if err == io.EOF {
			err = fail(ErrDamaged, "is damaged: %s ends too early", label(x.name))
		}
		if err != nil {
			return err
		}
		if x.depth == outside {
			return nil
		}
		if err := do(t); err != nil {
			return err
		}
	}
}

// skip reads up to the end of the element that was just begun.
func (x *xmlReader) skip() error { return x.within(func(xml.Token) error { return nil }) }

// chars is the text inside of the element that was just begun.
func (x *xmlReader) chars() (string, error) {
	var b strings.Builder
	err := x.within(func(t xml.Token) error {
		if c, ok := t.(xml.CharData); ok {
			b.Write(c)
		}
		return nil
	})
	return b.String(), err
}

// attr is an attribute by its name, whatever its namespace; empty where there
// is none.
func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// relation is an attribute of the namespace of relationships, such as r:id.
func relation(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && strings.HasSuffix(a.Name.Space, "/relationships") {
			return a.Value
		}
	}
	return ""
}

// A target is what a relationship leads to.
type target struct {
	kind     string // the last word of its type: "slide", "hyperlink"
	path     string // of the part, or the address outside
	external bool
}

// relations reads the relationships of a part, by their ids.
func (a *archive) relations(part string) (map[string]target, error) {
	dir, base := path.Split(part)
	x, err := a.member(dir + "_rels/" + base + ".rels")
	if x == nil || err != nil {
		return nil, err
	}
	defer x.close()
	list := map[string]target{}
	err = x.each(func(e xml.StartElement) error {
		if e.Name.Local != "Relationship" {
			return nil
		}
		t := target{kind: path.Base(attr(e, "Type")), path: attr(e, "Target"), external: attr(e, "TargetMode") == "External"}
		if !t.external {
			if !strings.HasPrefix(t.path, "/") {
				t.path = path.Join("/", dir, t.path)
			}
			t.path = strings.TrimPrefix(path.Clean(t.path), "/")
		}
		list[attr(e, "Id")] = t
		return nil
	})
	return list, err
}

// coreTitle is the title in the properties of an Office file.
func (a *archive) coreTitle() string {
	x, err := a.member("docProps/core.xml")
	if x == nil || err != nil {
		return ""
	}
	defer x.close()
	title := ""
	_ = x.each(func(e xml.StartElement) (err error) { // a broken title is none
		if e.Name.Local == "title" && title == "" {
			title, err = x.chars()
		}
		return err
	})
	return title
}
