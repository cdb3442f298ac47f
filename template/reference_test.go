package template

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	update    = flag.Bool("update", false, "rewrite the goldens")
	templates = flag.String("templates", "", "a `folder` with more chat templates to make references from")
)

// A reference is a conversations.json: what a model's own chat template makes
// of conversations, written by testdata/goldens.py.
type reference struct {
	Format           string `json:"-"`
	Template, SHA256 string
	// Drops is the thinking that the template leaves out of turns that it
	// renders again: none, earlier (before the last question) or all.
	Drops         string
	Conversations []conversation
	Skipped       map[string]string // name to reason: the template cannot say it
}

type conversation struct {
	Name, System, Date, Question string
	Tools                        []Tool
	MaxCalls                     int `json:"max_calls"`
	Steps                        []step
	Rendered                     string
}

// A step is a turn of the model, or what stands between two of them.
type step struct {
	Generated, Content, Think string
	Cut                       bool // in the middle of the thinking
	Calls                     []struct {
		Name      string
		Arguments json.RawMessage
	}

	Results        []string
	Note, Question string
}

// opening stands in a rendered text for the words that are the format's own.
const opening = "⟦opening⟧"

// readReferences reads those of all formats that there are.
func readReferences(t *testing.T) []reference {
	t.Helper()
	files, err := filepath.Glob("testdata/*/conversations.json")
	if err != nil {
		t.Fatal(err)
	}
	var refs []reference
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if !slices.Contains(Names(), name) {
			t.Errorf("%s: there is no format %q", file, name)
			continue
		}
		ref := reference{Format: name}
		readJSON(t, file, &ref)
		if len(ref.Conversations) == 0 {
			t.Errorf("%s: no conversations", file)
		}
		refs = append(refs, ref)
	}
	return refs
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestReferenceNumber holds how much is compared, whatever goldens.py leaves out.
func TestReferenceNumber(t *testing.T) {
	least := map[string]int{
		"qwen": 60, "qwen2.5": 50, "qwq": 50, "qwq-tools": 60, "qwen3-coder": 50, "llama3": 42, "mistral": 39, "mistral-v13": 59,
	}
	for _, ref := range readReferences(t) {
		if n := len(ref.Conversations); n < max(30, least[ref.Format]) {
			t.Errorf("%s: only %d conversations", ref.Format, n)
		}
		delete(least, ref.Format)
	}
	for name := range least {
		t.Errorf("%s: no conversations", name)
	}
}

// TestReference compares whole conversations with the model's own chat
// template: our prompt is what Open and Continue give and what the model wrote.
func TestReference(t *testing.T) {
	for _, ref := range readReferences(t) {
		f, err := Load(ref.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range ref.Conversations {
			t.Run(ref.Format+"/"+c.Name, func(t *testing.T) {
				prompt, last := c.play(t, f, nil)
				want := strings.Replace(c.Rendered, opening, c.opening(t, prompt), 1)
				dropped := dropThinking(prompt, ref.Drops, last)
				if prompt != dropped && prompt == want {
					t.Error("the template keeps the thinking of earlier turns: say so where the format says it does not")
				}
				if dropped != want {
					t.Errorf("got:\n%q\nwant:\n%q", dropped, want)
				}
			})
		}
	}
}

// play gives the prompt of a conversation and the place behind the last
// question. It shows each turn of the model to seen, where there is one.
func (c conversation) play(t *testing.T, f *Format, seen func(s step, inThink bool)) (prompt string, last int) {
	t.Helper()
	prompt = join(t)(f.Open(Opening{System: c.System, Question: c.Question, Tools: c.Tools, Date: c.Date, MaxCalls: c.MaxCalls}))
	inThink, answered := f.Think.Opened, 0
	for _, s := range c.Steps {
		if s.Generated != "" {
			if seen != nil {
				seen(s, inThink)
			}
			prompt += s.Generated
			inThink = f.Parse(s.Generated, Reading{InThink: inThink}).InThink
			continue
		}
		next := Continuation{Results: results(s.Results), Note: s.Note, Question: s.Question, InThink: inThink}
		for i := range next.Results { // every call has a result
			answered++
			next.Results[i].ID = fmt.Sprintf("call%05d", answered)
		}
		prompt += join(t)(f.Continue(next))
		inThink = f.StartsInThink(next)
		if s.Note != "" || s.Question != "" {
			last = len(prompt)
		}
	}
	return prompt, last
}

// opening gives the words of the prompt that the template does not know: what
// stands between its own words.
func (c conversation) opening(t *testing.T, prompt string) string {
	t.Helper()
	before, after, found := strings.Cut(c.Rendered, opening)
	if !found {
		return ""
	}
	words, ok := strings.CutPrefix(prompt, before)
	end, _, _ := strings.Cut(after, "\n")
	words, _, found = strings.Cut(words, end)
	if !ok || !found || !strings.Contains(words, c.System) || !strings.HasSuffix(words, c.Question) {
		t.Fatalf("%q does not open as %q", prompt, c.Rendered)
	}
	return words
}

// closedTurn is a turn of the model that is over, in ChatML.
var closedTurn = regexp.MustCompile(`(?s)(<\|im_start\|>assistant\n)(.*?)(<\|im_end\|>)`)

// dropThinking takes the thinking out of a prompt as its template does; last
// is the place behind the last question.
func dropThinking(prompt, drops string, last int) string {
	if drops == "none" {
		return prompt
	}
	if drops == "all" {
		last = len(prompt)
	}
	return closedTurn.ReplaceAllStringFunc(prompt[:last], func(turn string) string {
		m := closedTurn.FindStringSubmatch(turn)
		if i := strings.LastIndex(m[2], "</think>"); i >= 0 {
			m[2] = strings.TrimLeft(m[2][i+len("</think>"):], "\n")
		}
		return m[1] + m[2] + m[3]
	}) + prompt[last:]
}

func results(contents []string) []Result {
	var out []Result
	for _, c := range contents {
		out = append(out, Result{Name: "search", Content: c})
	}
	return out
}

// join gives the text of parts.
func join(t *testing.T) func([]Part, error) string {
	return func(parts []Part, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for i, p := range parts {
			if p.Text == "" || i > 0 && p.Source == parts[i-1].Source {
				t.Errorf("part %d of %q is empty or of its neighbour's source", i, parts)
			}
			b.WriteString(p.Text)
		}
		return b.String()
	}
}

// TestReferenceParse reads the generated turns of the same conversations.
func TestReferenceParse(t *testing.T) {
	for _, ref := range readReferences(t) {
		f, err := Load(ref.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range ref.Conversations {
			t.Run(ref.Format+"/"+c.Name, func(t *testing.T) {
				c.play(t, f, func(s step, inThink bool) { s.check(t, f, Reading{InThink: inThink, Tools: c.Tools}) })
			})
		}
	}
}

// check parses a turn of the model.
func (s step) check(t *testing.T, f *Format, r Reading) {
	t.Helper()
	turn := f.Parse(s.Generated, r)
	if turn.Think != s.Think || turn.Text != s.Content || len(turn.Calls) != len(s.Calls) {
		t.Errorf("%q: got %+v", s.Generated, turn)
		return
	}
	if s.Cut {
		if !turn.InThink || turn.Answered || len(turn.Problems) != 1 || turn.Problems[0].Kind != NoCallNoAnswer {
			t.Errorf("%q: got %+v", s.Generated, turn)
		}
		return
	}
	if len(turn.Problems) > 0 || turn.Answered != (len(s.Calls) == 0) || turn.Answered && turn.Answer != s.Content {
		t.Errorf("%q: answer %q, answered %v, problems %+v", s.Generated, turn.Answer, turn.Answered, turn.Problems)
	}
	for i, call := range turn.Calls {
		want := s.Calls[i].Arguments
		if f.Call.Kind == XMLCalls {
			want = untyped(t, want, r.Tools[slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == call.Name })])
		}
		if call.Name != s.Calls[i].Name || !sameJSON(t, call.Arguments, want) || len(call.Repairs) > 0 {
			t.Errorf("call %d is %s %s with repairs %v", i, call.Name, call.Arguments, call.Repairs)
		}
		text := s.Generated[call.Start:call.End]
		if f.Call.Bare {
			continue
		}
		if !strings.HasPrefix(text, f.Call.Open) || !strings.HasSuffix(text, f.Call.Close) {
			t.Errorf("call %d stands at %q", i, text)
		}
	}
}

// untyped gives arguments as they are read where values are texts without a
// type: those that the tool's schema does not have stay texts.
func untyped(t *testing.T, arguments json.RawMessage, tool Tool) json.RawMessage {
	t.Helper()
	values, _ := object(arguments)
	for key, value := range values {
		if _, ok := tool.parameters()[key]; ok {
			continue
		}
		spell := pythonStr
		if k := kindOf(value); k == "object" || k == "array" {
			spell = pythonJSON
		}
		text, err := spell(value)
		if err != nil {
			t.Fatal(err)
		}
		values[key], _ = encode(text)
	}
	out, err := encode(values)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestPythonJSON(t *testing.T) {
	var references []struct{ Source, Dumps string }
	readJSON(t, "testdata/dumps.json", &references)
	if len(references) == 0 {
		t.Error("testdata/dumps.json is empty")
	}
	for _, c := range references {
		got, err := pythonJSON(json.RawMessage(c.Source))
		if err != nil || got != c.Dumps {
			t.Errorf("%s: got %s, %v, want %s", c.Source, got, err, c.Dumps)
		}
	}
	for _, bad := range []string{"", "{", `{"a"}`, `{"a": 1} 2`, "[1,]", "nul", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)} {
		if got, err := pythonJSON(json.RawMessage(bad)); err == nil {
			t.Errorf("%.40q: got %q and no error", bad, got)
		}
	}
}

// TestReferencesAreCurrent makes the references again from the real templates:
// those beside the project, and those of the folder -templates.
func TestReferencesAreCurrent(t *testing.T) {
	const beside = "../../shared/testdata/templates"
	if _, err := os.Stat(beside); err != nil && *templates == "" {
		t.Skip("the models' chat templates are not there: no ../shared/testdata/templates beside the project, and no -templates")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := exec.CommandContext(ctx, "python3", "-c", "import jinja2").Run(); err != nil {
		t.Skipf("python3 with jinja2 is not there: %v", err)
	}
	out := t.TempDir()
	cmd := exec.CommandContext(ctx, "python3", "testdata/goldens.py", out, beside)
	if *templates != "" {
		cmd.Args = append(cmd.Args, *templates)
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("goldens.py: %v\n%s", err, said)
	}
	t.Logf("not made again:\n%s", said)
	made, err := filepath.Glob(filepath.Join(out, "*", "*.json"))
	if err != nil || len(made) == 0 {
		t.Fatalf("goldens.py made nothing (%v)", err)
	}
	for _, file := range append(made, filepath.Join(out, "dumps.json")) {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(out, file)
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, filepath.Join("testdata", name), string(got))
	}
}
