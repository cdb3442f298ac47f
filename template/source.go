package template

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
)

// A source is a format file on its way into a Format.
type source struct {
	name string
	text string
	head string // the YAML, padded so that its lines keep their numbers
	body string // the blocks, padded likewise
}

// newSource divides the text of a format file.
func newSource(name, text string) (source, error) {
	s := source{name: name, text: text}
	return s, s.split()
}

// split divides the file at the first line "---"; one at the very start, as in
// front matter, is skipped.
func (s *source) split() error {
	rest, skipped := s.text, 0
	if strings.HasPrefix(rest, "---\n") {
		rest, skipped = rest[4:], 1
	}
	head, body, found := strings.Cut("\n"+rest, "\n---\n")
	if !found {
		head = strings.TrimSuffix(head, "\n---")
		if i := strings.Index(rest, "\n{{"); i >= 0 {
			line := skipped + 2 + strings.Count(rest[:i], "\n")
			return &FormatError{Name: s.name, Line: line, Msg: `the line "---" between the head and the blocks is missing`}
		}
	}
	if len(head) > maxHead {
		return &FormatError{Name: s.name, Msg: fmt.Sprintf("the head is larger than %d bytes", maxHead)}
	}
	s.head = strings.Repeat("\n", skipped) + strings.TrimPrefix(head, "\n")
	if found {
		s.body = strings.Repeat("\n", skipped+1+strings.Count(head, "\n")) + body
	}
	return nil
}

// add reads a format file over what f has. A format that extends another adds
// that one first; only shipped ones can be extended, so that the depth is
// bounded by their number.
func (f *Format) add(s source, depth int) error {
	var own Head
	if err := s.decode(&own); err != nil {
		return err
	}
	if own.Extends != "" {
		if err := f.addBase(s, own.Extends, depth+1); err != nil {
			return err
		}
	}
	if err := s.decode(&f.Head); err != nil {
		return err
	}
	f.Head.Recognise = own.Recognise // what is like a format is not like all that extend it
	if err := s.check(&f.Head); err != nil {
		return err
	}
	return f.addBlocks(s)
}

func (f *Format) addBase(s source, base string, depth int) error {
	src, err := Shipped(base)
	if err != nil {
		return &FormatError{Name: s.name, Line: s.line("extends"), Field: "extends", Msg: err.(*FormatError).Msg}
	}
	if depth > len(Names()) {
		return &FormatError{Name: s.name, Line: s.line("extends"), Field: "extends", Msg: "the formats extend each other in a circle"}
	}
	over, err := newSource(base, string(src))
	if err != nil {
		return err
	}
	return f.add(over, depth)
}

// blocksLine is where the blocks begin, the line "---", or the last line of a
// file without it.
func (s source) blocksLine() int {
	line := 1 + strings.Count(strings.TrimRight(s.head, "\n"), "\n")
	if s.body != "" {
		line = 2 + strings.Count(s.head, "\n")
	}
	return line
}

// line gives the line of a key of the head such as "stops[1].regex", or that
// of the nearest key above it that is there, or zero.
func (s source) line(field string) int {
	file, err := parser.ParseBytes([]byte(s.head), 0)
	if err != nil {
		return 0
	}
	for field != "" {
		if p, err := yaml.PathString("$." + field); err == nil {
			if node, err := p.FilterFile(file); err == nil && node != nil {
				return node.GetToken().Position.Line
			}
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	return 0
}
