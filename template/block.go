package template

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

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

// required are the blocks of a format.
func (f *Format) required() []string {
	switch f.Opening {
	case OpenServer:
		return nil
	case OpenChat:
		return []string{"force", "nudge", "problem"}
	}
	return []string{"prompt", "continue", "calls", "force", "nudge", "problem"}
}

// checkBlocks looks for missing and unused blocks, and runs each once so that
// a misspelled field is found here and not in the middle of a run.
func (f *Format) checkBlocks(s source) error {
	for _, name := range f.required() {
		if t := f.blocks.Lookup(name); t == nil || t.Tree == nil {
			return &FormatError{Name: f.Name, Line: s.blocksLine(), Field: name, Msg: fmt.Sprintf("the block {{define %q}} is missing", name)}
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
	if parse.IsEmptyTree(t.Root) || slices.Contains(f.required(), t.Name()) {
		return nil
	}
	use := fmt.Sprintf("{{template %q", t.Name())
	for _, other := range f.blocks.Templates() {
		if other.Tree != nil && strings.Contains(other.Root.String(), use) {
			return nil
		}
	}
	return f.inBlock(t.Name(), "no such block, and no block uses it; the blocks are "+strings.Join(f.required(), ", "))
}

// inBlock is an error about a whole block, with the line where it begins.
func (f *Format) inBlock(block, msg string) error {
	fe := &FormatError{Name: f.Name, Field: block, Msg: msg}
	if t := f.blocks.Lookup(block); t != nil && t.Tree != nil {
		place, _ := t.ErrorContext(t.Root) // FILE:LINE:COLUMN
		var at *FormatError
		if errors.As(blockError(f.Name, errors.New("template: "+place+": "+msg)), &at) {
			fe.Name, fe.Line = at.Name, at.Line
		}
	}
	return fe
}
