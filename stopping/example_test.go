package stopping_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"stopgap/stopping"
)

// compile is Compile for criteria that are known to be valid.
func compile(criteria ...stopping.Criterion) *stopping.Set {
	set, err := stopping.Compile(criteria...)
	if err != nil {
		panic(err)
	}
	return set
}

// generate stands for a model that writes one token after the other. It prints
// what goes out and what ended it.
func generate(set *stopping.Set, tokens ...string) {
	m := set.Matcher()
	var out strings.Builder
	for _, token := range tokens {
		step, err := m.Write(token, 1)
		if err != nil {
			fmt.Println(err)
		}
		out.WriteString(step.Emit)
		if step.Stop != nil {
			break
		}
	}
	last := m.Close()
	out.WriteString(last.Emit)
	end := string(last.Stop.Reason)
	if last.Stop.Criterion != nil {
		end = last.Stop.Criterion.Name
	}
	fmt.Printf("%s: %q\n", end, out.String())
}

func Example() {
	tokens := []string{"I look", " it up. <tool", "_call>{}</tool_", "call>\nNow"}

	set, err := stopping.Compile(
		stopping.Criterion{Name: "call", Regex: `<tool_call>(?<body>.*?)</tool_call>`, Action: stopping.Call},
		stopping.Criterion{Name: "end", Literal: "<|im_end|>", Strip: true},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := set.Matcher() // one for each stream
	for _, token := range tokens {
		step, err := m.Write(token, 1)
		fmt.Print(step.Emit)
		if err != nil || step.Stop != nil {
			break // cancel the request here
		}
	}
	last := m.Close() // what was held back comes out
	fmt.Println(last.Emit)
	if c := last.Stop.Criterion; c != nil {
		fmt.Println(c.Name, c.Action, last.Stop.Groups["body"], last.Stop.Discarded)
	}
	// Output:
	// I look it up. <tool_call>{}</tool_call>
	// call call {} 4
}

func ExampleCriterion_literal() {
	stop := compile(stopping.Criterion{Name: "observation", Literal: "\nObservation:", Strip: true})
	generate(stop, "Action: look", "\nObs", "ervation: it")
	generate(stop, "Action: look", "\nObs", "olete")
	// Output:
	// observation: "Action: look"
	// closed: "Action: look\nObsolete"
}

func ExampleCriterion_regex() {
	// Two ways for a turn to end.
	stop := compile(stopping.Criterion{Name: "turn", Regex: `\n(?:Human|User):|<\|im_end\|>`, Strip: true})
	generate(stop, "Yes.", "\nUs", "er: And")
	generate(stop, "Yes.<|im", "_end|>")
	// Output:
	// turn: "Yes."
	// turn: "Yes."
}

func ExampleCriterion_backreference() {
	// A quotation ends with the mark that it began with.
	title := compile(stopping.Criterion{Name: "title", Regex: `title=(?<mark>['"]).*?\k<mark>`})
	generate(title, `<a title="`, `It's here`, `" class`)
	// Output: title: "<a title=\"It's here\""
}

func ExampleCriterion_lookbehind() {
	blank := compile(stopping.Criterion{Name: "blank", Regex: `(?<=[.!?])\n\n`, Strip: true})
	generate(blank, "A title\n\n", "A sentence.\n", "\nMore")
	// Output: blank: "A title\n\nA sentence."
}

func ExampleRepetition() {
	loop := compile(stopping.Criterion{
		Name:       "loop",
		Repetition: &stopping.Repetition{Min: 4, Max: 64, Count: 3},
		Strip:      true,
	})
	generate(loop, "Well.", " I see.", " I see.", " I see.", " I see.")
	// Output: loop: "Well"
}

func ExampleCriterion_jSON() {
	value := compile(stopping.Criterion{Name: "json", JSON: true})
	generate(value, `Here: {"a": `, `[1, "}"]}`, " and so on")
	// Output: json: "Here: {\"a\": [1, \"}\"]}"
}

func ExampleCriterion_sentences() {
	two := compile(stopping.Criterion{Name: "two", Sentences: 2})
	generate(two, "It is 3", ".5. 是的", "。好")
	// Output: two: "It is 3.5. 是的。"
}

func ExampleCriterion_tokens() {
	two := compile(stopping.Criterion{Name: "two", Tokens: 2})
	generate(two, "one", " two", " three")
	// Output: two: "one two"
}

func ExampleCriterion_bytes() {
	// The count is reached inside a character, which is completed.
	four := compile(stopping.Criterion{Name: "four", Bytes: 4})
	generate(four, "你", "好", "吗")
	// Output: four: "你好"
}

func ExampleCriterion_stripGroup() {
	number := compile(stopping.Criterion{Name: "number", Regex: `Answer: \d+(?<end>\D)`, StripGroup: "end"})
	generate(number, "Answer: 4", "2", "\nNext")
	// Output: number: "Answer: 42"
}

func ExampleCriterion_minTokens() {
	line := compile(stopping.Criterion{Name: "line", Literal: "\n", MinTokens: 3})
	generate(line, "\n", "So", ":\n", "more")
	// Output: line: "\nSo:\n"
}

func ExampleCriterion_minBytes() {
	line := compile(stopping.Criterion{Name: "line", Literal: "\n", MinBytes: 10})
	generate(line, "Short\n", "Long enough\n", "more")
	// Output: line: "Short\nLong enough\n"
}

func ExampleCompile_several() {
	set := compile(
		stopping.Criterion{Name: "long", Literal: "Final answer:"},
		stopping.Criterion{Name: "colon", Literal: ":"},
		stopping.Criterion{Name: "word", Literal: "answer"},
	)
	generate(set, "My final answer: 42") // the earliest end wins, not the order
	generate(compile(
		stopping.Criterion{Name: "long", Literal: "Final answer:", Strip: true},
		stopping.Criterion{Name: "colon", Literal: ":"},
	), "Final answer: 42") // both end here, so that the order decides
	// Output:
	// word: "My final answer"
	// long: ""
}

func ExampleScope_outside() {
	// The prompt ended in <think>, so the text starts inside.
	call := compile(stopping.Criterion{Name: "call", Literal: "</call>", Scope: stopping.Scope{
		Open: "<think>", Close: "</think>", Outside: true, StartsInside: true,
	}})
	generate(call, "maybe </call>", "</think>", "<call></call> ok")
	// Output: call: "maybe </call></think><call></call>"
}

func ExampleScope_inside() {
	// At most four tokens of thinking, with the closing tag; the answer may be
	// as long as it likes.
	budget := compile(stopping.Criterion{Name: "budget", Tokens: 4, Scope: stopping.Scope{
		Open: "<think>", Close: "</think>",
	}})
	generate(budget, "<think>", "well", " well", "</think>", "a", " long", " answer")
	generate(budget, "<think>", "well", " well", " well", " well", " well", "</think>")
	// Output:
	// closed: "<think>well well</think>a long answer"
	// budget: "<think>well well well well"
}

func ExampleScope_after() {
	line := compile(stopping.Criterion{Name: "line", Literal: "\n", Strip: true, Scope: stopping.Scope{After: "Answer:"}})
	generate(line, "First,\nthen\n", "Answer: 42", "\nThe")
	// Output: line: "First,\nthen\nAnswer: 42"
}

func ExampleCaptures() {
	const text = "I use <call>. <call>{}</call>"
	for _, which := range []stopping.Captures{stopping.Leftmost, stopping.Nearest} {
		set := compile(stopping.Criterion{Name: "call", Regex: `<call>(?<body>.*?)</call>`, Captures: which})
		step, err := set.Matcher().Write(text, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %q\n", which, step.Stop.Groups["body"])
	}
	// Output:
	// leftmost: ". <call>{}"
	// nearest: "{}"
}

func ExampleNotify() {
	set := compile(stopping.Criterion{Name: "source", Regex: `\[(?<number>\d)\]`, Action: stopping.Notify})
	step, err := set.Matcher().Write("See [1] and [2].", 5)
	for _, d := range step.Notified() {
		fmt.Println(d.MatchStart, d.Groups["number"])
	}
	fmt.Println(step.Emit, err)
	// Output:
	// 4 1
	// 12 2
	// See [1] and [2]. <nil>
}

func ExampleMatcher_Close() {
	// The server reached its length limit while half a stop was held back.
	set := compile(stopping.Criterion{Name: "end", Literal: "</end>", Strip: true})
	m := set.Matcher()
	step, err := m.Write("text</en", 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", step.Emit)
	last := m.Close()
	fmt.Printf("%q %s\n", last.Emit, last.Stop.Reason)
	// Output:
	// "text"
	// "</en" closed
}

func ExampleMatcher_Tally() {
	set := compile(stopping.Criterion{Name: "end", Literal: "</end>", Strip: true})
	m := set.Matcher()
	for _, token := range []string{"text</", "end> more"} {
		if _, err := m.Write(token, 1); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%+v\n", m.Tally())
	}
	// Output:
	// {Received:6 Emitted:4 Held:2 Stripped:0 Discarded:0}
	// {Received:15 Emitted:4 Held:0 Stripped:6 Discarded:5}
}

func ExampleCompileError() {
	_, err := stopping.Compile(stopping.Criterion{Name: "call", Regex: `<call>(.*</call>`})
	var e *stopping.CompileError
	if errors.As(err, &e) {
		fmt.Println(e)
		fmt.Println("hint:", e.Hint)
	}
	// Output:
	// stop criterion "call": missing closing ) at byte 6 of "<call>(.*</call>"
	// hint: write a bracket that is meant literally as \( or \)
}

func ExampleBudgetError() {
	// A backreference to a repeated group is tried in very many ways.
	set := compile(stopping.Criterion{Name: "slow", Regex: `^(\w+\s?)+\1=$`, Budget: time.Millisecond})
	text := "the_secrabdfghijklmnopquvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789="
	m := set.Matcher()
	step, err := m.Write(text, 1)
	var e *stopping.BudgetError
	if errors.As(err, &e) {
		fmt.Println(e.Criterion, "gave up:", errors.Is(err, stopping.ErrTime))
	}
	fmt.Println("the error has the text:", strings.Contains(err.Error(), "secr"))
	fmt.Println("the text is complete:", step.Emit+m.Close().Emit == text)
	// Output:
	// slow gave up: true
	// the error has the text: false
	// the text is complete: true
}

func ExampleSet_Plan() {
	set := compile(
		stopping.Criterion{Name: "limit", Tokens: 512},
		stopping.Criterion{Name: "end", Literal: "<|im_end|>", Strip: true},
		stopping.Criterion{Name: "call", Regex: `(?<!<think>.*)<tool_call>.*?</tool_call>`},
		stopping.Criterion{Name: "element", Regex: `<(\w+)>.*?</\1>`},
	)
	for _, p := range set.Plan() {
		fmt.Printf("%s: %s\n", p.Criterion, p.Engine) // p.Reason says why
	}
	// Output:
	// limit: counter
	// end: dfa
	// call: dfa
	// element: gated
}

func ExampleSet_Warnings() {
	set := compile(stopping.Criterion{Name: "number", Regex: `Answer: \d+`})
	for _, w := range set.Warnings() {
		fmt.Println(w)
	}
	// Output: stop criterion "number": an open repetition at the end stops as early as it can, for example at the first digit of a number; add a terminator, for example "\d+\D"
}
