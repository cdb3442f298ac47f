package template

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

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
	if err := s.split(); err != nil {
		return err
	}
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
	return f.add(source{name: base, text: string(src)}, depth)
}

// decode reads the head into h, over what h has.
func (s source) decode(h *Head) (err error) {
	defer func() {
		if r := recover(); r != nil { // the head is any file; the library's parser is large
			err = &FormatError{Name: s.name, Msg: fmt.Sprintf("the head is not YAML: %v", r)}
		}
	}()
	err = yaml.UnmarshalWithOptions([]byte(s.head), h, yaml.Strict())
	if err == nil {
		return nil
	}
	fe := &FormatError{Name: s.name, Msg: err.Error(), Err: err}
	var ye yaml.Error
	if errors.As(err, &ye) {
		fe.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			fe.Line = t.Position.Line
		}
	}
	var te *yaml.TypeError
	var ne *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &te):
		fe.Msg = fmt.Sprintf("%s expected, found %s", kindWord(te.DstType), kindWord(te.SrcType))
	case errors.As(err, &ne):
		fe.Msg = fmt.Sprintf("a %s where a %s is expected", ne.Actual.YAMLName(), ne.Expected.YAMLName())
	}
	return fe
}

// kindWord names a Go type in the words of someone who writes YAML.
func kindWord(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	}
	return t.String()
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

// check refuses a head that contradicts itself.
func (s source) check(h *Head) error {
	fail := func(field, msg string) error {
		return &FormatError{Name: s.name, Line: s.line(field), Field: field, Msg: msg}
	}
	if field, msg := h.checkCalls(); msg != "" {
		return fail(field, msg)
	}
	seen := map[string]bool{}
	for i, stop := range h.Stops {
		field := fmt.Sprintf("stops[%d]", i)
		if key, msg := stop.check(h); msg != "" {
			return fail(strings.TrimSuffix(field+"."+key, "."), msg)
		}
		if seen[stop.Name] {
			return fail(field+".name", fmt.Sprintf("two stops are called %q", stop.Name))
		}
		seen[stop.Name] = true
	}
	for i, r := range h.Reserved.Strings {
		if !escapable(r) {
			return fail(fmt.Sprintf("reserved.strings[%d]", i), "a reserved string needs two characters or more, none of them "+string(Mark))
		}
	}
	for i, r := range h.Reserved.Lines {
		if !escapable(r) || strings.Contains(r, "\n") {
			return fail(fmt.Sprintf("reserved.lines[%d]", i), "a line marker needs two characters or more, none of them a line end or "+string(Mark))
		}
	}
	return nil
}

// checkCalls checks the spelling keys against each other.
func (h *Head) checkCalls() (field, msg string) {
	c := h.Call
	switch c.Kind {
	case JSONCalls:
		if c.Open == "" || c.Close == "" {
			return "call", "JSON calls need the tags open and close"
		}
		if len(c.Name) == 0 || len(c.Arguments) == 0 {
			return "call", "JSON calls need the keys name and arguments"
		}
		if (h.Think.Open == "") != (h.Think.Close == "") {
			return "think", "the thinking part needs both tags, open and close"
		}
	case LineCalls:
		if len(c.Name) != 1 || len(c.Arguments) != 1 {
			return "call", "calls in lines need one label each, name and arguments"
		}
		if c.Open != "" || c.Close != "" || h.Think.Close != "" || h.Response.Close != "" {
			return "call", "a format with calls in lines has labels and no closing tags"
		}
		if h.Answer.After == "" {
			return "answer", "a format with calls in lines needs the marker answer.after"
		}
	case "":
		return "call.kind", "the kind of call is missing: json or lines"
	default:
		return "call.kind", "the kind of call is json or lines"
	}
	if h.Think.Open == "" && (h.Think.Opened || h.Think.Calls || h.Think.Continues) {
		return "think.open", "the format has no tag that opens the thinking part"
	}
	if h.MaxTokens < 0 {
		return "max_tokens", "a negative number"
	}
	if h.MaxCalls < 0 {
		return "max_calls", "a negative number"
	}
	for _, tag := range []struct{ field, text string }{
		{"think.open", h.Think.Open}, {"think.close", h.Think.Close}, {"call.open", c.Open}, {"call.close", c.Close},
		{"response.open", h.Response.Open}, {"response.close", h.Response.Close}, {"answer.after", h.Answer.After},
	} {
		if tag.text != "" && !escapable(tag.text) {
			return tag.field, "a tag needs two characters or more, none of them " + string(Mark)
		}
	}
	return "", ""
}

// filePrefix keeps the names that errors give to files apart from those of blocks.
const filePrefix = "file "

// addBlocks parses the blocks over those that f has.
func (f *Format) addBlocks(s source) error {
	t, err := f.blocks.New(filePrefix + s.name).Parse(s.body)
	if err != nil {
		return blockError(s.name, err)
	}
	if t.Tree != nil && !parse.IsEmptyTree(t.Root) {
		at := strings.Index(s.body, strings.TrimSpace(t.Root.String()))
		return &FormatError{Name: s.name, Line: 1 + strings.Count(s.body[:max(0, at)], "\n"), Msg: "text outside of a block"}
	}
	return nil
}

// blockErrors finds the place in an error of text/template, which has no field
// for it: "template: NAME:LINE:COLUMN: executing "BLOCK" at <…>: message".
var blockErrors = regexp.MustCompile(`^:(\d+):(?:\d+:)? ((?:executing "([^"]*)" )?(?s:.*))$`)

// blockError turns an error of text/template into a FormatError. The file that
// the error names is one of names, or the format itself.
func blockError(name string, err error) error {
	fe := &FormatError{Name: name, Msg: strings.TrimPrefix(err.Error(), "template: "), Err: err}
	for _, n := range append(Names(), name) {
		rest, ok := strings.CutPrefix(fe.Msg, filePrefix+n)
		if !ok {
			continue
		}
		if m := blockErrors.FindStringSubmatch(rest); m != nil {
			fe.Name, fe.Field, fe.Msg = n, m[3], m[2]
			fe.Line, _ = strconv.Atoi(m[1])
			return fe
		}
	}
	return fe
}

var required = []string{"prompt", "continue", "force", "nudge", "problem"}

// checkBlocks looks for missing and unused blocks, and runs each once so that
// a misspelled field is found here and not in the middle of a run.
func (f *Format) checkBlocks() error {
	for _, name := range required {
		if t := f.blocks.Lookup(name); t == nil || t.Tree == nil {
			return &FormatError{Name: f.Name, Field: name, Msg: fmt.Sprintf("the block {{define %q}} is missing", name)}
		}
	}
	for _, t := range f.blocks.Templates() {
		if err := f.checkUse(t); err != nil {
			return err
		}
	}
	return f.tryBlocks()
}

// checkUse refuses a block that nothing renders: most likely a misspelled name.
func (f *Format) checkUse(t *template.Template) error {
	if parse.IsEmptyTree(t.Root) || slices.Contains(required, t.Name()) {
		return nil
	}
	use := fmt.Sprintf("{{template %q", t.Name())
	for _, other := range f.blocks.Templates() {
		if other.Tree != nil && strings.Contains(other.Root.String(), use) {
			return nil
		}
	}
	return &FormatError{Name: f.Name, Field: t.Name(), Msg: "no such block, and no block uses it; the blocks are " + strings.Join(required, ", ")}
}
