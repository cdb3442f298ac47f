package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxTextBytes bounds a text file, which is one document. JSONL files are read
// line by line and may have any size.
const maxTextBytes = 10 << 20

// maxParsedBytes bounds a file that the caller's parser reads.
const maxParsedBytes = 100 << 20

// Why a file or a folder is not in the index.
const (
	skipHidden = "hidden"
	skipLink   = "symbolic link"
	skipOdd    = "no regular file"
	skipName   = "unusable name"
	skipIndex  = "the index"
)

// A source is the documents' folder. All reading of the user's goes through an
// os.Root, so that no link leads out of it, not even one made meanwhile.
type source struct {
	fsys fs.FS
	root *os.Root // of fsys, if it is the user's folder
	name string   // the absolute path of the corpus
	only string   // the one file of the corpus, if it is a file
	// parse reads files of the types, if it is set.
	parse func(ctx context.Context, name string, data []byte) (Document, error)
	types []string
	batch int64 // bytes between two commits
	// index is the file of the index, which may lie in the folder. It is not
	// even opened: closing it would take the locks off it that SQLite holds.
	index fs.FileInfo
}

// A found is a file of the corpus that has documents, as far as its name tells.
type found struct {
	path  string // relative, with slashes
	size  int64
	mtime int64 // nanoseconds
}

func openSource(cfg Config) (*source, error) {
	path := cfg.Path
	resolved, err := resolve(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return nil, &ReadError{Path: path, Err: bare(err)}
	}
	s := &source{name: resolved, parse: cfg.Parse, types: cfg.Types, batch: cmp.Or(cfg.batch, batchBytes)}
	folder := resolved
	if !info.IsDir() {
		folder, s.only = filepath.Dir(resolved), filepath.Base(resolved)
	}
	if s.root, err = os.OpenRoot(folder); err != nil {
		return nil, &ReadError{Path: path, Err: bare(err)}
	}
	s.fsys = s.root.FS()
	return s, nil
}

func (s *source) close() { _ = s.root.Close() } // it was only read

// scan lists the files, in the order of their paths.
func (s *source) scan(ctx context.Context) ([]found, Skips, error) {
	var list []found
	var skips Skips
	start := "."
	if s.only != "" {
		start = s.only
	}
	err := fs.WalkDir(s.fsys, start, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && (name == "." || d == nil) {
			return &ReadError{Path: s.name, Err: bare(err)}
		}
		if name == "." {
			return nil
		}
		reason := ""
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case err != nil:
			reason = unreadable(err)
		case os.SameFile(info, s.index):
			reason = skipIndex
		default:
			reason = s.refusal(name, info)
		}
		switch {
		case reason != "":
			skips.add(maxSkips, Skip{Path: strings.ToValidUTF8(squeeze(name), "\uFFFD"), Reason: reason})
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir():
			list = append(list, found{path: name, size: info.Size(), mtime: info.ModTime().UnixNano()})
		}
		return nil
	})
	return list, skips, err
}

// refusal says why a file or folder is not looked into; empty if it is. A file
// that the user named is taken although it is hidden.
func (s *source) refusal(name string, info fs.FileInfo) string {
	switch {
	case strings.HasPrefix(path.Base(name), ".") && name != s.only:
		return skipHidden
	case !validID(name):
		return skipName
	case info.IsDir():
		return ""
	case info.Mode()&fs.ModeSymlink != 0:
		return skipLink
	case !info.Mode().IsRegular():
		return skipOdd
	case isLines(name):
		return ""
	case s.parsed(name):
		if info.Size() > maxParsedBytes {
			return fmt.Sprintf("larger than %d MiB", maxParsedBytes>>20)
		}
		return ""
	case !isText(name):
		if ext := strings.ToLower(path.Ext(name)); ext != "" {
			return "not read (" + ext + ")"
		}
		return "not read (no extension)"
	case info.Size() > maxTextBytes:
		return fmt.Sprintf("larger than %d MiB", maxTextBytes>>20)
	}
	return ""
}

// parsed reports whether a file is one that the caller's parser reads.
func (s *source) parsed(name string) bool {
	return s.parse != nil && !isText(name) && !isLines(name) &&
		slices.Contains(s.types, strings.ToLower(path.Ext(name)))
}

func isText(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".txt", ".rst", ".org":
		return true
	}
	return false
}

func isLines(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".jsonl" || ext == ".ndjson"
}

func unreadable(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "permission denied"
	}
	return "cannot be read: " + bare(err).Error()
}
