package template

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
)

// bombs are texts that only harm would write, each a piece to be repeated and
// what stands before it.
var bombs = []struct{ name, before, piece string }{
	{"lists", "", "["},
	{"lists in a call", "<tool_call>", "["},
	{"lists as arguments", "\nAction: search\nAction Input: ", "["},
	{"lists in the newer spelling", "[TOOL_CALLS]search[ARGS]", "["},
	{"lists in Python", "[search(query=", "["},
	{"objects", "", `{"a":`},
	{"objects in a call", `<tool_call>{"name": "search", "arguments": `, `{"a":`},
	{"broken objects in a call", `<tool_call>{'name': "search", "arguments": `, `{"a":`},
	{"both brackets", "<tool_call>", "[{"},
	{"brackets closed crosswise", "<tool_call>{", "[}"},
	{"closing brackets", "<tool_call>{", "]"},
	{"pairs of brackets", "<tool_call>", "[]"},
	{"opening tags", "", "<tool_call>"},
	{"opening tags with a brace", "", "<tool_call>{"},
	{"opening tags with a string", "", `<tool_call>{"a":"`},
	{"opening tags with a call that is cut", "", `<tool_call>{"name": "search", "arguments": {"query": ["a"]`},
	{"closing tags", "", "</tool_call>"},
	{"closing tags after a brace", "", "{</tool_call>"},
	{"broken calls", "", "<tool_call>{'name': 'search', 'arguments': {'query': ['a' 'b']}</tool_call>"},
	{"calls of prose", "", "<tool_call>search for owls</tool_call>"},
	{"calls", "", `<tool_call>{"name": "search", "arguments": {"query": ["a"]}}</tool_call>`},
	{"calls in a fence", "```\n", `<tool_call>{"name": "search", "arguments": {"query": ["a"]}}</tool_call>` + "\n"},
	{"misspelt tags", "", "< Tool-Call >{"},
	{"tags in HTML", "", "&lt;tool_call&gt;{&quot;name&quot;:"},
	{"angle brackets", "", "<"},
	{"ampersands", "", "&lt;"},
	{"functions", "<tool_call>\n", "<function=search>"},
	{"functions in calls", "", "<tool_call>\n<function=search>\n"},
	{"parameters", "<tool_call>\n<function=search>\n", "<parameter=query>"},
	{"parameters with a value", "<tool_call>\n<function=search>\n", "<parameter=query>\na\n</parameter>"},
	{"parameters and junk", "<tool_call>\n<function=search>\n", "<parameter=query>a</parameter>b"},
	{"calls of parameters and junk", "", "<tool_call><function=search><parameter=query>a</parameter>b"},
	{"closing parameters", "<tool_call>\n<function=search>\n<parameter=query>\n", "</parameter> "},
	{"values with brackets", "<tool_call>\n<function=search>\n<parameter=query>\n", "["},
	{"search tags", "", "<search>"},
	{"search tags with a query", "", "<search>a\n"},
	{"access tags with goals", "<access>a", "<goal>b</goal>"},
	{"goals without an end", "<access>a", "<goal>"},
	{"ids", "<retrieve>", "<id>1</id>,"},
	{"numbers", "<retrieve>", "1, "},
	{"labels", "", "Action: "},
	{"labels in lines", "", "\nAction: "},
	{"labels in capitals", "", "\nACTION: search"},
	{"labels of arguments", "", "\nAction Input: {"},
	{"pairs of labels", "", "\nAction: search\nAction Input: {"},
	{"pairs of labels with text", "", "\nAction: search\nAction Input: a b"},
	{"labels with flowers", "", "✿FUNCTION✿: search\n✿ARGS✿: {"},
	{"answers", "", "\nFinal Answer: "},
	{"answer tags", "", "<answer>"},
	{"think tags", "", "<think>"},
	{"closing think tags", "", "</think>\n["},
	{"end tokens", "", "<|im_end|>"},
	{"end tags of HTML", "", "</s>a"},
	{"responses", "", "<tool_response>"},
	{"fences", "", "```\n"},
	{"fences in a line", "", "```"},
	{"fenced tags", "", "```\n<tool_call>\n"},
	{"backquotes", "", "`<tool_call>"},
	{"quotes", "<tool_call>{", `"`},
	{"quotes and words", "<tool_call>{\"a\": \"", `b "c" `},
	{"single quotes", "<tool_call>{", "'"},
	{"smart quotes", "<tool_call>{", "“"},
	{"quotes with spaces", "<tool_call>{", `"         `},
	{"triple quotes", "<tool_call>{", `"""`},
	{"triple quotes in Python", "[search(query=", `"""`},
	{"backslashes", `<tool_call>{"a": "`, `\`},
	{"backslashes in a path", `<tool_call>{"a": "C:\`, `\d`},
	{"commas", "<tool_call>{", ","},
	{"colons", "<tool_call>{", ":"},
	{"colons alone", "", ":"},
	{"comments", "<tool_call>{", "/*"},
	{"comment lines", "<tool_call>{", "//\n"},
	{"entities", "<tool_call>{", "&quot;"},
	{"parentheses", "[search(query=", "("},
	{"calls in calls", "", "search("},
	{"minus signs", "[search(query=", "-"},
	{"nots", "[search(query=", "not "},
	{"lambdas", "[search(query=", "lambda:"},
	{"conditions", "[search(query=", "a if b else "},
	{"powers", "[search(query=", "a**"},
	{"dots", "[search", ".a"},
	{"stars", "[search(query=", "*"},
	{"Python calls", "", "search(query=\"a\")\n"},
	{"Python lists", "", "[search(query=\"a\")]\n"},
	{"Python tag", "", "<|python_tag|>"},
	{"Python tag with a brace", "", "<|python_tag|>{"},
	{"bare calls", "", `{"name": "search", "parameters": {"query": ["a"]}};`},
	{"bare broken calls", "", `{'name': "search", "parameters": {"query": ["a"]}};`},
	{"Mistral's tags", "", "[TOOL_CALLS]"},
	{"Mistral's calls", "", "[TOOL_CALLS]search[ARGS]{"},
	{"Mistral's arguments", "[TOOL_CALLS]", "search[ARGS]{},"},
	{"spaces", "", " "},
	{"line ends", "", "\n"},
	{"spaces in a call", "<tool_call>", " "},
	{"zero bytes", "<tool_call>{", "\x00"},
	{"wrong bytes", "<tool_call>{", "\xff"},
	{"code tags", `<tool_call>{"name": "PythonInterpreter", "arguments": {}}`, "<code>"},
	{"code calls", "", `<tool_call>{"name": "PythonInterpreter"}<code>`},
	{"links", "<access>", "[a](https://b"},
}

func bomb(before, piece string, size int) string {
	return before + strings.Repeat(piece, max(1, (size-len(before))/len(piece)))
}

// TestBombs counts the work that a bomb makes: it grows at most as its size, and
// what is looked at is no more than some times the text.
func TestBombs(t *testing.T) {
	tools := brokenToolsOf(t)
	for _, f := range readable(t) {
		for _, c := range bombs {
			var work, allocations [2]float64
			for i, size := range []int{8 << 10, 32 << 10} {
				text := bomb(c.before, c.piece, size)
				var spent budget
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				f.Parse(text, Reading{InThink: f.Think.Opened, Tools: tools, budget: &spent})
				runtime.ReadMemStats(&after)
				allocations[i] = float64(after.Mallocs - before.Mallocs)
				work[i] = float64(spent.work)
				if most := 200*float64(size) + 1<<20; work[i] > most {
					t.Errorf("%s: %s of %d bytes: %.0f bytes were looked at, more than %.0f", f.Name, c.name, size, work[i], most)
				}
			}
			if work[1] > 5*work[0]+1<<20 || allocations[1] > 5*allocations[0]+1000 {
				t.Errorf("%s: %s: four times the text, %.1f times the work and %.1f times the allocations",
					f.Name, c.name, work[1]/work[0], allocations[1]/allocations[0])
			}
		}
	}
}

// BenchmarkBombs prints the milliseconds of each bomb in the format that takes
// longest for it, at 1 MB and at the size up to which texts are repaired.
func BenchmarkBombs(b *testing.B) {
	tools := brokenToolsOf(b)
	formats := readable(b)
	for _, size := range []int{1 << 20, maxRepair} {
		for _, c := range bombs {
			text := bomb(c.before, c.piece, size)
			b.Run(fmt.Sprintf("%s/%dKB", strings.ReplaceAll(c.name, " ", "_"), size>>10), func(b *testing.B) {
				worst := 0.0
				for range b.N {
					for _, f := range formats {
						least := math.Inf(1) // of three: the machine does other things too
						for range 3 {
							start := time.Now()
							f.Parse(text, Reading{InThink: f.Think.Opened, Tools: tools})
							least = min(least, float64(time.Since(start).Microseconds())/1000)
						}
						worst = max(worst, least)
					}
				}
				b.ReportMetric(worst, "ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// readable loads the formats whose turns Parse reads.
func readable(t testing.TB) []*Format {
	t.Helper()
	var out []*Format
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Call.Kind != "" {
			out = append(out, f)
		}
	}
	return out
}

func brokenToolsOf(t testing.TB) []Tool {
	t.Helper()
	_, tools := brokenFiles(t)
	return tools
}

// BenchmarkParse reads the turns of testdata/broken, those that are as they
// should be and those that are not.
func BenchmarkParse(b *testing.B) {
	files, tools := brokenFiles(b)
	for _, intact := range []bool{true, false} {
		b.Run(map[bool]string{true: "intact", false: "broken"}[intact], func(b *testing.B) {
			type turn struct {
				f *Format
				c brokenCase
			}
			var turns []turn
			for _, file := range files {
				f, err := Load(file.Format)
				if err != nil {
					b.Fatal(err)
				}
				for _, c := range file.Cases {
					if c.Intact == intact {
						turns = append(turns, turn{f, c})
					}
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t := turns[i%len(turns)]
				t.f.Parse(t.c.Text, Reading{InThink: t.c.InThink, Tools: tools})
				i++
			}
		})
	}
}
