package research

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A folder is where a research is kept: research.json, the journals of its
// legs, and its bank.
type folder struct {
	path   string
	record record
	fresh  bool // nothing has begun here
}

// A record is what a research began with.
type record struct {
	Version  int               `json:"version"`
	Question string            `json:"question"`
	Date     string            `json:"date,omitempty"`
	Given    int               `json:"given"` // the last number of the bank
	Settings map[string]string `json:"settings,omitempty"`
}

const (
	recordVersion = 1
	recordFile    = "research.json"
	maxRecord     = 8 << 20 // bytes
)

// A FolderError says that a folder cannot be used.
type FolderError struct {
	Folder string
	Err    error
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("cannot use the folder %s: %v", e.Folder, e.Err)
}
func (e *FolderError) Unwrap() error { return e.Err }

// A ChangedError says that a folder has another research.
type ChangedError struct {
	Folder  string
	Changes []string // what is not as it was, a line each
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has a research that began otherwise: %s", e.Folder, strings.Join(e.Changes, "; "))
}

// DateOf gives the date that the research of a folder began with, empty where
// none has begun: one that goes on tomorrow tells the day of today.
func DateOf(path string) string {
	f := &folder{path: path}
	if f.read() != nil {
		return ""
	}
	return f.record.Date
}

// openFolder makes the folder, or finds the research that it has.
func openFolder(r *Research) (*folder, error) {
	f := &folder{path: r.Folder}
	if err := os.MkdirAll(f.file("journals"), 0o700); err != nil {
		return nil, &FolderError{r.Folder, bare(err)}
	}
	want := record{Version: recordVersion, Question: r.Question, Date: r.Date, Settings: r.Settings}
	err := f.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.record, f.fresh = want, true
		return f, nil
	case err != nil:
		return nil, &FolderError{r.Folder, bare(err)}
	}
	if changes := want.changes(f.record); len(changes) > 0 {
		return nil, &ChangedError{r.Folder, changes}
	}
	return f, nil
}

// begin writes down what the research begins with, and reports whether it
// began before.
func (f *folder) begin(last int) (bool, error) {
	if !f.fresh {
		return true, nil
	}
	f.record.Given = last
	b, err := json.MarshalIndent(f.record, "", "  ")
	if err == nil {
		err = WriteFile(f.file(recordFile), append(b, '\n'))
	}
	if err != nil {
		return false, &FolderError{f.path, bare(err)}
	}
	return false, nil
}

func (f *folder) read() error {
	info, err := os.Stat(f.file(recordFile))
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxRecord:
		return fmt.Errorf("%s is no file of a research", recordFile)
	}
	b, err := os.ReadFile(f.file(recordFile))
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f.record); err != nil {
		return fmt.Errorf("%s cannot be read: %w", recordFile, err)
	}
	if f.record.Version != recordVersion {
		return fmt.Errorf("%s is of another version (%d, not %d)", recordFile, f.record.Version, recordVersion)
	}
	return nil
}

// changes tells what is not as it was, a line each.
func (r record) changes(before record) []string {
	var out []string
	add := func(name, was, is string) {
		if was != is {
			out = append(out, fmt.Sprintf("%s was %s and is %s", name, brief(was), brief(is)))
		}
	}
	add("the question", before.Question, r.Question)
	add("the date", before.Date, r.Date)
	names := maps.Clone(before.Settings)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, r.Settings)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(name, before.Settings[name], r.Settings[name])
	}
	return out
}

func brief(text string) string {
	const most = 60 // characters
	if text == "" {
		return "nothing"
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return strconv.Quote(text)
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

// journal is the file of a leg's journal.
func (f *folder) journal(leg int, phase Phase) string {
	return f.file(filepath.Join("journals", fmt.Sprintf("%04d-%s.trace", leg, phase)))
}

// forget puts the journals of a leg and of all after it aside: the research
// goes another way.
func (f *folder) forget(leg int) error {
	entries, err := os.ReadDir(f.file("journals"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "-")
		if n, err := strconv.Atoi(number); err != nil || n < leg || filepath.Ext(e.Name()) != ".trace" {
			continue
		}
		path := f.file(filepath.Join("journals", e.Name()))
		if err := os.Rename(path, path+".aside"); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file whole or not at all.
func WriteFile(path string, content []byte) error {
	tmp, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // the first error is the one to tell
	}
	return err
}

// bare is an error without the path that stands beside it already.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
