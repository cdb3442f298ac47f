package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func words(text string) int { return len(strings.Fields(text)) }

// oneByOne has the largest count that a tokenizer over bytes can give.
func oneByOne(text string) int { return len(text) }

func TestCut(t *testing.T) {
	lines := strings.Repeat("four words a line\n", 20)
	tests := []struct {
		name  string
		max   int
		count func(string) int
		text  string
		want  string
		out   int
	}{
		{"short", 10, words, "a b c", "a b c", 0},
		{"exactly", 3, words, "aaaa bbbb cccc", "aaaa bbbb cccc", 0},
		{"no cap", -1, words, lines, lines, 0},
		{"lines", 12, words, lines, strings.Repeat("four words a line\n", 2) + "[… 68 tokens left out …]\nfour words a line\n", 68},
		{"one line", 3, oneByOne, "abcdefghij", "ab\n[… 7 tokens left out …]\nj", 7},
		{"one token", 1, oneByOne, "abc", "a\n[… 2 tokens left out …]", 2},
		{"characters stay whole", 6, oneByOne, "中文中文中文", "中\n[… 15 tokens left out …]", 15},
		{"singular", 9, oneByOne, "abcdefghij", "abcdef\n[… 1 token left out …]\nhij", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, out := cutter{tt.max, tt.count}.cut(tt.text)
			if got != tt.want || out != tt.out {
				t.Errorf("got %q, %d; want %q, %d", got, out, tt.want, tt.out)
			}
		})
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "six": 1, "four": 2, "中文": 2, "a\xff": 2} {
		if got := EstimateTokens(text); got != want {
			t.Errorf("EstimateTokens(%q) = %d, want %d", text, got, want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a b c", 2, false)
	f.Add(strings.Repeat("line of words\n", 40), 17, false)
	f.Add(strings.Repeat("中文", 40), 7, true)
	f.Add(strings.Repeat("x", 400)+"\n\n\n", 10, true)
	f.Fuzz(func(t *testing.T, text string, most int, bytes bool) {
		most = 1 + (most&0x7fffffff)%5000
		c := cutter{most, EstimateTokens}
		if bytes {
			c.count = oneByOne
		}
		text = clean(text)
		got, out := c.cut(text)
		if out == 0 {
			if got != text || c.count(text) > most {
				t.Fatalf("nothing was cut from %d tokens, but the text is %q", c.count(text), got)
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("invalid UTF-8: %q", got)
		}
		head, tail := c.ends(text)
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(head)+len(tail) > len(text) {
			t.Fatalf("head %q and tail %q are not the ends of %q", head, tail, text)
		}
		if n := c.count(head) + c.count(tail); n > most {
			t.Fatalf("%d tokens were kept, the cap is %d", n, most)
		}
		middle, ok := strings.CutPrefix(got, head)
		middle, ok2 := strings.CutSuffix(middle, tail)
		if !ok || !ok2 || strings.Trim(middle, "\n") != notice(out) {
			t.Fatalf("between head and tail stands %q", middle)
		}
	})
}

func BenchmarkCut(b *testing.B) {
	text := strings.Repeat("A line of output that a tool may well have written.\n", 20000)
	c := cutter{DefaultMaxTokens, EstimateTokens}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.cut(text)
	}
}
