package template

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// lex reads a text in chunks that end at cuts, and merges neighbours.
func lex(f *Format, inThink bool, chunks ...string) []Span {
	var out []Span
	add := func(spans []Span) {
		for _, s := range spans {
			if n := len(out); n > 0 && out[n-1].Kind == s.Kind {
				out[n-1].Text += s.Text
			} else {
				out = append(out, s)
			}
		}
	}
	l := f.Lexer(inThink)
	for _, c := range chunks {
		add(l.Write(c))
	}
	add(l.Close())
	return out
}

func TestLexer(t *testing.T) {
	const (
		text, think, call, answer, tag = SpanText, SpanThink, SpanCall, SpanAnswer, SpanTag
	)
	for _, c := range []struct {
		format  string
		inThink bool
		text    string
		want    []Span
	}{
		{"qwen", false, "", nil},
		{"qwen", false, "Ann.", []Span{{text, "Ann."}}},
		{"qwen", false, "<think>Hm.</think>\nAnn.", []Span{{tag, "<think>"}, {think, "Hm."}, {tag, "</think>"}, {text, "\nAnn."}}},
		{"qwen", false, "a<tool_call>{}</tool_call>b", []Span{{text, "a"}, {tag, "<tool_call>"}, {call, "{}"}, {tag, "</tool_call>"}, {text, "b"}}},
		{"qwen", false, "<think>a<tool_call>b</think>c", []Span{{tag, "<think>"}, {think, "a"}, {tag, "<tool_call>"}, {call, "b"}, {tag, "</think>"}, {text, "c"}}},
		{"qwen", false, "1 < 2 <thin</tool_call>", []Span{{text, "1 < 2 <thin</tool_call>"}}},
		{"qwen", false, "<think>the <think> tag", []Span{{tag, "<think>"}, {think, "the <think> tag"}}},
		{"qwen", false, "a</thi", []Span{{text, "a</thi"}}},
		{"qwq", true, "Hm.<tool_call>{}</tool_call>", []Span{{think, "Hm."}, {tag, "<tool_call>"}, {call, "{}"}, {tag, "</tool_call>"}}},
		{"qwq", true, "Hm.<tool_call>{}</tool_call> so", []Span{{think, "Hm."}, {tag, "<tool_call>"}, {call, "{}"}, {tag, "</tool_call>"}, {think, " so"}}},
		{"react", true, " Hm.\nAction: a\nAction Input: {}", []Span{{think, " Hm.\n"}, {tag, "Action:"}, {call, " a\n"}, {tag, "Action Input:"}, {call, " {}"}}},
		{"react", true, " I know.\nFinal Answer: Ann.\nAnd so on", []Span{{think, " I know.\n"}, {tag, "Final Answer:"}, {answer, " Ann.\nAnd so on"}}},
		{"react", true, " Action: a", []Span{{think, " "}, {tag, "Action:"}, {call, " a"}}},
		{"react", true, " an Action: a\n Action: b", []Span{{think, " an Action: a\n Action: b"}}},
		{"qwen3-coder", false, "a\n<tool_call>\n<function=f>\n</function>\n</tool_call>b", []Span{{text, "a\n"}, {tag, "<tool_call>"}, {call, "\n<function=f>\n</function>\n"}, {tag, "</tool_call>"}, {text, "b"}}},
		{"qwen3-coder", false, "a <function=f>\n</function>\n</tool_call>b", []Span{{text, "a "}, {tag, "<function="}, {call, "f>\n</function>\n"}, {tag, "</tool_call>"}, {text, "b"}}},
		{"llama3", false, `{"name": "a"}`, []Span{{call, `{"name": "a"}`}}},
		{"llama3", false, "\n {\"name\": \"a\"}; {}", []Span{{text, "\n "}, {call, `{"name": "a"}; {}`}}},
		{"llama3", false, `<|python_tag|>{"name": "a"}`, []Span{{tag, "<|python_tag|>"}, {call, `{"name": "a"}`}}},
		{"llama3", false, `It is {"name": "a"}.`, []Span{{text, `It is {"name": "a"}.`}}},
		{"llama3", false, "[1] says so.", []Span{{text, "[1] says so."}}},
		{"qwen", false, "{}", []Span{{text, "{}"}}},
		{"mistral", false, `[TOOL_CALLS][{"name": "a"}]`, []Span{{tag, "[TOOL_CALLS]"}, {call, `[{"name": "a"}]`}}},
		{"mistral-v13", false, "[THINK]Hm.[/THINK]So[TOOL_CALLS]a[ARGS]{}[TOOL_CALLS]b[ARGS]{}", []Span{
			{tag, "[THINK]"}, {think, "Hm."}, {tag, "[/THINK]"}, {text, "So"}, {tag, "[TOOL_CALLS]"}, {call, "a"}, {tag, "[ARGS]"}, {call, "{}"},
			{tag, "[TOOL_CALLS]"}, {call, "b"}, {tag, "[ARGS]"}, {call, "{}"}}},
		{"mistral-v13", false, "the [ARGS] token", []Span{{text, "the [ARGS] token"}}},
		{"python", false, "[a(b=[1])]", []Span{{call, "[a(b=[1])]"}}},
		{"python", false, "See [1].", []Span{{text, "See [1]."}}},
		{"search-r1", false, "<think>Hm.</think><search>owl</search>", []Span{{tag, "<think>"}, {think, "Hm."}, {tag, "</think><search>"}, {call, "owl"}, {tag, "</search>"}}},
		{"search-r1", false, "So <answer>Ann</answer>.", []Span{{text, "So "}, {tag, "<answer>"}, {answer, "Ann"}, {tag, "</answer>"}, {text, "."}}},
		{"weaver-plan", false, "a <terminate> <access>u <goal>g</goal></access>", []Span{{text, "a "}, {tag, "<terminate>"}, {text, " "}, {tag, "<access>"}, {call, "u <goal>g</goal>"}, {tag, "</access>"}}},
		{"react", true, "\nAction: a\nThought: b", []Span{{think, "\n"}, {tag, "Action:"}, {call, " a\n"}, {tag, "Thought:"}, {think, " b"}}},
	} {
		f, err := Load(c.format)
		if err != nil {
			t.Fatal(err)
		}
		if got := lex(f, c.inThink, c.text); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q whole:\n got %q\nwant %q", c.format, c.text, got, c.want)
		}
		if got := lex(f, c.inThink, strings.Split(c.text, "")...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q by characters:\n got %q\nwant %q", c.format, c.text, got, c.want)
		}
	}
}

// TestLexerBareAfterThink: a bare call may follow the thinking part, not text.
func TestLexerBareAfterThink(t *testing.T) {
	f := compile(t, strings.Replace(goodHead, "{kind: json,", "{kind: json, bare: true,", 1)+"---\n"+goodBlocks)
	for text, want := range map[string][]Span{
		"Hm. {}</think>\n{}":         {{SpanThink, "Hm. {}"}, {SpanTag, "</think>"}, {SpanText, "\n"}, {SpanCall, "{}"}},
		"Hm.</think>\nSo {}":         {{SpanThink, "Hm."}, {SpanTag, "</think>"}, {SpanText, "\nSo {}"}},
		"</think><call>{}</call> {}": {{SpanTag, "</think><call>"}, {SpanCall, "{}"}, {SpanTag, "</call>"}, {SpanText, " {}"}},
	} {
		for _, chunks := range [][]string{{text}, strings.Split(text, "")} {
			if got := lex(f, true, chunks...); !reflect.DeepEqual(got, want) {
				t.Errorf("%q:\n got %q\nwant %q", chunks, got, want)
			}
		}
	}
}

// TestLexerHoldsBack says how little a lexer keeps to itself.
func TestLexerHoldsBack(t *testing.T) {
	f, err := Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	l := f.Lexer(false)
	if got := l.Write("Ann <tool"); !reflect.DeepEqual(got, []Span{{SpanText, "Ann "}}) {
		t.Errorf("got %q", got)
	}
	if got := l.Write("s"); !reflect.DeepEqual(got, []Span{{SpanText, "<tools"}}) {
		t.Errorf("got %q", got)
	}
}

// TestLexerRepeats: a long text of tags alone in one piece is no more work than
// any other. Work that grows with its square takes half a minute here.
func TestLexerRepeats(t *testing.T) {
	f, err := Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"<tool_call>", "</tool_call>", "<think>", "</think>"} {
		text := strings.Repeat(tag, 1<<17)
		got := ""
		l := f.Lexer(false)
		for _, s := range append(l.Write(text), l.Close()...) {
			got += s.Text
		}
		if got != text {
			t.Errorf("%d bytes of %s, want %d", len(got), tag, len(text))
		}
	}
}

func FuzzLexer(f *testing.F) {
	var formats []*Format
	for _, name := range rendering() {
		format, err := Load(name)
		if err != nil {
			f.Fatal(err)
		}
		formats = append(formats, format)
	}
	for i, c := range parseTable {
		f.Add(c.text, c.inThink, uint64(i))
	}
	f.Fuzz(func(t *testing.T, text string, inThink bool, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		var chunks []string
		for rest := text; rest != ""; {
			n := 1 + random.IntN(min(len(rest), 12))
			chunks, rest = append(chunks, rest[:n]), rest[n:]
		}
		for _, format := range formats {
			whole := lex(format, inThink, text)
			if cut := lex(format, inThink, chunks...); !reflect.DeepEqual(whole, cut) {
				t.Fatalf("%s: whole %q, cut %q", format.Name, whole, cut)
			}
			var b strings.Builder
			for _, s := range whole {
				b.WriteString(s.Text)
			}
			if b.String() != text {
				t.Fatalf("%s: the spans are %q", format.Name, b.String())
			}
		}
	})
}
