package shell

import (
	"context"
	"crypto/rand"
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
	folder, err := enter(root, filepath.Dir(real))
	if err != nil {
		return "", fmt.Errorf("%q cannot be written: %w", in.Path, cause(err))
	}
	defer folder.Close()
	verb, mode := "Wrote", fs.FileMode(0)
	switch before, err := folder.Lstat(filepath.Base(real)); {
	case err == nil && !before.Mode().IsRegular():
		return "", fmt.Errorf("%q is no regular file", in.Path)
	case err == nil && links(before) > 1:
		return "", fmt.Errorf("%q is a hard link: the file has another name elsewhere", in.Path)
	case err == nil:
		verb, mode = "Replaced", before.Mode().Perm()
	}
	if err := replace(folder, filepath.Base(real), in.Content, mode); err != nil {
		return "", fmt.Errorf("%q cannot be written: %w", in.Path, cause(err))
	}
	return fmt.Sprintf("%s %s: %d bytes.", verb, filepath.ToSlash(path), len(in.Content)), nil
}

// enter opens a folder part by part and makes sure that no part is a link: what
// was none when resolve looked may be one by now, if a command runs meanwhile.
func enter(root *os.Root, path string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		if err != nil || part == "." {
			break
		}
		var next *os.Root
		if next, err = at.OpenRoot(part); err == nil {
			err = same(at, part, next)
		}
		_ = at.Close()
		at = next
	}
	if err != nil && at != nil {
		_ = at.Close()
	}
	return at, err
}

// same makes sure that a folder is what stands under a name, and no link does.
func same(at *os.Root, name string, folder *os.Root) error {
	named, err := at.Lstat(name)
	if err != nil {
		return err
	}
	opened, err := folder.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = errors.New("its folder has changed meanwhile")
	}
	return err
}

// replace puts a file in the place of a name, whatever that is, and never through
// it. Who reads it finds the old file or the new one, whole. Mode zero is that of
// a new file.
func replace(folder *os.Root, name, content string, mode fs.FileMode) error {
	temp := ".write_file-" + rand.Text()
	f, err := folder.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil && mode != 0 {
		err = f.Chmod(mode)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = folder.Rename(temp, name)
	}
	if err != nil {
		_ = folder.Remove(temp)
	}
	return err
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

// obeyed reports whether a name is forbidden. Some file systems know no case, and
// Windows has short names for long ones.
func obeyed(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return slices.Contains(forbidden, name) || strings.HasPrefix(name, "git~")
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
	return slices.ContainsFunc(w.options.Protect, func(p string) bool { return within(full, p) || within(full, unlinked(p)) })
}

// within reports whether a path is another one or lies in it, on a file system
// that knows no case as on others.
func within(path, folder string) bool {
	rel, err := filepath.Rel(strings.ToLower(folder), strings.ToLower(path))
	return err == nil && filepath.IsLocal(rel)
}

// unlinked is a path without links, as far as it exists.
func unlinked(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(unlinked(parent), filepath.Base(path))
	}
	return path
}

// cause is an error without the paths of this machine that it tells.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
