package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// An Item is one question of a dataset.
type Item struct {
	// ID is the dataset's own, or else comes from the question's text: it stays
	// what it is when lines are moved.
	ID       string   `json:"id"`
	Question string   `json:"question"`
	Answers  []string `json:"answers,omitempty"` // gold ones, any of which is right
	// Documents are those that the answer comes from, by title or by id, where the
	// dataset names them.
	Documents []string `json:"documents,omitempty"`
	// Functions and Calls are those of a BFCL row, as they stand there: the
	// functions that are offered, and the calls that are right.
	Functions json.RawMessage `json:"functions,omitempty"`
	System    string          `json:"system,omitempty"` // a message of the system, rarely there
	Calls     json.RawMessage `json:"calls,omitempty"`
	Line      int             `json:"-"` // or the row, from 1
}

// digest is the hash of all that an item asks and wants.
func (it *Item) digest() string {
	b, _ := json.Marshal(it) // strings, and JSON that was read
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// A Dataset is a list of questions, in the order of its file.
type Dataset struct {
	Path   string
	Shape  Shape // of most of its rows
	Items  []Item
	Faults []Fault // rows that are no question
}

// A Fault is a row that is no question.
type Fault struct {
	Line   int    `json:"line"` // or the row, from 1
	Reason string `json:"reason"`
}

func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// A DataError says that a file is no dataset.
type DataError struct {
	Path string
	Err  error
}

func (e *DataError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// ErrEmpty says that a dataset has no question.
var ErrEmpty = errors.New("it has no questions")

// Extensions are the kinds of files that Read takes.
func Extensions() []string { return []string{".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet"} }

// Read reads a dataset: JSON lines, a JSON array, CSV with a header, or Parquet,
// as the file's name says. Rows that are no question are in Faults; the errors
// are those of the file, each a *DataError.
func Read(path string) (*Dataset, error) {
	d, err := read(path)
	switch {
	case err == nil && len(d.Items) == 0 && len(d.Faults) == 0:
		err = ErrEmpty
	case errors.As(err, new(*os.PathError)):
		err = errors.Unwrap(err) // the path stands in the DataError
	}
	if err != nil {
		return nil, &DataError{path, err}
	}
	return d, nil
}

func read(path string) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder")
	}
	b := &builder{Dataset: Dataset{Path: path}, lines: map[string]int{}, shapes: map[Shape]int{}}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".jsonl", ".ndjson", ".json":
		err = readJSON(f, b.add)
	case ".csv":
		err = readCSV(f, ',', b.add)
	case ".tsv":
		err = readCSV(f, '\t', b.add)
	case ".parquet":
		err = readParquet(f, info.Size(), unpackLimit, b.add)
	default:
		return nil, fmt.Errorf("%q is no kind of dataset that is read here (%s)", ext, strings.Join(Extensions(), ", "))
	}
	if err != nil {
		return nil, err
	}
	for shape, n := range b.shapes {
		if most := b.shapes[b.Shape]; n > most || n == most && shape < b.Shape {
			b.Shape = shape
		}
	}
	if b.Shape == BFCL {
		err = b.possibleAnswers(filepath.Join(filepath.Dir(path), "possible_answer", filepath.Base(path)))
	}
	return &b.Dataset, err
}

// A builder makes a dataset of rows.
type builder struct {
	Dataset
	lines  map[string]int // of ids
	shapes map[Shape]int
}

// add takes a row, or what is wrong with it.
func (b *builder) add(line int, r row, err error) {
	if err == nil {
		err = b.take(line, r)
	}
	if err != nil {
		b.Faults = append(b.Faults, Fault{line, err.Error()})
	}
}

func (b *builder) take(line int, r row) error {
	it, shape, err := r.item()
	if err != nil {
		return err
	}
	it.Line = line
	own := it.ID != ""
	if !own {
		sum := sha256.Sum256([]byte(it.Question))
		it.ID = hex.EncodeToString(sum[:6])
	}
	base := it.ID
	for n := 2; b.lines[it.ID] > 0; n++ {
		if own {
			return fmt.Errorf("its id %q is that of line %d", it.ID, b.lines[it.ID])
		}
		it.ID = fmt.Sprintf("%s-%d", base, n) // the same question again
	}
	b.lines[it.ID] = line
	b.shapes[shape]++
	b.Items = append(b.Items, it)
	return nil
}

// possibleAnswers takes the calls that are right from the file that BFCL keeps
// beside the questions. Without that file there are none.
func (b *builder) possibleAnswers(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	calls := map[string]json.RawMessage{}
	err = readJSON(f, func(_ int, r row, err error) {
		if id, ok := r.text("id"); ok && err == nil {
			calls[id] = r["ground_truth"]
		}
	})
	for i := range b.Items {
		b.Items[i].Calls = calls[b.Items[i].ID]
	}
	return err
}

// checkText refuses what cannot be a question.
func checkText(s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return errors.New("its question is empty")
	case strings.ContainsRune(s, 0) || !utf8.ValidString(s):
		return errors.New("its question is not text")
	}
	return nil
}

// skipBOM leaves out the mark that some programs begin a file with.
func skipBOM(r io.Reader) io.Reader {
	var head [3]byte
	n, err := io.ReadFull(r, head[:])
	if err == nil && string(head[:]) == "\ufeff" {
		return r
	}
	return io.MultiReader(strings.NewReader(string(head[:n])), r)
}
