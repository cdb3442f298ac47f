package endtoend

import (
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
)

// A stream is what became of one with criteria and without the loop.
type stream struct {
	shown string
	verdict
	tally stopping.Tally
}

// listen follows a stream until a criterion fires. One that was recorded may
// be cut.
func listen(t *testing.T, chunks iter.Seq2[models.Chunk, error], criteria []stopping.Criterion) (got stream) {
	t.Helper()
	set, err := stopping.Compile(criteria...)
	if err != nil {
		t.Fatal(err)
	}
	matcher := set.Matcher()
	take := func(step stopping.Step, err error) (ended bool) {
		if err != nil {
			t.Fatal(err)
		}
		got.shown += step.Emit
		for _, d := range step.Notified() {
			got.reports = append(got.reports, fired(&d))
		}
		if step.Stop != nil && step.Stop.Reason == stopping.Matched {
			f := fired(step.Stop)
			got.stop = &f
		}
		return got.stop != nil
	}
	ended := false
	for c, err := range chunks {
		if err != nil {
			break
		}
		if ended = take(matcher.Write(c.Text, max(1, len(c.Tokens)))); ended {
			break
		}
	}
	if !ended {
		take(matcher.Close(), nil)
	}
	got.tally = matcher.Tally()
	return got
}

func fired(d *stopping.Decision) firing {
	return firing{d.Criterion.Name, d.MatchStart, d.MatchEnd, d.KeepEnd, d.Groups}
}

// agrees compares a stream with the definition.
func (got stream) agrees(t *testing.T, text string, want verdict) {
	t.Helper()
	if !reflect.DeepEqual(got.verdict, want) {
		t.Errorf("%s\nthe definition says %s\nin %q", got.verdict, want, text)
	}
	if got.shown != want.keep(text) {
		t.Errorf("shown\n%q\nwant\n%q", got.shown, want.keep(text))
	}
	n := got.tally
	if n.Emitted != len(got.shown) || n.Held != 0 || n.Emitted+n.Stripped+n.Discarded != n.Received {
		t.Errorf("%d bytes shown, tally %+v", len(got.shown), n)
	}
}

// oneByOne listens to a stream whose whole text is known with all criteria,
// then without the one that fired, until none does. It gives their names.
func oneByOne(t *testing.T, m models.Model, text string, criteria []stopping.Criterion) (names []string) {
	t.Helper()
	criteria = slices.Clone(criteria)
	for {
		want := define(t, criteria, text)
		listen(t, generate(t, m), criteria).agrees(t, text, want)
		if want.stop == nil {
			return names
		}
		names = append(names, want.stop.criterion)
		criteria = slices.DeleteFunc(criteria, func(c stopping.Criterion) bool { return c.Name == want.stop.criterion })
	}
}

// generate begins a generation after the end of a prompt.
func generate(t *testing.T, m models.Model) iter.Seq2[models.Chunk, error] {
	return m.Stream(t.Context(), models.Request{Prompt: []models.Segment{{Text: begins}}})
}

// A recording is one stream of a file in models/testdata, and what the client
// asks the server before it.
type recording struct {
	answers map[string][]byte // by method and path
	media   string
	body    []byte
}

// recordings reads the raw streams of a file.
func recordings(t *testing.T, file string) (all []recording) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string][]byte{}
	for i := 0; i+1 < len(a.Files); i += 2 {
		var n, status int
		var method, path, media string
		if _, err := fmt.Sscan(a.Files[i].Name, &n, &method, &path); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(a.Files[i+1].Name, &n, &status, &media); err != nil {
			t.Fatal(err)
		}
		switch data := a.Files[i+1].Data; {
		case status != http.StatusOK:
		case (media == "application/x-ndjson" || media == "text/event-stream") && (path == "/api/generate" || path == "/completion"):
			all = append(all, recording{answers, media, data})
		default:
			answers[method+" "+path] = data
		}
	}
	return all
}

// serve answers as recorded, size bytes at a time.
func (r recording) serve(t *testing.T, size int) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		if answer, ok := r.answers[req.Method+" "+req.URL.Path]; ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
			return
		}
		if req.Method != http.MethodPost {
			http.NotFound(w, req)
			return
		}
		w.Header().Set("Content-Type", r.media)
		for part := range slices.Chunk(r.body, size) {
			if _, err := w.Write(part); err != nil {
				return // the client has left
			}
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What servers sent when models/testdata was recorded, as the network may cut
// it.
func TestCriteriaOnRecordedStreams(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "models/testdata/*/*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	criteria := eight(template.Think{Open: "<think>", Close: "</think>"}) // their prompts open nothing
	ends := map[string]int{}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "score") {
			continue // they ask for probabilities, a token at a time
		}
		kind := filepath.Base(filepath.Dir(file))
		for i, r := range recordings(t, file) {
			t.Run(fmt.Sprintf("%s/%s/%d", kind, strings.TrimSuffix(filepath.Base(file), ".txtar"), i), func(t *testing.T) {
				for _, size := range []int{5, 1 << 20} {
					url := r.serve(t, size)
					ref := map[string]string{"ollama": "ollama:m", "llama-server": "llamacpp:" + url}[kind]
					m, err := models.Open(ref, models.Options{OllamaHost: url})
					if err != nil {
						t.Fatal(err)
					}
					text := listen(t, generate(t, m), nil).shown
					if text == "" {
						t.Error("there is no text")
					}
					for _, name := range oneByOne(t, m, text, criteria) {
						ends[kind+" "+name]++
					}
				}
			})
		}
	}
	for _, end := range []string{"ollama json", "ollama call", "llama-server json", "llama-server call"} {
		if ends[end] == 0 {
			t.Errorf("%s never fired: %v", end, ends)
		}
	}
}

// torn is a text whose characters lie across tokens, as those of scripts and
// emojis do that a vocabulary does not know. A script cannot express it: it
// has placeholders of three bytes, and the model file gets the tokens.
var (
	placeholders = []string{":甲", "乙", "丙", "丁", "戊"}
	tokens       = []string{":\xf0\x9f\x99", "\x82\xe5\xa5", "\xbd\xe4\xbd", "\xa0\xe5\xa5", "\xbd\xc3\xa9"}
)

const torn = "The pilot's sign is:🙂好你好é and then。 More"

// tornFile is a model file that writes torn.
func tornFile(t *testing.T) string {
	t.Helper()
	before, after, _ := strings.Cut(torn, strings.Join(tokens, ""))
	script := before + strings.Join(placeholders, "") + after
	path := modelFile(t, []automaton.Turn{{After: begins, Text: script}}, automaton.Options{})
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := string(b)
	for i, p := range placeholders {
		from, to := entry(p), entry(tokens[i])
		if len(from) != len(to) || strings.Count(file, from) != 1 {
			t.Fatalf("token %q cannot become %q", p, tokens[i])
		}
		file = strings.Replace(file, from, to, 1)
	}
	if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// entry is a token as a GGUF file has it: its length and its spelling, in
// which each byte is a character (the table of GPT-2's encoder).
func entry(token string) string {
	spelling := ""
	for _, c := range []byte(token) {
		switch r := rune(c); {
		case c >= 0x7f && c <= 0xa0:
			spelling += string(r + 0xa2)
		case c == 0xad:
			spelling += "\u0143"
		default:
			spelling += string(r)
		}
	}
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(spelling)))) + spelling
}

// A token that ends inside a character, or in one that ends a match, changes
// nothing. Servers join such tokens: they send whole characters.
func TestCriteriaInsideTokens(t *testing.T) {
	criteria := []stopping.Criterion{
		{Name: "literal", Literal: "好", Strip: true},
		{Name: "lookbehind", Regex: `(?<=🙂好)你`, Strip: true},
		{Name: "backreference", Regex: `(?<c>\p{Han}).\k<c>`},
		{Name: "letter", Regex: `[é-ë]`, Strip: true},
		{Name: "sentence", Sentences: 1},
		{Name: "report", Regex: `\p{So}|\p{Han}`, Action: stopping.Notify},
	}
	check := func(t *testing.T, m models.Model) {
		names := oneByOne(t, m, torn, criteria)
		if want := []string{"literal", "lookbehind", "backreference", "letter", "sentence"}; !slices.Equal(names, want) {
			t.Errorf("%q fired, want %q", names, want)
		}
	}
	t.Run("script", func(t *testing.T) { check(t, written(torn, 1)) })
	t.Run("ollama", func(t *testing.T) {
		m := &lasting{t: t, server: ollamatest.Shared(t), name: "torn", file: tornFile(t)}
		m.open("torn")
		check(t, m)
	})
	t.Run("llama-server", func(t *testing.T) { check(t, llama(t, tornFile(t))) })
}
