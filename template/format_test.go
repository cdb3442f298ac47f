package template

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const goodHead = `description: a test
call: {kind: json, open: <call>, close: </call>, name: [name], arguments: [arguments]}
think: {open: <think>, close: </think>}
stops:
  - name: end
    literal: <end>
    means: end
`

const goodBlocks = `{{define "prompt"}}{{.System}}Q: {{.Question}}{{end}}
{{define "continue"}}{{range .Results}}R: {{.Content}}{{end}}{{.Note}}{{.Question}}{{end}}
{{define "force"}}stop{{with .Reason}}: {{.}}{{end}}{{end}}
{{define "nudge"}}{{.Kind}}?{{end}}
{{define "problem"}}{{.Kind}}: {{.Message}} {{join .Tools ","}}{{end}}
{{define "calls"}}{{range .Calls}}<call>{"name": {{json .Name}}, "arguments": {{.Arguments}}}</call>{{end}}{{end}}
`

func compile(t *testing.T, src string) *Format {
	t.Helper()
	f, err := Compile("test.tmpl", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rendering are the shipped formats that render their prompts themselves.
func rendering() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == "server" || name == "chat" })
}

func TestNames(t *testing.T) {
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != name || f.Description == "" || len(f.Stops) == 0 && f.Opening == OpenOwn {
			t.Errorf("%s: name %q, description %q, %d stops", name, f.Name, f.Description, len(f.Stops))
		}
	}
}

// TestQwQHead holds the figures that the format comes with.
func TestQwQHead(t *testing.T) {
	f, err := Load("qwq")
	if err != nil {
		t.Fatal(err)
	}
	if *f.Sampling.Temperature != 0.6 || *f.Sampling.TopP != 0.95 || *f.Sampling.TopK != 40 || f.Sampling.MinP != nil {
		t.Errorf("sampling %+v", f.Sampling)
	}
	if f.MaxTokens != 4096 || f.MaxCalls != 5 || !f.SingleCall {
		t.Errorf("max_tokens %d, max_calls %d, single_call %v", f.MaxTokens, f.MaxCalls, f.SingleCall)
	}
	want := []Stop{
		{Name: "call", Regex: `<tool_call>(.*?)</tool_call>\s*$`, Means: MeansCall},
		{Name: "end of turn", Literal: "<|im_end|>", Strip: true, Means: MeansEnd},
	}
	if !reflect.DeepEqual(f.Stops, want) {
		t.Errorf("stops %+v", f.Stops)
	}
}

func TestReactStops(t *testing.T) {
	f, err := Load("react")
	if err != nil {
		t.Fatal(err)
	}
	want := []Stop{
		{Name: "observation", Regex: `\nObservation:`, Strip: true, Means: MeansCall},
		{Name: "next question", Literal: "\nQuestion:", Strip: true, Means: MeansAnswer, After: "Final Answer:"},
	}
	if !reflect.DeepEqual(f.Stops, want) {
		t.Errorf("stops %+v", f.Stops)
	}
}

func TestCompile(t *testing.T) {
	for name, src := range map[string]string{
		"plain":        goodHead + "---\n" + goodBlocks,
		"front matter": "---\n" + goodHead + "---\n" + goodBlocks,
		"CR LF":        strings.ReplaceAll(goodHead+"---\n"+goodBlocks, "\n", "\r\n"),
		"BOM":          "\ufeff" + goodHead + "---\n" + goodBlocks,
	} {
		f, err := Compile(name, []byte(src))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := f.Open(Opening{System: "S\n", Question: "q"})
		if want := []Part{{"S\nQ: ", FromTemplate}, {"q", FromUser}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// TestFormatErrors makes one mistake at a time; each names its line.
func TestFormatErrors(t *testing.T) {
	good := goodHead + "---\n" + goodBlocks
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the test's format has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct {
		name, src string
		line      int
		field     string
		msg       string
	}{
		{"unknown key", with("think:", "thinks:"), 3, "", `unknown field "thinks"`},
		{"unknown key inside", with("means: end", "mean: end"), 7, "", `unknown field "mean"`},
		{"unknown key after front matter", "---\n" + with("think:", "thinks:"), 4, "", `unknown field "thinks"`},
		{"unknown field after front matter", "---\n" + with(`{{.Kind}}?`, "{{.Knd}}"), 13, "nudge", "can't evaluate field Knd"},
		{"key twice", with("think:", "description: again\nthink:"), 3, "", "already defined"},
		{"no YAML", with("stops:", "stops: ["), 4, "", ""},
		{"wrong type", with("stops:", "max_calls: many\nstops:"), 4, "", "a whole number expected, found a text"},
		{"list for a group", with("think: {open: <think>, close: </think>}", "think: [a]"), 3, "", "sequence"},
		{"head is a list", "- a\n---\n" + goodBlocks, 1, "", "mapping"},
		{"invalid regex", with("literal: <end>", `regex: "(<end>"`), 6, "stops[0].regex", "missing closing )"},
		{"regex matches nothing", with("literal: <end>", `regex: "x*"`), 6, "stops[0].regex", "matches the empty text"},
		{"endless regex", with("literal: <end>", `regex: '(?:a?|b?){40}(?:a?|b?){40}(?:(?:a|b)?)*\b'`), 6, "stops[0].regex", "too long"},
		{"literal and regex", with("    means: end", "    regex: x\n    means: end"), 7, "stops[0].regex", "both a literal and a regex"},
		{"neither", with("    literal: <end>\n", ""), 5, "stops[0]", "neither a literal nor a regex"},
		{"strip twice", with("    literal: <end>", "    regex: x\n    strip: true\n    strip_group: g"), 8, "stops[0].strip_group", "both strip and strip_group"},
		{"no such group", with("    literal: <end>", "    regex: (?<h>x)\n    strip_group: g"), 7, "stops[0].strip_group", `no group "g"`},
		{"group of a literal", with("    literal: <end>", "    literal: <end>\n    strip_group: g"), 7, "stops[0].strip_group", "no regex"},
		{"unknown meaning", with("means: end", "means: stop"), 7, "stops[0].means", "call, answer, end or invented"},
		{"no meaning", with("    means: end\n", ""), 5, "stops[0].means", "call, answer, end or invented"},
		{"no name", with("  - name: end\n    literal", "  - literal"), 5, "stops[0].name", "no name"},
		{"name twice", with("---", "  - {name: end, literal: x, means: end}\n---"), 8, "stops[1].name", "two stops"},
		{"outside of no think", with("think: {open: <think>, close: </think>}\nstops:\n  - name: end", "stops:\n  - name: end\n    outside_think: true"),
			5, "stops[0].outside_think", "no thinking part"},
		{"two scopes", with("    means: end", "    outside_think: true\n    after: x\n    means: end"), 8, "stops[0].after", "both outside_think and after"},
		{"single call that means end", with("    means: end", "    means: end\n    single_call: true"), 8, "stops[0].single_call", "does not mean call"},
		{"half a tag", with("open: <call>, ", ""), 2, "call", "the tag open"},
		{"no keys", with(", name: [name]", ""), 2, "call", "the keys name and arguments"},
		{"half a think", with(", close: </think>", ""), 3, "think", "both tags"},
		{"opened without a tag", with("{open: <think>, close: </think>}", "{opened: true}"), 3, "think.open", "no tag"},
		{"unknown kind", with("kind: json", "kind: sgml"), 2, "call.kind", "json, lines, xml, tags or python"},
		{"no kind", with("kind: json, ", ""), 2, "call.kind", "the kind of call is missing"},
		{"lines with tags", with("kind: json", "kind: lines"), 2, "call", "no closing tags"},
		{"lines without marker", with("kind: json, open: <call>, close: </call>,", "kind: lines,"), 2, "call", "no closing tags"},
		{"negative number", with("stops:", "max_calls: -1\nstops:"), 4, "max_calls", "negative"},
		{"short tag", with("open: <call>", "open: <"), 2, "call.open", "two characters"},
		{"blank tag", with("open: <call>", `open: "  "`), 2, "call.open", "white space"},
		{"same tags", with("close: </call>", "close: <call>"), 2, "call.close", "the same text as call.open"},
		{"same tags in two parts", with("open: <think>", "open: <call>"), 2, "call.open", "the same text as think.open"},
		{"empty key", with("name: [name]", `name: [""]`), 2, "call.name[0]", "empty"},
		{"same labels", "call: {kind: lines, name: ['A:'], arguments: ['A:']}\nanswer: {after: 'F:'}\n---\n" + goodBlocks, 1, "call.arguments[0]", "the same text as call.name[0]"},
		{"no temperature", with("stops:", "sampling: {temperature: .nan}\nstops:"), 4, "sampling.temperature", "not a number"},
		{"short reserved string", with("stops:", "reserved: {strings: [ab, x]}\nstops:"), 4, "reserved.strings[1]", "two characters"},
		{"reserved mark", with("stops:", "reserved: {lines: [a·b]}\nstops:"), 4, "reserved.lines[0]", "two characters"},
		{"no separator", with("---\n", ""), 8, "", `the line "---"`},
		{"missing block", with(`{{define "nudge"}}{{.Kind}}?{{end}}`+"\n", ""), 8, "nudge", "is missing"},
		{"missing block without blocks", goodHead, 7, "prompt", "is missing"},
		{"empty file", "", 0, "call.kind", "kind of call is missing"},
		{"misspelled block", good + "{{define \"prompts\"}}x{{end}}\n", 15, "prompts", "no such block"},
		{"text outside", good + "\nstray text\n", 16, "", "text outside"},
		{"unclosed block", good + "{{define \"x\"}}\n", 16, "", "unexpected EOF"},
		{"unclosed action", with(`{{.Kind}}?`, `{{.Kind`), 12, "", "bad character"},
		{"unknown function", with(`{{.Kind}}?`, `{{shout .Kind}}`), 12, "", `function "shout" not defined`},
		{"unknown field", with(`{{.Kind}}?`, "\n{{.Knd}}"), 13, "nudge", "can't evaluate field Knd"},
		{"unknown template", with(`{{.Kind}}?`, `{{template "x"}}`), 12, "nudge", `template "x" not defined`},
		{"question left out", with(`Q: {{.Question}}`, `Q`), 9, "prompt", "never prints .Question"},
		{"results left out", with(`R: {{.Content}}`, `R`), 10, "continue", "never prints .Content"},
		{"note left out", with(`{{.Note}}`, ``), 10, "continue", "never prints .Note"},
		{"nothing said", with(`{{.Kind}}?`, ` `), 12, "nudge", "renders nothing"},
		{"json of a list", with(`Q: {{.Question}}`, `{{json .Tools}}`), 9, "prompt", "not []template.Tool"},
		{"endless", with(`{{.Kind}}?`, `{{template "nudge" .}}`), 12, "nudge", "exceeded maximum template depth"},
		{"other closing tag", with("close: </call>", "close: </cal>"), 2, "call.close", `"</cal>" does not close "<call>"`},
		{"other closing tag of think", with("close: </think>", "close: </thnik>"), 3, "think.close", `"</thnik>" does not close "<think>"`},
		{"other tag in the block", with(`<call>{"name"`, `<kall>{"name"`), 14, "calls", `never writes call.open, "<call>"`},
		{"other closing tag in the block", with("</call>{{end}}", "</kall>{{end}}"), 14, "calls", `never writes call.close, "</call>"`},
		{"thinking that the prompt does not open", with("{open: <think>,", "{opened: true, open: <think>,"), 3, "think.open", `the block "prompt" never writes "<think>"`},
		{"response that nobody writes", with("stops:", "response: {open: <res>}\nstops:"), 4, "response.open", `the block "continue" never writes "<res>"`},
		{"response that an own block lost", "extends: qwen\n---\n{{define \"continue\"}}{{range .Results}}{{.Content}}{{end}}{{.Note}}{{.Question}}{{end}}\n", 3, "continue", `never writes response.open, "<tool_response>"`},
		{"misspelled stop", with("literal: <end>", "literal: </kall>"), 6, "stops[0].literal", `stop "end": the format knows no "</kall>", did you mean "</call>"?`},
		{"misspelled control token", "extends: qwen\nstops: [{name: e, literal: <|im_edn|>, means: end}]\n", 2, "stops[0].literal", `did you mean "<|im_end|>"?`},
		{"control token that is not reserved", with("literal: <end>", "literal: <|eot|>"), 6, "stops[0].literal", "name it in reserved.strings"},
		{"NUL", good + "\x00", 15, "", "binary"},
		{"not UTF-8", with("a test", "a \xff test"), 1, "", "UTF-8"},
		{"too large", good + strings.Repeat("\n", maxSource), 0, "", "larger than 1048576 bytes"},
		{"head too large", strings.Repeat("# comment\n", maxHead/10) + good, 0, "", "the head is larger than 32768 bytes"},
		{"deep head", "preserve: " + strings.Repeat("[", 1000), 1, "", "not found"},
		{"extends nothing", "extends: qwem\n", 1, "extends", `did you mean "qwen"?`},
		{"mistake over a base", "extends: qwen\nmax_calls: -1\n", 2, "max_calls", "negative"},
		{"bad block over a base", "extends: qwen\n---\n\n{{define \"nudge\"}}{{.X}}{{end}}\n", 4, "nudge", "can't evaluate field X"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile("test.tmpl", []byte(c.src))
			var fe *FormatError
			if !errors.As(err, &fe) {
				t.Fatalf("got %v", err)
			}
			if fe.Name != "test.tmpl" || fe.Line != c.line || fe.Field != c.field || !strings.Contains(fe.Msg, c.msg) {
				t.Errorf("got line %d, field %q: %v\nwant line %d, field %q: %s", fe.Line, fe.Field, err, c.line, c.field, c.msg)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestExtends(t *testing.T) {
	base, err := Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	f := compile(t, `extends: qwen
think: {calls: true}
sampling: {temperature: 0}
stops: [{name: end, literal: X, means: end}]
---
{{define "assistant"}}<|im_start|>assistant
<think>

</think>

{{end}}
`)
	if f.Think != (Think{Open: "<think>", Close: "</think>", Calls: true}) || f.Call.Open != base.Call.Open || *f.Sampling.Temperature != 0 {
		t.Errorf("think %+v, call %+v", f.Think, f.Call)
	}
	if len(f.Stops) != 1 || len(base.Stops) != 3 || base.Think.Calls || base.Sampling.Temperature != nil {
		t.Errorf("stops %+v, and of the base %+v", f.Stops, base.Stops)
	}
	got := join(t)(f.Open(Opening{Question: "q"}))
	want := join(t)(base.Open(Opening{Question: "q"})) + "<think>\n\n</think>\n\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	empty := compile(t, "extends: qwen2.5\nsystem: \"\"\n")
	if got, want := join(t)(empty.Open(Opening{Question: "q"})), join(t)(base.Open(Opening{Question: "q"})); got != want {
		t.Errorf("an empty system message: got %q, want %q", got, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	good := []byte(goodHead + "---\n" + goodBlocks)
	for _, name := range []string{"mine.tmpl", "noext", "qwen"} {
		if err := os.WriteFile(name, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("broken.tmpl", []byte("x: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, description := range map[string]string{
		"mine.tmpl": "a test", "noext": "a test", "./qwen": "a test", filepath.Join(dir, "mine.tmpl"): "a test",
		"qwen": "ChatML with tools in the system turn, as Qwen3's own chat template renders it",
	} {
		f, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.Name != name || f.Description != description {
			t.Errorf("%s: name %q, description %q", name, f.Name, f.Description)
		}
	}
	for name, want := range map[string]string{
		"qwn":          `format qwn: no such format, did you mean "qwen"? There are ` + strings.Join(Names(), ", ") + `, or pass the path of a format file`,
		"zzzzzzzz":     `format zzzzzzzz: no such format; there are ` + strings.Join(Names(), ", ") + `, or pass the path of a format file`,
		"":             `format : no such format; there are ` + strings.Join(Names(), ", ") + `, or pass the path of a format file`,
		"./no.tmpl":    `format ./no.tmpl: no such file or directory`,
		"no.tmpl":      `format no.tmpl: no such file or directory`,
		".":            `format .: not a regular file`,
		"broken.tmpl":  `format broken.tmpl:1: unknown field "x"`,
		"noext/inside": `format noext/inside: not a directory`,
	} {
		_, err := Load(name)
		var fe *FormatError
		if !errors.As(err, &fe) || err.Error() != want {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
	if _, err := Load("./no.tmpl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestShipped(t *testing.T) {
	src, err := Shipped("qwen2.5")
	if err != nil || !strings.Contains(string(src), "extends: qwen\n") {
		t.Errorf("got %q, %v", src, err)
	}
	if _, err := Shipped("../error"); err == nil {
		t.Error("a name outside of the formats gives no error")
	}
}

func FuzzCompile(f *testing.F) {
	for _, name := range Names() {
		src, err := Shipped(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Add(goodHead + "---\n" + goodBlocks)
	f.Add("a: &a [*a]\n---\n")
	f.Fuzz(func(t *testing.T, src string) {
		if strings.Contains(src, "range") || strings.Contains(src, "template") {
			t.Skip("loops and recursion are the format author's own")
		}
		format, err := Compile("fuzz", []byte(src))
		var fe *FormatError
		if err != nil && !errors.As(err, &fe) {
			t.Fatalf("an error of type %T: %v", err, err)
		}
		if err == nil && format.Parse("x", Reading{}).Problems == nil && !format.Parse("x", Reading{}).Answered {
			t.Fatalf("a format that parses nothing: %+v", format.Head)
		}
	})
}
