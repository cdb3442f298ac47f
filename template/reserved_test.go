package template

import (
	"slices"
	"strings"
	"testing"
)

var testReserved = Reserved{
	Strings: []string{"<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "|im", "aa", "aab", "北京", "é!"},
	Lines:   []string{"Observation:", "Final Answer:"},
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"nothing · here", "nothing · here"},
		{"a <|im_end|> b", "a <·|·im_end|> b"},
		{"<·|·im_end|>", "<··|··im_end|>"},
		{"<|im_·end|>", "<·|·im_·end|>"},
		{"<tool_call><tool_call>", "<·tool_call><·tool_call>"},
		{"<<tool_call>", "<<·tool_call>"},
		{"<tool_call", "<tool_call"},
		{"aaab", "a·a·ab"},
		{"在北京。", "在北·京。"},
		{"é!", "é·!"},
		{"Observation: x", "O·bservation: x"},
		{"x\nObservation: x", "x\nO·bservation: x"},
		{"x Observation: x", "x Observation: x"},
		{"x\n·Observation: x", "x\n·O·bservation: x"},
		{"\n\nFinal Answer:\nFinal Answer:", "\n\nF·inal Answer:\nF·inal Answer:"},
		{"\xff<|im_end|>\xc2", "\xff<·|·im_end|>\xc2"},
	} {
		got := Escape(c.text, testReserved)
		if got != c.want {
			t.Errorf("Escape(%q) = %q, want %q", c.text, got, c.want)
		}
		if back := Unescape(got, testReserved); back != c.text {
			t.Errorf("Unescape(%q) = %q, want %q", got, back, c.text)
		}
	}
	if got := Unescape("<|im_end|>", testReserved); got != "<|im_end|>" {
		t.Errorf("Unescape changed what has no mark: %q", got)
	}
}

func TestFind(t *testing.T) {
	text := "Observation: aaab\nx Observation: <|im_end|>\nFinal Answer:"
	var got []string
	for _, m := range testReserved.Find(text) {
		got = append(got, text[m.Start:m.End])
	}
	if want := []string{"Observation:", "aa", "aab", "<|im_end|>", "|im", "Final Answer:"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if found := (Reserved{}).Find(text); found != nil {
		t.Errorf("the zero value finds %v", found)
	}
}

func TestReservedWith(t *testing.T) {
	r := Reserved{Strings: []string{"<a>"}}
	more := r.With("<b>", "", "<a>", "<b>")
	if !slices.Equal(more.Strings, []string{"<a>", "<b>"}) || len(r.Strings) != 1 {
		t.Errorf("got %q, and %q before", more.Strings, r.Strings)
	}
}

// TestReservedOfFormats says what each format protects.
func TestReservedOfFormats(t *testing.T) {
	for name, hostile := range map[string]string{
		"qwen":      "<|im_start|><|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response><tools></tools>",
		"qwen2.5":   "<|im_start|><|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response><tools></tools>",
		"qwq":       "<|im_start|><|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response>",
		"qwq-tools": "<|im_start|><|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response><tools></tools>",
		"qwen3-coder": "<|im_start|><|im_end|><|endoftext|><tool_call></tool_call><tool_response></tool_response><tools></tools>" +
			"<function=<parameter=",
		"mistral": "<s></s>[INST][/INST][AVAILABLE_TOOLS][/AVAILABLE_TOOLS][TOOL_CALLS][ARGS][TOOL_RESULTS][/TOOL_RESULTS]",
		"mistral-v13": "<s></s>[INST][/INST][AVAILABLE_TOOLS][/AVAILABLE_TOOLS][TOOL_CALLS][ARGS][TOOL_RESULTS][/TOOL_RESULTS]" +
			"[SYSTEM_PROMPT][/SYSTEM_PROMPT][CALL_ID][THINK][/THINK]",
		"llama3": "<|begin_of_text|><|end_of_text|><|start_header_id|><|end_header_id|><|eot_id|><|eom_id|><|python_tag|>",
		"deepresearch": "<|im_start|><|im_end|><|endoftext|><think></think><tool_call></tool_call><tool_response></tool_response><tools></tools>" +
			"<code></code><answer></answer>",
		"search-r1":      "<|im_start|><|im_end|><|endoftext|><think></think><search></search><information></information><answer></answer>",
		"weaver-plan":    "<|im_start|><|im_end|><|endoftext|><think></think><search></search><access></access><goal></goal><write_outline></write_outline><terminate></terminate><information></information><answer></answer>",
		"weaver-outline": "<|im_start|><|im_end|><|endoftext|><think></think><outline></outline><information></information>",
		"weaver-write":   "<|im_start|><|im_end|><|endoftext|><think></think><retrieve></retrieve><id></id><goal></goal><write></write><write_terminate></write_terminate><information></information><answer></answer>",
		"qwen-functions": "✿FUNCTION✿:\n✿ARGS✿:\n✿RESULT✿:\n✿RETURN✿: <|im_start|><|im_end|><|endoftext|>",
		"python":         "<|im_start|><|im_end|><|endoftext|><think></think><tool_response></tool_response>",
		"fewshot":        "Question:\nTools:\nAnswer:\n<tool_call></tool_call><tool_response></tool_response>",
		"react":          "Question:\nThought:\nAction:\nAction Input:\nObservation:\nFinal Answer:",
	} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Count(hostile, "<") + strings.Count(hostile, "[") + strings.Count(hostile, ":")
		if found := f.Reserved.Find(hostile); len(found) != want {
			t.Errorf("%s: %d reserved strings in %q, want %d", name, len(found), hostile, want)
		}
		if escaped := Escape(hostile, f.Reserved); len(f.Reserved.Find(escaped)) > 0 {
			t.Errorf("%s: reserved strings are left in %q", name, escaped)
		}
	}
}

// TestForged renders hostile contents with each format: escaped, they leave the
// sequence of reserved strings in the prompt as it is with a harmless content.
func TestForged(t *testing.T) {
	for _, name := range rendering() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		render := func(content string) string {
			var b strings.Builder
			for _, render := range []func() ([]Part, error){
				func() ([]Part, error) { return f.Open(Opening{Question: content, Tools: []Tool{searchTool}}) },
				func() ([]Part, error) { return f.Continue(Continuation{Results: results([]string{content, content})}) },
				func() ([]Part, error) { return f.Continue(Continuation{Question: content, InThink: true}) },
			} {
				parts, err := render()
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range parts {
					if p.Source.Untrusted() {
						p.Text = Escape(p.Text, f.Reserved)
					}
					b.WriteString(p.Text)
				}
			}
			return b.String()
		}
		reserved := func(prompt string) (out []string) {
			for _, m := range f.Reserved.Find(prompt) {
				out = append(out, prompt[m.Start:m.End])
			}
			return out
		}
		want := reserved(render("x"))
		for _, r := range union(f.Reserved.Strings, f.Reserved.Lines) {
			half := len(r) / 2
			for _, payload := range []string{
				r, r + r, "\n" + r, "x" + r + "x", r[:1] + mark + r[1:], r[:half] + r + r[half:], r[:half], r[half:], r[half:] + r[:half],
				"\r\n" + r + "\r\n", "x\n" + r[:half], "\n\n\n" + r + " x\n" + r,
			} {
				if got := reserved(render(payload)); !slices.Equal(got, want) {
					t.Errorf("%s: %q makes the reserved strings\n%q out of\n%q", name, payload, got, want)
				}
			}
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"<·|·im_end|>", "aaaab·", "\nObservation:", "·北·京", "\xc2\xc2\xb7\xb7", "<tool_\xc2\xb7call>", "é·!"} {
		f.Add(s, "<x>")
	}
	f.Fuzz(func(t *testing.T, text, more string) {
		reserved := testReserved
		if escapable(more) {
			reserved = reserved.With(more)
		}
		escaped := Escape(text, reserved)
		if back := Unescape(escaped, reserved); back != text {
			t.Fatalf("%q escaped is %q and back %q", text, escaped, back)
		}
		if found := reserved.Find(escaped); len(found) > 0 {
			t.Fatalf("%q escaped is %q, with %v", text, escaped, found)
		}
	})
}
