package stopping

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dlclark/regexp2/v2"
)

// benchmarkTexts are the two shapes that matter: one long call that is still
// open, and many calls that were mentioned before.
func benchmarkTexts(size int) map[string]string {
	open := "<tool_call>" + strings.Repeat("some more text of the call, ", size/28+1)
	plain := strings.Repeat("a sentence about <tools> and calls. ", size/36+1)
	return map[string]string{"open": open[:size], "plain": plain[:size]}
}

// BenchmarkToken is the cost of the next token of four bytes behind a text.
// rescan is what most runners do: search the whole text at every token.
func BenchmarkToken(b *testing.B) {
	const every = 256 // tokens written before the text is cut back to its size
	rescan := regexp2.MustCompile(qwq, regexp2.Singleline)
	set := compile(b, Criterion{Name: "call", Regex: qwq})
	for _, size := range []int{1_000, 10_000, 100_000} {
		for name, text := range benchmarkTexts(size) {
			b.Run(fmt.Sprintf("matcher/%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				m := set.Matcher()
				if _, err := m.Write(text, 1); err != nil {
					b.Fatal(err)
				}
				saved := *m
				for i := 0; b.Loop(); i++ {
					if i%every == 0 {
						*m = saved
					}
					if _, err := m.Write("more", 1); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("rescan/%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := rescan.MatchString(text + "more"); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
