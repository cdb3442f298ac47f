package cite

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Document is what a run has seen of one: its id, and its title where a tool
// told it.
type Document struct {
	ID    string // or the address of a page
	Title string
	// head is a line of results, which begins with the title; where the title
	// ends it does not say.
	head string
}

// The lines that tell ids and titles: of the corpus' search and read, of the web's
// search, and of a page that was read against a goal.
var (
	hitLine  = regexp.MustCompile(`^(.*) \[(.+)\] \(score -?[0-9.]+\)$`)
	readLine = regexp.MustCompile(`^(.*) \[(.+)\]$`)
	webLine  = regexp.MustCompile(`^\d+\. \[(.*)\]\((?:pdfUrl: )?(https?://[^\s()]+)\)$`)
	pageLine = regexp.MustCompile(`^The useful information in (https?://\S+) for user goal `)
)

// Seen gives the documents that results of tools name, each once, in their
// order: the lines of the corpus' search ("Title. Snippet [id] (score 12.31)"),
// the first line of its read ("Title [id]", then an empty one), the lines of a web
// search ("1. [Title](address)"), and the address of a page that was visited.
func Seen(results []string) []Document {
	var list []Document
	place := map[string]int{}
	add := func(d Document) {
		d.ID, d.Title, d.head = whole(d.ID), squeeze(d.Title), squeeze(d.head)
		i, ok := place[d.ID]
		if !ok {
			place[d.ID] = len(list)
			list = append(list, d)
			return
		}
		if list[i].Title == "" {
			list[i].Title = d.Title
		}
	}
	for _, result := range results {
		first, rest, _ := strings.Cut(result, "\n")
		if m := readLine.FindStringSubmatch(first); m != nil && (rest == "" || strings.HasPrefix(rest, "\n")) {
			add(Document{ID: m[2], Title: m[1]})
			continue // what follows is the document's
		}
		for line := range strings.Lines(result) {
			line = strings.TrimRight(line, "\r\n")
			if m := hitLine.FindStringSubmatch(line); m != nil {
				add(Document{ID: m[2], head: m[1]})
			} else if m := webLine.FindStringSubmatch(line); m != nil {
				add(Document{ID: m[2], Title: m[1]})
			} else if m := pageLine.FindStringSubmatch(line); m != nil {
				add(Document{ID: m[1]})
			}
		}
	}
	return list
}

// whole gives the id of the document that a passage is of: "guide.md#3" is a
// passage of guide.md.
func whole(id string) string {
	id = squeeze(id)
	if i := strings.LastIndexByte(id, '#'); i > 0 && i+1 < len(id) && strings.Trim(id[i+1:], "0123456789") == "" {
		return id[:i]
	}
	return id
}

// called reports whether a document has a name: its id, one of its passages', or
// its title, whatever its case.
func (d Document) called(name string) bool {
	if d.ID == whole(name) || d.ID == name {
		return true
	}
	if d.Title != "" {
		return strings.EqualFold(d.Title, name)
	}
	if name == "" || len(d.head) < len(name) || !strings.EqualFold(d.head[:len(name)], name) {
		return false
	}
	// The title has a full stop behind it unless it ends with a mark of its own.
	rest := d.head[len(name):]
	last, _ := utf8.DecodeLastRuneInString(name)
	return rest == "" || rest == "." || strings.HasPrefix(rest, ". ") || rest[0] == ' ' && strings.ContainsRune(".!?:。！？：…", last)
}

// same reports whether two are the same document.
func (d Document) same(e Document) bool { return d.ID == e.ID || d.called(e.ID) || e.called(d.ID) }
