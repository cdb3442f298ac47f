package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stopgap/tools"
)

// mostContent is the largest file that is written, in bytes.
const mostContent = 1 << 20

const fileParameters = `{"type":"object","properties":{` +
	`"path":{"type":"string","minLength":1,"description":"The file, as a path below the working folder. Folders that are not there are made."},` +
	`"content":{"type":"string","description":"The whole text of the file. What was there before is replaced."}` +
	`},"required":["path","content"]}`

type writer struct{ options Options }

// Spec implements tools.Tool.
func (writer) Spec() tools.Spec {
	return tools.Spec{
		Name: "write_file", Description: "Write a text file in the working folder, in place of one that may be there.",
		Parameters: json.RawMessage(fileParameters), SideEffects: true, Capabilities: []tools.Capability{tools.Files},
	}
}

// Run implements tools.Tool.
func (w writer) Run(_ context.Context, args json.RawMessage) (string, error) {
	var in struct{ Path, Content string }
	if err := json.Unmarshal(args, &in); err != nil {
		return "", err
	}
	path := filepath.Clean(filepath.FromSlash(in.Path))
	switch {
	case len(in.Content) > mostContent:
		return "", fmt.Errorf("the content is larger than %d KiB", mostContent>>10)
	case !filepath.IsLocal(path) || path == ".":
		return "", fmt.Errorf("%q is not a path below the working folder", in.Path)
	}
	root, err := os.OpenRoot(w.options.Folder)
	if err != nil {
		return "", errors.New("the working folder is not there")
	}
	defer root.Close()
	real, err := w.resolve(root, path)
	if err != nil {
		return "", fmt.Errorf("%q cannot be written: %w", in.Path, err)
	}
	before, err := root.Lstat(real)
	switch {
	case err == nil && !before.Mode().IsRegular():
		return "", fmt.Errorf("%q is no regular file", in.Path)
	case err == nil && links(before) > 1:
		return "", fmt.Errorf("%q is a hard link: the file has another name elsewhere", in.Path)
	}
	existed := err == nil
	if err := root.WriteFile(real, []byte(in.Content), 0o644); err != nil {
		return "", fmt.Errorf("%q cannot be written: %w", in.Path, cause(err))
	}
	verb := "Wrote"
	if existed {
		verb = "Replaced"
	}
	return fmt.Sprintf("%s %s: %d bytes.", verb, filepath.ToSlash(path), len(in.Content)), nil
}

// forbidden are the names of folders and files that other programs run or obey:
// hooks, and what a shell or an editor reads when somebody comes by.
var forbidden = []string{".git", ".hg", ".svn", ".ssh", ".aws", ".gnupg", ".vscode", ".idea", ".husky", ".direnv", ".envrc",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc", ".gitconfig", ".gitmodules", ".npmrc", ".pypirc", ".netrc"}

var errForbidden = errors.New("other programs run or obey what stands there")

// resolve makes the folders of a path and gives the path without links, so that
// no link leads to what is forbidden. os.Root sees to it that none leads out.
func (w writer) resolve(root *os.Root, path string) (string, error) {
	for range 40 { // links
		if parts := strings.Split(filepath.ToSlash(path), "/"); slices.ContainsFunc(parts, obeyed) {
			return "", errForbidden
		}
		next, err := w.step(root, path)
		if err != nil || next == path {
			return next, err
		}
		path = next
	}
	return "", errors.New("too many links")
}

// step replaces the first link of a path, or makes its folders where it has none.
func (w writer) step(root *os.Root, path string) (string, error) {
	if w.protected(path) {
		return "", errForbidden
	}
	for i := range len(path) + 1 {
		if i < len(path) && path[i] != filepath.Separator {
			continue
		}
		target, err := root.Readlink(path[:i])
		if err != nil {
			continue // no link, or nothing yet
		}
		next := filepath.Join(filepath.Dir(path[:i]), target, path[i:])
		if filepath.IsAbs(target) || !filepath.IsLocal(next) {
			return "", errors.New("a link leads out of the working folder")
		}
		return next, nil
	}
	if dir := filepath.Dir(path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return "", cause(err)
		}
	}
	return path, nil
}

// obeyed reports whether a name is forbidden. Some file systems know no case.
func obeyed(name string) bool {
	return slices.Contains(forbidden, strings.ToLower(strings.TrimRight(name, ". ")))
}

// protected reports whether a path is one of those that stay as they are, or
// lies in one.
func (w writer) protected(path string) bool {
	folder, err := filepath.Abs(w.options.Folder)
	if err != nil {
		return true
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	full := filepath.Join(folder, path)
	return slices.ContainsFunc(w.options.Protect, func(p string) bool {
		rel, err := filepath.Rel(p, full)
		return err == nil && filepath.IsLocal(rel)
	})
}

// cause is an error without the paths of this machine that it tells.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
