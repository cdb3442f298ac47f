package stopping_test

import (
	"errors"
	"fmt"
	"strings"

	"stopgap/stopping"
)

// generate stands for a model that writes one token after the other.
func generate(criterion stopping.Criterion, tokens ...string) {
	set, err := stopping.Compile(criterion)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := set.Matcher()
	var out strings.Builder
	for _, token := range tokens {
		step, err := m.Write(token, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		out.WriteString(step.Emit)
		if step.Stop != nil {
			break
		}
	}
	last := m.Close()
	out.WriteString(last.Emit)
	fmt.Printf("%s: %q\n", last.Stop.Reason, out.String())
}

func Example() {
	set, err := stopping.Compile(stopping.Criterion{
		Name:   "call",
		Regex:  `<tool_call>(?<body>.*?)</tool_call>`,
		Action: stopping.Call,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := set.Matcher()
	for _, token := range []string{"I look. <tool", "_call>{}", "</tool_call>\nNow"} {
		step, err := m.Write(token, 1)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%q\n", step.Emit)
		if d := step.Stop; d != nil {
			fmt.Println(d.Criterion.Action, d.MatchStart, d.MatchEnd, d.Discarded, d.Groups)
		}
	}
	// Output:
	// "I look. <tool"
	// "_call>{}"
	// "</tool_call>"
	// call 8 33 4 map[body:{}]
}

func ExampleCriterion_literal() {
	stop := stopping.Criterion{Name: "observation", Literal: "\nObservation:", Strip: true}
	generate(stop, "Action: look", "\nObs", "ervation: it")
	generate(stop, "Action: look", "\nObs", "olete")
	// Output:
	// matched: "Action: look"
	// closed: "Action: look\nObsolete"
}

func ExampleCriterion_stripGroup() {
	number := stopping.Criterion{Name: "number", Regex: `Answer: \d+(?<end>\D)`, StripGroup: "end"}
	generate(number, "Answer: 4", "2", "\nNext")
	// Output: matched: "Answer: 42"
}

func ExampleCriterion_lookbehind() {
	generate(stopping.Criterion{Name: "blank", Regex: `(?<=[.!?])\n\n`, Strip: true}, "A title\n\n", "A sentence.\n", "\nMore")
	// Output: matched: "A title\n\nA sentence."
}

func ExampleCriterion_jSON() {
	generate(stopping.Criterion{Name: "json", JSON: true}, `Here: {"a": `, `[1, "}"]}`, " and so on")
	// Output: matched: "Here: {\"a\": [1, \"}\"]}"
}

func ExampleCriterion_sentences() {
	generate(stopping.Criterion{Name: "two", Sentences: 2}, "It is 3", ".5. 是的", "。好")
	// Output: matched: "It is 3.5. 是的。"
}

func ExampleCriterion_tokens() {
	generate(stopping.Criterion{Name: "two", Tokens: 2}, "one", " two", " three")
	// Output: matched: "one two"
}

func ExampleCriterion_bytes() {
	generate(stopping.Criterion{Name: "four", Bytes: 4}, "你", "好", "吗")
	// Output: matched: "你好"
}

func ExampleRepetition() {
	loop := stopping.Repetition{Min: 4, Max: 64, Count: 3}
	generate(stopping.Criterion{Name: "loop", Repetition: &loop, Strip: true}, "Well.", " I see.", " I see.", " I see.", " I see.")
	// Output: matched: "Well"
}

func ExampleScope() {
	think := stopping.Scope{Open: "<think>", Close: "</think>", Outside: true, StartsInside: true}
	generate(stopping.Criterion{Name: "call", Literal: "</call>", Scope: think}, "maybe </call>", "</think>", "<call></call> ok")
	// Output: matched: "maybe </call></think><call></call>"
}

func ExampleNotify() {
	set, err := stopping.Compile(stopping.Criterion{Name: "source", Regex: `\[(?<number>\d)\]`, Action: stopping.Notify})
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := set.Matcher().Write("See [1] and [2].", 5)
	for _, d := range step.Notified {
		fmt.Println(d.MatchStart, d.Groups["number"])
	}
	fmt.Println(step.Emit, err)
	// Output:
	// 4 1
	// 12 2
	// See [1] and [2]. <nil>
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

func ExampleSet_Warnings() {
	set, err := stopping.Compile(stopping.Criterion{Name: "number", Regex: `Answer: \d+`})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range set.Warnings() {
		fmt.Println(w.Hint)
	}
	// Output: add a terminator, for example "\d+\D"
}

func ExampleMatcher_Tally() {
	set, err := stopping.Compile(stopping.Criterion{Name: "end", Literal: "</end>", Strip: true})
	if err != nil {
		fmt.Println(err)
		return
	}
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
