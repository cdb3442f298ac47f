package document

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// filePlaceholder stands for the path of the file in a converter's command.
const filePlaceholder = "{file}"

// converter is the command that reads a file, nil where it is read here.
func converter(name string, o Options) (command []string, ext string) {
	ext = extension(name)
	if command = o.Converters[ext]; len(command) > 0 {
		return command, ext
	}
	return nil, ""
}

// unconverted says that a file needs a command, if that is so.
func unconverted(k kind, name string, head []byte) error {
	ext := extension(name)
	if k == kindOLE && !slices.Contains(converted, ext) {
		ext = "doc"
	}
	if slices.Contains(converted, ext) {
		return fail(ErrConverter, "is %s; reading %s files takes an external command, and none is configured", describe(k, name, head), ext)
	}
	return fail(ErrUnsupported, "is %s, which cannot be read", describe(k, name, head))
}

// convert has a command read a file. It gets a copy in a folder of its own,
// under a name that nobody outside has chosen.
func convert(ctx context.Context, command []string, ext string, s *spooled, o Options) (Document, error) {
	dir, err := os.MkdirTemp("", "stopgap-converter-*")
	if err != nil {
		return Document{}, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "file."+ext)
	if err := s.copyTo(path); err != nil {
		return Document{}, err
	}
	args := slices.Clone(command)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], filePlaceholder, path)
	}
	program, err := exec.LookPath(args[0])
	if err == nil {
		program, err = filepath.Abs(program) // it runs in another folder
	}
	if err != nil {
		return Document{}, fail(ErrConverter, "cannot be read: the command for %s files, %s, is not there", ext, command[0])
	}
	cmd := &exec.Cmd{Path: program, Args: args, Dir: dir}
	out, errText, err := runGroup(ctx, cmd, o.ConverterTimeout, 4*o.MaxText)
	switch {
	case ctx.Err() != nil:
		return Document{}, ctx.Err()
	case err == errSlow:
		return Document{}, fail(ErrTimeout, "takes the command %s longer than %s to read", command[0], o.ConverterTimeout)
	case err != nil && err != errOutput:
		first, _, _ := strings.Cut(strings.TrimSpace(errText), "\n")
		return Document{}, fail(ErrConverter, "cannot be read by the command %s: %s %.200s", command[0], err, line(first))
	}
	w := &writer{max: o.MaxText, doc: Document{Type: ext}}
	head := out[:min(len(out), headBytes)]
	if !isText(head) {
		return Document{}, fail(ErrConverter, "is not made text by the command %s: it prints something else", command[0])
	}
	text, err := io.ReadAll(decode(strings.NewReader(string(out)), head, "", false))
	if err == nil {
		err = w.write(string(text))
	}
	return w.document(err)
}

func (s *spooled) copyTo(path string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.NewSectionReader(s.file, 0, s.size))
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
