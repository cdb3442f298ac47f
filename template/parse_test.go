package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	searchCall = `<tool_call>` + "\n" + `{"name": "search", "arguments": {"query": ["owl"]}}` + "\n" + `</tool_call>`
	actionCall = `<tool_call>` + "\n" + `{"action": "search", "action_input": {"query": ["owl"]}}` + "\n" + `</tool_call>`
)

// parseTable feeds the tests and the fuzz seeds. want is what describe gives.
var parseTable = []struct {
	name, format string
	inThink      bool
	text         string
	want         string
}{
	{"answer", "qwen", false, "Ann.", `text "Ann."; answer "Ann."`},
	{"answer after thinking", "qwen", false, "<think>\nHm.\n</think>\n\nAnn.", `think "Hm."; text "Ann."; answer "Ann."`},
	{"empty", "qwen", false, "", `no_call_no_answer ""`},
	{"white space", "qwen", false, " \n", `no_call_no_answer " \n"`},
	{"only thinking", "qwen", false, "<think>\nHm.\n</think>\n\n", `think "Hm."; no_call_no_answer "<think>\nHm.\n</think>\n\n"`},
	{"thinking without end", "qwen", false, "Well. <think>\nHm", `think "Hm"; text "Well."; in think; no_call_no_answer "Well. <think>\nHm"`},
	{"closing tag only", "qwen", false, "Hm.\n</think>\n\nAnn.", `think "Hm."; text "Ann."; answer "Ann."`},
	{"think tag in thinking", "qwen", false, "<think>The tag <think> is odd.</think>Ann.", `think "The tag <think> is odd."; text "Ann."; answer "Ann."`},
	{"call", "qwen", false, searchCall, `call search {"query": ["owl"]} "` + esc(searchCall) + `"`},
	{"call after thinking and words", "qwen", false, "<think>Hm.</think>Looking.\n" + searchCall,
		`think "Hm."; text "Looking."; call search {"query": ["owl"]} "` + esc(searchCall) + `"`},
	{"two calls", "qwen", false, searchCall + "\n" + `<tool_call>{"name":"read","arguments":{"id":"7"}}</tool_call>`,
		`call search {"query": ["owl"]} "` + esc(searchCall) + `"; call read {"id":"7"} "<tool_call>{\"name\":\"read\",\"arguments\":{\"id\":\"7\"}}</tool_call>"`},
	{"no arguments", "qwen", false, `<tool_call>{"name": "now"}</tool_call>`, `call now {} "<tool_call>{\"name\": \"now\"}</tool_call>"`},
	{"text after call", "qwen", false, searchCall + "\nDone.", `text "Done."; call search {"query": ["owl"]} "` + esc(searchCall) + `"; text_after_call "\nDone."`},
	{"mention before call", "qwen", false, "I use <tool_call> now. " + searchCall,
		`text "I use <tool_call> now."; call search {"query": ["owl"]} "` + esc(searchCall) + `"`},
	{"mention in an answer", "qwen", false, "The tag is `<tool_call>`.", "text \"The tag is `<tool_call>`.\"; answer \"The tag is `<tool_call>`.\""},
	{"tags in a string", "qwen", false, `<tool_call>{"name": "search", "arguments": {"query": ["what is </tool_call> after <tool_call> and <think>"]}}</tool_call>`,
		`call search {"query": ["what is </tool_call> after <tool_call> and <think>"]} "` + esc(`<tool_call>{"name": "search", "arguments": {"query": ["what is </tool_call> after <tool_call> and <think>"]}}</tool_call>`) + `"`},
	{"unclosed", "qwen", false, "Ok. <tool_call>\n{\"name\": \"search\", \"argu", `text "Ok."; unclosed_call "<tool_call>\n{\"name\": \"search\", \"argu"`},
	{"unclosed after the object", "qwen", false, `<tool_call>{"name": "search"}`, `unclosed_call "<tool_call>{\"name\": \"search\"}"`},
	{"unclosed at the tag", "qwen", false, "Ok. <tool_call>\n", `text "Ok."; unclosed_call "<tool_call>\n"`},
	{"unclosed, then closed", "qwen", false, `<tool_call>{"name": "a"}` + searchCall,
		`call search {"query": ["owl"]} "` + esc(searchCall) + `"; unclosed_call "<tool_call>{\"name\": \"a\"}"`},
	{"bad JSON", "qwen", false, "<tool_call>{'name': 'search'}</tool_call>", `bad_json "<tool_call>{'name': 'search'}</tool_call>"`},
	{"no JSON", "qwen", false, "<tool_call>search owl</tool_call>", `bad_json "<tool_call>search owl</tool_call>"`},
	{"JSON and more", "qwen", false, `<tool_call>{"name": "a"}}</tool_call>`, `bad_json "<tool_call>{\"name\": \"a\"}}</tool_call>"`},
	{"list", "qwen", false, `<tool_call>[{"name": "a"}]</tool_call>`, `bad_json "<tool_call>[{\"name\": \"a\"}]</tool_call>"`},
	{"string without end", "qwen", false, `<tool_call>{"name": "a</tool_call> and more`, `text "and more"; bad_json "<tool_call>{\"name\": \"a</tool_call>"`},
	{"arguments as a string", "qwen", false, `<tool_call>{"name": "a", "arguments": "{}"}</tool_call>`, `bad_json "<tool_call>{\"name\": \"a\", \"arguments\": \"{}\"}</tool_call>"`},
	{"null arguments", "qwen", false, `<tool_call>{"name": "a", "arguments": null}</tool_call>`, `bad_json "<tool_call>{\"name\": \"a\", \"arguments\": null}</tool_call>"`},
	{"no name", "qwen", false, `<tool_call>{"arguments": {}}</tool_call>`, `missing_name "<tool_call>{\"arguments\": {}}</tool_call>"`},
	{"name is no text", "qwen", false, `<tool_call>{"name": 7}</tool_call>`, `missing_name "<tool_call>{\"name\": 7}</tool_call>"`},
	{"empty name", "qwen", false, `<tool_call>{"name": " "}</tool_call>`, `missing_name "<tool_call>{\"name\": \" \"}</tool_call>"`},
	{"other keys", "qwen", false, `<tool_call>{"action": "a", "action_input": {}}</tool_call>`, `missing_name "<tool_call>{\"action\": \"a\", \"action_input\": {}}</tool_call>"`},
	{"a key twice", "qwen", false, `<tool_call>{"name": "a", "name": "b"}</tool_call>`, `call b {} "<tool_call>{\"name\": \"a\", \"name\": \"b\"}</tool_call>"`},
	{"one bad, one good", "qwen", false, "<tool_call>{bad}</tool_call>\n" + searchCall,
		`call search {"query": ["owl"]} "` + esc(searchCall) + `"; bad_json "<tool_call>{bad}</tool_call>"`},
	{"call in thinking", "qwen", false, "<think>" + searchCall + "</think>", `think "` + esc(searchCall) + `"; call_in_think "` + esc(searchCall) + `"`},
	{"call in thinking, then an answer", "qwen", false, "<think>" + searchCall + "</think>Ann.",
		`think "` + esc(searchCall) + `"; text "Ann."; answer "Ann."; call_in_think "` + esc(searchCall) + `"`},
	{"mention in thinking", "qwen", false, "<think>I write <tool_call>…</tool_call> next.</think>Ann.",
		`think "I write <tool_call>…</tool_call> next."; text "Ann."; answer "Ann."`},
	{"invented response", "qwen", false, searchCall + "\n<tool_response>\nAnn.\n</tool_response>",
		`call search {"query": ["owl"]} "` + esc(searchCall) + `"; invented_response "<tool_response>\nAnn.\n</tool_response>"`},
	{"problems in the order of the text", "qwen", false, searchCall + " So: <tool_response>",
		`text "So:"; call search {"query": ["owl"]} "` + esc(searchCall) + `"; text_after_call " So: <tool_response>"; invented_response "<tool_response>"`},
	{"invented response without a call", "qwen", false, "So: <tool_response>Ann.", `text "So:"; invented_response "<tool_response>Ann."`},
	{"response mentioned in thinking", "qwen", false, "<think>a <tool_response> comes</think>Ann.", `think "a <tool_response> comes"; text "Ann."; answer "Ann."`},

	{"calls one behind the other", "mistral-v13", false, "Looking. [TOOL_CALLS]search[ARGS]{}[TOOL_CALLS]read[ARGS]{}",
		`text "Looking."; call search {} "[TOOL_CALLS]search[ARGS]{}"; call read {} "[TOOL_CALLS]read[ARGS]{}"`},
	{"mention", "mistral-v13", false, "The token [TOOL_CALLS] comes first.",
		`text "The token [TOOL_CALLS] comes first."; answer "The token [TOOL_CALLS] comes first."`},
	{"struck out in HTML", "qwen", false, "It was <s>Bob</s> Ann.", `text "It was <s>Bob</s> Ann."; answer "It was <s>Bob</s> Ann."`},
	{"end token", "mistral", false, "Ann.</s>\n", `text "Ann."; answer "Ann."`},
	{"end token and another turn", "mistral", false, "Ann.</s>[INST]When?[/INST]", `text "Ann."; invented_response "</s>[INST]When?[/INST]"`},
	{"call in a line of words", "qwen3-coder", false, "Looking: <tool_call>\n<function=now>\n</function>\n</tool_call>",
		`text "Looking:"; call now {} "<tool_call>\n<function=now>\n</function>\n</tool_call>"`},
	{"call in thinking", "qwq", true, "I look.\n" + actionCall, `think "I look."; call search {"query": ["owl"]} "` + esc(actionCall) + `"; in think`},
	{"call after thinking", "qwq", true, "I look.\n</think>\n\n" + actionCall, `think "I look."; call search {"query": ["owl"]} "` + esc(actionCall) + `"`},
	{"second call of the same turn of the model", "qwq", true, "Not yet.\n" + actionCall, `think "Not yet."; call search {"query": ["owl"]} "` + esc(actionCall) + `"; in think`},
	{"answer", "qwq", true, "It says so.\n</think>\n\nAnn [7].", `think "It says so."; text "Ann [7]."; answer "Ann [7]."`},
	{"answer after a response outside of thinking", "qwq", false, "\nAnn [7].", `text "Ann [7]."; answer "Ann [7]."`},
	{"no answer", "qwq", true, "It says so.", `think "It says so."; in think; no_call_no_answer "It says so."`},
	{"bad JSON", "qwq", true, "<tool_call>...</tool_call>", `in think; bad_json "<tool_call>...</tool_call>"`},
	{"input is no object", "qwq", true, `<tool_call>{"action": "search", "action_input": "owl"}</tool_call>`,
		`in think; bad_json "<tool_call>{\"action\": \"search\", \"action_input\": \"owl\"}</tool_call>"`},

	{"call", "react", true, " I look.\nAction: search\nAction Input: {\"query\": [\"owl\"]}",
		`think "I look."; call search {"query": ["owl"]} "Action: search\nAction Input: {\"query\": [\"owl\"]}"; in think`},
	{"call at the start", "react", true, " Action: search\nAction Input: {}", `call search {} "Action: search\nAction Input: {}"; in think`},
	{"call over lines", "react", true, "\nAction:  search \nAction Input:\n{\n \"query\": [\"a\nb\"]}",
		`in think; bad_json "Action:  search \nAction Input:\n{\n \"query\": [\"a\nb\"]}"`},
	{"JSON over lines", "react", true, "\nAction: search\nAction Input: {\n  \"query\": [\n\"owl\"]\n}\n", `call search {
  "query": [
"owl"]
} "Action: search\nAction Input: {\n  \"query\": [\n\"owl\"]\n}"; in think`},
	{"several thoughts", "react", true, " One.\nThought: Two.\nAction: a\nAction Input: {}", `think "One.\n Two."; call a {} "Action: a\nAction Input: {}"; in think`},
	{"the last pair counts", "react", true, "\nAction: a\nAction Input: {\"x\": 1}\nAction: b\nAction Input: {}",
		`think "Action: a\nAction Input: {\"x\": 1}"; call b {} "Action: b\nAction Input: {}"; in think`},
	{"label in a sentence", "react", true, " The Action: is not one.\nAction: a\nAction Input: {}", `think "The Action: is not one."; call a {} "Action: a\nAction Input: {}"; in think`},
	{"text after the arguments", "react", true, "\nAction: a\nAction Input: {} and wait", `text "and wait"; call a {} "Action: a\nAction Input: {}"; in think; text_after_call " and wait"`},
	{"no arguments", "react", true, " Hm.\nAction: a\n", `think "Hm."; in think; unclosed_call "Action: a\n"`},
	{"empty arguments", "react", true, "\nAction: a\nAction Input:", `in think; unclosed_call "Action: a\nAction Input:"`},
	{"arguments without end", "react", true, "\nAction: a\nAction Input: {\"x\": [1", `in think; unclosed_call "Action: a\nAction Input: {\"x\": [1"`},
	{"arguments are no object", "react", true, "\nAction: a\nAction Input: \"owl\"", `in think; bad_json "Action: a\nAction Input: \"owl\""`},
	{"arguments are no JSON", "react", true, "\nAction: a\nAction Input: owl", `in think; bad_json "Action: a\nAction Input: owl"`},
	{"no name", "react", true, "\nAction:\nAction Input: {}", `in think; missing_name "Action:\nAction Input: {}"`},
	{"no name line", "react", true, " Hm.\nAction Input: {}", `think "Hm."; in think; missing_name "Action Input: {}"`},
	{"answer", "react", true, " I now know the final answer\nFinal Answer: Ann [7].", `think "I now know the final answer"; answer "Ann [7]."; in think`},
	{"answer over lines", "react", true, "\nFinal Answer:\n\n- Ann\n- [7]\n", `answer "- Ann\n- [7]"; in think`},
	{"empty answer", "react", true, "\nFinal Answer:", `answer ""; in think`},
	{"answer at the start", "react", true, " Final Answer: Ann.", `answer "Ann."; in think`},
	{"answer in the line of the thought", "react", true, " Now I know. Final Answer: Ann.", `think "Now I know."; answer "Ann."; in think`},
	{"answer mentioned before a call", "react", true, " The Final Answer: needs a search.\nAction: a\nAction Input: {}",
		`think "The Final Answer: needs a search."; call a {} "Action: a\nAction Input: {}"; in think`},
	{"answer, then a thought", "react", true, "\nFinal Answer: Ann.\nThought: more\nAction: a\nAction Input: {}", `answer "Ann."; in think`},
	{"answer after a call", "react", true, "\nAction: a\nAction Input: {}\nFinal Answer: Ann.",
		`think "Action: a\nAction Input: {}"; answer "Ann."; in think; text_after_call "Action: a\nAction Input: {}\n"`},
	{"invented observation", "react", true, "\nAction: a\nAction Input: {}\nObservation: 7\nThought: ok\nFinal Answer: 7",
		`call a {} "Action: a\nAction Input: {}"; in think; invented_response "Observation: 7\nThought: ok\nFinal Answer: 7"`},
	{"neither", "react", true, " I do not know.", `think "I do not know."; in think; no_call_no_answer " I do not know."`},
}

// esc spells a text as inside the quotes of %q.
func esc(s string) string {
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}

// describe spells a turn for tables.
func describe(t Turn, text string) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if t.Think != "" {
		add("think %q", t.Think)
	}
	if t.Text != "" {
		add("text %q", t.Text)
	}
	for _, c := range t.Calls {
		add("call %s %s %q", c.Name, c.Arguments, text[c.Start:c.End])
	}
	if t.Answered {
		add("answer %q", t.Answer)
	}
	if t.InThink {
		add("in think")
	}
	for _, p := range t.Problems {
		add("%s %q", p.Kind, text[p.Start:p.End])
	}
	return strings.Join(out, "; ")
}

func TestParse(t *testing.T) {
	for _, c := range parseTable {
		t.Run(c.format+"/"+c.name, func(t *testing.T) {
			f, err := Load(c.format)
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(f.Parse(c.text, Reading{InThink: c.inThink, Strict: true}), c.text); got != c.want {
				t.Errorf("%q\n got: %s\nwant: %s", c.text, got, c.want)
			}
		})
	}
}

// TestParseLimits gives Parse what only harm would write; see TestBombs.
func TestParseLimits(t *testing.T) {
	deep := strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth)
	big := strings.Repeat("x", maxCall)
	for _, c := range []struct {
		name, format, text string
		want               ProblemKind
	}{
		{"nested", "qwen", `<tool_call>{"name": "a", "arguments": ` + deep + `}</tool_call>`, BadJSON},
		{"nested bomb", "qwen", "<tool_call>" + strings.Repeat("[", 1<<20) + "</tool_call>", BadJSON},
		{"nested bomb of objects", "qwen", "<tool_call>" + strings.Repeat(`{"a":`, 1<<18), UnclosedCall},
		{"large", "qwen", `<tool_call>{"name": "a", "arguments": {"x": "` + big + `"}}</tool_call>`, BadJSON},
		{"opening tags", "qwen", strings.Repeat("<tool_call>{", 1<<16), UnclosedCall},
		{"opening tags in strings", "qwen", strings.Repeat(`<tool_call>{"a":"`, 1<<16), BadJSON},
		{"think tags", "qwen", strings.Repeat("<think>", 1<<17), BadJSON},
		{"nested bomb", "react", "\nAction: a\nAction Input: " + strings.Repeat("[", 1<<20), BadJSON},
		{"labels", "react", strings.Repeat("Action: ", 1<<17), UnclosedCall},
		{"spaces and labels", "react", strings.Repeat(" ", 1<<19) + strings.Repeat("Action: ", 1<<16), NoCallNoAnswer},
	} {
		t.Run(c.format+"/"+c.name, func(t *testing.T) {
			f, err := Load(c.format)
			if err != nil {
				t.Fatal(err)
			}
			turn := f.Parse(c.text, Reading{InThink: f.Think.Opened})
			if len(turn.Calls) > 0 || len(turn.Problems) == 0 || turn.Problems[0].Kind != c.want {
				t.Errorf("got %d calls, problems %.3v", len(turn.Calls), turn.Problems)
			}
		})
	}
}

// FuzzParse holds what callers of Parse rely on, whatever the model wrote.
func FuzzParse(f *testing.F) {
	formats := readable(f)
	files, tools := brokenFiles(f)
	for _, c := range parseTable {
		f.Add(c.text, c.inThink)
	}
	for _, file := range files {
		for _, c := range file.Cases {
			f.Add(c.Text, c.InThink)
		}
	}
	f.Fuzz(func(t *testing.T, text string, inThink bool) {
		for _, format := range formats {
			check := func(r Reading) Turn {
				r.InThink = inThink
				turn := format.Parse(text, r)
				if msg := unsound(turn, text, r); msg != "" {
					t.Fatalf("%s, %d tools, strict %v: %s\n%q\n%+v", format.Name, len(r.Tools), r.Strict, msg, text, turn)
				}
				return turn
			}
			for _, offered := range [][]Tool{nil, tools} {
				strict, lenient := check(Reading{Tools: offered, Strict: true}), check(Reading{Tools: offered})
				check(Reading{Tools: offered, Ended: true})
				for _, c := range strict.Calls {
					// Behind a call that a lenient reading closes there may be an
					// answer without an end, or thinking.
					if lenient.Answered || lenient.has(CallInThink) {
						break
					}
					if !slices.ContainsFunc(lenient.Calls, func(l Call) bool { return readsToo(l, c) }) {
						t.Fatalf("%s, %d tools: a strict reading has %s%s, a lenient one has not\n%q\n%+v\n%+v",
							format.Name, len(offered), c.Name, c.Arguments, text, strict, lenient)
					}
				}
			}
		}
	})
}

// readsToo reports whether a lenient reading has a call of a strict one: the
// same, or one at that place that was repaired.
func readsToo(lenient, strict Call) bool {
	if len(lenient.Repairs) > 0 {
		return lenient.Start < strict.End && strict.Start < lenient.End
	}
	return lenient.Name == strict.Name && canonicalJSON(lenient.Arguments) == canonicalJSON(strict.Arguments)
}

// unsound says what is wrong with a turn in itself.
func unsound(turn Turn, text string, r Reading) string {
	end := 0
	for i, c := range turn.Calls {
		sameList := i > 0 && c.Start == turn.Calls[i-1].Start && c.End == turn.Calls[i-1].End
		if c.Start < end && !sameList || c.End <= c.Start || c.End > len(text) {
			return "calls out of order"
		}
		end = c.End
		if _, ok := object(c.Arguments); !ok || !json.Valid(c.Arguments) || c.Name == "" {
			return "a call without a name or an object"
		}
		if r.Strict && len(c.Repairs) > 0 {
			return "a strict call that is repaired"
		}
	}
	last := 0
	for _, p := range turn.Problems {
		if p.Start < last || p.Start > p.End || p.End > len(text) || p.Message == "" {
			return "problems out of order"
		}
		last = p.Start
	}
	switch {
	case len(turn.Calls) == 0 && !turn.Answered && len(turn.Problems) == 0:
		return "a turn without call, answer and problem"
	case turn.Answered && len(turn.Calls) > 0:
		return "a turn with a call and an answer"
	}
	return ""
}
