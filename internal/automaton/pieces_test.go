package automaton

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// numbers is that many different words.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " %d", i)
	}
	return b.String()
}

func TestSplitPieces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		taken      []string
		want       []string // nil: there is no cut
	}{
		{"words", "The sky is blue.", nil, []string{"The", " sky", " is", " blue", "."}},
		{"twice the same word", "a b a c", nil, []string{"a", " b", " a", " c"}},
		{"and three times", "x, a, a, a, b", nil, []string{"x", ",", " a", ", a", ", a,", " b"}},
		{"a tag is one piece, once", "<think>a</think><think>b", nil, []string{"<think>", "a", "</think>", "<think>b"}},
		{"a repeated end joins the piece before", "a b b b", []string{"b"}, []string{"a", " b", " b b"}},
		{"taken before", "yes no", []string{"yes"}, []string{"yes no"}},
		{"scripts without spaces", "首都 x", nil, []string{"首", "都", " x"}},
		{"all taken", "yes", []string{"yes"}, nil},
		{"nothing", "", nil, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			taken := map[string]bool{}
			for _, p := range c.taken {
				taken[p] = true
			}
			got, ok := splitPieces(c.text, userTokens, taken)
			if ok != (c.want != nil) || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
}

func FuzzSplitPieces(f *testing.F) {
	f.Add("The sky is blue.", "The sky is")
	f.Add("<tool_call>\n{}\n</tool_call>", "<tool_call>\n{}\n</tool_call><tool_call>")
	f.Add(strings.Repeat("a ", 200), strings.Repeat("a", 200))
	f.Add("首都\xff\x00", "\u00ad é")
	f.Fuzz(func(t *testing.T, first, second string) {
		taken := map[string]bool{}
		seen := map[string]bool{}
		for _, text := range []string{first, second} {
			before := len(taken)
			pieces, ok := splitPieces(text, userTokens, taken)
			if !ok {
				if len(taken) != before {
					t.Fatalf("%q: a failed cut left %d pieces behind", text, len(taken)-before)
				}
				continue
			}
			if got := strings.Join(pieces, ""); got != text {
				t.Fatalf("the pieces of %q spell %q", text, got)
			}
			for _, p := range pieces {
				if p == "" || seen[p] {
					t.Fatalf("%q: the piece %q is empty or there twice", text, p)
				}
				if utf8.ValidString(text) && !utf8.ValidString(p) {
					t.Fatalf("%q: the piece %q ends inside a character", text, p)
				}
				seen[p] = true
			}
		}
	})
}
