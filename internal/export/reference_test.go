package export

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A reference is one of template/testdata: what a model's own chat template,
// rendered by Jinja, makes of messages.
type reference struct {
	Name, System, Question string
	Tools                  []template.Tool
	Steps                  []struct {
		Generated, Content, Think string
		Cut                       bool
		Calls                     []struct {
			Name      string
			Arguments json.RawMessage
		}
		Results        []string
		Note, Question string
	}
	Rendered string
}

// A sheet is a tool that has a description and does nothing.
type sheet struct{ spec tools.Spec }

func (s sheet) Spec() tools.Spec { return s.spec }

func (s sheet) Run(context.Context, json.RawMessage) (string, error) { return "", nil }

// What is exported of a run are the messages that the model's real template
// makes exactly the text of that was sent: the conversations whose renderings by
// Jinja are kept are played as runs.
func TestMessagesAreThoseOfTheTemplate(t *testing.T) {
	for name, least := range map[string]int{"qwen": 25, "qwen2.5": 20} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile("../../template/testdata/" + name + "/conversations.json")
			if err != nil {
				t.Fatal(err)
			}
			var all struct{ Conversations []reference }
			if err := json.Unmarshal(b, &all); err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, c := range all.Conversations {
				if c.playable() {
					t.Run(c.Name, func(t *testing.T) {
						c.compare(t, load(t, name))
						compared++ // it was not skipped
					})
				}
			}
			if compared < least {
				t.Errorf("only %d conversations", compared)
			}
		})
	}
}

// playable reports whether a run can go so: the runner has notes of its own, and
// asks something.
func (c *reference) playable() bool {
	calls := 0
	for _, s := range c.Steps {
		if s.Note != "" || s.Cut {
			return false
		}
		calls += len(s.Calls)
	}
	return strings.TrimSpace(c.Question) != "" && len(c.Steps) > 0 && (len(c.Tools) > 0 || calls == 0)
}

func (c *reference) compare(t *testing.T, f *template.Format) {
	m := &scribe{vocabulary: newVocabulary(slices.Concat(f.Reserved.Strings, f.Preserve)...), ids: true}
	results := map[int][]string{} // by how many turns stand before them
	questions, want := []string{c.Question}, []Message{}
	if system := c.System; system != "" || f.System != "" {
		if system == "" {
			system = f.System
		}
		want = append(want, Message{Role: models.RoleSystem, Content: system})
	}
	want = append(want, Message{Role: models.RoleUser, Content: c.Question})
	var ids []string
	answered := 0
	for _, s := range c.Steps {
		switch {
		case s.Generated != "":
			m.texts = append(m.texts, s.Generated)
			msg := Message{Role: models.RoleAssistant, Content: s.Content, Reasoning: s.Think}
			ids = nil
			for _, call := range s.Calls {
				answered++
				ids = append(ids, fmt.Sprintf("call%05d", answered))
				msg.Calls = append(msg.Calls, Call{ids[len(ids)-1], "function", Function{call.Name, string(call.Arguments)}})
			}
			want = append(want, msg)
		case s.Question != "":
			questions = append(questions, s.Question)
			want = append(want, Message{Role: models.RoleUser, Content: s.Question})
		default:
			results[len(m.texts)] = s.Results
			for i, res := range s.Results {
				want = append(want, Message{Role: models.RoleTool, Content: res, CallID: ids[i]})
			}
		}
	}
	m.texts = append(m.texts, "It is done.")
	want = append(want, Message{Role: models.RoleAssistant, Content: "It is done."})

	r := &runner.Runner{Model: m.model(), Format: f, Context: 1 << 20, Limits: runner.Limits{Problems: 100}}
	if len(c.Tools) > 0 {
		var list []tools.Tool
		for _, tool := range c.Tools {
			list = append(list, sheet{tools.Spec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters}})
		}
		r.Tools = set(t, list...).With(func(_ context.Context, at int, _ tools.Call, _ func() tools.Result) tools.Result {
			return tools.Result{Status: tools.OK, Content: results[len(m.asked)][at]}
		})
	}
	j := newJournal(t)
	j.system = c.System
	given := map[string]bool{}
	for _, list := range results {
		for _, content := range list {
			given[content] = true
		}
	}
	for i, q := range questions {
		for _, ev := range j.ask(r, q, i > 0) {
			if res, ok := ev.(runner.Returned); ok && !given[res.Content] {
				t.Skipf("the loop has a word of its own here: %s", res.Content)
			}
		}
	}
	line := one(t, j.runs(), Options{To: Messages})
	if got, want := plain(line.Messages), plain(want); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	sent := ""
	for _, s := range m.asked[len(m.asked)-1].Prompt {
		sent += s.Text
	}
	if sent != c.Rendered && !c.forgets() {
		t.Errorf("sent:\n%q\nthe template renders these messages as\n%q", sent, c.Rendered)
	}
}

// forgets reports whether the template leaves thoughts out: of turns before the
// last question.
func (c *reference) forgets() bool {
	thought := false
	for _, s := range c.Steps {
		if thought = thought || s.Think != ""; thought && s.Question != "" {
			return true
		}
	}
	return false
}

// plain are messages as templates read them: arguments are their values, and a
// result has no name.
func plain(messages []Message) []string {
	var out []string
	for _, m := range messages {
		m.Name = ""
		words, _ := json.Marshal(m)
		for _, call := range m.Calls {
			var v any
			_ = json.Unmarshal([]byte(call.Function.Arguments), &v)
			arguments, _ := json.Marshal(v)
			words = append(words, fmt.Sprintf(" %s(%s)", call.Function.Name, arguments)...)
		}
		out = append(out, string(words))
	}
	return out
}
