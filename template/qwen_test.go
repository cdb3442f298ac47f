package template

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// references is what testdata/goldens.py writes.
type references struct {
	Conversations []struct {
		Name, Format, System, Question string
		Tools                          []Tool
		Steps                          []step
		Rendered                       string
	}
	JSON []struct{ Source, Dumps string }
}

// A step is one of: a turn of the model, results, a further question.
type step struct {
	Generated, Content, Think string
	Calls                     []struct {
		Name      string
		Arguments json.RawMessage
	}
	Results  []string
	Question string
}

const referenceFile = "testdata/qwen/conversations.json"

func readReferences(t *testing.T) references {
	t.Helper()
	b, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	var r references
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQwenReference compares whole conversations with the model's own chat
// template: our prompt is what Open and Continue give and what the model wrote.
func TestQwenReference(t *testing.T) {
	refs := readReferences(t)
	if len(refs.Conversations) < 40 {
		t.Fatalf("only %d conversations", len(refs.Conversations))
	}
	for _, c := range refs.Conversations {
		t.Run(c.Format+"/"+c.Name, func(t *testing.T) {
			f, err := Load(c.Format)
			if err != nil {
				t.Fatal(err)
			}
			prompt := join(t)(f.Open(Opening{System: c.System, Question: c.Question, Tools: c.Tools}))
			dropped := prompt // the same without the thinking that the template drops
			last := lastQuestion(c.Steps)
			for i, s := range c.Steps {
				if s.Generated != "" {
					prompt += s.Generated
					if i < last {
						s.Generated = strings.TrimPrefix(s.Generated, "<think>\n"+s.Think+"\n</think>\n\n")
					}
					dropped += s.Generated
					continue
				}
				text := join(t)(f.Continue(Continuation{Results: results(s.Results), Question: s.Question}))
				prompt, dropped = prompt+text, dropped+text
			}
			want := c.Rendered
			if prompt != dropped && prompt == want {
				t.Error("the template keeps the thinking of earlier questions: say so where the format says it does not")
			}
			if dropped != want {
				t.Errorf("got:\n%q\nwant:\n%q", dropped, want)
			}
		})
	}
}

// lastQuestion gives the index of the last step with a question, or 0.
func lastQuestion(steps []step) int {
	last := 0
	for i, s := range steps {
		if s.Question != "" {
			last = i
		}
	}
	return last
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

// TestQwenReferenceParse reads the generated turns of the same conversations.
func TestQwenReferenceParse(t *testing.T) {
	for _, c := range readReferences(t).Conversations {
		f, err := Load(c.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range c.Steps {
			if s.Generated == "" {
				continue
			}
			turn := f.Parse(s.Generated, false)
			if turn.Think != s.Think || len(turn.Problems) > 0 || len(turn.Calls) != len(s.Calls) || turn.Text != s.Content {
				t.Errorf("%s: %q: got %+v", c.Name, s.Generated, turn)
				continue
			}
			if turn.Answered != (len(s.Calls) == 0) || turn.Answered && turn.Answer != s.Content {
				t.Errorf("%s: %q: answer %q, answered %v", c.Name, s.Generated, turn.Answer, turn.Answered)
			}
			for i, call := range turn.Calls {
				if call.Name != s.Calls[i].Name || !sameJSON(t, call.Arguments, s.Calls[i].Arguments) {
					t.Errorf("%s: call %d is %s %s", c.Name, i, call.Name, call.Arguments)
				}
				if text := s.Generated[call.Start:call.End]; !strings.HasPrefix(text, "<tool_call>") || !strings.HasSuffix(text, "</tool_call>") {
					t.Errorf("%s: call %d stands at %q", c.Name, i, text)
				}
			}
		}
	}
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
	for _, c := range readReferences(t).JSON {
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

// TestReferencesAreCurrent makes the references again from the real templates.
func TestReferencesAreCurrent(t *testing.T) {
	templates, err := filepath.Abs("../../shared/testdata/templates")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(templates); err != nil {
		t.Skip("the models' chat templates are not there: no ../shared/testdata/templates beside the project")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := exec.CommandContext(ctx, "python3", "-c", "import jinja2").Run(); err != nil {
		t.Skipf("python3 with jinja2 is not there: %v", err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "python3", "testdata/goldens.py", templates)
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("goldens.py: %v\n%s", err, stderr.Bytes())
	}
	if *update {
		if err := os.WriteFile(referenceFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what testdata/goldens.py writes; run go test -update", referenceFile)
	}
}
