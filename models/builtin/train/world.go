package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"stopgap/tools/corpus"
)

// A fact is one sentence of a document.
type fact struct {
	relation relation
	value    value
	sentence string
}

// A document is about one entity.
type document struct {
	about entity
	id    string
	facts []fact
}

func (d document) text() string {
	list := make([]string, len(d.facts))
	for i, f := range d.facts {
		list[i] = f.sentence
	}
	if d.about.chinese {
		return strings.Join(list, "")
	}
	return strings.Join(list, " ")
}

// line is the document as a result of the search shows it, without the score.
func (d document) line() string {
	l := corpus.Render([]corpus.Found{{Terms: 1, Hits: []corpus.Hit{d.hit(0)}}})
	return l[:strings.LastIndex(l, " (score")]
}

func (d document) hit(score float64) corpus.Hit {
	return corpus.Hit{ID: d.id, Document: d.id, Title: d.about.title, Snippet: d.text(), Score: score}
}

// A world is the documents behind one question.
type world struct {
	documents []document
	idStyle   int
	used      map[string]bool
}

func (w *writer) world() *world {
	x := &world{idStyle: w.IntN(8), used: map[string]bool{}}
	if w.exam {
		x.idStyle = w.IntN(4) // files of a folder
	}
	return x
}

// id names a document as corpora do: by file, number or code.
func (w *writer) id(x *world, e entity) string {
	for {
		slug := strings.ToLower(strings.ReplaceAll(e.title, " ", "-"))
		var id string
		switch x.idStyle {
		case 0, 1, 2, 3:
			id = slug + ".md"
		case 4:
			id = fmt.Sprintf("%s/%s.md", pick(w, things), slug)
		case 5:
			id = fmt.Sprint(1 + w.IntN(300))
		case 6:
			id = fmt.Sprintf("%s%d", pick(w, []string{"d", "doc-", "note-", "p", "ref-"}), 1+w.IntN(99))
		default:
			id = fmt.Sprintf("%s.%s", w.coined(), pick(w, []string{"txt", "md"}))
		}
		if !w.exam && w.chance(0.05) {
			id += fmt.Sprintf("#%d", 1+w.IntN(9))
		}
		if !x.used[id] {
			x.used[id] = true
			return id
		}
		if x.idStyle < 5 {
			x.idStyle = 7
		}
	}
}

// add writes a document about an entity with the given facts and some more.
func (w *writer) add(x *world, e entity, facts []fact, more int) document {
	for range more {
		r := w.relationFor(e, false)
		if slices.ContainsFunc(facts, func(f fact) bool { return f.relation.clashes(r) }) {
			continue
		}
		facts = append(facts, fact{relation: r, value: w.value(r, e.chinese, false)})
	}
	w.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
	for i := range facts {
		f := &facts[i]
		pattern := pick(w, f.relation.tell)
		if i > 0 && !w.chance(0.25) {
			pattern = pick(w, f.relation.again)
		}
		if strings.HasPrefix(pattern, "{V}") && !unicode.IsUpper([]rune(f.value.text)[0]) {
			pattern = f.relation.tell[0] // the value is to stand in the text as it is
		}
		f.sentence = w.adorned(fill(pattern, e, f.value.text))
	}
	d := document{about: e, id: w.id(x, e), facts: facts}
	x.documents = append(x.documents, d)
	return d
}

func (w *writer) relationFor(e entity, linked bool) relation {
	if e.chinese {
		for {
			if r := w.chineseRelation(); !linked || len(r.names) > 0 {
				return r
			}
		}
	}
	return w.relation(linked)
}

// adorned lets a sentence go on after its fact, now and then.
func (w *writer) adorned(s string) string {
	bare, ok := strings.CutSuffix(s, ".")
	if !ok || !w.chance(0.08) && (w.exam || !w.chance(0.12)) {
		return capital(s)
	}
	return capital(bare) + pick(w, []string{", to everybody's surprise.", ", they say.", " to this day.", " since " + w.date() + ".",
		", according to the " + w.strange(nouns) + ".", " and is proud of it.", ", not far from " + w.coinedName() + "."})
}

// search does what the real search does, near enough: documents with rare words
// of the query come first.
func (x *world) search(query string, k int) []corpus.Hit {
	want := terms(query)
	type ranked struct {
		document
		score float64
	}
	texts := make([]map[string]int, len(x.documents))
	frequency := map[string]int{}
	for i, d := range x.documents {
		texts[i] = map[string]int{}
		for _, t := range terms(d.about.title + " " + d.text()) {
			texts[i][t]++
		}
		for t := range texts[i] {
			frequency[t]++
		}
	}
	var list []ranked
	for i, d := range x.documents {
		score := 0.0
		for _, t := range want {
			if n := float64(texts[i][t]); n > 0 {
				rare := math.Log(1 + (float64(len(x.documents))-float64(frequency[t])+0.5)/(float64(frequency[t])+0.5))
				score += rare * n * 2.2 / (n + 1.2)
			}
		}
		if score > 0 {
			list = append(list, ranked{d, score})
		}
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	var hits []corpus.Hit
	for _, r := range list[:min(k, len(list))] {
		hits = append(hits, r.hit(r.score))
	}
	return hits
}

func terms(s string) []string {
	var out []string
	for _, f := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if r := []rune(f); r[0] > 0x2e80 {
			for i := range r[:max(len(r)-1, 1)] {
				out = append(out, string(r[i:min(i+2, len(r))]))
			}
			continue
		}
		out = append(out, f)
	}
	return out
}
