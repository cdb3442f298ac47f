package stopping

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// longCriteria report and go on, so that all of a long text is looked at.
var longCriteria = []Criterion{
	{Name: "call", Regex: `<tool_call>(?<call>.*?)</tool_call>`, Action: Notify},
	{Name: "nearest", Regex: `<tool_call>(?<call>.*?)</tool_call>`, Action: Notify, Captures: Nearest},
	{Name: "observation", Literal: "\nObservation:", Action: Notify},
	{Name: "outside", Literal: "</answer>", Action: Notify, Scope: Scope{Open: "<think>", Close: "</think>", Outside: true}},
	{Name: "tag", Regex: `<(?<tag>b|s)>[^<]*</\k<tag>>`, Action: Notify},
	{Name: "not escaped", Regex: `(?<!\\)"\s`, Action: Notify},
	{Name: "line", Regex: `(?m)^- .+$\n`, Action: Notify},
	{Name: "word", Regex: `\bDONE\b`, Action: Notify},
	{Name: "Han", Regex: `\p{Han}{4}，`, Action: Notify},
	{Name: "json", JSON: true, Action: Notify},
	{Name: "loop", Repetition: &Repetition{Min: 5, Max: 12, Count: 3}, Action: Notify},
	{Name: "never", Regex: `<never>.*</never>`, Strip: true},
}

// TestLongTexts compares reports along texts of many calls.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 24))
	set := compile(t, longCriteria...)
	reports := map[string]int{}
	for range 4 {
		text := ""
		for len(text) < 1200 {
			text += transcript(r)
		}
		oracles := define(t, longCriteria...)
		for _, o := range oracles {
			if o, ok := o.(*oracle); ok {
				o.exact = false
			}
		}
		want := judgeWithin(oracles, text, patience)
		if want.undecided || want.stop != nil {
			t.Fatalf("%+v in %q", want, text)
		}
		for name, chunks := range cuts(r, text) {
			got, err := stream(set, true, chunks)
			if err == nil {
				err = want.agrees(got)
			}
			if err != nil {
				t.Errorf("%s of %q: %v", name, text, err)
			}
		}
		for _, d := range want.notified {
			reports[d.Criterion.Name]++
		}
	}
	if len(reports) < len(longCriteria)-2 {
		t.Errorf("only these reported: %v", reports)
	}
	t.Logf("%v", reports)
}

// manyStates is a pattern whose automaton has to remember the last 17 letters,
// which is more than the table takes.
const manyStates = `a[ab]{16}1`

// decoys is a long text of a and b with digits that do not end a match.
func decoys(r *rand.Rand, size int) string {
	b := make([]byte, size)
	for i := range b {
		b[i] = "ab"[r.IntN(2)]
		if r.IntN(50) == 0 && i > 17 && b[i-17] != 'a' {
			b[i] = '1'
		}
	}
	return string(b)
}

// TestFullTable: an automaton that does not fit in its table goes on without
// one, with the same result, and the plan says so.
func TestFullTable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(25, 26))
	const size = 30_000
	for _, c := range []Criterion{
		{Name: "kept", Regex: manyStates},
		{Name: "stripped", Regex: manyStates, Strip: true},
		{Name: "nearest", Regex: manyStates + `|a[ab]{5}2`, Captures: Nearest, Strip: true},
		{Name: "group", Regex: `a[ab]{8}(?<g>[ab]{8})1`, StripGroup: "g"},
		{Name: "scoped", Regex: manyStates, Scope: Scope{After: "1"}},
	} {
		t.Run(c.Name, func(t *testing.T) {
			set := compile(t, c)
			text := decoys(r, size) + "22" + strings.Repeat("b", 20) + "a" + strings.Repeat("b", 16) + "1 and more"
			end := len(text) - len(" and more")
			group := ""
			if c.StripGroup != "" {
				group = strings.Repeat("b", 8)
			}
			if at := regexp.MustCompile(manyStates).FindStringIndex(text); at == nil || at[1] != end {
				t.Fatalf("the text is no text of decoys: %v, not %d", at, end)
			}
			var chunks []string
			for chunk := range slices.Chunk([]byte(text), 5) {
				chunks = append(chunks, string(chunk))
			}
			small := follow(t, set, chunks)
			d := small.fired()
			if d == nil || d.MatchStart != end-18 || d.MatchEnd != end || d.Groups["g"] != group {
				t.Errorf("%+v, want the end %d", d, end)
			}
			if err := sameOutcome(small, follow(t, set, []string{text})); err != nil {
				t.Error("whole:", err)
			}
			if plan := set.Plan(); plan[0].Engine != NFA {
				t.Errorf("%+v after %d bytes", plan, len(text))
			}
		})
	}
}

// TestFullTableInOneChunk: how deep the way through an automaton goes does not
// depend on the size of a chunk.
func TestFullTableInOneChunk(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	set := compile(t, Criterion{Name: "p", Regex: manyStates})
	m := set.Matcher()
	text := decoys(rand.New(rand.NewPCG(27, 28)), size)
	if step, err := m.Write(text, 1); err != nil || step.Stop != nil || len(step.Emit) != size {
		t.Errorf("%v, %+v, %d bytes", err, step.Stop, len(step.Emit))
	}
}

// TestTableIsShared: texts that fill one table at the same time find what each
// finds alone.
func TestTableIsShared(t *testing.T) {
	t.Parallel()
	list := []Criterion{
		{Name: "many", Regex: `a[ab]{12}2`, Strip: true},
		{Name: "word", Regex: `(?i)\bſtop\b\s`, Action: Notify},
		{Name: "Han", Regex: `[\p{Han}-[你]]{2}。`, Action: Notify},
		{Name: "behind", Regex: `(?<=<a>b*)1`, Action: Notify},
		{Name: "pair", Regex: `(?<q>['"])[^'"]*\k<q>`, Action: Notify},
	}
	shared := compile(t, list...)
	var wait sync.WaitGroup
	for i := range 2 * runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(29, uint64(i)))
			for range 30 {
				text := ""
				for len(text) < 1000 {
					text += decoys(r, 30) + randomText(r, 10) + string(rune(0x4e00+r.IntN(0x5000))) + "山。"
				}
				chunks := cuts(r, text)["random"]
				got, err := stream(shared, true, chunks)
				if err != nil {
					t.Errorf("%q: %v", text, err)
					return
				}
				alone, err := Compile(list...)
				if err != nil {
					t.Error(err)
					return
				}
				want, err := stream(alone, true, chunks)
				if err != nil {
					t.Error(err)
					return
				}
				if fmt.Sprint(spellAll(got)) != fmt.Sprint(spellAll(want)) {
					t.Errorf("%q: got %v, want %v", text, spellAll(got), spellAll(want))
				}
			}
		})
	}
	wait.Wait()
}

func spellAll(o outcome) []string {
	var out []string
	for _, d := range append(slices.Clone(o.notified), *o.stop) {
		if d.Criterion != nil {
			out = append(out, spell(&d))
		}
	}
	return out
}

// TestManyClasses: characters of all of Unicode meet more classes than the
// table has columns for.
func TestManyClasses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(31, 32))
	var list []Criterion
	for i, script := range strings.Fields(`Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Nko Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan
		Myanmar Georgian Hangul Ethiopic Cherokee Canadian_Aboriginal Ogham Runic Khmer Mongolian Limbu Tai_Le Buginese Balinese Sundanese Batak Lepcha Hiragana Katakana Bopomofo Braille Coptic Tifinagh Glagolitic Han Lu Mn Sm Zs`) {
		class := `\p{` + script + `}`
		list = append(list, Criterion{Name: fmt.Sprint(i), Regex: `1(?:` + class + `)2`, Action: Notify})
	}
	set := compile(t, list...)
	oracles := define(t, list...)
	fired := 0
	for range 30 {
		var b strings.Builder
		for range 12 {
			c := rune(0x370 + r.IntN(0x2e00))
			switch r.IntN(8) {
			case 0:
				c = rune(0x4e00 + r.IntN(0x9000)) // Han, Hangul, surrogates and private use
			case 1:
				c = rune(r.IntN(0x30000))
			}
			fmt.Fprintf(&b, "1%c2", c)
		}
		want := judgeWithin(oracles, b.String(), patience)
		got, err := stream(set, false, []string{b.String()})
		if err == nil {
			err = want.agrees(got)
		}
		if err != nil {
			t.Errorf("%q: %v", b.String(), err)
		}
		fired += len(want.notified)
	}
	if fired < 100 {
		t.Errorf("%d reports", fired)
	}
}
