package document

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"
)

// A kind is what the bytes of a file are.
type kind string

const (
	kindHTML   kind = "html"
	kindPDF    kind = "pdf"
	kindDOCX   kind = "docx"
	kindPPTX   kind = "pptx"
	kindXLSX   kind = "xlsx"
	kindCSV    kind = "csv"
	kindTSV    kind = "tsv"
	kindMD     kind = "md"
	kindJSON   kind = "json"
	kindJSONL  kind = "jsonl"
	kindText   kind = "txt"
	kindZip    kind = "zip" // or an Office file, which its entries tell
	kindOLE    kind = "ole" // doc, xls, ppt, or an encrypted Office file
	kindBinary kind = "binary"
)

// textKinds are the files of text, by their extension.
var textKinds = map[string]kind{
	"html": kindHTML, "htm": kindHTML, "xhtml": kindHTML, "csv": kindCSV, "tsv": kindTSV, "tab": kindTSV,
	"md": kindMD, "markdown": kindMD, "json": kindJSON, "jsonl": kindJSONL, "ndjson": kindJSONL,
	"txt": kindText, "text": kindText, "log": kindText, "rst": kindText, "org": kindText,
}

// converted are the extensions that only a command reads.
var converted = []string{
	"doc", "xls", "ppt", "odt", "ods", "odp", "rtf", "epub",
	"mp3", "wav", "aac", "ogg", "flac", "m4a", "mp4", "mov", "avi", "mkv", "webm",
}

// Extensions are those of the files that Parse reads without a converter, in
// lower case and without the dot.
func Extensions() []string {
	return []string{
		"pdf", "docx", "pptx", "xlsx", "html", "htm", "xhtml", "csv", "tsv", "tab",
		"md", "markdown", "json", "jsonl", "ndjson", "txt", "text", "log", "rst", "org", "zip",
	}
}

// extension is that of a name, in lower case and without the dot.
func extension(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(strings.ReplaceAll(name, `\`, "/")), "."))
}

// sniff says what the bytes of a file are by its beginning. The name and the
// type decide only between kinds of text.
func sniff(name, contentType string, head []byte) kind {
	switch {
	case bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")):
		return kindPDF
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return kindZip
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		return kindOLE
	case !isText(head):
		return kindBinary
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return kindBinary
	}
	if k, ok := textKinds[extension(name)]; ok {
		return k
	}
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "text/html", media == "application/xhtml+xml", strings.HasPrefix(http.DetectContentType(head), "text/html"):
		return kindHTML
	case media == "text/csv":
		return kindCSV
	case media == "text/tab-separated-values":
		return kindTSV
	case media == "text/markdown":
		return kindMD
	case media == "application/json", len(head) < headBytes && json.Valid(head) && bytes.ContainsAny(head[:1], "{["):
		return kindJSON
	}
	return kindText
}

// isText reports whether the beginning of a file is text in some encoding:
// no zero bytes but those of UTF-16, and few control characters.
func isText(head []byte) bool {
	if utf16Order(head) != "" {
		return true
	}
	control := 0
	for _, c := range head {
		if c == 0 {
			return false
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b {
			control++
		}
	}
	if control > len(head)/50 {
		return false
	}
	if utf8.Valid(head) || strings.HasPrefix(http.DetectContentType(head), "text/") {
		return true
	}
	// Not the magic bytes of a picture, a sound or a font.
	return http.DetectContentType(head) == "application/octet-stream"
}

// office tells Office files from other archives by the part that each must
// have.
func office(z *zip.Reader) kind {
	found := kindZip
	for _, f := range z.File {
		switch f.Name {
		case "word/document.xml":
			return kindDOCX
		case "ppt/presentation.xml":
			return kindPPTX
		case "xl/workbook.xml":
			return kindXLSX
		case "mimetype", "META-INF/container.xml":
			found = kindBinary // OpenDocument and EPUB
		}
	}
	return found
}

// describe says in words what a file is that is not read here.
func describe(k kind, name string, head []byte) string {
	ext := extension(name)
	if k == kindOLE {
		switch ext {
		case "docx", "xlsx", "pptx":
			return "an encrypted or old Office file"
		}
		return "an Office file of the time before 2007"
	}
	if media := http.DetectContentType(head); media != "application/octet-stream" && !strings.HasPrefix(media, "text/") {
		return "of the type " + media
	}
	if ext != "" {
		return "a binary file (." + ext + ")"
	}
	return "a binary file"
}
