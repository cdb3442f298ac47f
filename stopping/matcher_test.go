package stopping

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func compile(t testing.TB, criteria ...Criterion) *Set {
	t.Helper()
	set, err := Compile(criteria...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// qwq is the pattern with which a well-known runner stops at a tool call.
const qwq = `<tool_call>(.*?)</tool_call>\s*$`

// Each row is a bug of a known runner or server, or a pitfall of the meaning.
func TestStops(t *testing.T) {
	tests := []struct {
		name      string
		criteria  []Criterion
		chunks    []string
		criterion string // which one fires, "" for none
		emitted   string
		discarded int
	}{
		{"the call pattern fires at the bracket, whatever the token brings",
			[]Criterion{{Name: "call", Regex: qwq, Action: Call}},
			[]string{"a <tool_call>{}", "</tool_call>\nNow I", " go"}, "call", "a <tool_call>{}</tool_call>", 6},
		{"a stop in the middle of a token",
			[]Criterion{{Name: "stop", Literal: "END", Strip: true}},
			[]string{"xE", "NDy"}, "stop", "x", 1},
		{"a Chinese stop that arrives byte by byte",
			[]Criterion{{Name: "stop", Literal: "停止", Strip: true}},
			[]string{"好\xe5", "\x81", "\x9c", "\xe6", "\xad", "\xa2", "后"}, "stop", "好", 0},
		{"the earliest end wins over the order of the list",
			[]Criterion{{Name: "first", Literal: "zz"}, {Name: "second", Literal: "a"}},
			[]string{"bazz"}, "second", "ba", 2},
		{"ties go to the order of declaration",
			[]Criterion{{Name: "long", Literal: "xab", Strip: true}, {Name: "short", Literal: "b"}},
			[]string{"xab"}, "long", "", 0},
		{"Observation leaks nothing",
			[]Criterion{{Name: "plain", Literal: "Observation:", Strip: true}, {Name: "line", Literal: "Observation:\n", Strip: true}},
			[]string{"Action\n", "Ob", "serv", "ation", ":\n"}, "plain", "Action\n", 1},
		{"a tail that looks like a stop comes back",
			[]Criterion{{Name: "stop", Literal: "</stop>", Strip: true}},
			[]string{"text </st"}, "", "text </st", 0},
		{"a false start is followed by the real one",
			[]Criterion{{Name: "stop", Literal: "aab", Strip: true}},
			[]string{"a", "a", "a", "b"}, "stop", "a", 0},
		{"digits stop at the first one",
			[]Criterion{{Name: "n", Regex: `Answer: \d+`}},
			[]string{"Answer: 42"}, "n", "Answer: 4", 1},
		{"digits with a terminator",
			[]Criterion{{Name: "n", Regex: `Answer: \d+(?<end>\D)`, StripGroup: "end"}},
			[]string{"Answer: 4", "2", ". So"}, "n", "Answer: 42", 3},
		{"a group that took no part strips nothing",
			[]Criterion{{Name: "n", Regex: `a(?<end>x)?b`, StripGroup: "end"}},
			[]string{"ab"}, "n", "ab", 0},
		{"a group behind the match does not take back what was given out",
			[]Criterion{{Name: "n", Regex: `(?<=(?<end>a))b`, StripGroup: "end"}},
			[]string{"a", "b"}, "n", "a", 0},
		{"a trailing lookahead sees nothing",
			[]Criterion{{Name: "n", Regex: `a(?=b)`}, {Name: "not", Regex: `a(?!c)`}},
			[]string{"ac", "ab"}, "not", "a", 1},
		{"the dot matches a newline unless told otherwise",
			[]Criterion{{Name: "s", Regex: `(?-s)a.b`}, {Name: "n", Regex: `c.d`}},
			[]string{"a\nb", "c\nd"}, "n", "a\nbc\nd", 0},
		{"a mention in thinking is outside the scope",
			[]Criterion{{Name: "call", Literal: "</tool_call>", Scope: Scope{Open: "<think>", Close: "</think>", Outside: true, StartsInside: true}}},
			[]string{"</tool_call></th", "ink>x</tool_call>y"}, "call", "</tool_call></think>x</tool_call>", 1},
		{"a region ends after its closing tag",
			[]Criterion{{Name: "end", Literal: "</think>", Scope: Scope{Open: "<think>", Close: "</think>"}}},
			[]string{"</think><think></think>"}, "end", "</think><think></think>", 0},
		{"after a marker",
			[]Criterion{{Name: "end", Regex: `\n`, Scope: Scope{After: "Answer:"}, Strip: true}},
			[]string{"\nAnswer", ": 1\n2"}, "end", "\nAnswer: 1", 1},
		{"JSON with brackets in strings",
			[]Criterion{{Name: "json", JSON: true}},
			[]string{`call {"a": "}\"]", "b`, `": [{}]} then`}, "json", `call {"a": "}\"]", "b": [{}]}`, 5},
		{"brackets that do not pair are no JSON",
			[]Criterion{{Name: "json", JSON: true, Strip: true}},
			[]string{`[0, 1) {]`, ` x [1]`}, "json", `[0, 1) {] x `, 0},
		{"sentences end before white space or at a full stop",
			[]Criterion{{Name: "two", Sentences: 2}},
			[]string{"Pi is 3.14. Really?", "! Yes"}, "two", "Pi is 3.14. Really?! ", 3},
		{"Chinese sentences",
			[]Criterion{{Name: "two", Sentences: 2}},
			[]string{"真的？！好", "。再"}, "two", "真的？！好。", 3},
		{"marks in a row end one sentence, of either script",
			[]Criterion{{Name: "three", Sentences: 3}},
			[]string{"真的？! ", "好。. Yes!？再。x"}, "three", "真的？! 好。. Yes!？", 7},
		{"bytes end at a whole character",
			[]Criterion{{Name: "four", Bytes: 4}},
			[]string{"你", "好", "吗"}, "four", "你好", 0},
		{"tokens",
			[]Criterion{{Name: "three", Tokens: 3}},
			[]string{"a", "b", "c", "d"}, "three", "abc", 0},
		{"tokens that are bytes end at a whole character",
			[]Criterion{{Name: "one", Tokens: 1}},
			[]string{"\xe4", "\xbd", "\xa0", "x"}, "one", "你", 0},
		{"tokens without text",
			[]Criterion{{Name: "two", Tokens: 2}},
			[]string{"", "", "x"}, "two", "", 0},
		{"tokens inside a region",
			[]Criterion{{Name: "think", Tokens: 2, Scope: Scope{Open: "<t>", Close: "</t>"}}},
			[]string{"a", "b", "<t>", "c", "</t>", "<t>", "d", "e"}, "think", "ab<t>c</t>", 0},
		{"repetition",
			[]Criterion{{Name: "loop", Repetition: &Repetition{Min: 2, Count: 3}, Strip: true}},
			[]string{"aaa no, ", "no, no", ", yes"}, "loop", "aaa", 4},
		{"equal bytes of one character are no repetition",
			[]Criterion{{Name: "loop", Repetition: &Repetition{Count: 2}}},
			[]string{"\U00020000", "\U00020000x"}, "loop", "\U00020000\U00020000", 1},
		{"minimum of bytes",
			[]Criterion{{Name: "end", Literal: "\n", MinBytes: 3}},
			[]string{"a\nb\nc"}, "end", "a\nb\n", 1},
		{"minimum of tokens",
			[]Criterion{{Name: "end", Literal: "\n", MinTokens: 3}},
			[]string{"\n", "\n", "\n", "\n"}, "end", "\n\n\n", 0},
		{"invalid bytes are single characters",
			[]Criterion{{Name: "any", Regex: `\ufffdb`}},
			[]string{"\xff", "a\xe4\xbd", "b"}, "any", "\xffa\xe4\xbdb", 0},
		{"an unfinished character comes back",
			[]Criterion{{Name: "any", Literal: "你"}},
			[]string{"a\xe4\xbd"}, "", "a\xe4\xbd", 0},
		{"no criteria", nil, []string{"a", "b"}, "", "ab", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := follow(t, compile(t, tt.criteria...), tt.chunks)
			name := ""
			if d := got.fired(); d != nil {
				name = d.Criterion.Name
			}
			if name != tt.criterion || got.emitted != tt.emitted || got.tally.Discarded != tt.discarded {
				t.Errorf("%q fired with %q, %d discarded; want %q with %q, %d",
					name, got.emitted, got.tally.Discarded, tt.criterion, tt.emitted, tt.discarded)
			}
		})
	}
}

// TestHeldBack: of a literal that is stripped, exactly the longest end of the
// text that begins it is held back.
func TestHeldBack(t *testing.T) {
	const stop = "<a><b>"
	m := compile(t, Criterion{Name: "s", Literal: stop, Strip: true}).Matcher()
	text := "x<<a<a><a><b<a>é<a><"
	for i := range len(text) {
		if _, err := m.Write(text[i:i+1], 1); err != nil {
			t.Fatal(err)
		}
		seen := text[:i+1]
		bounds := boundaries(seen)
		whole := seen[:bounds[len(bounds)-1]] // without the first byte of é
		want := 0
		for n := range min(len(stop), len(whole)+1) {
			if strings.HasSuffix(whole, stop[:n]) {
				want = n
			}
		}
		want += len(seen) - len(whole)
		if got := m.Tally().Held; got != want {
			t.Errorf("%d bytes of %q held, want %d", got, seen, want)
		}
	}
}

// TestHeldBackByRegex: what is held back is bounded by how a match can begin
// and by how long it can be.
func TestHeldBackByRegex(t *testing.T) {
	for _, tt := range []struct {
		regex, text string
		held        int
	}{
		{`\nObservation:\s`, "so it is", 0},
		{`\nObservation:\s`, "so\nObserv", 7},
		{`\nObservation:\s`, "so\nObserve", 0},
		{`<a>.*</a>`, "so <a>x <a", 7},
		{`<a>.*</a>`, "so <b>x <a", 2},
		{`<a>.*</a>`, "so <ab x", 0},
		{`a.{2}b`, "aaaa", 3},
		{`a.{2}b`, "axyz", 0},
		{`(?i)sto(p|ned)`, "so STO", 3},
		{`x(a|b)c`, "xa", 2},
		{`x(a|b)c`, "xd", 0},
		{`.*x`, "anything", 8},
		{`(\w)\1`, "a b", 1},
		{`(?<q>['"]).*?\k<q>`, "so 'it", 3},
	} {
		m := compile(t, Criterion{Name: "s", Regex: tt.regex, Strip: true}).Matcher()
		if step, err := m.Write(tt.text, 1); err != nil || step.Stop != nil {
			t.Fatalf("%q: %+v %v", tt.regex, step, err)
		}
		if got := m.Tally().Held; got != tt.held {
			t.Errorf("%q holds %d bytes of %q, want %d", tt.regex, got, tt.text, tt.held)
		}
	}
}

func TestGroupsAndCaptures(t *testing.T) {
	const text = "The <tool_call> tag. <tool_call>{}</tool_call> and"
	regex := `<tool_call>(?<body>.*?)</tool_call>(?<none>x)?`
	for _, tt := range []struct {
		captures Captures
		start    int
		body     string
	}{
		{"", 4, " tag. <tool_call>{}"},
		{Leftmost, 4, " tag. <tool_call>{}"},
		{Nearest, 21, "{}"},
	} {
		d := follow(t, compile(t, Criterion{Name: "call", Regex: regex, Captures: tt.captures}), []string{text}).fired()
		if d == nil || d.MatchStart != tt.start || d.MatchEnd != 46 || d.Discarded != 4 {
			t.Fatalf("%s: %+v", tt.captures, d)
		}
		if want := map[string]string{"body": tt.body}; !reflect.DeepEqual(d.Groups, want) {
			t.Errorf("%s: groups %v, want %v", tt.captures, d.Groups, want)
		}
	}
}

func TestNotifyGoesOn(t *testing.T) {
	set := compile(t,
		Criterion{Name: "tag", Regex: `<(?<tag>\w)>`, Action: Notify},
		Criterion{Name: "ten", Bytes: 8, Action: Notify},
		Criterion{Name: "aa", Literal: "aa", Action: Notify},
		Criterion{Name: "end", Literal: ".", Action: Finish})
	got := follow(t, set, []string{"<a>aaa<", "b>aa. more"})
	var ends []int
	var names []string
	for _, d := range got.notified {
		ends, names = append(ends, d.MatchEnd), append(names, d.Criterion.Name)
	}
	if want := []string{"tag", "aa", "ten", "tag", "aa"}; !reflect.DeepEqual(names, want) {
		t.Errorf("reports of %v, want %v", names, want)
	}
	if want := []int{3, 5, 8, 9, 11}; !reflect.DeepEqual(ends, want) {
		t.Errorf("reports at %v, want %v", ends, want)
	}
	if got.notified[3].Groups["tag"] != "b" || got.emitted != "<a>aaa<b>aa." || got.stop.Criterion.Action != Finish {
		t.Errorf("%+v", got)
	}
}

// TestRunaway: what models write when they repeat themselves costs each token
// the same. Work that grows with the text takes minutes here.
func TestRunaway(t *testing.T) {
	set := compile(t, Criterion{Name: "call", Regex: qwq, Captures: Nearest})
	for _, tt := range []struct {
		token string
		times int
	}{{"\n", 200_000}, {"<tool_call>", 50_000}, {" </tool", 50_000}} {
		m := set.Matcher()
		for range tt.times {
			if step, err := m.Write(tt.token, 1); err != nil || step.Stop != nil {
				t.Fatalf("%q: %+v, %v", tt.token, step, err)
			}
		}
		step, err := m.Write("<tool_call>{}</tool_call>\n", 1)
		start := tt.times * len(tt.token)
		if err != nil || step.Stop == nil || step.Stop.MatchStart != start || step.Stop.MatchEnd != start+25 {
			t.Errorf("%q: %+v, %v", tt.token, step.Stop, err)
		}
	}
}

// TestTail: a minimum lets a match end in the tail that is otherwise never
// reached, and a part that looks ahead needs its tail.
func TestTail(t *testing.T) {
	for _, tt := range []struct {
		c    Criterion
		text string
		end  int
	}{
		{Criterion{Regex: `a\s*$`}, "a   b", 1},
		{Criterion{Regex: `a\s*$`, MinBytes: 3}, "a   b", 3},
		{Criterion{Regex: `(?=.*1)b.*`}, "bx1", 3},
		{Criterion{Regex: `a\B.*`}, "a xab", 5},
		{Criterion{Regex: `-\w*\b`}, "- -a", 4},
		{Criterion{Regex: `(?m)a$.*`}, "ab", 1},
	} {
		tt.c.Name = "p"
		if d := follow(t, compile(t, tt.c), []string{tt.text}).fired(); d == nil || d.MatchEnd != tt.end {
			t.Errorf("%q in %q: %+v, want the end %d", tt.c.Regex, tt.text, d, tt.end)
		}
	}
}

// TestBudget: a pattern that takes forever gives an error that does not carry the
// text, and the text comes back.
func TestBudget(t *testing.T) {
	set := compile(t, Criterion{Name: "slow", Regex: `^(\w+\s?)+\1=$`, Budget: time.Millisecond, Strip: true})
	m := set.Matcher()
	text := "the_secr" + "abdfghijklmnopquvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678" // no two pieces in a row are equal
	step, err := m.Write(text+"=", 1)
	var budget *BudgetError
	if !errors.As(err, &budget) || !errors.Is(err, ErrTime) {
		t.Fatalf("%+v, %v", step, err)
	}
	if budget.Criterion != "slow" || budget.Offset != len(text)+1 || budget.Budget != time.Millisecond {
		t.Errorf("%+v", budget)
	}
	if strings.Contains(err.Error(), "secr") {
		t.Errorf("the error carries the text: %v", err)
	}
	if n := m.Tally(); n.Held != n.Received || n.Received != len(text)+1 {
		t.Errorf("%+v", n)
	}
	if _, err := m.Write("x", 1); err != ErrEnded {
		t.Errorf("write after an error: %v", err)
	}
	if last := m.Close(); last.Emit != text+"=" || last.Stop.Reason != Closed {
		t.Errorf("%+v", last)
	}
}

// TestBacktrackingStack: a long open group is an error, never "no match".
func TestBacktrackingStack(t *testing.T) {
	m := compile(t, Criterion{Name: "deep", Regex: `<x>(?=a)(?:a|bc)*d`, Budget: patience}).Matcher()
	_, err := m.Write("<x>"+strings.Repeat("a", 1<<20), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = m.Write("d", 1); !errors.Is(err, ErrStack) || len(err.Error()) > 200 {
		t.Fatalf("got %v", err)
	}
}

// TestSetIsShared: matchers of one Set do not disturb each other.
func TestSetIsShared(t *testing.T) {
	list := []Criterion{{Name: "p", Regex: `(?<=a)b(?<x>\d)`, Strip: true}, {Name: "r", Repetition: &Repetition{Min: 4, Count: 3}}}
	set := compile(t, list...)
	list[0].Name, list[1].Repetition.Count = "changed", 99
	done := make(chan error)
	for range 4 {
		go func() {
			m := set.Matcher()
			for i := range 200 {
				if _, err := m.Write(fmt.Sprintf("a b%d ", 1000+i), 1); err != nil {
					done <- err
					return
				}
			}
			step, err := m.Write("ab1", 1)
			if err == nil && (step.Stop == nil || step.Stop.Criterion.Name != "p") {
				err = errors.New("no stop")
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
