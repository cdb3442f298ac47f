package corpus

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func pieces(text string, list []span) []string {
	var out []string
	for _, s := range list {
		out = append(out, text[s.start:s.end])
	}
	return out
}

func TestPassages(t *testing.T) {
	tests := []struct {
		name, text string
		size       int
		want       []string
	}{
		{"short", "one piece", 20, []string{"one piece"}},
		{"heading", "intro text\n# One\nfirst\n# Two\nsecond", 25, []string{"intro text\n# One\nfirst\n", "# Two\nsecond"}},
		{"paragraph", "first first first\n\nsecond second", 25, []string{"first first first\n\n", "second second"}},
		{"sentence", "First sentence here. Second sentence here.", 30, []string{"First sentence here. ", "Second sentence here."}},
		{"word", "these are words without an end", 20, []string{"these are words ", "without an end"}},
		{"no place to cut", "xxxxxxxxxxyyyyyyyyyyz", 10, []string{"xxxxxxxxxx", "yyyyyyyyyy", "z"}},
		{"characters, not bytes", "天文台天文台天文", 6, []string{"天文台天文台", "天文"}},
	}
	for _, tt := range tests {
		if got := pieces(tt.text, passages(tt.text, tt.size)); strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSentences(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"One. Two! Three?", []string{"One. ", "Two! ", "Three?"}},
		{"It is 3.5 m. Yes.", []string{"It is 3.5 m. ", "Yes."}},
		{`He said "no." Then left.`, []string{`He said "no." `, "Then left."}},
		{"一。二！三", []string{"一。", "二！", "三"}},
		{"wrapped\nline. Next", []string{"wrapped\nline. ", "Next"}},
		{"para\n\npara", []string{"para\n\n", "para"}},
		{"## Head\ntext", []string{"## Head\n", "text"}},
		{"list:\n- one\n- two\n1. three", []string{"list:\n", "- one\n", "- two\n", "1. ", "three"}},
	}
	for _, tt := range tests {
		if got := pieces(tt.text, sentences(tt.text)); strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzPassages(f *testing.F) {
	f.Add("# One\n\nText. More text.\n\n# Two\n", uint8(10))
	f.Add("天文台。天文台！", uint8(3))
	f.Add(strings.Repeat("x", 100), uint8(1))
	f.Fuzz(func(t *testing.T, text string, n uint8) {
		text = strings.ToValidUTF8(text, "?")
		size := int(n) + 1
		for name, list := range map[string][]span{"passages": passages(text, size), "sentences": sentences(text)} {
			if got := strings.Join(pieces(text, list), ""); got != text {
				t.Fatalf("the %s spell %q, not %q", name, got, text)
			}
			for i, p := range pieces(text, list) {
				if !utf8.ValidString(p) || p == "" && text != "" || name == "passages" && utf8.RuneCountInString(p) > size {
					t.Fatalf("%s %d of %q is %q", name, i, text, p)
				}
			}
		}
		if text == "" {
			return
		}
		line := snippet(text, 0, queryTerms(text))
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\t\x00\x1b") || utf8.RuneCountInString(line) > snippetRunes+4 {
			t.Fatalf("the snippet of %q is %q", text, line)
		}
	})
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("Nothing to see in this one. ", 15)
	tests := []struct{ name, text, query, want string }{
		{"whole text", "One thing. Another thing.\n\nA third.", "another", "One thing. Another thing. A third."},
		{"heading", "## The *Lantern*\n\n#hashtag and # alone", "x", "The *Lantern* #hashtag and # alone"},
		{"the best sentence leads", filler + "The whale sang. The end.", "whale", "Nothing"},
	}
	for _, tt := range tests[:2] {
		if got := snippet(tt.text, 0, queryTerms(tt.query)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	got := snippet(filler+"The whale sang. "+filler, 0, queryTerms("whale sang"))
	if !strings.HasPrefix(got, "The whale sang. Nothing") || utf8.RuneCountInString(got) > snippetRunes {
		t.Errorf("got %q", got)
	}
	endless := strings.Repeat("word ", 1000) + "whale " + strings.Repeat("word ", 1000)
	got = snippet(endless, 0, queryTerms("whale"))
	if !strings.HasPrefix(got, "… word") || !strings.HasSuffix(got, "word …") || !strings.Contains(got, " whale ") {
		t.Errorf("got %q", got)
	}
	got = snippet(strings.Repeat("天", 1000)+"鲸鱼"+strings.Repeat("地", 1000), 0, queryTerms("鲸鱼"))
	if !strings.Contains(got, "鲸鱼") || utf8.RuneCountInString(got) > snippetRunes+4 {
		t.Errorf("got %q", got)
	}
}

// A megabyte without a line break is indexed and found.
func TestOneEndlessLine(t *testing.T) {
	text := strings.Repeat("word ", 100_000) + "whale" + strings.Repeat("x", 600_000)
	x := mustOpen(t, newCorpus(t, files{"a.txt": text}))
	found, err := x.Search(t.Context(), []string{"whale word"}, 3)
	if err != nil || len(found[0].Hits) != 1 && len(found[0].Hits) != 3 {
		t.Fatalf("got %+v, %v", found, err)
	}
	for _, h := range found[0].Hits {
		if utf8.RuneCountInString(h.Snippet) > snippetRunes+4 {
			t.Errorf("%d characters", utf8.RuneCountInString(h.Snippet))
		}
	}
}
