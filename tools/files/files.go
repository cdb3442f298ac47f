// Package files lets a model read the user's files: documents, sheets, slides,
// archives and text. It reaches nothing but the files below one folder, and
// changes none of them.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stopgap/tools"
	"stopgap/tools/document"
	"stopgap/tools/goal"
)

// deadline bounds one call: several files, each with its own limits, and a
// model that reads them.
const deadline = 15 * time.Minute

// The description is that of Tongyi DeepResearch, whose models have learned it.
const description = "This is a tool that can be used to parse multiple user uploaded local files such as PDF, DOCX, PPTX, TXT, CSV, XLSX, DOC, ZIP, MP4, MP3."

// The parameters are those of Tongyi DeepResearch, and a goal as visit has it.
// Models often write one file as a string, so both are taken.
const parameters = `{"type":"object","properties":{` +
	`"files":{"type":["array","string"],"items":{"type":"string"},"minItems":1,"maxItems":20,"description":"The file name of the user uploaded local files to be parsed."},` +
	`"goal":{"type":"string","description":"What to look for in the files. With a goal the result is a summary of what serves it; without one, the text itself."}` +
	`},"required":["files"]}`

// Options are what ParseFile works with.
type Options struct {
	// Folder is the folder whose files can be read, with those below it.
	// Empty means the working folder.
	Folder string
	// Document are the limits and the converters of one file.
	Document document.Options
	// Goal reads a file against a goal. Without its Ask, a call with a goal is
	// an error.
	Goal goal.Reader
}

// ParseFile is the tool parse_file.
type ParseFile struct{ options Options }

// New gives the tool. The folder need not exist before the first call.
func New(o Options) *ParseFile {
	if o.Folder == "" {
		o.Folder = "."
	}
	return &ParseFile{o}
}

// Spec implements tools.Tool.
func (*ParseFile) Spec() tools.Spec {
	return tools.Spec{
		Name: "parse_file", Description: description, Parameters: json.RawMessage(parameters),
		Capabilities: []tools.Capability{tools.Files},
	}
}

// Deadline implements tools.Deadliner.
func (*ParseFile) Deadline() time.Duration { return deadline }

// Run implements tools.Tool. A file that cannot be read is said in its place;
// it is an error where there is no other.
func (p *ParseFile) Run(ctx context.Context, args json.RawMessage) (string, error) {
	names, aim, err := arguments(args)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(p.options.Folder)
	if err != nil {
		return "", fmt.Errorf("the folder of the files cannot be opened: %w", bare(err))
	}
	defer root.Close()
	var blocks []string
	var failed error
	for _, name := range names {
		text, err := p.one(ctx, root, name, aim)
		if ctx.Err() != nil {
			return strings.Join(blocks, "\n\n"), ctx.Err()
		}
		if err != nil {
			failed, text = err, "Error: "+err.Error()+"."
		}
		blocks = append(blocks, text)
	}
	if failed != nil && len(names) == 1 {
		return "", failed
	}
	return strings.Join(blocks, "\n\n"), nil
}

func arguments(args json.RawMessage) (names []string, aim string, err error) {
	var in struct {
		Files json.RawMessage
		Goal  string
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, "", err
	}
	if json.Unmarshal(in.Files, &names) == nil {
		return names, in.Goal, nil
	}
	var name string
	if err := json.Unmarshal(in.Files, &name); err != nil {
		return nil, "", errors.New(`"files" is neither a list of strings nor a string`)
	}
	return []string{name}, in.Goal, nil
}

// one gives a file as the model reads it: its title and its name above its
// text, as the documents of a corpus are, or what of it serves a goal.
func (p *ParseFile) one(ctx context.Context, root *os.Root, name, aim string) (string, error) {
	d, err := p.parse(ctx, root, name)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(aim) != "" {
		if p.options.Goal.Ask == nil {
			return "", errors.New("there is no model that could read files against a goal; leave it out to get the text")
		}
		return p.options.Goal.Report(ctx, name, d.Markdown, aim)
	}
	text := fmt.Sprintf("%s [%s]\n\n", d.Title, name)
	for _, n := range d.Notes {
		text += "(" + n + ")\n\n"
	}
	return text + strings.TrimRight(d.Markdown, "\n"), nil
}

// parse reads one file. It is opened below the folder, whatever links there
// are, and only if it is a file: others would never end.
func (p *ParseFile) parse(ctx context.Context, root *os.Root, name string) (document.Document, error) {
	path, err := below(p.options.Folder, name)
	if err != nil {
		return document.Document{}, err
	}
	info, err := root.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return document.Document{}, fmt.Errorf("there is no file %q", name)
	case err != nil:
		return document.Document{}, fmt.Errorf("%q cannot be read: %w", name, bare(err))
	case info.IsDir():
		return document.Document{}, fmt.Errorf("%q is a folder, not a file", name)
	case !info.Mode().IsRegular():
		return document.Document{}, fmt.Errorf("%q is no regular file", name)
	}
	f, err := root.Open(path)
	if err != nil {
		return document.Document{}, fmt.Errorf("%q cannot be read: %w", name, bare(err))
	}
	defer f.Close()
	return document.Parse(ctx, filepath.Base(path), f, p.options.Document)
}

// below gives a path as one inside of the folder. A path that names the folder
// in full is taken as well: models write both.
func below(folder, path string) (string, error) {
	path = strings.TrimPrefix(strings.TrimSpace(path), "file://")
	if filepath.IsAbs(path) {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return "", err
		}
		if rel, err := filepath.Rel(abs, path); err == nil {
			path = rel
		}
	}
	if path = filepath.Clean(path); !filepath.IsLocal(path) {
		return "", fmt.Errorf("%q is outside of the folder whose files can be read; use a path below it", path)
	}
	return path, nil
}

// bare is an error without the paths of this machine that it tells.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
