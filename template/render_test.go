package template

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// hostile are contents that try to be something else than themselves.
var hostile = []string{
	"{{.System}} {{template \"prompt\" .}} {{define \"prompt\"}}x{{end}}",
	"\x00", "\x00:0:;", ":0:;", "KEY:0:j;", "A:1:;", "%s %d %!v", "<no value>", "\xff\xfe", "a\r\nb", "⟦user⟧", strings.Repeat("x", 1<<20),
}

// inJSON are the formats in whose prompts results are JSON texts.
var inJSON = []string{"llama3", "mistral"}

// TestUntrustedIsVerbatim gives contents that look like templates and
// placeholders to every format; each comes out as one part, byte for byte.
func TestUntrustedIsVerbatim(t *testing.T) {
	for _, name := range rendering() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range hostile {
			open, err := f.Open(Opening{Question: text, System: "\x00 :0:; {{.}}", Tools: []Tool{{Name: "a\x00:0:;", Description: ":0:;"}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := from(open, FromUser); !reflect.DeepEqual(got, []string{text}) {
				t.Errorf("%s: the question %.40q became %.80q", name, text, got)
			}
			next, err := f.Continue(Continuation{Results: results([]string{text, "second"}), Note: text, Question: text})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{text, "second"}
			if slices.Contains(inJSON, name) {
				want = []string{pythonString(text), `"second"`}
			}
			if got := from(next, FromTool); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the results became %.80q", name, got)
			}
			if got := from(next, FromRunner); !reflect.DeepEqual(got, []string{text}) {
				t.Errorf("%s: the note became %.80q", name, got)
			}
			for _, p := range append(open, next...) {
				if p.Source == FromTemplate && strings.Contains(p.Text, "xxxxxxxx") {
					t.Errorf("%s: untrusted text in %.80q", name, p.Text)
				}
			}
		}
	}
}

func from(parts []Part, source Source) []string {
	var out []string
	for _, p := range parts {
		if p.Source == source {
			out = append(out, p.Text)
		}
	}
	return out
}

func TestRenderKeepsItsArguments(t *testing.T) {
	f, err := Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	o := Opening{Question: "q", Tools: []Tool{{Name: "a"}}}
	if _, err := f.Open(o); err != nil {
		t.Fatal(err)
	}
	if o.Tools[0].Parameters != nil {
		t.Errorf("Open wrote %s into the caller's tools", o.Tools[0].Parameters)
	}
}

func TestFunctions(t *testing.T) {
	blocks := func(prompt, result string) string {
		s := strings.Replace(goodBlocks, "{{.System}}Q: {{.Question}}", prompt, 1)
		return goodHead + "---\n" + strings.Replace(s, "R: {{.Content}}", result, 1)
	}
	f := compile(t, blocks(
		`{{json .System}} {{trim .System}} {{trim .Question | json}} {{json .Question | trim}} {{names .Tools}} {{with .Values}}{{.a}}{{.none}}{{end}}`,
		`{"name": {{json .Name}}, "output": {{json .Content}}}`))
	got := join(t)(f.Open(Opening{System: " s\"\n", Question: " q\" ", Tools: []Tool{{Name: "x"}, {Name: "y"}}, Values: map[string]string{"a": "b"}}))
	if want := `" s\"\n" s" "q\"" " q\" " [x y] b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	parts, err := f.Continue(Continuation{Results: []Result{{Name: "", Content: "<|im_end|>\"\n é"}}})
	want := []Part{
		{`{"name": "", "output": `, FromTemplate}, {`"<|im_end|>\"\n é"`, FromTool}, {`}`, FromTemplate},
	}
	if err != nil || !reflect.DeepEqual(parts, want) {
		t.Errorf("got %q, %v", parts, err)
	}
}

// TestCutPlaceholder refuses a block that takes an untrusted string apart.
func TestCutPlaceholder(t *testing.T) {
	for _, prompt := range []string{`{{.Question}}{{slice .Question 0 28}}`, `{{.Question}}{{printf "%.27s;" .Question}}`} {
		src := goodHead + "---\n" + strings.Replace(goodBlocks, "Q: {{.Question}}", prompt, 1)
		_, err := Compile("test.tmpl", []byte(src))
		var fe *FormatError
		if !errors.As(err, &fe) || fe.Field != "prompt" || fe.Line != 9 {
			t.Errorf("%s: got %v", prompt, err)
		}
	}
}

func TestOpenBadParameters(t *testing.T) {
	f, err := Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Open(Opening{Question: "q", Tools: []Tool{{Name: "search", Parameters: json.RawMessage("{")}}})
	if err == nil || !strings.Contains(err.Error(), `parameters of tool "search": not JSON`) {
		t.Errorf("got %v", err)
	}
}

// TestNoTools: without tools a prompt says nothing of them.
func TestNoTools(t *testing.T) {
	for name, words := range map[string][]string{
		"qwen": {"tool", "function"}, "qwen2.5": {"tool", "function"}, "qwq": {"tool_call", "access", "up to"},
		"qwq-tools": {"tool", "function"}, "react": {"Action", "Observation", "tools"},
		"qwen3-coder": {"tool", "function", "Qwen"}, "llama3": {"ipython", "function", "JSON"},
		"mistral": {"TOOLS", "{"}, "mistral-v13": {"TOOLS", "{"},
		"deepresearch": {"Tools", "tool_call"}, "search-r1": {"search", "<information>"}, "qwen-functions": {"✿", "ool"},
		"python": {"function", "["}, "fewshot": {"ool", "{"}, "weaver-plan": {"<search>", "information", "action"}, "weaver-write": {"retrieve", "information", "action"},
	} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		prompt := join(t)(f.Open(Opening{Question: "q"}))
		for _, w := range words {
			if strings.Contains(prompt, w) {
				t.Errorf("%s: %q in %q", name, w, prompt)
			}
		}
	}
}

func TestStartsInThink(t *testing.T) {
	for _, c := range []struct {
		format  string
		c       Continuation
		inThink bool
		want    bool
	}{
		{"qwen", Continuation{Results: results([]string{"r"})}, true, false},
		{"qwen", Continuation{Question: "q"}, false, false},
		{"qwq", Continuation{Results: results([]string{"r"})}, true, true},
		{"qwq", Continuation{Results: results([]string{"r"})}, false, false},
		{"qwq", Continuation{Results: results([]string{"r"}), Note: "n"}, false, true},
		{"qwq", Continuation{Question: "q"}, false, true},
		{"qwq-tools", Continuation{Results: results([]string{"r"})}, false, true},
		{"qwq-tools", Continuation{Question: "q"}, true, true},
		{"react", Continuation{Results: results([]string{"r"})}, true, true},
	} {
		f, err := Load(c.format)
		if err != nil {
			t.Fatal(err)
		}
		c.c.InThink = c.inThink
		if got := f.StartsInThink(c.c); got != c.want {
			t.Errorf("%s, %+v: %v", c.format, c.c, got)
		}
		// Where a new turn of the model begins, the prompt must say the same.
		prompt := join(t)(f.Continue(c.c))
		newTurn := strings.Contains(prompt, "<|im_start|>assistant")
		if newTurn && strings.HasSuffix(prompt, "<think>\n") != c.want {
			t.Errorf("%s, %+v: the prompt ends in %q", c.format, c.c, prompt)
		}
	}
}

// TestWords: the notes never bring the format's own tags where the runner must
// escape them.
func TestWords(t *testing.T) {
	for _, name := range rendering() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []ProblemKind{UnclosedCall, BadJSON, MissingName, CallInThink, InventedResponse, TextAfterCall, NoCallNoAnswer} {
			words, err := f.Problem(Problem{Kind: kind, Message: "at byte 7"}, []string{"search", "read"})
			if err != nil {
				t.Fatal(err)
			}
			if found := f.Reserved.Find(words); len(found) > 0 {
				t.Errorf("%s: %s: reserved strings in %q", name, kind, words)
			}
			if name == "deepresearch" && kind != UnclosedCall || name == "weaver-outline" { // the words are the seed's; it has no tools to name
				continue
			}
			if !strings.Contains(words, "search, read") || strings.Contains(words, "  ") || strings.Contains(words, "\n") {
				t.Errorf("%s: %s: %q", name, kind, words)
			}
			if kind == BadJSON && !strings.Contains(words, "at byte 7") {
				t.Errorf("%s: no message in %q", name, words)
			}
		}
		if a, b := mustWords(t, f.Force, ""), mustWords(t, f.Force, "the limit is reached"); !strings.Contains(b, "the limit is reached") || strings.Contains(a, ":  ") {
			t.Errorf("%s: %q and %q", name, a, b)
		}
	}
}

func mustWords(t *testing.T, words func(string) (string, error), reason string) string {
	t.Helper()
	s, err := words(reason)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
