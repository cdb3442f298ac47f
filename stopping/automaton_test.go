package stopping

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestMatchersFillTheTable: a pattern that needs more states than the table has room for
// goes on without it, in several matchers at once, and fires at the same places.
func TestMatchersFillTheTable(t *testing.T) {
	t.Parallel()
	set := compile(t, Criterion{Name: "far", Regex: `a[abc]{15}d`, Action: Notify}, Criterion{Name: "end", Literal: "stop", Strip: true})
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			m := set.Matcher()
			var text strings.Builder
			var got, want []int
			for range 6000 {
				chunk := ""
				for range 1 + r.IntN(8) {
					chunk += string("aaabbbcccd"[r.IntN(10)])
				}
				text.WriteString(chunk)
				step, err := m.Write(chunk, 1)
				if err != nil {
					t.Error(err)
				}
				for _, d := range step.Notified() {
					got = append(got, d.MatchEnd)
				}
			}
			s, from := text.String(), 0
			for end := 17; end <= len(s); end++ {
				if start := end - 17; start >= from && s[end-1] == 'd' && s[start] == 'a' && !strings.Contains(s[start:end-1], "d") {
					want, from = append(want, end), end
				}
			}
			if !slices.Equal(got, want) || len(want) == 0 {
				t.Errorf("seed %d: %d reports, want %d", seed, len(got), len(want))
			}
			if step, err := m.Write("a stop", 1); err != nil || step.Stop == nil || step.Emit != "a " {
				t.Errorf("%+v, %v", step, err)
			}
		})
	}
	wg.Wait()
	for _, p := range set.Plan() {
		if p.Engine != NFA {
			t.Errorf("%s: %s, %s", p.Criterion, p.Engine, p.Reason)
		}
	}
	if size := set.automaton.size; size > maxTable {
		t.Errorf("%d bytes", size)
	}
}

// TestTableGrowsUnderOthers: a text goes on in a table that another one has
// replaced by a larger one in the meantime.
func TestTableGrowsUnderOthers(t *testing.T) {
	set := compile(t, Criterion{Name: "far", Regex: `a[abcé]{9}d`})
	write := func(m *Matcher, chunks ...string) {
		t.Helper()
		for _, chunk := range chunks {
			if step, err := m.Write(chunk, 1); err != nil || step.Stop != nil {
				t.Fatalf("%+v, %v", step, err)
			}
		}
	}
	behind := set.Matcher()
	write(behind, "a", "a")
	r := rand.New(rand.NewPCG(5, 6))
	ahead := set.Matcher()
	for range 300 {
		write(ahead, string("abc"[r.IntN(3)]))
	}
	// The way on from where the first text stands is filled in by another.
	write(set.Matcher(), "a", "a", "é", "b")
	write(behind, "é", "bbbbbbb")
	if step, err := behind.Write("d", 1); err != nil || step.Stop == nil || step.Stop.MatchStart != 0 {
		t.Errorf("%+v, %v", step, err)
	}
}

// manyClasses are criteria that tell more kinds of characters apart than a row
// has room for, and a character of each.
func manyClasses() (list []Criterion, members []rune) {
	for i := range 64 {
		r := rune(0x10000 + 1000*i)
		list = append(list, Criterion{Name: fmt.Sprint(i), Regex: fmt.Sprintf(`[\x{%x}-\x{%x}]{3}`, r, r+500), Action: Notify})
		members = append(members, r+250)
	}
	return list, members
}

// TestUnknownClass: characters of a kind that no row has room for are worked
// out each time.
func TestUnknownClass(t *testing.T) {
	list, members := manyClasses()
	set := compile(t, list...)
	var b strings.Builder
	for _, r := range members {
		b.WriteString(strings.Repeat(string(r), 4))
	}
	got := follow(t, set, []string{b.String()})
	if len(got.notified) != len(list) {
		t.Errorf("%d reports, want %d", len(got.notified), len(list))
	}
	if a := set.automaton.program.alphabet; len(*a.classes.Load()) <= 1<<a.shift {
		t.Errorf("%d classes fit into rows of %d columns: nothing was tested", len(*a.classes.Load()), 1<<a.shift)
	}
}

// TestPlan: each kind of criterion and each kind of pattern gets the engine
// that it should have.
func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		c      Criterion
		engine Engine
		reason string
	}{
		{Criterion{Literal: "stop"}, DFA, "one step"},
		{Criterion{Regex: `<tool_call>(.*?)</tool_call>\s*$`}, DFA, "one step"},
		{Criterion{Regex: `(\w+\s?)+$`}, DFA, "one step"},
		{Criterion{Regex: `(?<=\n)Observation:`}, DFA, "one step"},
		{Criterion{Regex: `(?<!\w)stop\b`}, DFA, "one step"},
		{Criterion{Regex: `(?i)(?<call>stop|halt)(?m)$`}, DFA, "one step"},
		{Criterion{Regex: `(?<q>['"]).*?\k<q>`}, Gated, "a backreference"},
		{Criterion{Regex: `<a>(?!b).*</a>`}, Gated, "a lookahead"},
		{Criterion{Regex: `(?<=(\w)\1)x`}, Windowed, "a lookbehind that is not regular"},
		{Criterion{Regex: `(?>a+)b`}, Gated, "an atomic group"},
		{Criterion{Regex: `(a)?(?(1)b|c)`}, Windowed, "a conditional; where the rest may match, the pattern runs over the last 2 characters"},
		{Criterion{Regex: `.{0,300}x`}, Windowed, "a count above 128; where the rest may match, the pattern runs over the last 301 characters"},
		{Criterion{Regex: `(?=.*x)\X+y*`}, Rescan, `\X and a lookahead, and the rest may match at every character`},
		{Criterion{Regex: `(.{4,})\1\1`}, Rescan, "a backreference, and the rest may match at every character"},
		{Criterion{JSON: true}, Counter, "the same work"},
		{Criterion{Repetition: &Repetition{Count: 3}}, Counter, "the same work"},
		{Criterion{Sentences: 2}, Counter, "the same work"},
	} {
		tt.c.Name = "p"
		set := compile(t, tt.c)
		p := set.Plan()[0]
		if warned := slices.ContainsFunc(set.Warnings(), func(w Warning) bool { return strings.Contains(w.Problem, "all of the text") }); warned != (tt.engine == Rescan) {
			t.Errorf("%q: %s, warnings %v", tt.c.Regex, p.Engine, set.Warnings())
		}
		if p.Criterion != "p" || p.Engine != tt.engine || !strings.Contains(p.Reason, tt.reason) {
			t.Errorf("%q: %s, %s; want %s, %s", tt.c.Regex, p.Engine, p.Reason, tt.engine, tt.reason)
		}
	}
	shared := compile(t, Criterion{Name: "a", Literal: "x"}, Criterion{Name: "b", Regex: "y"}, Criterion{Name: "c", Tokens: 1}).Plan()
	if !strings.HasSuffix(shared[0].Reason, "shared with 1 criterion") || shared[2].Engine != Counter {
		t.Errorf("%+v", shared)
	}
}
