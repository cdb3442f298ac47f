package stopping

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Nothing that a pattern says may multiply the work of compiling it.
func TestCompileIsBounded(t *testing.T) {
	references := "()"
	for group := 1; group < 9; group++ {
		references += "(" + strings.Repeat(fmt.Sprintf(`\%d`, group), 100) + ")"
	}
	many := strings.Repeat
	for name, pattern := range map[string]string{
		"counts of nothing":     many("(", 12) + many("){100}", 12) + "a",
		"counts of a lookahead": many("(", 12) + "(?=a)" + many("){100}", 12) + "a",
		"counts of characters":  many("(", 12) + "a" + many("){100}", 12),
		"references to nothing": references + `\9a`,
		"nested loops":          many("(", 2000) + "a" + many(")+", 2000),
		"nested options":        many("(", 2000) + "a" + many(")?", 2000) + "b",
		"nested lookbehinds":    many("(?<=", 1300) + "a" + many(")", 1300) + "b",
		"lookbehinds":           many("(?<=a.*)", 1000) + "b",
		"alternatives":          many("a.|", 2000) + "b",
	} {
		done := make(chan error)
		go func() {
			_, err := Compile(Criterion{Name: "a", Regex: pattern})
			done <- err
		}()
		select {
		case err := <-done:
			var refused *CompileError
			if err != nil && !errors.As(err, &refused) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(hangLimit):
			t.Fatalf("%s: Compile hangs", name)
		}
	}
}

func TestLargestNumbers(t *testing.T) {
	for _, count := range []int{math.MaxInt, math.MaxInt/2 + 2, math.MaxInt/maxPeriod + 1} {
		_, err := Compile(Criterion{Name: "a", Repetition: &Repetition{Count: count}})
		var refused *CompileError
		if !errors.As(err, &refused) {
			t.Errorf("a repetition of %d is compiled: %v", count, err)
		}
	}
	set := compile(t,
		Criterion{Name: "repetition", Repetition: &Repetition{Max: maxPeriod, Count: math.MaxInt / maxPeriod}},
		Criterion{Name: "bytes", Bytes: math.MaxInt},
		Criterion{Name: "sentences", Sentences: math.MaxInt},
		Criterion{Name: "tokens", Tokens: math.MaxInt},
		Criterion{Name: "late", Literal: "a", MinBytes: math.MaxInt},
		Criterion{Name: "later", Literal: "a", MinTokens: math.MaxInt},
		Criterion{Name: "long", Regex: "a{2147483647}b"},
	)
	if o := follow(t, set, strings.Split(strings.Repeat("aaaa,", 200), ",")); o.fired() != nil {
		t.Errorf("fired: %+v", o.fired())
	}
}

// Budgets at both ends of their type are budgets like others.
func TestLargestBudget(t *testing.T) {
	for _, budget := range []time.Duration{1, time.Hour, math.MaxInt64 - 1, math.MaxInt64} {
		set := compile(t, Criterion{Name: "a", Regex: `(?<q>['"]).*?\k<q>`, Budget: budget})
		if d := follow(t, set, []string{`a 'b" c' d`}).fired(); d == nil || d.MatchEnd != 8 {
			t.Errorf("budget %d: %+v", budget, d)
		}
	}
}

func TestWriteAfterTheEnd(t *testing.T) {
	set := compile(t, Criterion{Name: "a", Literal: "stop"})
	for name, end := range map[string]func(m *Matcher){
		"Close": func(m *Matcher) { m.Close() },
		"stop":  func(m *Matcher) { m.Write("stop", 1) },
		"close after a stop": func(m *Matcher) {
			m.Write("stop it", 1)
			m.Close()
		},
	} {
		m := set.Matcher()
		unstopped(t, m, "begin ")
		unstopped(t, m, "middle ")
		end(m)
		before := m.Tally()
		for _, chunk := range []string{"", "late", "你"} {
			if step, err := m.Write(chunk, 1); !errors.Is(err, ErrEnded) || step.Emit != "" || step.Stop != nil {
				t.Errorf("after %s: Write(%q) gives %+v, %v", name, chunk, step, err)
			}
		}
		if m.Tally() != before {
			t.Errorf("after %s: the tally changes from %+v to %+v", name, before, m.Tally())
		}
	}
}

// A thousand criteria take the room of one table, not of a thousand.
func TestManyCriteriaAreSmall(t *testing.T) {
	var criteria []Criterion
	for i := range 1000 {
		criteria = append(criteria, Criterion{Name: fmt.Sprint(i), Literal: string(rune(0x4e00+i)) + "。"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	set := compile(t, criteria...)
	d := follow(t, set, strings.Split(strings.Repeat("一丁七 ", 1000)+"丂。", " ")).fired()
	runtime.ReadMemStats(&after)
	if d == nil || d.Criterion.Name != "2" || d.MatchEnd-d.MatchStart != 6 {
		t.Errorf("%+v", d)
	}
	if size := after.TotalAlloc - before.TotalAlloc; size > 50<<20 {
		t.Errorf("%d MiB", size>>20)
	}
}

// The groups of a match behind a lookbehind need the text before it. It is
// decoded once, not once a match.
func TestLookbehindsReadTheTextOnce(t *testing.T) {
	set := compile(t, Criterion{Name: "b", Regex: `(?<=a)(?<g>b)`, Action: Notify})
	text := strings.Repeat("ab", 1<<13)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := follow(t, set, []string{text})
	runtime.ReadMemStats(&after)
	if len(o.notified) != 1<<13 {
		t.Fatalf("%d matches", len(o.notified))
	}
	for i, d := range o.notified {
		if d.MatchEnd != 2*i+2 || d.Groups["g"] != "b" {
			t.Fatalf("%+v", d)
		}
	}
	if size := after.TotalAlloc - before.TotalAlloc; size > 100<<20 {
		t.Errorf("%d MiB", size>>20)
	}
}

// A pattern that gives up ends the output at the byte where it did, however the
// text was cut.
func TestOutputEndsWhereAPatternGivesUp(t *testing.T) {
	set := compile(t, Criterion{Name: "slow", Regex: `^(\w+\s?)+\1=$`, Budget: time.Millisecond})
	text := "abdfghijklmnopquvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678="
	m := set.Matcher()
	step, err := m.Write(text+" and more", 1)
	if !errors.Is(err, ErrTime) || step.Emit != text {
		t.Errorf("%q, %v", step.Emit, err)
	}
	if last := m.Close(); last.Emit != " and more" {
		t.Errorf("%q after the error", last.Emit)
	}
}

// Every token counts, also those in which nothing can begin or end, and the one
// that holds the last byte of the match.
func TestMinTokensCountsAllTokens(t *testing.T) {
	for _, c := range []Criterion{
		{Literal: "stop"}, {Regex: `sto(?!x)p`}, {Regex: "stop", Strip: true},
		{Repetition: &Repetition{Min: 4, Count: 2}}, {JSON: true}, {Sentences: 1},
	} {
		c.Name, c.MinTokens = "c", 7
		set := compile(t, c)
		for before := range 10 {
			o := follow(t, set, append(slices.Repeat([]string{"so "}, before), `{}stopstop! `))
			if fired := o.fired() != nil; fired != (before+1 >= 7) {
				t.Errorf("%+v: fired %t with the token %d", c, fired, before+1)
			}
		}
	}
}

// A match of limited length holds back no more than that, even where the
// automaton would take a longer one.
func TestHoldsBackNoMoreThanAMatch(t *testing.T) {
	set := compile(t, Criterion{Name: "w", Regex: `<a{200}>`, Strip: true})
	if plan := set.Plan(); plan[0].Engine != Windowed {
		t.Fatalf("%+v", plan)
	}
	m := set.Matcher()
	unstopped(t, m, "<")
	for range 500 {
		unstopped(t, m, "aaaaaaaaaa")
	}
	if n := m.Tally(); n.Held != 202*utf8.UTFMax {
		t.Errorf("%+v", n)
	}
	d := follow(t, set, []string{"<", strings.Repeat("a", 5000), "<", strings.Repeat("a", 200), ">"}).fired()
	if d == nil || d.MatchStart != 5001 || d.KeepEnd != 5001 {
		t.Errorf("%+v", d)
	}
}

// A lookahead that reads far is read where a match may start, which mostly is
// one place, and not at every character, as from the end backwards.
func TestLookaheadsReadTheTextOnce(t *testing.T) {
	text := "<c>" + strings.Repeat("ay", 50_000) + "!z!"
	for regex, end := range map[string]int{
		`^(?=.*z).*!`:         len(text),
		`<c>(?=.*z).*?!`:      len(text),
		`<c>(?:(?=.*z).*|x)!`: len(text),
		`\A(?:(?!.*y).*!)`:    0,
	} {
		set := compile(t, Criterion{Name: "c", Regex: regex})
		if plan := set.Plan(); plan[0].Engine != Gated {
			t.Fatalf("%+v", plan)
		}
		o, err := stream(set, false, []string{text})
		if err != nil {
			t.Errorf("%s: %v", regex, err)
		} else if d := o.fired(); end == 0 && d != nil || end > 0 && (d == nil || d.MatchEnd != end) {
			t.Errorf("%s: %+v", regex, d)
		}
	}
}

// A region ends where its closing tag does: what stands directly behind it
// starts outside, for kinds that the automaton knows and for those it does not.
func TestStartsDirectlyBehindTags(t *testing.T) {
	for _, c := range []Criterion{
		{JSON: true}, {Sentences: 1}, {Repetition: &Repetition{Min: 2, Count: 2}}, {Bytes: 1},
		{Literal: "{}{}! "}, {Regex: `\{(?!x)}\{}! `},
	} {
		c.Name = "c"
		for outside, tags := range map[bool]string{false: "<t></t>", true: "</t><t>"} {
			c.Scope = Scope{Open: "<t>", Close: "</t>", Outside: outside, StartsInside: outside}
			if d := follow(t, compile(t, c), []string{tags + "{}{}! "}).fired(); d != nil && d.MatchStart >= len(tags) {
				t.Errorf("%+v fires where its scope is closed: %+v", c, d)
			}
			c.Scope.StartsInside = !outside
			if d := follow(t, compile(t, c), []string{"{}{}! "}).fired(); d == nil {
				t.Errorf("%+v does not fire where its scope is open", c)
			}
		}
	}
}
