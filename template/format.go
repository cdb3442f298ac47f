package template

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"
)

// maxSource and maxHead are the sizes of the largest format file and of its
// head, in bytes. The head's is small because the YAML parser's time grows with
// the square of what it gets.
const (
	maxSource = 1 << 20
	maxHead   = 32 << 10
)

//go:embed formats/*.tmpl
var shipped embed.FS

// A Format is a compiled format file. It is immutable (callers read the fields
// and never change them) and safe for concurrent use.
type Format struct {
	Name string
	Head
	blocks *template.Template
	// What Parse asks of the head again and again.
	ends    []string
	spelled vocabulary
}

// Names lists the shipped formats, sorted.
func Names() []string {
	files, err := fs.Glob(shipped, "formats/*.tmpl")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".tmpl")
	}
	slices.Sort(files)
	return files
}

// Shipped gives the text of a shipped format's file, a starting point for an
// own one. The error is a *FormatError.
func Shipped(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, unknownName(name)
	}
	return shipped.ReadFile("formats/" + name + ".tmpl")
}

// Load compiles a shipped format, or the format file at a path. A shipped name
// comes before a file of that name in the current directory; ./qwen is the
// file. The error is a *FormatError.
func Load(nameOrPath string) (*Format, error) {
	if slices.Contains(Names(), nameOrPath) {
		src, err := Shipped(nameOrPath)
		if err != nil {
			return nil, err
		}
		return Compile(nameOrPath, src)
	}
	src, err := readFile(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Compile(nameOrPath, src)
}

// readFile reads at most maxSource bytes and one more, which Compile refuses.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		if os.IsNotExist(err) && !strings.ContainsAny(name, `/\`) && !strings.HasSuffix(name, ".tmpl") {
			return nil, unknownName(name)
		}
		return nil, unreadable(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &FormatError{Name: name, Msg: "not a regular file"}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	return src, nil
}

// unreadable keeps the cause and leaves out what FormatError says already.
func unreadable(name string, err error) error {
	msg := err.Error()
	if pe, ok := err.(*fs.PathError); ok {
		msg = pe.Err.Error()
	}
	return &FormatError{Name: name, Msg: msg, Err: err}
}

// Compile compiles the text of a format file; name stands in errors.
//
// The file is a YAML head ([Head], unknown keys are errors), a line "---" and
// text/template blocks, each {{define "name" -}} … {{- end}}:
//
//   - "prompt" renders an [Opening], up to and with the words that open the
//     model's turn;
//   - "continue" renders a [Continuation]: everything that stands between two
//     generations, from the words that close the model's turn to those that
//     open it again;
//   - "calls" spells the calls of a turn as the model writes them (.Calls, each
//     with .Name, .Arguments, .Pairs, .Values and .Lists, see [Format.Write]);
//   - "force" is the note that asks for the final answer without tools
//     (.Reason, a clause such as "the limit of 5 calls is reached", or empty);
//   - "nudge" is the note for a turn that leads nowhere (.Kind, a ProblemKind);
//   - "problem" is what the model is told in place of a tool's result when a
//     call is not as it should be (.Kind, .Message, .Tools, the names).
//
// Other blocks are helpers for {{template "name" .}}. The functions are those
// of text/template and:
//
//   - json (text or JSON): as Python's json.dumps with ensure_ascii=False;
//   - indent (width, level, JSON): the same in lines, as json.dumps with
//     indent=width writes it that many levels inside of another value;
//   - python (JSON): as Python source;
//   - str (JSON): as Python's str, a text is itself;
//   - kind (JSON): object, array, string, integer, number, boolean or null, and
//     nothing for a value that is not there;
//   - field (JSON, key): the value of a key, which may not be there;
//   - entries (JSON): the keys of an object in their order, each with .Key,
//     .JSON, and .Text, which is a text as it is and anything else as json;
//   - trim (text);
//   - date (layout, YYYY-MM-DD): as strftime, for the verbs %Y %y %m %B %b %d %A
//     %a and English names;
//   - join (list, separator), names (of tools).
//
// JSON is a tool's .Parameters, the .JSON of a pair, and what field gives. In
// "prompt" and "continue" the untrusted strings stand for themselves only when
// printed whole, or by json or trim; they can be tested for emptiness but not
// compared or cut.
//
// Line ends CR LF are read as LF. A file has at most 1 MiB, its head 32 KiB. A
// file without "---" is a head alone, for
// formats that extend a shipped one. The file is trusted: its blocks run as
// they are, without a limit on time. The error is a *FormatError.
func Compile(name string, src []byte) (*Format, error) {
	text, err := checkSource(name, src)
	if err != nil {
		return nil, err
	}
	s, err := newSource(name, text)
	if err != nil {
		return nil, err
	}
	f := &Format{Name: name, blocks: template.New("").Funcs(funcs).Option("missingkey=zero")}
	if err := f.add(s, 0); err != nil {
		return nil, err
	}
	f.reserveOwn()
	f.ends, f.spelled = f.endTokens(), f.vocabulary()
	if err := f.checkBlocks(s); err != nil {
		return nil, err
	}
	if f.Opening == OpenOwn {
		if err := f.checkUnmatched(s); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// checkSource refuses what is not a text file of a fair size.
func checkSource(name string, src []byte) (string, error) {
	fail := func(at int, msg string) (string, error) {
		return "", &FormatError{Name: name, Line: 1 + bytes.Count(src[:at], []byte("\n")), Msg: msg}
	}
	if len(src) > maxSource {
		return "", &FormatError{Name: name, Msg: fmt.Sprintf("larger than %d bytes", maxSource)}
	}
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return fail(i, "a binary file (it has a NUL byte)")
	}
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return fail(i, "not UTF-8 text")
		}
		i += size
	}
	return strings.ReplaceAll(string(src), "\r\n", "\n"), nil
}

// reserveOwn adds the format's own tags and labels to the reserved strings.
func (f *Format) reserveOwn() {
	var own []string
	for _, tag := range f.tags() {
		if tag.field != "answer.after" {
			own = append(own, tag.text)
		}
	}
	f.Reserved.Lines = union(f.Reserved.Lines, []string{f.Answer.After})
	switch f.Call.Kind {
	case LineCalls:
		f.Reserved.Lines = union(f.Reserved.Lines, append(append(own, f.Call.Name...), f.Call.Arguments...))
		return
	case XMLCalls:
		own = append(append(own, f.Call.Name...), f.Call.Arguments...)
	case TagCalls:
		for _, t := range f.Call.Tags {
			own = append(own, t.open(), t.close())
		}
	}
	f.Reserved.Strings = union(f.Reserved.Strings, own)
}

func unknownName(name string) error {
	names := Names()
	msg := "no such format; there are " + strings.Join(names, ", ") + ", or pass the path of a format file"
	if near := nearest(name, names); near != "" {
		msg = fmt.Sprintf("no such format, did you mean %q? There are %s, or pass the path of a format file", near, strings.Join(names, ", "))
	}
	return &FormatError{Name: name, Msg: msg, Err: fs.ErrNotExist}
}

// nearest gives the name with the smallest edit distance, if that is at most
// half of the name's length.
func nearest(name string, names []string) string {
	best, least := "", 1+max(1, len(name)/2)
	for _, n := range names {
		if d := distance(strings.ToLower(name), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is Levenshtein's, in bytes. Long names have none that is near.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
