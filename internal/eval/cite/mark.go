package cite

import "strings"

// A mark is a place of an answer that may cite.
type mark struct {
	start, end int    // bytes of the answer, brackets included
	inner      string // without them
	round      bool   // in round brackets
	link       bool   // the address of a Markdown link
}

// brackets are what marks stand between.
var brackets = []struct{ open, close string }{
	{"<cite>", "</cite>"}, {"[", "]"}, {"【", "】"}, {"(", ")"}, {"（", "）"},
}

// marks finds what may cite in an answer, from left to right. A mark in square
// brackets is whole, with those in it; round ones are looked into, too. The text
// of a Markdown link is no mark.
func marks(answer string) []mark {
	var out []mark
	for at := 0; at < len(answer); {
		m, ok := markAt(answer, at)
		if !ok {
			at++
			continue
		}
		if rest := answer[m.end:]; strings.HasPrefix(answer[at:], "[") && strings.HasPrefix(rest, "(") {
			if link, ok := markAt(answer, m.end); ok && address(link.inner) != "" {
				link.round, link.link, link.inner = false, true, address(link.inner)
				link.start = m.start
				out = append(out, link)
				at = link.end
				continue
			}
		}
		out = append(out, m)
		if at = m.end; m.round {
			at = m.start + 1
		}
	}
	return out
}

// markLimit is how long a mark may be, in bytes. It keeps brackets that nobody
// closes cheap.
const markLimit = 500

// markAt reads the mark that begins at a place.
func markAt(answer string, at int) (mark, bool) {
	for i, b := range brackets {
		if !strings.HasPrefix(answer[at:], b.open) {
			continue
		}
		text := answer[at:min(len(answer), at+markLimit)]
		if !strings.Contains(text, b.close) {
			return mark{}, false
		}
		for end, depth := 0, 0; end < len(text); end++ {
			switch {
			case strings.HasPrefix(text[end:], b.open):
				depth++
			case strings.HasPrefix(text[end:], b.close):
				if depth--; depth == 0 {
					return mark{start: at, end: at + end + len(b.close), inner: text[len(b.open):end], round: i > 2}, true
				}
			}
		}
		return mark{}, false
	}
	return mark{}, false
}

// address gives the address of a link, "" for what is none.
func address(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), " ") // a title may follow
	s = strings.Trim(s, "<>")
	if strings.ContainsAny(s, "./#") {
		return s
	}
	return ""
}

var idTags = strings.NewReplacer("<id>", "", "</id>", "")

// names gives the names that stand in a mark. One that is known may have commas
// itself.
func (m mark) names(known []Document) []string {
	inner := squeeze(idTags.Replace(m.inner))
	if m.link || isKnown(inner, known) {
		return []string{inner}
	}
	var out []string
	for _, name := range strings.FieldsFunc(inner, func(r rune) bool { return strings.ContainsRune(",;，；、|", r) }) {
		if name = strings.Trim(name, "[] "); name != "" {
			out = append(out, name)
		}
	}
	return out
}
