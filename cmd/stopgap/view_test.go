package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// showcase is a run with everything that a view can meet.
func showcase() []runner.Event {
	text := func(turn int, kind template.SpanKind, pieces ...string) []runner.Event {
		var out []runner.Event
		for _, p := range pieces {
			out = append(out, runner.Text{Turn: turn, Span: kind, Text: p})
		}
		return out
	}
	var events []runner.Event
	add := func(more ...runner.Event) { events = append(events, more...) }

	add(runner.Started{Question: "Where is Lake Bled?", Format: "qwen", Prompt: []runner.Segment{{Text: "…"}}})
	add(runner.Waiting{Turn: 1, Phase: models.Loading})
	add(runner.Waiting{Turn: 1, Phase: models.Reading, Done: 1024, Total: 4096})
	add(runner.Waiting{Turn: 1, Phase: models.Reading, Done: 4096, Total: 4096})
	add(text(1, template.SpanTag, "<think>")...)
	add(text(1, template.SpanThink, "\n", "I should look up ", "where \x1b[31mLake Bled is", ",\n", "and how long. ", "\n")...)
	add(text(1, template.SpanTag, "</think>")...)
	add(text(1, template.SpanText, "\n\nLet me ", "see.\n")...)
	add(text(1, template.SpanTag, "<tool_call>")...)
	add(text(1, template.SpanCall, `{"name": "search", …`)...)
	add(runner.Stopped{Turn: 1, Means: template.MeansCall, Criterion: "call"})
	add(runner.Called{Turn: 1, Name: "search", Arguments: json.RawMessage(`{"query":["Lake Bled", "布莱德湖 在 哪里 布莱德湖 在 哪里"]}`)})
	add(runner.Called{Turn: 1, Index: 1, Name: "read", Arguments: json.RawMessage(`{"id":"lakes.md\u001b]0;title\u0007","deep":true}`)})
	add(runner.Returned{Turn: 1, Name: "search", Status: tools.OK, Cut: 120, Duration: time.Second,
		Content: "Lakes. Lake Bled is in Slovenia, at the foot of the Julian Alps. [lakes.md]\r\n\r\nRivers.\tThe Soča. [rivers.md]\nC\nD\nE\nF"})
	add(runner.Returned{Turn: 1, Index: 1, Name: "read", Status: tools.Failed, Content: "Error: read failed: no document has the id \"\u202elakes\"."})
	add(text(2, template.SpanText, "Hm.")...)
	add(runner.Stopped{Turn: 2, Means: template.MeansEnd})
	add(runner.Nudged{Turn: 2, Reason: "repeated_call", Note: "…"})
	add(runner.Nudged{Turn: 2, Reason: "turn_limit", Note: "…", Forced: true})
	add(runner.Waiting{Turn: 3, Phase: models.Retrying})
	add(text(3, template.SpanText, "\nLake Bled is in **Slovenia**.\n", "\nIt is 2 km", " long. \n")...)
	add(runner.Stopped{Turn: 3, Means: template.MeansEnd})
	add(runner.Answered{Turn: 3, Answer: "Lake Bled is in **Slovenia**.\n\nIt is 2 km long.", Forced: true})
	add(runner.Ended{Outcome: runner.Outcome{
		Termination: runner.TermAnsweredForced, Turns: 3, Calls: 2, Pieces: 118, Duration: 3210 * time.Millisecond,
		Usage: models.Usage{Evaluated: models.Known(580), Reused: models.Known(361)},
	}})
	return events
}

// TestView compares what people see with testdata/view. Escapes stand there as
// ^[, and a carriage return as ^M, so that the files can be read.
func TestView(t *testing.T) {
	for _, c := range []struct {
		name   string
		live   bool
		screen screen
		quiet  bool
	}{
		{"terminal-80-colour", true, screen{true, true, columns(80)}, false},
		{"terminal-80-plain", true, screen{false, true, columns(80)}, false},
		{"terminal-30-colour", true, screen{true, true, columns(30)}, false},
		{"terminal-20-dumb", true, screen{false, false, columns(20)}, false},
		{"pipe", false, screen{false, false, columns(plain)}, false},
		{"quiet", false, screen{false, false, columns(80)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			v := &view{out: marked{&b, "out|"}, err: marked{&b, "err|"}, screen: c.screen, live: c.live, terminal: c.live, quiet: c.quiet}
			if c.live {
				v.out, v.err = &b, &b
			}
			if c.screen.cursor {
				v.spinner = &spinner{w: v.err, screen: c.screen}
			}
			for _, ev := range showcase() {
				if err := v.Event(ev); err != nil {
					t.Fatal(err)
				}
			}
			v.Close()
			checkWidth(t, b.String(), c.screen)
			golden(t, filepath.Join("testdata", "view", c.name+".golden"), readable(b.String()))
		})
	}
}

func columns(n int) func() int { return func() int { return n } }

// marked puts a word in front of what is written, to tell two streams apart.
type marked struct {
	b    *bytes.Buffer
	mark string
}

func (m marked) Write(p []byte) (int, error) {
	if n := m.b.Len(); n == 0 || m.b.Bytes()[n-1] == '\n' {
		m.b.WriteString(m.mark)
	}
	return m.b.Write(p)
}

// checkWidth wants no line of the view's own to be wider than the screen;
// what the model writes is wrapped by the terminal.
func checkWidth(t *testing.T, out string, s screen) {
	t.Helper()
	if s.width() == plain {
		return
	}
	for line := range strings.Lines(strings.ReplaceAll(out, "\r", "\n")) {
		line = strings.TrimRight(stripped(line), "\n")
		own := strings.HasPrefix(line, "→") || strings.HasPrefix(line, "←") || strings.HasPrefix(line, "·") || strings.HasPrefix(line, "    ")
		if own && cells(line) > s.width() {
			t.Errorf("%d columns: %q", cells(line), line)
		}
	}
}

// stripped takes the view's own escapes out.
func stripped(s string) string {
	var b strings.Builder
	for s != "" {
		if i := strings.Index(s, "\x1b["); i >= 0 {
			b.WriteString(s[:i])
			s = s[i+2:]
			s = s[strings.IndexAny(s, "mK")+1:]
			continue
		}
		b.WriteString(s)
		break
	}
	return b.String()
}

func readable(s string) string {
	return strings.NewReplacer("\x1b", "^[", "\r", "^M").Replace(s)
}

// golden compares with a file, or rewrites it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it); got:\n%s", path, got)
	}
}

// TestViewNeverWritesEscapesOfOthers sends every control character through
// every event that carries foreign text, with colours off: then nothing but
// newlines and tabs may come out.
func TestViewNeverWritesEscapesOfOthers(t *testing.T) {
	evil := ""
	for r := rune(0); r < 0xa0; r++ {
		if r < 0x20 || r >= 0x7f {
			evil += string(r) + "x"
		}
	}
	evil += "\u202e\u2066\u2028\u061c\xff\x9b31m"
	arguments, err := json.Marshal(map[string]string{"id": evil})
	if err != nil {
		t.Fatal(err)
	}
	for _, live := range []bool{true, false} {
		var b bytes.Buffer
		v := &view{out: &b, err: &b, screen: screen{width: columns(80)}, live: live, terminal: true}
		for _, ev := range []runner.Event{
			runner.Started{Question: evil}, runner.Text{Span: template.SpanThink, Text: evil},
			runner.Text{Span: template.SpanText, Text: evil}, runner.Text{Span: template.SpanAnswer, Text: evil},
			runner.Called{Name: evil, Arguments: arguments}, runner.Called{Name: "a", Arguments: json.RawMessage(evil)},
			runner.Returned{Name: evil, Content: evil, Status: tools.Failed}, runner.Nudged{Reason: evil, Note: evil},
			runner.Answered{Answer: evil},
			runner.Ended{Outcome: runner.Outcome{Termination: runner.TermServerError, Error: evil, Answer: evil}},
		} {
			if err := v.Event(ev); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range b.String() {
			if dangerous(r) {
				t.Errorf("live %v: %U is written at byte %d", live, r, i)
			}
		}
		if !strings.Contains(b.String(), "␛") || !strings.Contains(b.String(), `\u202e`) {
			t.Errorf("live %v: what was foreign is not shown: %q", live, b.String())
		}
	}
}

// TestBlockCuts: where a text is cut never changes what is written.
func TestBlockCuts(t *testing.T) {
	for _, text := range []string{"", " \n ", "a", " a b\n\nc \n", "\t\nfirst\n\n  second\n", "no end"} {
		whole := ""
		for size := 1; size <= len(text)+1; size++ {
			var b block
			got := ""
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				got += b.add(template.SpanText, rest[:n])
				rest = rest[n:]
			}
			_, end := b.end()
			got += end
			if size == 1 {
				whole = got
				if want := strings.TrimSpace(text); want != "" && got != want+"\n" || want == "" && got != "" {
					t.Errorf("%q becomes %q", text, got)
				}
			}
			if got != whole {
				t.Errorf("%q in pieces of %d: %q, in pieces of 1: %q", text, size, got, whole)
			}
		}
	}
}

func TestCallWords(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{`{"query":["a"]}`, `search("a")`},
		{`{"query":["a","b, c"]}`, `search("a", "b, c")`},
		{`{"query":"a <b>"}`, `search("a <b>")`},
		{`{"z":1,"a":[1, {"k": null}],"m":"x"}`, `search(z: 1, a: [1,{"k":null}], m: "x")`},
		{`{}`, `search()`},
		{`[1]`, `search([1])`},
		{`{"a":`, `search({"a":)`},
		{``, `search()`},
	} {
		if got := callWords("search", json.RawMessage(c.arguments)); got != c.want {
			t.Errorf("%s: %s, not %s", c.arguments, got, c.want)
		}
	}
}

func TestTokenWords(t *testing.T) {
	known := models.Known
	for _, c := range []struct {
		usage models.Usage
		want  string
	}{
		{models.Usage{Generated: known(12), Evaluated: known(3), Reused: known(0)}, "tokens: 12 generated, 3 evaluated, 0 reused"},
		{models.Usage{Evaluated: known(3)}, "tokens: ~9 generated, 3 evaluated, reused unknown"},
		{models.Usage{Generated: known(12)}, "tokens: 12 generated, evaluated and reused unknown"},
	} {
		if got := tokenWords(runner.Outcome{Usage: c.usage, Pieces: 9}); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

func TestJoinParts(t *testing.T) {
	for _, c := range []struct {
		width int
		want  string
	}{
		{plain, "one · two · three"}, {17, "one · two · three"}, {16, "one · two\nthree"}, {5, "one\ntwo\nthree"}, {1, "one\ntwo\nthree"},
	} {
		parts := []string{"one", "two", "three"}
		if got := joinParts(parts, c.width); got != c.want {
			t.Errorf("%d: %q, not %q", c.width, got, c.want)
		}
		if fmt.Sprint(parts) != "[one two three]" {
			t.Errorf("%d: the parts are changed: %q", c.width, parts)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "plain\ttext\n", "\x1b[2J", "\x9b", "\u009b", "\r\n", "\u202e", "é世", "\xff\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := printable(s)
		for _, r := range got {
			if dangerous(r) {
				t.Fatalf("%q gives %q", s, got)
			}
		}
		if again := printable(got); again != got {
			t.Fatalf("%q gives %q, and that %q", s, got, again)
		}
	})
}
