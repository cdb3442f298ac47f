package stopping

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each test here is a mistake of a known runner or server, named in its first
// line. Two more are about what servers send, and stand beside the code that
// reads it, in models: a request's stops replace those of the Modelfile
// (Ollama), and a stream ends without its last message after thirty equal
// pieces (Ollama).

// eachCut runs a text through a set in all ways to cut it.
func eachCut(t *testing.T, set *Set, text string, check func(t *testing.T, got outcome)) {
	t.Helper()
	for name, chunks := range cuts(rand.New(rand.NewPCG(33, 34)), text) {
		t.Run(name, func(t *testing.T) { check(t, follow(t, set, chunks)) })
	}
}

// ending checks a stop and what went out before it.
func ending(t *testing.T, got outcome, criterion, emitted string) {
	t.Helper()
	name := ""
	if d := got.fired(); d != nil {
		name = d.Criterion.Name
	}
	if name != criterion || got.emitted != emitted {
		t.Errorf("%q fired with %q given out, want %q with %q", name, got.emitted, criterion, emitted)
	}
}

// TestCJKStopSplitIntoByteTokens: Hugging Face's StopStringCriteria did not see
// a stop whose characters arrive as tokens of single bytes.
func TestCJKStopSplitIntoByteTokens(t *testing.T) {
	for _, c := range []Criterion{
		{Name: "stop", Literal: "。停止", Strip: true},
		{Name: "stop", Regex: "。停止", Strip: true},
		{Name: "stop", Regex: `\p{Po}\p{Han}止`, Strip: true},
	} {
		eachCut(t, compile(t, c), "你好。停止继续", func(t *testing.T, got outcome) { ending(t, got, "stop", "你好") })
	}
}

// TestListOrderNeverBeatsTheEarliestEnd: vLLM once stopped at the first stop of
// the request's list that was in the text, not at the one that was complete
// first.
func TestListOrderNeverBeatsTheEarliestEnd(t *testing.T) {
	stops := []Criterion{
		{Name: "last", Literal: "STOP", Strip: true},
		{Name: "middle", Regex: `END\s`, Strip: true},
		{Name: "first", Regex: `(?<=\n)Q:`, Strip: true},
		{Name: "long", Literal: "wer\nQ:", Strip: true}, // ends where "first" does, declared later
	}
	eachCut(t, compile(t, stops...), "answer\nQ: END STOP", func(t *testing.T, got outcome) { ending(t, got, "first", "answer\n") })
}

// TestHoldBackIsNotAConstant: vLLM always withholds the length of the longest
// stop, less one. Here text that cannot belong to a stop is not held at all.
func TestHoldBackIsNotAConstant(t *testing.T) {
	stop := "\nObservation: the end of this call"
	m := compile(t, Criterion{Name: "stop", Literal: stop, Strip: true}, Criterion{Name: "regex", Regex: `<end \w+>`, Strip: true}).Matcher()
	for _, tt := range []struct {
		chunk string
		held  int
	}{
		{"Nothing of this is held.", 0}, {" But a new line is:\n", 1}, {"Obs", 4}, {"olete", 0}, {"\n\nObservation", 12}, {"s", 0}, {" <e", 2}, {"nd of", 7}, {" ", 0}, {"<end x", 6}, {"<", 1},
	} {
		if step, err := m.Write(tt.chunk, 1); err != nil || step.Stop != nil {
			t.Fatalf("%q: %+v, %v", tt.chunk, step, err)
		}
		if got := m.Tally().Held; got != tt.held {
			t.Errorf("after %q %d bytes are held, want %d", tt.chunk, got, tt.held)
		}
	}
}

// TestRegexStopHoldsBack: SGLang's stop_regex shows the beginning of a match
// before the match is complete.
func TestRegexStopHoldsBack(t *testing.T) {
	set := compile(t, Criterion{Name: "stop", Regex: `<(?:end|stop)\s*/>`, Strip: true})
	eachCut(t, set, "a <end of <stop  \n /> b", func(t *testing.T, got outcome) { ending(t, got, "stop", "a <end of ") })
}

// TestStripTrimsTheMatchNotThePatternSource: SGLang looks for the source of the
// pattern in the text to cut it off there.
func TestStripTrimsTheMatchNotThePatternSource(t *testing.T) {
	const source = `\[\d+\]\.`
	set := compile(t, Criterion{Name: "stop", Regex: source, Strip: true})
	eachCut(t, set, "The pattern is "+source+" here [12]. x", func(t *testing.T, got outcome) {
		ending(t, got, "stop", "The pattern is "+source+" here ")
	})
}

// TestStopInTheMiddleOfAToken: Text Generation Inference compares the end of
// the text after each token, and misses a stop that ends inside of one.
func TestStopInTheMiddleOfAToken(t *testing.T) {
	for _, c := range []Criterion{{Name: "stop", Literal: "END"}, {Name: "stop", Regex: `E(?=N)ND`}, {Name: "stop", Regex: `E(N)(?!\1)D`}} {
		got := follow(t, compile(t, c), []string{"the", " EN", "D of it", " all"})
		ending(t, got, "stop", "the END")
		if got.tally.Discarded != len(" of it") {
			t.Errorf("%+v", got.tally)
		}
	}
}

// TestHeldTailIsGivenBackAtTheLengthLimit: llama-server loses the text that it
// withheld for a stop when the limit of tokens ends the generation.
func TestHeldTailIsGivenBackAtTheLengthLimit(t *testing.T) {
	for _, c := range []Criterion{
		{Name: "stop", Literal: "</stop>", Strip: true},
		{Name: "stop", Regex: `</(stop|end)>`, Strip: true},
		{Name: "stop", Regex: `(?s)<.*>`, Strip: true},
		{Name: "stop", JSON: true, Strip: true},
		{Name: "stop", Repetition: &Repetition{Count: 3}, Strip: true},
		{Name: "stop", Regex: `<(\w+)>.*</\1>`, Strip: true},
	} {
		for _, text := range []string{"text </st", "text <a {[ no no", "好\xe5", "text </stop\xe4\xbd"} {
			eachCut(t, compile(t, c), text, func(t *testing.T, got outcome) { ending(t, got, "", text) })
		}
	}
}

// TestObservationNeverLeaksItsBeginning: for Qwen-7B "Observation:" and
// "Observation:\n" are different tokens at the end, so that a stop which
// compares tokens lets "Observ" out.
func TestObservationNeverLeaksItsBeginning(t *testing.T) {
	for _, c := range []Criterion{{Name: "stop", Literal: "Observation:", Strip: true}, {Name: "stop", Regex: `\s*Observation:`, Strip: true}} {
		set := compile(t, c)
		for _, end := range []string{"", "\n", " ", "\n\n"} {
			for _, tokens := range [][]string{{"Observ", "ation", ":" + end}, {"Observation", ":" + end}, {"Ob", "servation:" + end}, {"Observation:", end}} {
				got := follow(t, set, append([]string{"Action"}, tokens...))
				ending(t, got, "stop", "Action")
			}
		}
	}
}

// TestEndOfStreamLosesNoPartOfATag: a tag parser that many servers use loses
// "</thi" at the end of the stream.
func TestEndOfStreamLosesNoPartOfATag(t *testing.T) {
	set := compile(t, Criterion{Name: "stop", Literal: "</think>", Strip: true, Scope: Scope{Open: "<think>", Close: "</think>", StartsInside: true}})
	text := "thought </thi"
	eachCut(t, set, text, func(t *testing.T, got outcome) { ending(t, got, "", text) })
}

// TestSplitTagChangesNoScope: another one takes an answer for reasoning when
// "</think>" arrives in two pieces.
func TestSplitTagChangesNoScope(t *testing.T) {
	set := compile(t, Criterion{Name: "call", Regex: `<call>(?<body>.*?)</call>`, Scope: Scope{Open: "<think>", Close: "</think>", Outside: true, StartsInside: true}})
	eachCut(t, set, "I may <call>x</call>.</think><call>y</call>", func(t *testing.T, got outcome) {
		if d := got.fired(); d == nil || d.Groups["body"] != "y" {
			t.Errorf("%+v", d)
		}
	})
}

// TestExampleInThePromptIsNoCall: an inference script finds the example in its
// own prompt and calls it. A Matcher reads only what is written to it, and what
// one text left unfinished is not part of the next one.
func TestExampleInThePromptIsNoCall(t *testing.T) {
	set := compile(t, Criterion{Name: "call", Regex: qwq})
	first := set.Matcher()
	if step, err := first.Write("<tool_call>{}", 1); err != nil || step.Stop != nil {
		t.Fatalf("%+v, %v", step, err)
	}
	second := set.Matcher()
	if step, err := second.Write("</tool_call>", 1); err != nil || step.Stop != nil {
		t.Errorf("%+v, %v", step, err)
	}
	if step, err := first.Write("</tool_call>", 1); err != nil || step.Stop == nil {
		t.Errorf("%+v, %v", step, err)
	}
}

// The rest follows from the definition, and would be lost by a check once a token.

// TestCallEndsAtTheBracketWhateverFollows: searched for once a token, this
// pattern does not match when the last token brings more than white space.
func TestCallEndsAtTheBracketWhateverFollows(t *testing.T) {
	const call = `I search. <tool_call>{"a": 1}</tool_call>`
	for _, tt := range []struct{ missing, last string }{
		{"", ""}, {"</tool_call>", "</tool_call>\n"}, {"</tool_call>", "</tool_call>\nNow I"}, {"</tool_call>", "</tool_call>\n\n<tool_call>"}, {"l>", "l>x"}, {">", "></tool_call>"},
	} {
		got := follow(t, compile(t, Criterion{Name: "call", Regex: qwq}), []string{strings.TrimSuffix(call, tt.missing), tt.last, " and so on"})
		ending(t, got, "call", call)
		if got.tally.Discarded != len(tt.last)-len(tt.missing) {
			t.Errorf("%q: %+v", tt.last, got.tally)
		}
	}
}

// TestSpellingsThatMeanTheSame: an optional tail, an end anchor, greed and
// captures of the leftmost match make no difference to where a pattern fires.
func TestSpellingsThatMeanTheSame(t *testing.T) {
	for _, same := range [][]string{
		{`<c>.*?</c>`, `<c>.*</c>`, `<c>(.*?)</c>\s*$`, `<c>(.*)</c>\s*`, `<c>.*?</c>$`, `<c>.*?</c>\z`, `<c>.*?</c>\Z`, `(?m)<c>.*?</c>$`, `<c>(?:.|\n)*?</c>(?:\s|x)*`},
		{`\d+`, `\d`, `\d+?`, `\d{1,3}`, `\d\d*`, `\d(?=)`, `\d\b?`},
		{`ab|abc`, `abc?`, `ab(?:c|)`, `abc??`, `ab(?!c)`},
	} {
		for _, text := range []string{"x <c>1</c> y</c>", "<c> abc 12", "12abc", "\n<c>\n</c>\nabc"} {
			var ends []string
			for _, regex := range same {
				d := follow(t, compile(t, Criterion{Name: "p", Regex: regex}), []string{text}).stop
				ends = append(ends, fmt.Sprint(d.Reason, d.MatchStart, d.MatchEnd))
			}
			for i, end := range ends {
				if end != ends[0] {
					t.Errorf("%q in %q: %s, but %q: %s", same[i], text, end, same[0], ends[0])
				}
			}
		}
	}
}

// TestMentionInProseDoesNotSwallowTheText: with the nearest captures the call
// begins at its own tag, and only that is stripped.
func TestMentionInProseDoesNotSwallowTheText(t *testing.T) {
	text := "A <tool_call> is how I call. <tool_call>{}</tool_call>"
	nearest := Criterion{Name: "call", Regex: `<tool_call>(?<body>.*?)</tool_call>`, Captures: Nearest, Strip: true}
	eachCut(t, compile(t, nearest), text, func(t *testing.T, got outcome) {
		ending(t, got, "call", "A <tool_call> is how I call. ")
		if d := got.fired(); d == nil || d.Groups["body"] != "{}" {
			t.Errorf("%+v", d)
		}
	})
	leftmost := nearest
	leftmost.Captures = Leftmost
	eachCut(t, compile(t, leftmost), text, func(t *testing.T, got outcome) { ending(t, got, "call", "A ") })
}

// TestEmptyMatchIsNoStop: a pattern that matches the empty string would end
// every text before it begins.
func TestEmptyMatchIsNoStop(t *testing.T) {
	for _, regex := range []string{`a*`, `\s*$`, `(?:a|b?)`, `^`, `(?<=^)`, `(?!x)`, `|x`, `()`, `(?(?=a)a|)`, `\B`} {
		_, err := Compile(Criterion{Name: "p", Regex: regex})
		var refused *CompileError
		if !errors.As(err, &refused) || refused.Hint == "" || !strings.Contains(refused.Problem, "empty string") {
			t.Errorf("%q: %v", regex, err)
		}
	}
}
