package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A meaning is an embedding model for tests: it knows a few topics, and says how
// much of each is in a text.
type meaning struct {
	name   string
	topics [][]string
	after  int // texts, after which the server is gone; 0 for never

	mu      sync.Mutex
	texts   []string
	queries int
}

var errGone = &EmbedError{Server: "test", URL: "http://test", Err: errors.New("connection refused")}

func (m *meaning) Name() string { return m.name }

func (m *meaning) Embed(_ context.Context, texts []string, query bool) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.after > 0 && len(m.texts)+len(texts) > m.after {
		gone := *errGone
		return nil, &gone
	}
	if query {
		m.queries++
	}
	var list [][]float32
	for _, text := range texts {
		if !query && text != probeText {
			m.texts = append(m.texts, text)
		}
		v := make([]float32, len(m.topics)+1)
		v[len(m.topics)] = 0.01
		for i, words := range m.topics {
			for _, w := range words {
				v[i] += float32(strings.Count(strings.ToLower(text), w))
			}
		}
		list = append(list, v)
	}
	return list, normalise(list, len(texts))
}

func newMeaning() *meaning {
	return &meaning{name: "test", topics: [][]string{{"ship", "vessel", "boat"}, {"cat", "feline"}, {"money", "wage", "salary"}}}
}

var topical = files{
	"sea.md":   "# Sea\n\nThe vessel left the harbour.",
	"pets.md":  "# Pets\n\nA feline sleeps all day.",
	"pay.md":   "# Pay\n\nThe wage is paid each month.",
	"other.md": "# Other\n\nThe harbour has a crane.",
}

// TestHybrid: what no word of a query leads to, its vector does, and what both
// lead to comes first.
func TestHybrid(t *testing.T) {
	cfg := newCorpus(t, topical)
	m := newMeaning()
	cfg.Embedder = m
	x := mustOpen(t, cfg)
	if st := x.Stats(); st.Embedded != 4 || len(m.texts) != 4 {
		t.Errorf("%d texts embedded, %d stated", len(m.texts), st.Embedded)
	}
	found, err := x.Search(t.Context(), []string{"boat", "harbour ship", "harbour"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"sea.md", "sea.md"} {
		if h := found[i].Hits; len(h) != 2 || h[0].ID != want {
			t.Errorf("%q: %+v", found[i].Query, h)
		}
	}
	if h := found[1].Hits[0]; h.Score != 1 {
		t.Errorf("the first of both rankings has the score %v", h.Score)
	}
	if m.queries != 1 {
		t.Errorf("%d requests for the queries of one search", m.queries)
	}
	words := mustOpen(t, Config{Path: cfg.Path, Index: cfg.Index})
	if got := ids(t, words, "boat"); got != "" {
		t.Errorf("without the model %q", got)
	}
}

// TestEmbedOnlyNew: a text is embedded once, wherever it goes.
func TestEmbedOnlyNew(t *testing.T) {
	cfg := newCorpus(t, topical)
	m := newMeaning()
	cfg.Embedder = m
	step := func(name string, want int) {
		t.Helper()
		m.texts = nil
		x := mustOpen(t, cfg)
		if len(m.texts) != want || x.Stats().Embedded != want || x.Stats().Rebuilt != "" {
			t.Errorf("%s: embedded %q, rebuilt %q", name, m.texts, x.Stats().Rebuilt)
		}
		var vectors, waiting int
		const counts = "SELECT (SELECT count(*) FROM vectors), (SELECT count(*) FROM passages WHERE num NOT IN (SELECT passage FROM embedded))"
		if err := x.db.QueryRow(counts).Scan(&vectors, &waiting); err != nil || waiting != 0 {
			t.Errorf("%s: %d passages wait, %v", name, waiting, err)
		}
		if got := ids(t, x, "salary"); !strings.HasPrefix(got, "pay") {
			t.Errorf("%s: found %q", name, got)
		}
		x.Close()
	}
	step("first", 4)
	step("nothing", 0)
	if err := os.Rename(filepath.Join(cfg.Path, "pay.md"), filepath.Join(cfg.Path, "pay2.md")); err != nil {
		t.Fatal(err)
	}
	step("moved", 0)
	write(t, cfg.Path, files{"sea.md": "# Sea\n\nThe vessel came back.", "twin/sea.md": "# Sea\n\nThe vessel came back."})
	step("changed, and a copy", 1)
	if err := os.Remove(filepath.Join(cfg.Path, "other.md")); err != nil {
		t.Fatal(err)
	}
	step("removed", 0)
}

// TestEmbedLong: passages of a long document keep their vectors where only
// another part of it changed.
func TestEmbedLong(t *testing.T) {
	part := func(i int) string { return strings.Repeat(fmt.Sprintf("Sentence of part %d. ", i), 60) + "\n\n" }
	text := ""
	for i := range 10 {
		text += part(i)
	}
	cfg := newCorpus(t, files{"long.md": text})
	m := newMeaning()
	cfg.Embedder = m
	all := mustOpen(t, cfg).Stats().Passages
	if all < 5 || len(m.texts) != all {
		t.Fatalf("%d passages, %d embedded", all, len(m.texts))
	}
	for i, text := range m.texts[1:] {
		before := m.texts[i]
		lead := strings.SplitN(text, "\n", 2)[1][:20]
		if !strings.Contains(before[len(before)-300:], lead) {
			t.Errorf("passage %d begins with %q, which does not end the one before", i+2, lead)
		}
	}
	m.texts = nil
	write(t, cfg.Path, files{"long.md": text + "One more vessel."})
	x := mustOpen(t, cfg)
	if n := len(m.texts); n < 1 || n > 2 {
		t.Errorf("%d of %d embedded again", n, all)
	}
	found, err := x.Search(t.Context(), []string{"boat"}, 1)
	if err != nil || !strings.Contains(found[0].Hits[0].Text, "vessel") {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestServerGoesAway: what was embedded stays, the error says how far it got, and
// the next time goes on.
func TestServerGoesAway(t *testing.T) {
	list := files{}
	for i := range 3 * embedBatch {
		list[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("vessel number %d", i)
	}
	cfg := newCorpus(t, list)
	m := newMeaning()
	m.after = 2*embedBatch + 1
	cfg.Embedder = m
	var last Progress
	cfg.Progress = func(p Progress) { last = p }
	_, err := Open(t.Context(), cfg)
	var gone *EmbedError
	if !errors.As(err, &gone) || gone.Done != 2*embedBatch || gone.Left != embedBatch || last.Passages != gone.Done {
		t.Fatalf("got %v, progress %+v", err, last)
	}
	m.after, m.texts = 0, nil
	if x := mustOpen(t, cfg); x.Stats().Embedded != embedBatch {
		t.Errorf("%d embedded after the break", x.Stats().Embedded)
	}
	// At search time words are left.
	var told error
	cfg.Notice = func(err error) { told = err }
	x := mustOpen(t, cfg)
	m.after = 1
	m.texts = []string{"x"}
	if got := ids(t, x, "7"); got != "007.md" || told == nil {
		t.Errorf("found %q, told %v", got, told)
	}
}

// TestEmbedCancelled: Ctrl-C keeps what is embedded.
func TestEmbedCancelled(t *testing.T) {
	list := files{}
	for i := range 2 * embedBatch {
		list[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("vessel number %d", i)
	}
	cfg := newCorpus(t, list)
	m := newMeaning()
	cfg.Embedder = m
	ctx, cancel := context.WithCancel(t.Context())
	cfg.Progress = func(p Progress) {
		if p.Passages > 0 {
			cancel()
		}
	}
	if _, err := Open(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	cfg.Progress = nil
	if x := mustOpen(t, cfg); x.Stats().Embedded != embedBatch {
		t.Errorf("%d embedded after the interruption", x.Stats().Embedded)
	}
}

// TestAnotherModel: vectors of another model, or of the same name with another
// width, are made anew.
func TestAnotherModel(t *testing.T) {
	cfg := newCorpus(t, topical)
	cfg.Embedder = newMeaning()
	mustOpen(t, cfg).Close()
	for name, change := range map[string]func(*meaning){
		"another name":  func(m *meaning) { m.name = "other" },
		"another width": func(m *meaning) { m.name = "other"; m.topics = m.topics[:2] },
	} {
		m := newMeaning()
		change(m)
		if name == "another width" {
			before := newMeaning()
			before.name = "other"
			cfg.Embedder = before
			mustOpen(t, cfg).Close()
		}
		cfg.Embedder = m
		x := mustOpen(t, cfg)
		if st := x.Stats(); st.Rebuilt != noteModel || st.Embedded != 4 {
			t.Errorf("%s: %+v", name, st)
		}
		if got := ids(t, x, "boat"); !strings.HasPrefix(got, "sea.md") {
			t.Errorf("%s: found %q", name, got)
		}
		x.Close()
	}
}

// TestTwoModels: vectors of two models never meet, whoever comes in between.
func TestTwoModels(t *testing.T) {
	cfg := newCorpus(t, topical)
	first, second := newMeaning(), newMeaning()
	second.name = "second"
	second.topics[0], second.topics[1] = second.topics[1], second.topics[0] // as long, and about something else
	var notices []error
	cfg.Embedder, cfg.Notice = first, func(err error) { notices = append(notices, err) }
	x := mustOpen(t, cfg)
	other := Config{Path: cfg.Path, Index: cfg.Index, Embedder: second}
	y := mustOpen(t, other)
	if got := ids(t, y, "boat"); !strings.HasPrefix(got, "sea.md") {
		t.Errorf("the second model finds %q", got)
	}
	if got := ids(t, x, "boat harbour"); !strings.HasPrefix(got, "other.md") || len(notices) != 1 || !errors.Is(notices[0], errAnotherModel) {
		t.Errorf("with the vectors of another model %q, %v", got, notices)
	}
	write(t, cfg.Path, files{"new.md": "# New\n\nA boat is built."})
	cfg.Embedder = &interrupted{first, func() { mustOpen(t, other) }}
	_, err := Open(t.Context(), cfg)
	if _, ok := errors.AsType[*IndexError](err); !ok || !errors.Is(err, errAnotherModel) {
		t.Errorf("another model came meanwhile: %v", err)
	}
	if got := ids(t, mustOpen(t, other), "vessel"); !strings.Contains(got, "new.md") {
		t.Errorf("the second model finds %q", got)
	}
}

// An interrupted model lets something happen before its first vectors of
// documents.
type interrupted struct {
	*meaning
	before func()
}

func (m *interrupted) Embed(ctx context.Context, texts []string, query bool) ([][]float32, error) {
	if before := m.before; before != nil && !query && texts[0] != probeText {
		m.before = nil
		before()
	}
	return m.meaning.Embed(ctx, texts, query)
}

// TestVersion: an index of another version is built anew, and says so.
func TestVersion(t *testing.T) {
	cfg := newCorpus(t, topical)
	x := mustOpen(t, cfg)
	if _, err := x.db.Exec("PRAGMA user_version = 1"); err != nil {
		t.Fatal(err)
	}
	x.Close()
	if st := mustOpen(t, cfg).Stats(); st.Rebuilt != noteVersion || st.Documents != 4 {
		t.Errorf("%+v", st)
	}
}

// TestEmbedServer asks servers of both kinds, good and bad.
func TestEmbedServer(t *testing.T) {
	var asked struct {
		path, key string
		body      map[string]any
	}
	status, answer := 200, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.path, asked.key = r.URL.Path, r.Header.Get("Authorization")
		asked.body = nil
		_ = json.NewDecoder(r.Body).Decode(&asked.body)
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	o := EmbedOptions{OllamaHost: s.URL, APIKey: "geheim"}
	for _, c := range []struct {
		ref, answer string
		status      int
		path, key   string
		want        string // the error; empty for [1 0] and [0 1]
	}{
		{"ollama:nomic-embed-text", `{"embeddings":[[2,0],[0,3]]}`, 200, "/api/embed", "", ""},
		{"openai:" + s.URL + "/v1#m", `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}`, 200, "/v1/embeddings", "Bearer geheim", ""},
		{"llamacpp:" + s.URL, `{"data":[{"index":0,"embedding":[1,0]},{"index":1,"embedding":[0,1]}]}`, 200, "/v1/embeddings", "Bearer geheim", ""},
		{"ollama:m", `{"embeddings":[[1,0]]}`, 200, "/api/embed", "", "it gave 1 vectors for 2 texts"},
		{"ollama:m", `{"embeddings":[[1,0],[1,0,0]]}`, 200, "/api/embed", "", "it gave vectors of 2 and of 3 numbers"},
		{"ollama:m", `{"embeddings":[[0,0],[1,0]]}`, 200, "/api/embed", "", "it gave a vector without a direction"},
		{"ollama:m", `{"embeddings":[[],[]]}`, 200, "/api/embed", "", "it gave an empty vector: the model may be none for embeddings"},
		{"ollama:m", `<html>`, 200, "/api/embed", "", "its answer is no list of vectors"},
		{"ollama:m", `{"error":"model \"m\" not found"}`, 404, "/api/embed", "", `model "m" not found (HTTP 404)`},
		{"openai:" + s.URL + "#m", `{"error":{"message":"bad key geheim"}}`, 401, "/v1/embeddings", "Bearer geheim", "bad key **** (HTTP 401)"},
	} {
		status, answer = c.status, c.answer
		e, err := NewEmbedder(c.ref, o)
		if err != nil {
			t.Fatal(err)
		}
		list, err := e.Embed(t.Context(), []string{"a", "b"}, true)
		if c.want != "" {
			var bad *EmbedError
			if !errors.As(err, &bad) || bad.Err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.ref, err, c.want)
			}
		} else if err != nil || fmt.Sprint(list) != "[[1 0] [0 1]]" {
			t.Errorf("%s: %v, %v", c.ref, list, err)
		}
		if asked.path != c.path || asked.key != c.key {
			t.Errorf("%s asked %s with key %q", c.ref, asked.path, asked.key)
		}
		if c.ref == "ollama:nomic-embed-text" && fmt.Sprint(asked.body["input"]) != "[search_query: a search_query: b]" {
			t.Errorf("sent %v", asked.body)
		}
	}
	for ref, reason := range map[string]string{
		"nomic": "begins with none", "ollama:": "name of the model is missing", "openai:http://h": "behind a #",
		"llamacpp:": "no address", "openai:ftp://h#m": "neither http nor https",
	} {
		var bad *EmbedRefError
		if _, err := NewEmbedder(ref, o); !errors.As(err, &bad) || !strings.Contains(bad.Reason, reason) {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

// TestPasswordsStayOut: no error repeats the password of an address.
func TestPasswordsStayOut(t *testing.T) {
	e, err := NewEmbedder("openai:http://me:geheim@127.0.0.1:1#m", EmbedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := e.(*embedServer)
	_, again, err := s.ask(ctx, []string{"a"})
	if err == nil || !again || strings.Contains(fmt.Sprint(err, s.Name(), &EmbedError{URL: s.base.Redacted(), Err: err}), "geheim") {
		t.Errorf("%v, again %v", err, again)
	}
	cancel()
	if _, err := e.Embed(ctx, []string{"a"}, false); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_, err = OpenRemote(t.Context(), "http://me:geheim@127.0.0.1:1", RemoteOptions{})
	var bad *RemoteError
	if !errors.As(err, &bad) || strings.Contains(err.Error(), "geheim") {
		t.Errorf("got %v", err)
	}
}

// TestParse: further types of files, and what becomes of bad ones.
func TestParse(t *testing.T) {
	cfg := newCorpus(t, files{"a.pdf": "good", "b.pdf": "bad\n\x1b[31m", "c.PDF": "empty", "d.doc": "x", "e.md": "plain"})
	cfg.Types = []string{".pdf"}
	cfg.Parse = func(_ context.Context, name string, data []byte) (Document, error) {
		switch {
		case strings.HasPrefix(string(data), "bad"):
			return Document{}, errors.New("it is " + string(data))
		case string(data) == "empty":
			return Document{}, nil
		}
		return Document{Title: "Good", Text: "# Good\n\nThe island of a PDF.\x00"}, nil
	}
	x := mustOpen(t, cfg)
	const want = "2 docs, +4 ~0 -0 =0, skipped 1 empty, 1 it is bad [31m, 1 not read (.doc)"
	if got := counts(x.Stats()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if d, err := x.Read(t.Context(), "a.pdf"); err != nil || d.Title != "Good" || d.Text != "The island of a PDF. " {
		t.Errorf("%+v, %v", d, err)
	}
	x.Close()
	cfg.Parse = nil
	if got := ids(t, mustOpen(t, cfg), "island"); got != "" {
		t.Errorf("without the parser %q", got)
	}
}
