// Package config settles where each setting of the command line comes from: a
// flag, the environment, the configuration file, or the default.
//
// A setting has one name everywhere: the flag --max-turns is max-turns in the
// file and STOPGAP_MAX_TURNS in the environment. The package never prints and
// never reads the environment itself.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A File is a configuration file as it was read, or one item of a file that is
// a list. The zero value is an empty one.
type File struct {
	Path    string
	Line    int // where the item begins, from 1; 0 for a whole file
	entries map[string]entry
}

// An entry is one setting of a file: a scalar is one value, a list several, a
// mapping several of the form key=value.
type entry struct {
	values []string
	line   int
}

// An Error says what is wrong with a configuration file.
type Error struct {
	Path   string
	Line   int // from 1; 0 where it is the file as a whole
	Reason string
	// Near is the known setting that an unknown one may stand for, or empty.
	Near string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Reason)
}

// fileLimit is the size of the largest file that is read, in bytes.
const fileLimit = 1 << 20

// Read reads a YAML file that has nothing but the known settings. A file that
// does not exist gives an error that is fs.ErrNotExist; every other fault is
// an *Error.
func Read(path string, known []string) (*File, error) {
	docs, err := parse(path)
	if err != nil {
		return nil, err
	}
	out := &File{Path: path, entries: map[string]entry{}}
	for _, d := range docs {
		if err := out.read(d.Body, known); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReadList reads a YAML file that is a list of mappings, each with nothing but
// the known settings, and gives one File an item. Errors are those of Read.
func ReadList(path string, known []string) ([]*File, error) {
	docs, err := parse(path)
	if err != nil {
		return nil, err
	}
	var out []*File
	for _, d := range docs {
		var items []ast.Node
		switch n := d.Body.(type) {
		case nil, *ast.NullNode, *ast.CommentGroupNode:
		case *ast.SequenceNode:
			items = n.Values
		default:
			return nil, (&File{Path: path}).fault(n, "not a list: each item begins with \"- \"")
		}
		for _, item := range items {
			f := &File{Path: path, entries: map[string]entry{}}
			if err := f.read(item, known); err != nil {
				return nil, err
			}
			f.Line = line(item)
			out = append(out, f)
		}
	}
	return out, nil
}

// parse reads the documents of a YAML file.
func parse(path string) (docs []*ast.DocumentNode, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	var failed *fs.PathError // names the path again
	switch {
	case errors.As(err, &failed):
		return nil, &Error{Path: path, Reason: failed.Err.Error()}
	case err != nil:
		return nil, &Error{Path: path, Reason: err.Error()}
	}
	if len(b) > fileLimit {
		return nil, &Error{Path: path, Reason: "larger than 1 MiB"}
	}
	if at := tooDeep(b); at > 0 {
		return nil, &Error{Path: path, Line: at, Reason: "nested too deeply"}
	}
	defer func() {
		if r := recover(); r != nil { // the file may hold anything; the library's parser is large
			docs, err = nil, &Error{Path: path, Reason: fmt.Sprintf("not YAML: %v", r)}
		}
	}()
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, syntaxError(path, err)
	}
	return file.Docs, nil
}

// deepest is how deeply a file may be nested. The parser's memory grows with
// the square of the depth.
const deepest = 100

// tooDeep gives the line, from 1, where nesting goes too deep, or 0. A bracket
// nests where a value may begin; in the middle of a word it is a character.
func tooDeep(b []byte) int {
	lineNumber, depth, dashes := 1, 0, 0
	begins, leading := true, true // a value may begin; only dashes so far in the line
	for _, c := range b {
		switch c {
		case '\n':
			lineNumber++
			dashes, begins, leading = 0, true, true
			continue
		case ' ', '\t', '\r':
			continue
		case '-', '?':
			if leading {
				dashes++
			}
			begins = leading
		case '[', '{':
			if begins {
				depth++
			}
			leading = false
		default:
			if c == ']' || c == '}' {
				depth = max(depth-1, 0)
			}
			begins, leading = c == ',' || c == ':', false
		}
		if depth > deepest || dashes > deepest {
			return lineNumber
		}
	}
	return 0
}

// syntaxError keeps the line and the sentence of a YAML error and leaves the
// excerpt of the file out, which may hold a secret.
func syntaxError(path string, err error) error {
	var ye yaml.Error
	if errors.As(err, &ye) {
		line := 0
		if t := ye.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return &Error{Path: path, Line: line, Reason: ye.GetMessage()}
	}
	return &Error{Path: path, Reason: err.Error()}
}

func (f *File) read(body ast.Node, known []string) error {
	pairs, ok := mapping(body)
	if !ok {
		return f.fault(body, "not a mapping of settings to values")
	}
	for _, kv := range pairs {
		key, ok := scalar(kv.Key)
		if !ok {
			return f.fault(kv.Key, "the name of a setting must be a word")
		}
		if !slices.Contains(known, key) {
			err := f.fault(kv.Key, fmt.Sprintf("unknown setting %q", key))
			err.Near = Nearest(key, known)
			return err
		}
		values, err := f.values(kv.Value)
		if err != nil {
			return err
		}
		if values != nil { // "model:" with nothing behind it sets nothing
			f.entries[key] = entry{values, line(kv.Key)}
		}
	}
	return nil
}

// values flattens a value as pflag takes it.
func (f *File) values(n ast.Node) ([]string, error) {
	if _, ok := n.(*ast.NullNode); ok {
		return nil, nil
	}
	if v, ok := scalar(n); ok {
		return []string{v}, nil
	}
	out := []string{}
	if seq, ok := n.(*ast.SequenceNode); ok {
		for _, item := range seq.Values {
			v, ok := scalar(item)
			if !ok {
				return nil, f.fault(item, "an item of a list must be a plain value")
			}
			out = append(out, v)
		}
		return out, nil
	}
	pairs, ok := mapping(n)
	if !ok {
		return nil, f.fault(n, "must be a value, a list or a mapping")
	}
	for _, kv := range pairs {
		k, okKey := scalar(kv.Key)
		v, okValue := scalar(kv.Value)
		if !okKey || !okValue {
			return nil, f.fault(kv.Key, "a mapping must have plain keys and values")
		}
		out = append(out, k+"="+v)
	}
	return out, nil
}

func (f *File) fault(n ast.Node, reason string) *Error {
	return &Error{Path: f.Path, Line: line(n), Reason: reason}
}

// line is where a node begins, or 0 where that is not known.
func line(n ast.Node) int {
	if pairs, ok := n.(*ast.MappingNode); ok && len(pairs.Values) > 0 {
		n = pairs.Values[0]
	}
	if pair, ok := n.(*ast.MappingValueNode); ok { // its own token is the colon
		n = pair.Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// mapping gives the pairs of a mapping; an empty document is an empty mapping.
func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil, true
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// scalar gives a plain value as it is written in the file, so that a number is
// read by the flag that it is for.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	case *ast.MappingKeyNode:
		return scalar(n.Value)
	}
	return "", false
}

// Nearest returns the word that is written most like word, or "" where none is
// close.
func Nearest(word string, among []string) string {
	best, near := 3, ""
	for _, w := range among {
		d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(w))
		if strings.HasPrefix(w, word) && len(word) > 1 {
			d = min(d, 1)
		}
		if d < best && d < len(w) {
			best, near = d, w
		}
	}
	return near
}
