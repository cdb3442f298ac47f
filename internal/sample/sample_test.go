package sample

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"stopgap/tools/corpus"
)

// A text is a document as it stands in its file.
type text struct{ id, title, body string }

func (d text) chinese() bool {
	return strings.ContainsFunc(d.body, unicode.IsLetter) && !isASCII(d.body)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// texts reads all documents.
func texts(t *testing.T) map[string]text {
	t.Helper()
	all := map[string]text{}
	err := fs.WalkDir(Documents(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(Documents(), name)
		head, body, ok := strings.Cut(string(b), "\n\n")
		title, heads := strings.CutPrefix(head, "# ")
		if !ok || !heads || !strings.HasSuffix(body, "\n") || strings.Count(body, "\n") != 1 {
			t.Errorf("%s is no title, empty line and line of text:\n%s", name, b)
		}
		all[name] = text{name, title, strings.TrimSuffix(body, "\n")}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sentences cuts a text behind its full stops.
func sentences(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '。' })
}

func TestCorpusIsLargeEnough(t *testing.T) {
	chinese := 0
	titles := map[string]string{}
	for id, d := range texts(t) {
		if d.chinese() {
			chinese++
		}
		if other := titles[d.title]; other != "" {
			t.Errorf("%s and %s have the same title", id, other)
		}
		titles[d.title] = id
	}
	if n := len(titles) - chinese; n < 160 || chinese < 20 {
		t.Errorf("%d documents in English and %d in Chinese", n, chinese)
	}
}

// The built-in model is small: documents keep to the plain form that it reads.
func TestStyle(t *testing.T) {
	titled := regexp.MustCompile(`^[A-Z][a-z]+( [A-Z][a-z]+){0,2}$`)
	pronoun := regexp.MustCompile(`^(It|He|She|Its|His|Her) `)
	named := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	for id, d := range texts(t) {
		list := sentences(d.body)
		if n := len(list); !named.MatchString(id) || n < 2 || n > 3 {
			t.Errorf("%s: %d sentences", id, n)
		}
		if d.chinese() {
			for i, s := range list {
				if !strings.HasPrefix(s, d.title) && (i == 0 || !strings.HasPrefix(s, "它") && !strings.HasPrefix(s, "她") && !strings.HasPrefix(s, "他")) {
					t.Errorf("%s: %q begins with neither name nor pronoun", id, s)
				}
			}
			continue
		}
		if n := utf8.RuneCountInString("# " + d.title + "\n\n" + d.body + "\n"); n < 60 || n > 220 {
			t.Errorf("%s has %d characters", id, n)
		}
		if !isASCII(d.title+d.body) || !titled.MatchString(d.title) {
			t.Errorf("%s: title %q", id, d.title)
		}
		if id != strings.ReplaceAll(strings.ToLower(d.title), " ", "-")+".md" {
			t.Errorf("%s is named otherwise than its title %q", id, d.title)
		}
		for i, s := range list {
			s = strings.TrimSpace(s)
			begins := strings.HasPrefix(strings.TrimPrefix(s, "The "), d.title+" ")
			of := strings.HasPrefix(s, "The ") && (strings.Contains(s, " of "+d.title+" ") || strings.Contains(s, " of the "+d.title+" "))
			if !begins && (i == 0 || !of && !pronoun.MatchString(s)) {
				t.Errorf("%s: %q begins with neither name nor pronoun", id, s)
			}
		}
	}
}

// The subjects are linked: most documents name another one, and most are named.
func TestDocumentsNameEachOther(t *testing.T) {
	all := texts(t)
	names := func(d, other text) bool { return d.id != other.id && strings.Contains(d.body, other.title) }
	naming, named := 0, 0
	for _, d := range all {
		out, in := false, false
		for _, other := range all {
			out = out || names(d, other)
			in = in || names(other, d)
		}
		if out {
			naming++
		}
		if in {
			named++
		}
	}
	if least := len(all) * 2 / 3; naming < least || named < least {
		t.Errorf("of %d documents %d name another one and %d are named", len(all), naming, named)
	}
}

func TestQuestionsAreAnswered(t *testing.T) {
	all := texts(t)
	asked := map[string]bool{}
	counts := map[Kind]int{}
	chinese := 0
	for _, q := range Questions() {
		if asked[q.Question] {
			t.Errorf("%q is asked twice", q.Question)
		}
		asked[q.Question] = true
		counts[q.Kind]++
		if !isASCII(q.Question) {
			chinese++
		}
		for _, id := range q.Documents {
			if _, ok := all[id]; !ok {
				t.Errorf("%q: there is no document %s", q.Question, id)
			}
		}
		if q.Kind == Missing {
			checkMissing(t, all, q)
			continue
		}
		first, last := all[q.Documents[0]], all[q.Documents[len(q.Documents)-1]]
		if q.Answer == "" || !strings.Contains(last.body, q.Answer) {
			t.Errorf("%q: %s does not tell %q", q.Question, last.id, q.Answer)
		}
		hops := map[Kind]int{OneHop: 1, TwoHops: 2}[q.Kind]
		if len(q.Documents) != hops || !strings.Contains(first.body, last.title) {
			t.Errorf("%q (%s): %s does not lead to %s", q.Question, q.Kind, first.id, last.id)
		}
		if !strings.Contains(q.Question, first.title) {
			t.Errorf("%q does not name %s", q.Question, first.title)
		}
		if hops == 2 && (strings.Contains(q.Question, last.title) || strings.Contains(first.body, q.Answer)) {
			t.Errorf("%q needs only one document", q.Question)
		}
	}
	if counts[OneHop] < 30 || counts[TwoHops] < 20 || counts[Missing] < 10 || chinese < 6 {
		t.Errorf("questions: %v, %d in Chinese", counts, chinese)
	}
}

// checkMissing asserts that what a question asks stands neither in the document
// that it is about nor, where it is about none, in any.
func checkMissing(t *testing.T, all map[string]text, q Question) {
	if q.Answer != "" || q.Missing == "" || !strings.Contains(q.Question, q.Missing) || len(q.Documents) > 1 {
		t.Errorf("%q: what is missing is %q", q.Question, q.Missing)
	}
	for id, d := range all {
		if about := slices.Contains(q.Documents, id); (about || len(q.Documents) == 0) && strings.Contains(d.body, q.Missing) {
			t.Errorf("%q: %s tells of %q", q.Question, id, q.Missing)
		} else if about && !strings.Contains(q.Question, d.title) {
			t.Errorf("%q does not name %s", q.Question, d.title)
		}
	}
}

// open indexes the documents.
func open(t *testing.T) *corpus.Index {
	t.Helper()
	x, err := corpus.Open(t.Context(), corpus.Config{Path: "sample", FS: Documents()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// The search finds the document that the question names, and the one that tells
// the answer once its name is asked for.
func TestSearchFinds(t *testing.T) {
	all, x := texts(t), open(t)
	finds := func(query, id string) {
		found, err := x.Search(t.Context(), []string{query}, corpus.DefaultHits)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(found[0].Hits, func(h corpus.Hit) bool { return h.ID == id }) {
			t.Errorf("%q does not find %s but %+v", query, id, found[0].Hits)
		}
	}
	for _, q := range Questions() {
		for i, id := range q.Documents {
			if i == 0 {
				finds(q.Question, id)
			}
			finds(all[id].title, id)
		}
	}
}

// Every suggested question has its turn, and those of one turn differ.
func TestSuggestions(t *testing.T) {
	want := map[string]bool{}
	for _, q := range Questions() {
		if q.Suggested {
			want[q.Question] = true
			if q.Kind == Missing {
				t.Errorf("%q has no answer to show", q.Question)
			}
		}
	}
	got := map[string]bool{}
	for turn := range 366 {
		list := Suggestions(turn + 1)
		for i, q := range list {
			got[q.Question] = true
			if slices.IndexFunc(list, func(o Question) bool { return o.Question == q.Question }) != i {
				t.Errorf("turn %d suggests %q twice", turn+1, q.Question)
			}
		}
		if len(list) != 3 || list[2].Kind != TwoHops {
			t.Errorf("turn %d suggests %+v", turn+1, list)
		}
	}
	if len(want) < 12 || !maps.Equal(got, want) {
		t.Errorf("of %d questions to suggest %d are", len(want), len(got))
	}
}
