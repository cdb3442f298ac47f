// Package cite scores which documents an answer cites.
//
// An answer cites what stands in it in square brackets or in lenticular ones,
// or between <cite> and </cite>, several names separated by commas or
// semicolons; the address of a Markdown link; and in round brackets, which hold
// much else, the name of a document that the run has seen. A name is the id that
// a tool gave, the address of a page, or a title.
//
// Datasets name documents by their titles or by their ids, runs by ids: which
// title an id has, the results of the run's tools tell. The package knows
// nothing of runs, and never judges whether a document says what the answer
// says.
package cite

import (
	"html"
	"slices"
	"strings"
	"unicode"
)

// A Score compares the documents that an answer cites with those that it comes
// from. A document that is cited twice, or by two names, counts once.
type Score struct {
	Gold  int `json:"gold"`
	Found int `json:"found"`   // gold ones that the run has seen
	Named int `json:"named"`   // gold ones that are cited
	Cited int `json:"cited"`   // documents
	Right int `json:"right"`   // of those, gold ones
	Wild  int `json:"unknown"` // of those, neither gold nor seen: made up, or no citation at all, like a date in square brackets
}

// Recall is the part of the gold documents that is cited. There is none where
// the dataset names no documents.
func (s Score) Recall() (float64, bool) { return part(s.Named, s.Gold) }

// Precision is the part of what is cited that is gold. There is none where
// nothing is cited, or the dataset names no documents.
func (s Score) Precision() (float64, bool) {
	if s.Gold == 0 {
		return 0, false
	}
	return part(s.Right, s.Cited)
}

// Evidence is the part of the gold documents that the run has seen, the recall
// of its searches. There is none where the dataset names no documents.
func (s Score) Evidence() (float64, bool) { return part(s.Found, s.Gold) }

func part(n, of int) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(n) / float64(of), true
}

// New scores an answer. gold are the names of the documents that it comes from;
// seen is what the run has seen, see Seen.
func New(answer string, gold []string, seen []Document) Score {
	want := documents(gold, nil)
	cited := cited(answer, want, seen)
	s := Score{Gold: len(want), Cited: len(cited)}
	for _, w := range want {
		if slices.ContainsFunc(seen, w.same) {
			s.Found++
		}
		if slices.ContainsFunc(cited, w.same) {
			s.Named++
		}
	}
	for _, d := range cited {
		switch {
		case slices.ContainsFunc(want, d.same):
			s.Right++
		case !slices.ContainsFunc(seen, d.same):
			s.Wild++
		}
	}
	return s
}

// documents gives the documents that names mean, each once. A name that no known
// one has stands for a document of its own.
func documents(names []string, known []Document) []Document {
	var out []Document
	for _, name := range names {
		name = squeeze(name)
		d := Document{ID: name, Title: name}
		if i := slices.IndexFunc(known, func(k Document) bool { return k.called(name) }); i >= 0 {
			d = known[i]
		}
		if name != "" && !slices.ContainsFunc(out, d.same) {
			out = append(out, d)
		}
	}
	return out
}

// cited are the documents that an answer cites, each once.
func cited(answer string, gold, seen []Document) []Document {
	known := slices.Concat(seen, gold)
	var names []string
	for _, m := range marks(answer) {
		for _, name := range m.names(known) {
			if !m.round || isKnown(name, known) {
				names = append(names, name)
			}
		}
	}
	return documents(names, known)
}

// Without gives an answer without the citations of documents that the run has
// seen: exact match would count them as words.
func Without(answer string, seen []Document) string {
	var b strings.Builder
	from := 0
	for _, m := range marks(answer) {
		names := m.names(seen)
		if m.link || m.start < from || len(names) == 0 ||
			slices.ContainsFunc(names, func(name string) bool { return !isKnown(name, seen) }) {
			continue
		}
		b.WriteString(strings.TrimRightFunc(answer[from:m.start], unicode.IsSpace))
		from = m.end
	}
	b.WriteString(answer[from:])
	return strings.TrimSpace(b.String())
}

func isKnown(name string, known []Document) bool {
	return slices.ContainsFunc(known, func(d Document) bool { return d.called(name) })
}

// squeeze gives a name as it is compared: entities of HTML read, which
// HotpotQA's titles have, and white space squeezed.
func squeeze(s string) string { return strings.Join(strings.Fields(html.UnescapeString(s)), " ") }
