package stopping

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// patterns feeds the oracle test, the chunking test and the fuzz seeds.
var patterns = []string{
	// plain strings and alternatives
	`stop`, `\nObservation:`, `</s>|<\|im_end\|>`, `你好`, `🙂`, `ab|abc|b`, `a|ab`, `aba`, `(?i)Stop`, `(?i)é`, `\x61\u0062`,
	// the calls of the formats
	`<tool_call>(.*?)</tool_call>\s*$`, `<tool_call>(?<call>.*)</tool_call>`, `<a>.*?</a>`, `(?-s)<a>.*</a>`, `<a>[^<]*</a>`,
	// repetition, greedy and lazy
	`a+`, `a+?`, `a+b`, `a{2,3}`, `a{2,3}?b`, `(ab)+`, `(?:ab?)+c`, `(a|b)*c`, `(?:a|ab)(?:c|bcd)`, `\d+`, `Answer: \d+`, `\d+\D`, `a?b`, `a.?b`, `a.{2}b`, `a.*b`, `a.*?b`,
	`(\w+\s?)+c`, `(?:a*)*b`, `(?:a|b|ab)+1`, `(?:a?){2,3}b`,
	// sets
	`[ab]1`, `[^ab]1`, `\s\S`, `\w\W`, `[\p{Han}]+。`, `\p{L}1`, `[a-c-[b]]1`, `.`, `\W{2}`, `[^\x00-\x7f]{2}`,
	// anchors and boundaries
	`^a`, `^ab`, `\Aab`, `a$`, `a\Z`, `a\z`, `a$\n`, `(?m)^b`, `(?m)a$`, `(?m)a$\nb`, `a\b`, `\ba`, `\bab\b`, `a\B`, `\Bb`, `\b1\b`, `^(?:a|b)+1`, `\n\n`, `a\s*$`,
	// tails that may be empty
	`(?m)a\s*$`, `a\B.*`, `(?=.*1)b.*`, `1\w*\b`, `b.*(?<=1)\s*`, `(a|ab)(?<g>c?)\d*$`,
	// lookaround
	`(?<=a)b`, `(?<!a)b`, `(?<=<a>)b+1`, `(?<=a.*)1`, `(?<!a.*)1`, `(?=ab)a`, `(?=a)\w`, `(?!a)\w1`, `a(?=b)`, `a(?!b)`, `a(?=b)b1`, `(?<=^|\n)b`, `(?<=你)好`, `\w(?<!b)1`, `(?<=a)`, `(?=.*1)b.*1`,
	`(?<=(?<g>a))b`, `(?<=(?<g>a)b*)(?<h>1)`, `(?<=a$)\n`, `(?<=a$)\nb`, `(?<=(?:a|b|ab)*c.{3})1`,
	// what cannot be matched backwards
	`(\w)\1`, `(?<q>['"]).*?\k<q>`, `(a|b)\1+1`, `(?>a+)b`, `(?>a|ab)1`, `a++b`, `a*+b`, `(?>a*?)b`, `(?>a??b)`, `(?>\X??b)`, `(a)?(?(1)b|1)`, `(?(?=a)ab|1)`, `\X1`, `\R1`, `(?:(?<o>a)|(?<-o>b))+1`, `(?<x>a)\k<x>?b`,
	// comments and quotations at the end
	"(?x) a b # the end", `\Qa b`, `(?#note)ab`, `(?i:A)b`, `(?<g>a)(?<h>b)?1`,
}

// pieces are what random texts are made of; patterns and pieces share their
// letters so that there are matches and near misses.
var pieces = []string{
	"a", "b", "c", "ab", "1", "2", " ", "\n", "\n\n", "<a>", "</a>", "<", "</", ".", "a", "b",
	"stop", "Stop", "<tool_call>", "</tool_call>", "\nObservation:", "Obs", "Answer: ", "'", `"`, "</s>", "<|im_end|>",
	"你", "好", "你好", "。", "🙂", "é", "É", "e\u0301", "👩‍👩‍👧", "\r\n", "\u2028", "\ufffd",
	"𠀀", "\xff", "\xe4\xbd", "\xe4", "\xa0", "\xf0\x9f", "\xc3", "{", "}", "[", "]", "\\", "!", "？",
}

// randomText draws from all pieces or, for longer matches, from the first few.
func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	from := len(pieces)
	if r.IntN(2) == 0 {
		from = 5
	}
	for n := r.IntN(most) + 1; n > 0; n-- {
		b.WriteString(pieces[r.IntN(from)])
	}
	return b.String()
}

// boundaries are the bytes after each complete character, and 0.
func boundaries(s string) []int {
	out := []int{0}
	for i := 0; i < len(s) && utf8.FullRuneInString(s[i:]); {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
		out = append(out, i)
	}
	return out
}

// cuts are ways to cut a text: whole, by byte, by character, inside every
// character of several bytes, at random.
func cuts(r *rand.Rand, s string) map[string][]string {
	out := map[string][]string{"whole": {s}}
	for i := range len(s) {
		out["bytes"] = append(out["bytes"], s[i:i+1])
	}
	from := 0
	for _, b := range boundaries(s)[1:] {
		out["characters"] = append(out["characters"], s[from:b])
		from = b
	}
	out["characters"] = append(out["characters"], s[from:])
	from = 0
	for i := 1; i < len(s); i++ {
		if !utf8.RuneStart(s[i]) && utf8.RuneStart(s[i-1]) {
			out["inside"] = append(out["inside"], s[from:i])
			from = i
		}
	}
	out["inside"] = append(out["inside"], s[from:])
	for rest := s; rest != ""; {
		n := r.IntN(min(7, len(rest))) + 1
		out["random"] = append(out["random"], rest[:n])
		rest = rest[n:]
		if r.IntN(5) == 0 {
			out["random"] = append(out["random"], "")
		}
	}
	return out
}
