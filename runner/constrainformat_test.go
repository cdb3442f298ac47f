package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// TestConstrainInEveryFormat plays a call of one of two tools under its schema,
// and a named one with and without, in every format that can hold calls to a
// schema. The others say that they cannot.
func TestConstrainInEveryFormat(t *testing.T) {
	for _, name := range template.Names() {
		f := format(t, name)
		if f.Opening != template.OpenOwn {
			continue
		}
		for _, calls := range []bool{false, true} {
			f := f.WithCallsInThink(calls)
			frame, framed := f.Frame()
			for _, how := range []string{"free", "named under a schema", "named"} {
				m, tool := &playModel{}, readTool{echo("read")}
				r := newRunner(t, name, m, echo("search"), tool)
				r.Format, r.Constrain = f, how != "named"
				if how != "free" {
					r.Choice = runner.Choice{Mode: runner.Named, Tool: "read"}
				}
				label := fmt.Sprintf("%s, calls in think %v, %s", name, calls, how)
				if !framed && how != "free" {
					continue
				}
				if !framed {
					_, _, err := collect(t.Context(), r, runner.Task{Question: "q"})
					var ce *runner.ConstrainError
					if !errors.As(err, &ce) || ce.Format != name || len(m.requests) > 0 {
						t.Errorf("%s: %v, %d requests", label, err, len(m.requests))
					}
					continue
				}
				m.play = framedPlay(f, frame, how)
				events, out, err := trial(t, r, runner.Task{})
				if err != nil || tool.runs.Load() != 1 || out.Answer != "It is 7." || out.Problems != 0 {
					t.Errorf("%s: %v, the tool ran %d times, answer %q, %d problems\n%s", label, err, tool.runs.Load(), out.Answer, out.Problems, out.Ledger.Text())
				}
				for _, c := range of[runner.Called](events) {
					if len(c.Repairs) > 0 || string(c.Arguments) != `{"id": "7"}` {
						t.Errorf("%s: arguments %s, repairs %v", label, c.Arguments, c.Repairs)
					}
				}
				m.growing(t)
				want := map[string]int{"free": 4, "named under a schema": 2, "named": 2}[how]
				if goesOn := []string{"deepresearch", "qwen", "qwen2.5", "qwen-functions", "qwq-tools"}; how != "named" && slices.Contains(goesOn, name) {
					want++ // what follows the call in its turn
				}
				if len(m.requests) != want {
					t.Errorf("%s: %d requests, want %d", label, len(m.requests), want)
				}
			}
		}
	}
}

// framedPlay thinks, calls and answers, request by request.
func framedPlay(f *template.Format, frame template.Frame, how string) func(int, models.Request) reply {
	return func(n int, req models.Request) reply {
		prompt := text(req.Prompt)
		switch {
		case strings.Contains(prompt, "result of {"):
			said, err := f.Write(template.Turn{Answered: true, Answer: "It is 7.", Text: "It is 7."}, f.Think.Opened)
			return reply{text: said, finish: models.FinishStop, err: err}
		case strings.Contains(string(req.Schema), "enum"):
			return wrote(`"read"`)
		case len(req.Schema) > 0:
			return wrote(`{"id": "7"}`)
		case strings.HasSuffix(prompt, frame.After) && strings.HasSuffix(strings.TrimSuffix(prompt, frame.After), `{"id": "7"}`):
			return wrote("")
		case how == "named":
			return wrote(` {"id": "7"}` + frame.After)
		case f.Think.Opened && !f.Think.Calls && f.Think.Close != "":
			return wrote("I look.\n" + f.Think.Close + "\n\n" + frame.Opened)
		}
		return wrote("\n" + frame.Opened)
	}
}

// TestIdsUnderASchema: ids stay where they spell what is kept, and white space
// after the value is not kept.
func TestIdsUnderASchema(t *testing.T) {
	m := &rawModel{turns: [][]models.Chunk{
		{{Text: "<tool_call>", Tokens: []int{1}}, end(models.FinishStop)},
		{{Text: "{\"query\"", Tokens: []int{2}}, {Text: ": \"m", Tokens: []int{3}}, {Text: "\"} ", Tokens: []int{4}}, {Text: "\n", Tokens: []int{5}}, end(models.FinishStop)},
		said("", models.FinishStop), said("It is 7.", models.FinishStop),
	}}
	r := newRunner(t, "qwen", m, echo("search"))
	r.Constrain = true
	if _, _, err := trial(t, r, runner.Task{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range m.requests[2].Prompt[len(m.requests[0].Prompt):] {
		got = append(got, fmt.Sprint(s.Text, s.Tokens))
	}
	want := []string{"<tool_call>[1]", "\n{\"name\": \"[]", "", "", `{"query": "m[2 3]`, `"}[]`, "}\n</tool_call>[]"}
	want[1], want[2], want[3] = "\n{\"name\": []", `"search"[]`, `, "arguments": []`
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A namedTool is a tool of any name, without parameters.
type namedTool struct {
	*fakeTool
	parameters string
}

func (n namedTool) Spec() tools.Spec {
	return tools.Spec{Name: n.name, Description: "Does.", Parameters: json.RawMessage(n.parameters)}
}

// TestNamesUnderASchema: any name is spelled so that it is read again, also one
// that begins another or would end a JSON string.
func TestNamesUnderASchema(t *testing.T) {
	names := []string{"search", "search_all", `a"b\c`, "月を見る", "a<b>&c", "</tool_call>"}
	for _, f := range []string{"qwen", "qwq", "llama3", "mistral", "mistral-v13", "react"} {
		for i, name := range names {
			if strings.ContainsAny(name, `"<`) && (f == "react" || f == "mistral-v13") {
				continue // nothing quotes the name there
			}
			for _, how := range []string{"chosen", "named", "named without a schema"} {
				var list []tools.Tool
				for _, n := range names {
					list = append(list, namedTool{echo(n), ""})
				}
				form := format(t, f)
				frame, _ := form.Frame()
				m := &playModel{play: func(n int, req models.Request) reply {
					prompt := text(req.Prompt)
					switch {
					case strings.Contains(prompt, "result of {"):
						said, err := form.Write(template.Turn{Answered: true, Answer: "It is 7.", Text: "It is 7."}, form.Think.Opened)
						return reply{text: said, finish: models.FinishStop, err: err}
					case strings.Contains(string(req.Schema), "enum"):
						quoted, _ := json.Marshal(name)
						return wrote(string(quoted))
					case len(req.Schema) > 0:
						return wrote("{}")
					case how == "chosen" && !strings.HasSuffix(prompt, "}"+frame.After):
						return wrote("\n" + frame.Opened)
					case how == "named without a schema":
						return wrote(" {}" + frame.After)
					}
					return wrote("")
				}}
				r := newRunner(t, f, m, list...)
				r.Constrain = how != "named without a schema"
				if how != "chosen" {
					r.Choice = runner.Choice{Mode: runner.Named, Tool: name}
				}
				events, out, err := trial(t, r, runner.Task{})
				called := of[runner.Called](events)
				if err != nil || len(called) != 1 || called[0].Name != name || string(called[0].Arguments) != "{}" || len(called[0].Repairs) > 0 || out.Answer != "It is 7." {
					t.Errorf("%s, tool %d %q, %s: %v, called %+v, answer %q", f, i, name, how, err, called, out.Answer)
				}
			}
		}
	}
}

// TestSchemasGoAsTheyAre: a tool's schema is the server's to read, and one that
// is missing takes no arguments.
func TestSchemasGoAsTheyAre(t *testing.T) {
	odd := `{"$defs":{"q":{"type":"string","pattern":"^a"}},"type":"object","properties":{"q":{"$ref":"#/$defs/q"}},"if":{"required":["q"]},"then":true}`
	for parameters, want := range map[string]string{odd: odd, "": `{"type":"object","properties":{}}`} {
		m := script("<tool_call>", "{}", "")
		r := newRunner(t, "qwen", m, namedTool{echo("do"), parameters})
		r.Constrain = true
		_, out, err := trial(t, r, runner.Task{})
		if _, schemas, _ := m.requested(); err != nil || out.Calls != 1 || !slices.Equal(schemas, []string{"", want, "", ""}) {
			t.Errorf("%v, %d calls, schemas %q", err, out.Calls, schemas)
		}
		for _, req := range m.requests {
			if (len(req.Schema) > 0) == (len(req.Preserve) > 0) {
				t.Errorf("under schema %q the special tokens %q are preserved", req.Schema, req.Preserve)
			}
		}
	}
}
