// Package bfcl reads the files of the Berkeley Function-Calling Leaderboard v4
// as they are, and judges calls as its AST checker does.
//
// It covers the categories of one turn whose functions are Python's: simple,
// multiple, parallel, parallel_multiple, irrelevance and relevance, those with
// live_ before them included. It never asks a model.
package bfcl

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An Item is one row of a file with its right answers.
type Item struct {
	ID       string
	Category string // for example "parallel_multiple"
	System   string // a system message, mostly none
	Question string
	// Conversation says that the row is a conversation in which an assistant has
	// spoken, as a few of the live categories are. Question has only the user's
	// part, so that it cannot be asked by it.
	Conversation bool
	// functions are described as the file has them; where none fits there may be none.
	functions []function
	truth     []right
}

// A function is a function's description. It has all that Python's json.loads
// has of it.
type function struct {
	name        string
	description string
	parameters  *dict
	properties  *dict
	required    []string
}

// A right answer is the name of a function and lists of right values of its
// parameters; "" among them says that one may be left out.
type right struct {
	name       string
	parameters *dict
}

// A FileError says that a file is none that can be read here.
type FileError struct {
	Path string
	Line int // 0 for the file itself
	Err  error
}

func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Path, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

var (
	fileName = regexp.MustCompile(`^BFCL_v4_(\w+)\.json$`)
	// known are the categories of one turn; the others run functions, or are
	// written in other languages.
	known = regexp.MustCompile(`^(live_)?(simple|multiple|parallel|parallel_multiple|irrelevance|relevance)(_python)?$`)
)

// ErrCategory says that a category is not judged here.
var ErrCategory = errors.New("not a category of one turn in Python: simple, multiple, parallel, parallel_multiple, irrelevance or relevance")

const maxRow = 8 << 20 // bytes

// Recognised reports whether a file is one of BFCL v4's, by its name.
func Recognised(path string) bool { return fileName.MatchString(filepath.Base(path)) }

// ReadFolder reads all files of a folder that can be judged here, in the order
// of their names, and names the categories that cannot.
func ReadFolder(folder string) (items []*Item, left []string, err error) {
	files, err := fs.Glob(os.DirFS(folder), "BFCL_v4_*.json") // the folder's own name is no pattern
	if err == nil && len(files) == 0 {
		err = errors.New("no file of the folder is called BFCL_v4_….json")
	}
	if err != nil {
		return nil, nil, &FileError{Path: folder, Err: err}
	}
	for _, name := range files {
		some, err := Read(filepath.Join(folder, name))
		switch {
		case errors.Is(err, ErrCategory):
			left = append(left, category(name))
		case err != nil:
			return nil, nil, err
		}
		items = append(items, some...)
	}
	return items, left, nil
}

// Read reads a file, for example BFCL_v4_simple_python.json, and the file of the
// same name in the folder possible_answer beside it, where there must be one but
// for irrelevance and relevance. The error is a *FileError.
func Read(path string) ([]*Item, error) {
	name := category(path)
	if !known.MatchString(name) {
		return nil, &FileError{Path: path, Err: ErrCategory}
	}
	var items []*Item
	err := lines(path, func(row *dict) error {
		it, err := newItem(row)
		if err == nil {
			it.Category = strings.TrimSuffix(name, "_python")
			items = append(items, it)
		}
		return err
	})
	if err != nil || strings.HasSuffix(name, "relevance") {
		return items, err
	}
	answers := filepath.Join(filepath.Dir(path), "possible_answer", filepath.Base(path))
	truths := map[string][]right{}
	err = lines(answers, func(row *dict) error {
		id, truth, err := newTruth(row)
		truths[id] = truth
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if it.truth = truths[it.ID]; len(it.truth) == 0 {
			return nil, &FileError{Path: answers, Err: fmt.Errorf("there is no answer for %s", it.ID)}
		}
	}
	return items, nil
}

func category(path string) string {
	if m := fileName.FindStringSubmatch(filepath.Base(path)); m != nil {
		return m[1]
	}
	return ""
}

// lines reads a JSON object from each line of a file.
func lines(path string, use func(*dict) error) error {
	f, err := os.Open(path)
	if err != nil {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return &FileError{Path: path, Err: err}
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, maxRow)
	n := 0
	for sc.Scan() {
		n++
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		v, err := read(sc.Bytes())
		row, ok := v.(*dict)
		if err == nil && !ok {
			err = errors.New("the line is not a JSON object")
		}
		if err == nil {
			err = use(row)
		}
		if err != nil {
			return &FileError{path, n, err}
		}
	}
	if err := sc.Err(); err != nil {
		return &FileError{path, n + 1, err}
	}
	return nil
}

// newItem reads a row without its answers.
func newItem(row *dict) (*Item, error) {
	it := &Item{}
	it.ID = row.text("id")
	question, _ := row.get("question")
	turns, _ := question.(list)
	if it.ID == "" || len(turns) != 1 {
		return nil, errors.New(`it has no "id", or not one turn in "question"`)
	}
	messages, _ := turns[0].(list)
	for _, m := range messages {
		d, _ := m.(*dict)
		switch content := d.text("content"); d.text("role") {
		case "system":
			it.System = strings.TrimPrefix(it.System+"\n"+content, "\n")
		case "user":
			it.Question = strings.TrimPrefix(it.Question+"\n"+content, "\n")
		default:
			it.Conversation = true
		}
	}
	functions, _ := row.get("function")
	described, _ := functions.(list)
	for _, v := range described {
		f, err := newFunction(v)
		if err != nil {
			return nil, err
		}
		it.functions = append(it.functions, f)
	}
	if it.Question == "" {
		return nil, errors.New("it asks nothing")
	}
	return it, nil
}

// text gives a key's value where that is a text.
func (d *dict) text(key string) string {
	if d == nil {
		return ""
	}
	s, _ := d.values[key].(string)
	return s
}

func newFunction(v value) (function, error) {
	d, _ := v.(*dict)
	f := function{name: d.text("name"), description: d.text("description")}
	if f.name == "" {
		return f, errors.New("a function has no name")
	}
	parameters, _ := d.get("parameters")
	f.parameters, _ = parameters.(*dict)
	if f.parameters == nil {
		return f, fmt.Errorf("the function %s has no parameters", f.name)
	}
	properties, _ := f.parameters.get("properties")
	if f.properties, _ = properties.(*dict); f.properties == nil {
		f.properties = &dict{values: map[string]value{}}
	}
	required, _ := f.parameters.get("required")
	names, _ := required.(list)
	for _, n := range names {
		s, _ := n.(string)
		f.required = append(f.required, s)
	}
	return f, nil
}

func newTruth(row *dict) (id string, truth []right, err error) {
	ground, _ := row.get("ground_truth")
	answers, _ := ground.(list)
	for _, a := range answers {
		d, _ := a.(*dict)
		if d == nil || len(d.keys) == 0 {
			return "", nil, errors.New("a right answer is not a function with its parameters")
		}
		parameters, _ := d.values[d.keys[0]].(*dict)
		if parameters == nil {
			return "", nil, errors.New("a right answer has no parameters")
		}
		truth = append(truth, right{d.keys[0], parameters})
	}
	return row.text("id"), truth, nil
}

// function finds a function by its name.
func (it *Item) function(name string) *function {
	i := slices.IndexFunc(it.functions, func(f function) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &it.functions[i]
}

// A Tool is a function as a model is told of it. Parameters is a JSON schema.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}
