package stopping

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// benchmarkCriteria are criteria that none of the benchmark's texts completes.
var benchmarkCriteria = []struct {
	name     string
	criteria []Criterion
}{
	{"one", []Criterion{{Name: "call", Regex: `<tool_call>(.*?)</tool_call>\s*<\|im_end\|>`}}},
	{"eight", []Criterion{
		{Name: "call", Regex: `<tool_call>(.*?)</tool_call>\s*<\|im_end\|>`},
		{Name: "observation", Literal: "\nObservation:"},
		{Name: "answer", Regex: `<answer>(.*?)</answer>`},
		{Name: "control", Regex: `<\|(?:im_start|endoftext|eot_id)\|>`},
		{Name: "number", Regex: `Final Answer: (\d+)\D`},
		{Name: "refusal", Regex: `(?i)\bi (?:don't|do not) know\b\W`},
		{Name: "turn", Regex: `\n(?:Human|User|Question):\s`},
		{Name: "code", Regex: "\n```\\w*\n(.*?)\n```\n"},
	}},
	{"lookbehind", []Criterion{{Name: "answer", Regex: "(?<!`)</answer>"}}},
	{"backreference", []Criterion{{Name: "answer", Regex: `<(?<tag>answer|result)>.*?</\k<tag>>`}}},
	{"strip", []Criterion{{Name: "call", Regex: `<tool_call>(.*?)</tool_call>\s*<\|im_end\|>`, Strip: true}}},
	{"repetition", []Criterion{{Name: "loop", Repetition: &Repetition{Count: 6}}}},
	{"json", []Criterion{{Name: "json", JSON: true}}},
	{"sentences", []Criterion{{Name: "sentences", Sentences: 1 << 30}}},
	{"scope", []Criterion{{Name: "call", Literal: "</tool_call>", Scope: Scope{Open: "<think>", Close: "</think>", Outside: true}}}},
}

// openCall is a call whose argument never ends, in words that do not repeat.
func openCall(size int) string {
	words := strings.Fields("a place where the river turns and small boats wait until light comes over every hill")
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString(`<tool_call>{"text": "`)
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", " ", ", ", ". ", "\n"}[r.IntN(7)])
	}
	return b.String()[:size]
}

// BenchmarkToken is the cost of the next token of four bytes in a call that
// stays open, while the text doubles. make bench-stopping has other texts and
// what others do beside it.
func BenchmarkToken(b *testing.B) {
	for _, bb := range benchmarkCriteria {
		set := compile(b, bb.criteria...)
		for _, size := range []int{10_000, 100_000, 1_000_000} {
			text := openCall(2 * size)
			b.Run(fmt.Sprintf("%s/%d", bb.name, size), func(b *testing.B) {
				b.ReportAllocs()
				var m *Matcher
				at := len(text)
				for range b.N {
					if at+4 > len(text) {
						b.StopTimer()
						m, at = set.Matcher(), size
						unstopped(b, m, text[:at])
						b.StartTimer()
					}
					if step, err := m.Write(text[at:at+4], 1); err != nil || step.Stop != nil {
						b.Fatal(step.Stop, err)
					}
					at += 4
				}
			})
		}
	}
}

// unstopped writes a chunk after which the text must go on.
func unstopped(t testing.TB, m *Matcher, chunk string) {
	step, err := m.Write(chunk, 1)
	if err != nil || step.Stop != nil {
		t.Fatalf("stopped: %+v, %v", step.Stop, err)
	}
}

// BenchmarkCompile is the cost of a set of eight.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(benchmarkCriteria[1].criteria...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkColdMatcher is the cost of the first thousand bytes of a new set.
func BenchmarkColdMatcher(b *testing.B) {
	text := openCall(1000)
	for range b.N {
		b.StopTimer()
		set := compile(b, benchmarkCriteria[1].criteria...)
		b.StartTimer()
		m := set.Matcher()
		for i := 0; i < len(text); i += 4 {
			unstopped(b, m, text[i:i+4])
		}
	}
}

// TestTokensDoNotAllocate: a warm matcher allocates only where its text, or
// what it keeps of it, outgrows its memory, which is rare. (A nested value or a
// report would allocate too.)
func TestTokensDoNotAllocate(t *testing.T) {
	const tokens = 10_000
	text := openCall(1_000_000)
	for _, tt := range benchmarkCriteria {
		t.Run(tt.name, func(t *testing.T) {
			set := compile(t, tt.criteria...)
			unstopped(t, set.Matcher(), text) // warms what the set shares
			m := set.Matcher()
			at := 100_000
			unstopped(t, m, text[:at])
			each := testing.AllocsPerRun(5, func() {
				for range tokens {
					unstopped(t, m, text[at:at+4])
					at += 4
				}
			}) / tokens
			if each >= 0.01 {
				t.Errorf("%.4f allocations for each token", each)
			}
		})
	}
}
