package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A reference is what another implementation of BM25 makes of documents and
// queries.
type reference struct {
	By  string         `json:"by"`
	Top [][][2]float64 `json:"top"` // for each query: documents and their scores
}

// agreement is the least share of queries whose five best documents are the same.
const agreement = 0.95

const (
	referenceDocuments, referenceQueries = 2000, 200
	realDocuments, realQueries           = 1000, 150
	referenceTop                         = 5
)

// made gives documents and queries of made-up words.
func made() (documents, queries []string) {
	s := newSpeech(7)
	for range referenceDocuments {
		documents = append(documents, s.document())
	}
	for range referenceQueries {
		queries = append(queries, s.say(1+s.rng.IntN(10)))
	}
	return documents, queries
}

// real gives the doc comments of the standard library, and queries cut out of
// them: a few words in a row.
func real(t *testing.T) (documents, queries []string) {
	var p comment.Parser
	var print comment.Printer
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("there is no Go to ask for its sources: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	for _, dir := range []string{"net/http", "os", "go/ast", "database/sql", "reflect", "encoding/json"} {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range f.Comments {
				if text := string(print.Text(p.Parse(group.Text()))); len(strings.Fields(text)) >= 10 && len(text) < passageRunes/2 {
					documents = append(documents, text)
				}
			}
		}
	}
	if len(documents) < realDocuments {
		t.Skipf("there are only %d doc comments in %s", len(documents), root)
	}
	rng := rand.New(rand.NewPCG(11, 12))
	rng.Shuffle(len(documents), func(i, j int) { documents[i], documents[j] = documents[j], documents[i] })
	for _, d := range documents[:realQueries] {
		words := strings.Fields(d)
		n := 3 + rng.IntN(6)
		at := rng.IntN(len(words) - n + 1)
		queries = append(queries, strings.Join(words[at:at+n], " "))
	}
	return documents[:realDocuments], queries
}

// ask runs the reference over the same terms as ours. The number of a document is
// its id and thereby its title, which is a term more.
func ask(t *testing.T, documents, queries []string) reference {
	t.Helper()
	words := func(text string, query bool) []string {
		list := []string{}
		eachTerm(text, query, func(t term) { list = append(list, t.text) })
		return list
	}
	in := map[string]any{"k": referenceTop}
	var asDocuments, asQueries [][]string
	for i, d := range documents {
		asDocuments = append(asDocuments, words(fmt.Sprintf("%s %s", name(i), d), false))
	}
	for _, q := range queries {
		var list []string
		for _, t := range queryTerms(q) {
			list = append(list, t.text)
		}
		asQueries = append(asQueries, list)
	}
	in["documents"], in["queries"] = asDocuments, asQueries
	given, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", filepath.Join("testdata", "bm25.py"))
	cmd.Stdin = bytes.NewReader(given)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var r reference
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func name(i int) string { return fmt.Sprintf("d%05dx", i) }

// compare indexes the documents, asks the queries and counts those whose best
// documents are those of the reference. Which of several equal ones stand last is
// left open.
func compare(t *testing.T, documents, queries []string, want reference) {
	t.Helper()
	var b strings.Builder
	for i, d := range documents {
		fmt.Fprintf(&b, "{\"id\":%q,\"text\":%s}\n", name(i), quote(d))
	}
	x := mustOpen(t, newCorpus(t, files{"d.jsonl": b.String()}))
	found, err := x.Search(t.Context(), queries, referenceTop)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i, f := range found {
		if sameTop(f.Hits, want.Top[i]) {
			same++
		} else if i-same < 5 {
			t.Logf("%q: %v, the reference has %v", queries[i], f.Hits, want.Top[i])
		}
	}
	t.Logf("%d of %d queries have the same %d best documents as %s", same, len(queries), referenceTop, want.By)
	if share := float64(same) / float64(len(queries)); share < agreement {
		t.Errorf("%.1f %% agree, fewer than %.0f %%", 100*share, 100*agreement)
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always can be
	return string(b)
}

func sameTop(hits []Hit, want [][2]float64) bool {
	if len(hits) != len(want) {
		return false
	}
	for _, h := range hits {
		known := slices.ContainsFunc(want, func(w [2]float64) bool { return name(int(w[0])) == h.ID })
		// The reference leaves the factor k1+1 out, which orders nothing.
		last := want[len(want)-1][1] * (bm25K1 + 1)
		if !known && (h.Score < last-0.001 || h.Score > last+0.001) {
			return false
		}
	}
	return true
}

// TestReference compares the ranking with that of bm25s, as the golden file has
// it, and with what Python makes of the same documents now.
func TestReference(t *testing.T) {
	documents, queries := made()
	golden := filepath.Join("testdata", "bm25.json")
	if *rewrite {
		b, err := json.Marshal(ask(t, documents, queries))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(bytes.ReplaceAll(b, []byte("]],[["), []byte("]],\n[[")), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var want reference
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	compare(t, documents, queries, want)
	if testing.Short() {
		return
	}
	if err := exec.Command("python3", "-c", "").Run(); err != nil {
		t.Skipf("the golden file is compared, but not made again: %v", err)
	}
	t.Run("again", func(t *testing.T) {
		again := ask(t, documents, queries)
		for i, list := range again.Top {
			if len(list) != len(want.Top[i]) {
				t.Fatalf("%q: %v, the golden file has %v", queries[i], list, want.Top[i])
			}
			for j, d := range list {
				if diff := d[1] - want.Top[i][j][1]; diff > 0.001 || diff < -0.001 {
					t.Fatalf("%q: %v, the golden file has %v", queries[i], list, want.Top[i])
				}
			}
		}
	})
	t.Run("doc comments", func(t *testing.T) {
		documents, queries := real(t)
		compare(t, documents, queries, ask(t, documents, queries))
	})
}
