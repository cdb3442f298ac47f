// Package project shows a model what a folder looks like: its files and folders
// as a tree, without their contents. It never leaves the folder it was given.
package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgap/tools"
)

// The bounds of a tree.
const (
	children = 10   // shown of a folder
	depth    = 12   // folders inside of folders
	lines    = 500  // of a tree
	scanned  = 5000 // names that are read of a folder
)

// excluded are folders that say nothing about a project.
var excluded = []string{
	".git", ".hg", ".svn", ".idea", ".vscode", ".cache", "node_modules", "bower_components", "__pycache__", ".venv", "venv",
	".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", "target", "build", "dist", ".next", ".nuxt", ".terraform",
}

const parameters = `{"type":"object","properties":{` +
	`"root_dir":{"type":"string","description":"The folder to show: a path below the working folder, or . for that itself."},` +
	`"exclude_dirs":{"type":"array","items":{"type":"string"},"maxItems":50,"description":"Names of folders to leave out, besides the usual ones such as .git and node_modules."}` +
	`},"required":["root_dir"]}`

// Structure is the tool project_structure.
type Structure struct{ folder string }

// New gives the tool for a folder, which need not exist before the first call.
func New(folder string) *Structure { return &Structure{folder} }

// Spec implements tools.Tool.
func (*Structure) Spec() tools.Spec {
	return tools.Spec{
		Name:         "project_structure",
		Description:  "Show the files and folders of a project as a tree, with sizes and without contents. It says what it leaves out.",
		Parameters:   json.RawMessage(parameters),
		Capabilities: []tools.Capability{tools.Files},
	}
}

// Run implements tools.Tool.
func (s *Structure) Run(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Root    string   `json:"root_dir"`
		Exclude []string `json:"exclude_dirs"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(s.folder)
	if err != nil {
		return "", fmt.Errorf("the working folder cannot be opened: %w", cause(err))
	}
	defer root.Close()
	name, err := below(s.folder, in.Root)
	if err != nil {
		return "", err
	}
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q cannot be shown: %w", in.Root, cause(err))
	case !info.IsDir():
		return "", fmt.Errorf("%q is a file, not a folder", in.Root)
	}
	t := &tree{ctx: ctx, root: root, exclude: append(slices.Clone(excluded), in.Exclude...)}
	title := filepath.ToSlash(name)
	if title == "." {
		title = filepath.Base(absolute(s.folder))
	}
	t.line(title + "/")
	if err := t.folder(name, "", depth); err != nil {
		return "", err
	}
	return t.text(), nil
}

// below gives a path as one inside of the working folder. A path that names the
// folder in full is taken as well, with its links or without: models write all.
func below(folder, path string) (string, error) {
	full := absolute(folder)
	bases := []string{full}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		bases = append(bases, real)
	}
	for _, base := range bases {
		local := path
		if filepath.IsAbs(path) {
			rel, err := filepath.Rel(base, path)
			if err != nil {
				continue
			}
			local = rel
		}
		if local = filepath.Clean(local); filepath.IsLocal(local) {
			return local, nil
		}
	}
	return "", fmt.Errorf("%q is outside of the working folder; use a path below it, or . for the folder itself", path)
}

func absolute(folder string) string {
	if abs, err := filepath.Abs(folder); err == nil {
		return abs
	}
	return folder
}

// cause is an error without the paths of this machine that it tells.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// A tree is written from its root on.
type tree struct {
	ctx     context.Context
	root    *os.Root
	exclude []string
	b       strings.Builder
	written int
	full    bool
	left    []string // folders that were left out by their names
}

// line writes one line. It gives false where there is room for no more.
func (t *tree) line(text string) bool {
	if t.written == lines {
		t.full = true
		return false
	}
	t.written++
	t.b.WriteString(strings.Map(visible, text) + "\n")
	return true
}

// visible makes a name that holds line breaks or other control characters one
// line of a tree.
func visible(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '?'
	}
	return r
}

// folder writes what is in a folder, folders first.
func (t *tree) folder(path, indent string, deeper int) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	list, more, err := t.read(path)
	if err != nil {
		t.line(indent + "└── (cannot be read: " + cause(err).Error() + ")")
		return nil
	}
	for i, e := range list {
		if i == children {
			t.line(fmt.Sprintf("%s└── … %s", indent, left(list[i:], more)))
			return nil
		}
		branch, below := "├── ", "│   "
		if i == len(list)-1 {
			branch, below = "└── ", "    "
		}
		if !t.line(indent + branch + words(e)) {
			return nil
		}
		if e.IsDir() && deeper > 0 {
			if err := t.folder(filepath.Join(path, e.Name()), indent+below, deeper-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// read gives the entries of a folder in order, without those that are left out.
func (t *tree) read(path string) (list []fs.DirEntry, more bool, err error) {
	f, err := t.root.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	list, err = f.ReadDir(scanned)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	more = len(list) == scanned
	list = slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		out := e.IsDir() && slices.Contains(t.exclude, e.Name())
		if out && !slices.Contains(t.left, e.Name()) {
			t.left = append(t.left, e.Name())
		}
		return out
	})
	slices.SortStableFunc(list, func(a, b fs.DirEntry) int {
		switch {
		case a.IsDir() && !b.IsDir():
			return -1
		case b.IsDir() && !a.IsDir():
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return list, more, nil
}

// words are one entry: its name, and its type and size.
func words(e fs.DirEntry) string {
	switch mode := e.Type(); {
	case mode.IsDir():
		return e.Name() + "/"
	case mode&fs.ModeSymlink != 0:
		return e.Name() + " (link)"
	case !mode.IsRegular():
		return e.Name() + " (no regular file)"
	}
	info, err := e.Info()
	if err != nil {
		return e.Name()
	}
	return fmt.Sprintf("%s (%s)", e.Name(), size(info.Size()))
}

func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// left says how many entries a folder has beyond those that are shown.
func left(rest []fs.DirEntry, more bool) string {
	folders := 0
	for _, e := range rest {
		if e.IsDir() {
			folders++
		}
	}
	least := ""
	if more {
		least = "at least "
	}
	return fmt.Sprintf("%s%d more: folders: %d, files: %d", least, len(rest), folders, len(rest)-folders)
}

// text is the tree with what was left out of it.
func (t *tree) text() string {
	if t.full {
		t.b.WriteString(fmt.Sprintf("… The tree is cut after %d lines; ask for a folder inside of it.\n", lines))
	}
	if len(t.left) > 0 {
		slices.Sort(t.left)
		t.b.WriteString("Left out: " + strings.Map(visible, strings.Join(t.left, ", ")) + ".\n")
	}
	return t.b.String()
}
