package train

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing/fstest"
)

// A Question is one of the exam, with the folder of documents that it is about.
type Question struct {
	Kind   Kind // OneHop, TwoHops or Absent
	Text   string
	Answer string // exact, with its citation
	Files  fs.FS  // Markdown files; names are the ids that answers cite
}

// Kinds are those of the exam.
var Kinds = []Kind{OneHop, TwoHops, Absent}

// Ask draws a question of the exam: 12 to 20 documents, names and words that
// training never has. The search over them is the real one.
func Ask(seed, number uint64, kind Kind) Question {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, number)), exam: true}
	for {
		x := w.world()
		c := w.plant(x, kind, false, 1)
		for n := 12 + w.IntN(9); len(x.documents) < n; {
			w.add(x, w.entity(), nil, 1+w.IntN(3))
		}
		text, _ := w.ask(c)
		q := Question{Kind: kind, Text: text, Answer: Unknown}
		if kind != Absent {
			last := len(c.relations) - 1
			q.Answer = fmt.Sprintf("%s [%s]", c.values[last].text, c.cites[last].id)
		}
		files, ok := x.files()
		if ok {
			q.Files = files
			return q
		}
	}
}

// files are the documents as Markdown files; not ok where two would be about
// the same name.
func (x *world) files() (files fstest.MapFS, ok bool) {
	files = fstest.MapFS{}
	titles := map[string]bool{}
	for _, d := range x.documents {
		title := strings.ToLower(strings.TrimPrefix(d.about.title, "The "))
		if titles[title] || files[d.id] != nil || !fs.ValidPath(d.id) {
			return nil, false
		}
		titles[title] = true
		files[d.id] = &fstest.MapFile{Data: []byte("# " + d.about.title + "\n\n" + d.text() + "\n"), Mode: 0o444}
	}
	return files, true
}
