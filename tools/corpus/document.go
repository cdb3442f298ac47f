package corpus

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	encoding "golang.org/x/text/encoding/unicode"
)

// A Document is one text of the corpus.
type Document struct {
	// ID names it: the path of its file relative to the corpus, with slashes,
	// or the id that a JSONL line gives.
	ID    string
	Title string
	// Text is the document without its front matter and its title line.
	Text string
}

// Why a text file is not in the index.
var (
	errBinary  = errors.New("binary")
	errNotUTF8 = errors.New("neither UTF-8 nor UTF-16")
	errEmpty   = errors.New("empty")
)

// maxIDBytes bounds the ids that a JSONL line may give.
const maxIDBytes = 512

// decode gives the text of a file. UTF-16 is known by its byte order mark.
// A few broken characters are replaced; more mean another encoding.
func decode(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		var err error
		data, err = encoding.UTF16(encoding.LittleEndian, encoding.UseBOM).NewDecoder().Bytes(data)
		if err != nil {
			return "", errNotUTF8
		}
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return "", errBinary
	}
	text := string(data)
	if !utf8.ValidString(text) {
		broken := 0
		for i, r := range text {
			if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
				broken++
			}
		}
		if broken > 1+len(text)/100 {
			return "", errNotUTF8
		}
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return newlines.Replace(text), nil
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// parseText makes a document of a text file. name is its path relative to the
// corpus. The title is what the front matter, the first heading or else the
// file's name says; the text goes without it, since a hit shows both.
func parseText(name string, data []byte) (Document, error) {
	text, err := decode(data)
	if err != nil {
		return Document{}, err
	}
	front, text := frontMatter(text)
	heading, rest := heading(text)
	d := Document{ID: name, Title: front, Text: text}
	if heading != "" && (front == "" || front == heading) {
		d.Title, d.Text = heading, rest
	}
	if d.Title == "" {
		base := path.Base(name)
		d.Title = strings.TrimSuffix(base, path.Ext(base))
	}
	d.Title = squeeze(d.Title)
	d.Text = strings.Trim(d.Text, "\n")
	if squeeze(d.Text) == "" {
		if heading == "" {
			return Document{}, errEmpty
		}
		d.Text = heading // a page that is only a title
	}
	return d, nil
}

// tidy makes a document of what a parser read, as parseText does of a text.
func tidy(name string, d Document) (Document, error) {
	d.ID, d.Title = name, squeeze(d.Title)
	d.Text = newlines.Replace(strings.ToValidUTF8(strings.ReplaceAll(d.Text, "\x00", " "), "\uFFFD"))
	if title, rest := heading(d.Text); title != "" && (d.Title == "" || d.Title == squeeze(title)) {
		d.Title, d.Text = squeeze(title), rest
	}
	if d.Title == "" {
		base := path.Base(name)
		d.Title = strings.TrimSuffix(base, path.Ext(base))
	}
	if d.Text = strings.Trim(d.Text, "\n"); squeeze(d.Text) == "" {
		return Document{}, errEmpty
	}
	return d, nil
}

// frontMatter takes a YAML block off the beginning and gives its title.
func frontMatter(text string) (title, rest string) {
	body, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text
	}
	block, rest, ok := strings.Cut(body, "\n---\n")
	if !ok {
		return "", text
	}
	for line := range strings.SplitSeq(block, "\n") {
		if value, ok := strings.CutPrefix(line, "title:"); ok {
			value = strings.TrimSpace(value)
			if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
				value = value[1 : n-1]
			}
			return value, rest
		}
	}
	return "", rest
}

// heading takes a title off the beginning: "# Title" and "Title" over "====" of
// Markdown, the overlined one of reStructuredText, and "#+TITLE:" of Org.
func heading(text string) (title, rest string) {
	lines := strings.TrimLeft(text, "\n \t")
	first, after, _ := strings.Cut(lines, "\n")
	second, below, _ := strings.Cut(after, "\n")
	third, end, _ := strings.Cut(below, "\n")
	switch {
	case strings.HasPrefix(first, "# "):
		return strings.Trim(first, "# \t"), after
	case len(first) > 8 && strings.EqualFold(first[:8], "#+title:"):
		return strings.TrimSpace(first[8:]), after
	case isRule(first) && isRule(third) && strings.TrimSpace(second) != "":
		return strings.TrimSpace(second), end
	case isRule(second) && !isRule(first) && strings.TrimSpace(first) != "":
		return strings.TrimSpace(first), below
	}
	return "", text
}

// isRule reports whether a line underlines a title.
func isRule(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= 3 && strings.Trim(line, "=") == ""
}

// squeeze makes one line of a text, with single spaces. Other control
// characters, which a terminal might obey, go.
func squeeze(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// validID reports whether an id can stand on a line of results.
func validID(id string) bool {
	return id != "" && len(id) <= maxIDBytes && utf8.ValidString(id) &&
		!strings.ContainsFunc(id, unicode.IsControl) && strings.TrimSpace(id) == id
}
