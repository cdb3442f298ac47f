package conformance

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"stopgap/template"
)

// TestShipped: every format that is shipped is as a format must be. A file in
// template/formats is all that a new one needs.
func TestShipped(t *testing.T) {
	for _, name := range template.Names() {
		t.Run(name, func(t *testing.T) {
			f, err := template.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			made := 0
			for r := range Results(f) {
				if r.Skipped == "" {
					made++
				}
				for _, found := range r.Findings {
					t.Errorf("%s: %s: %s", found.Check, found.Where, found.Message)
				}
			}
			if made < 10 && Unplayable(f) == "" {
				t.Errorf("only %d checks were made", made)
			}
		})
	}
}

// own are formats as a user may write them, in the spellings that few of the
// shipped ones have.
var own = map[string]string{
	"tags": `call:
  kind: tags
  tags: [{tag: search, text: query}, {tag: access, text: url, children: {goal: goal}}, {tag: done, empty: true}]
think: {open: <think>, close: </think>, continues: true}
response: {open: <information>, close: </information>}
answer: {open: <answer>, close: </answer>}
stops:
  - {name: search, literal: </search>, means: call, outside_think: true}
  - {name: access, literal: </access>, means: call, outside_think: true}
  - {name: done, literal: <done>, means: call, outside_think: true}
  - {name: answer, literal: </answer>, means: answer, outside_think: true}
reserved: {lines: ["Question:"]}
single_call: true
---
{{define "prompt"}}Reason inside <think> and </think>, search with <search> query </search>, answer with <answer> and </answer>.
Question: {{.Question}}
{{end}}
{{define "continue"}}{{range .Results}}
<information>{{.Content}}</information>
{{end}}{{if or .Note .Question}}{{if .InThink}}</think>{{end}}
{{.Note}}{{with .Question}}
Question: {{.}}{{end}}
{{end}}{{end}}
{{define "calls"}}{{range .Calls -}}
{{if eq .Name "search"}}<search>{{.Values.query}}</search>{{else if eq .Name "done"}}<done>{{else}}<access>{{.Values.url}} <goal>{{.Values.goal}}</goal></access>{{end}}
{{- end}}{{end}}
{{define "force"}}Answer now{{with .Reason}}: {{.}}{{end}}.{{end}}
{{define "nudge"}}Search or answer.{{end}}
{{define "problem"}}The search was not made: {{.Message}}.{{end}}
`,
	"xml": `extends: qwen
call: {kind: xml, name: [<function=], arguments: [<parameter=]}
---
{{define "calls"}}{{range $i, $call := .Calls}}{{if $i}}
{{end}}<tool_call>
<function={{.Name}}>
{{range .Pairs}}<parameter={{.Key}}>
{{.Text}}
</parameter>
{{end}}</function>
</tool_call>{{end}}{{end}}
{{define "problem"}}The call was not made: {{.Message}}.{{end}}
`,
	"python": `call: {kind: python}
stops: [{name: end, literal: <|im_end|>, strip: true, means: end}]
reserved: {strings: [<|im_start|>, <|im_end|>]}
---
{{define "prompt"}}<|im_start|>user
{{.Question}}<|im_end|>
<|im_start|>assistant
{{end}}
{{define "continue"}}<|im_end|>
{{range .Results}}<|im_start|>tool
{{.Content}}<|im_end|>
{{end}}{{if .Note}}<|im_start|>user
{{.Note}}<|im_end|>
{{end}}{{if .Question}}<|im_start|>user
{{.Question}}<|im_end|>
{{end}}<|im_start|>assistant
{{end}}
{{define "calls"}}[{{range $i, $call := .Calls}}{{if $i}}, {{end}}{{.Name}}({{range $j, $pair := .Pairs}}{{if $j}}, {{end}}{{.Key}}={{python .JSON}}{{end}}){{end}}]{{end}}
{{define "force"}}Answer now{{with .Reason}}: {{.}}{{end}}.{{end}}
{{define "nudge"}}Call or answer.{{end}}
{{define "problem"}}The list was not read: {{.Message}}.{{end}}
`,
}

func compiled(t *testing.T, src string) *template.Format {
	t.Helper()
	f, err := template.Compile("own.tmpl", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOwn(t *testing.T) {
	for name, src := range own {
		t.Run(name, func(t *testing.T) {
			for _, found := range Check(compiled(t, src)) {
				t.Errorf("%s: %s: %s", found.Check, found.Where, found.Message)
			}
		})
	}
}

// TestFindings breaks formats, one thing at a time.
func TestFindings(t *testing.T) {
	shipped, err := template.Shipped("qwen")
	if err != nil {
		t.Fatal(err)
	}
	qwen := string(shipped)
	for _, c := range []struct {
		name, src, old, new   string
		check, where, message string
	}{
		{"a stop inside of calls", qwen, "stops:", "stops:\n  - {name: early, literal: '{\"name\"', means: call, outside_think: true}",
			"single call", "call", `it goes: result: bad_arguments`},
		{"a stop inside of thoughts", qwen, "stops:", "stops:\n  - {name: early, literal: look, means: end}", "think before call", "think", "it goes: note:"},
		{"a prompt that fails", qwen, "{{template \"system\" . -}}", "{{template \"system\" . -}}{{if eq .Date \"2026-01-02\"}}{{index .Tools 9}}{{end}}",
			"single call", "call", "it goes: end: format_error, error: format own.tmpl"},
		{"a call without its argument", qwen, "{{.Arguments}}}", "{{if eq .Arguments `{\"query\": \"owl of Ely\"}`}}{}{{else}}{{.Arguments}}{{end}}}", "spelling", "calls", "other calls"},
		{"only the first call", qwen, ", single_call: true", "", "several calls", "call", "the run should go: "},
		{"a call that is cut", own["tags"], "<search>{{.Values.query}}", `<search>{{printf "%.5s" .Values.query}}`, "spelling", "calls", "other calls"},
		{"a tag among the words", qwen, `Error: the function call has no "name"`, "Error: <tool_call> has no name", "words", "problem", `"<tool_call>"`},
		{"errors left out", qwen, "{{.Content}}", "{{if not .Error}}{{.Content}}{{end}}", "error response", "continue", "a tool's result is not in the prompt"},
		{"the note in place of the results", qwen, "{{if .Results -}}", "{{if and .Results (not .Note) -}}", "forced answer", "continue", "a tool's result is not in the prompt"},
		{"a thought that stays open", qwen, "{{if .InThink}}\n</think>\n\n{{end -}}\n", "", "cut thought", "continue", `write "</think>"`},
		{"another opening", qwen, "{{template \"assistant\"}}\n{{- end}}\n\n{{define \"calls\"", "<|im_start|>model\n{{end}}\n\n{{define \"calls\"",
			"follow-up question", "continue", `after the first question, with "<|im_end|>\n<|im_start|>model\n"`},
		{"inventions that stay", qwen, "  - {name: invented response, literal: <tool_response>, strip: true, means: invented, outside_think: true}\n", "",
			"invented response", "stops", "what it invents stays"},
		{"a control token from outside", qwen, "<|im_start|>, <|im_end|>, ", "<|im_end|>, ", "untrusted text", "reserved", `"<|im_start|>", which is not reserved`},
		{"a label from outside", own["tags"], `lines: ["Question:"]`, `lines: []`, "untrusted text", "reserved", `the label "Question:"`},
		{"a tag from outside", own["tags"], "Question: {{.Question}}\n", "<question>{{.Question}}</question>\n", "untrusted text", "reserved", `the tag "</question>"`},
		{"a stop that never fires", qwen, "literal: </tool_call>", "literal: </tools>", "stops", "stops[1]", "never fires on a turn"},
		{"a stop behind another", qwen, "reserved:", "  - {name: later, regex: '</tool_call>\\s*$', means: call, outside_think: true, single_call: true}\nreserved:",
			"stops", "stops[3]", `never fires on a turn as the format spells it; what fires there is ["call"`},
		{"a stop inside of answers", qwen, "stops:", "stops:\n  - {name: early, literal: Weaver, strip: true, means: end}", "stops", "stops[0]", `it goes: answer "Ann",`},
		{"a stop inside of the thinking part", qwen, "literal: </tool_call>, means: call, outside_think: true", "literal: </tool_call>, means: call",
			"stops", "stops[1]", "say outside_think: true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(c.src, c.old) {
				t.Fatalf("there is no %q to replace", c.old)
			}
			f, err := template.Compile("own.tmpl", []byte(strings.Replace(c.src, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			found := Check(f)
			if !slices.ContainsFunc(found, func(f Finding) bool {
				return f.Check == c.check && f.Where == c.where && strings.Contains(f.Message, c.message)
			}) {
				t.Errorf("nothing of %s, %s, %q in\n%v", c.check, c.where, c.message, found)
			}
		})
	}
}

// TestPlay: the example shows whatever a run has.
func TestPlay(t *testing.T) {
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if Unplayable(f) != "" {
			continue
		}
		segments, err := Play(f)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[template.Source]bool{}
		for _, seg := range segments {
			seen[seg.Source] = true
		}
		last := segments[len(segments)-1]
		if !seen[template.FromUser] || !seen[template.FromTool] || last.Source != template.FromModel || !strings.Contains(last.Text, answer) {
			t.Errorf("%s: %v", name, segments)
		}
	}
}

// TestExample: what is made up for an expression matches it.
func TestExample(t *testing.T) {
	for _, pattern := range []string{`\nObservation:`, `a(b|c)+d{2,3}e?`, `[x-z]\s*$`, `(?i)stop.`, `\]\s*$`} {
		re, err := syntax.Parse(pattern, syntax.Perl|syntax.DotNL)
		if err != nil {
			t.Fatal(err)
		}
		if text := example(re); text == "" || !regexp.MustCompile(`(?s)`+pattern).MatchString(text) {
			t.Errorf("%s: %q", pattern, text)
		}
	}
}
