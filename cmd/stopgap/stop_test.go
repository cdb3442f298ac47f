package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"stopgap/stopping"
)

// stopgap runs the command in this process, without a configuration.
func stopgap(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("STOPGAP_CONFIG", "")
	var out, errs bytes.Buffer
	code = run(args, stdin, &out, &errs)
	return code, out.String(), errs.String()
}

// TestExplainGolden: what "stop --explain" prints for every kind of criterion.
// How each is checked, and which warnings there are, is package stopping's.
func TestExplainGolden(t *testing.T) {
	code, out, errs := stopgap(t, strings.NewReader(""), "stop", "--explain", "--stops", "testdata/criteria.yaml",
		"--stop", "Observation:", "--stop-regex", "Answer: \\d+\n")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	got := regexp.MustCompile(`(?m)^  plan: (counter|dfa|nfa|gated|windowed|rescan), \S.*$`).ReplaceAllString(out, "  plan: PLAN")
	got = regexp.MustCompile(`(?m)^  warning: .*\n  hint: .*\n`).ReplaceAllString(got, "")
	golden := filepath.Join("testdata", "explain.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is\n%s\nnot\n%s", got, want)
	}
}

// TestCriteriaFile: every field of a criterion can be said in a file.
func TestCriteriaFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "all.yaml")
	text := `- {name: 007, literal: 1.0, regex: "a", repetition: {min: 2, max: 3, count: 4}, json: true, sentences: 5, tokens: 6, bytes: 7,
   strip: true, strip_group: g, action: finish, min_tokens: 8, min_bytes: 9, captures: nearest, budget: 1m30s,
   scope: {open: "<a=b>", close: </a>, outside: true, starts_inside: true, after: "x y"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readCriteria(path)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	want := stopping.Criterion{
		Name: "007", Literal: "1.0", Regex: "a", Repetition: &stopping.Repetition{Min: 2, Max: 3, Count: 4},
		JSON: true, Sentences: 5, Tokens: 6, Bytes: 7, Strip: true, StripGroup: "g", Action: stopping.Finish,
		MinTokens: 8, MinBytes: 9, Captures: stopping.Nearest, Budget: 90e9,
		Scope: stopping.Scope{Open: "<a=b>", Close: "</a>", Outside: true, StartsInside: true, After: "x y"},
	}
	if got := list[0].Criterion; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nnot\n%+v", got, want)
	}
	for _, value := range []reflect.Value{reflect.ValueOf(want), reflect.ValueOf(*want.Repetition), reflect.ValueOf(want.Scope)} {
		for i := range value.NumField() {
			if value.Field(i).IsZero() {
				t.Errorf("the test says nothing of %s", value.Type().Field(i).Name)
			}
		}
	}
}

// FuzzCriteriaFile: whatever stands in the file, there are criteria that
// compile, or an error with a type.
func FuzzCriteriaFile(f *testing.F) {
	b, err := os.ReadFile("testdata/criteria.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(b))
	f.Add("- {name: a, scope: [x=y]}")
	f.Add("- {name: a, repetition: }")
	f.Fuzz(func(t *testing.T, text string) {
		s := &settings{stopFile: filepath.Join(t.TempDir(), "f.yaml")}
		if err := os.WriteFile(s.stopFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.declaredCriteria(); err != nil && exitCode(err) != exitUsage {
			t.Fatalf("%T %v", err, err)
		}
	})
}

// TestExcerpt: the mark stands below the last character, whatever its width
// and wherever the line is cut.
func TestExcerpt(t *testing.T) {
	long := strings.Repeat("0123456789", 30)
	for name, c := range map[string]struct {
		excerpt
		width       int
		text, marks string
	}{
		"kept":                 {excerpt{"ab", "cd", "", "ef"}, 40, "abcdef", "  ~^"},
		"cut off":              {excerpt{"ab", "", "cd", "ef"}, 40, "abcdef", "  -^"},
		"a group":              {excerpt{"ab", "cd", "ef", "g"}, 40, "abcdefg", "  ~~-^"},
		"one":                  {excerpt{"", "a", "", ""}, 40, "a", "^"},
		"a count":              {excerpt{"abc", "", "", "d"}, 40, "abcd", "  ^"},
		"wide":                 {excerpt{"日本", "語x語", "", "文"}, 40, "日本語x語文", "    ~~~^"},
		"wide count":           {excerpt{"日本", "", "", "語"}, 40, "日本語", "  ^"},
		"combining":            {excerpt{"a", "e\u0301", "", "x"}, 40, "ae\u0301x", " ^"},
		"newlines and escapes": {excerpt{"a\n", "\t\x1b", "", "\r\n"}, 40, "a␊␉␛␍␊", "  ~^"},
		"not UTF-8":            {excerpt{"\xff", "\xfe\xfd", "", "\xe2"}, 40, "\ufffd\ufffd\ufffd\ufffd", " ~^"},
		"long before":          {excerpt{long, "ab", "", "c"}, 34, "…34567890123456789ab" + "c", strings.Repeat(" ", 18) + "~^"},
		"long match":           {excerpt{"x", long, "", "c"}, 34, "…1234567890123456789" + "c", " " + strings.Repeat("~", 18) + "^"},
		"long group":           {excerpt{"x", "y", long, ""}, 34, "…1234567890123456789", " " + strings.Repeat("-", 18) + "^"},
		"long after":           {excerpt{"", "ab", "", long}, 24, "ab01234567890123456…", "~^"},
		"nothing":              {excerpt{}, 40, "", "^"},
	} {
		s := screen{width: func() int { return c.width }}
		text, marks := c.lines(s, 4)
		if text != c.text || marks != c.marks {
			t.Errorf("%s:\n%s\n%s\nnot\n%s\n%s", name, text, marks, c.text, c.marks)
		}
	}
	for width := range 30 {
		text, marks := excerpt{long, "日本語", "日本語", long}.lines(screen{width: func() int { return width }}, 0)
		if width > narrowest && max(cells(text), cells(marks)) > width || strings.Count(marks, "^") != 1 {
			t.Errorf("%d columns:\n%s\n%s", width, text, marks)
		}
	}
}

// TestScanPlaces: lines, columns and excerpts are those of the whole text,
// however it is read and cut.
func TestScanPlaces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b", "\n", "語", "é", "\xff", "\xe8\xaa", " ", strings.Repeat("x", 900)}
	for range 15 {
		var b strings.Builder
		for range random.IntN(400) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		text := b.String()
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)),
			iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			checkPlaces(t, text, r, 1+random.IntN(9))
		}
	}
}

// checkPlaces scans for one character, and compares with what counting says.
func checkPlaces(t *testing.T, text string, r io.Reader, chunk int) {
	t.Helper()
	every, err := stopping.Compile(stopping.Criterion{Name: "every", Regex: "[語b\n]", Action: stopping.Notify})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stopping.Compile(stopping.Criterion{Name: "first", Regex: "é.?b"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	s := &scan{input: newInput(r), trials: []*trial{newTrial(every), newTrial(first)}, chunk: chunk,
		report: func(list []report) error {
			for _, r := range list {
				got = append(got, fmt.Sprintf("%d-%d %s %q", r.MatchStart, r.MatchEnd, r.place, r.match))
			}
			return nil
		}}
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var want []string
	line, column := 1, 1
	for i, r := range text {
		if r == '語' || r == 'b' || r == '\n' {
			want = append(want, fmt.Sprintf("%d-%d %d:%d %q", i, i+len(string(r)), line, column, string(r)))
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		if r == '\ufffd' && !startsRune(text[i]) {
			column-- // the rest of a broken character has no column
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("chunks of %d in %q:\n%q\nnot\n%q", chunk, text, got, want)
	}
	if s.input.total() != len(text) {
		t.Fatalf("%d bytes of %d", s.input.total(), len(text))
	}
	if d := s.trials[1].stop; d != nil {
		e := s.trials[1].excerpt
		whole := e.before + e.kept + e.cut + e.after
		if at := d.MatchStart - len(e.before); at < 0 || !strings.HasPrefix(text[at:], whole) ||
			len(e.after) < min(lookaround, len(text)-d.MatchEnd) || e.kept != text[d.MatchStart:d.MatchEnd] {
			t.Fatalf("chunks of %d in %q: the excerpt is %q at %d", chunk, text, e, at)
		}
	}
}

func startsRune(b byte) bool { return b&0xc0 != 0x80 }

// TestStopLarge: a large text is read in pieces, and little of it is kept.
func TestStopLarge(t *testing.T) {
	const lines = 300_000
	text := func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("one line of text\n", lines)), strings.NewReader("and then <stop> here"))
	}
	code, out, errs := stopgap(t, text(), "stop", "--json", "--stop", "<stop>")
	var v verdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v, %s", code, err, errs)
	}
	const at = 17*lines + 9
	if *v.MatchStart != at || *v.MatchEnd != at+6 || *v.KeepEnd != at || *v.Discarded != 5 || v.Line != lines+1 || v.Column != 15 {
		t.Errorf("%s", out)
	}

	in := newInput(text())
	for !in.ended {
		if err := in.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		in.take(usualChunk)
		if cap(in.buf) > 4*blockSize {
			t.Fatalf("%d bytes are kept", cap(in.buf))
		}
	}
}

// TestStopUnreadable: a text that breaks off is an error, not an end.
func TestStopUnreadable(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("some text"), iotest.ErrReader(errors.New("the disk is gone")))
	code, out, errs := stopgap(t, broken, "stop", "--stop", "some")
	if code != exitUsage || out != "" || !strings.Contains(errs, "stopgap: cannot read the text: the disk is gone\nhint: ") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
}

// TestScanInterrupted: neither a read that never returns nor a text that never
// ends outlives the context.
func TestScanInterrupted(t *testing.T) {
	set, err := stopping.Compile(stopping.Criterion{Name: "x", Literal: "x"})
	if err != nil {
		t.Fatal(err)
	}
	silent, w := io.Pipe()
	defer w.Close()
	for name, r := range map[string]io.Reader{"silent": silent, "endless": endless{}} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scan{input: newInput(r), trials: []*trial{newTrial(set)}, chunk: usualChunk}
		done := make(chan error)
		go func() { done <- s.run(ctx) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}
