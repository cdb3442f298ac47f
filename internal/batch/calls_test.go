package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/trace"
	"stopgap/models"
	"stopgap/runner"
)

// A caller is a model that answers each question with the same words: those of
// the question that stands in the prompt.
type caller map[string]string

func (c caller) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	prompt := ""
	for _, s := range req.Prompt {
		prompt += s.Text
	}
	return func(yield func(models.Chunk, error) bool) {
		for question, text := range c {
			if !strings.Contains(prompt, question+"<|im_end|>") {
				continue
			}
			for _, word := range strings.SplitAfter(text, " ") {
				if !yield(models.Chunk{Text: word}, nil) {
					return
				}
			}
			yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop}}, nil)
			return
		}
		yield(models.Chunk{}, fmt.Errorf("nobody has asked this: %s", prompt))
	}
}

const area = `{"name":"geo.area","description":"The area.","parameters":{"type":"dict","properties":{"base":{"type":"integer","description":"In metres."},"unit":{"type":"string"}},"required":["base"]}}`

// functionRows are rows of BFCL with the answers beside them.
func functionRows(t *testing.T) *Dataset {
	t.Helper()
	dir := t.TempDir()
	ask := func(id, messages string) string {
		return fmt.Sprintf(`{"id":%q,"question":[[%s]],"function":[%s]}`, id, messages, area)
	}
	says := func(role, text string) string { return fmt.Sprintf(`{"role":%q,"content":%q}`, role, text) }
	want := func(id, calls string) string { return fmt.Sprintf(`{"id":%q,"ground_truth":%s}`, id, calls) }
	const right = `[{"geo.area":{"base":[10],"unit":["m",""]}}]`
	files := map[string][]string{
		"BFCL_v4_x.json": {
			ask("simple_python_0", says("user", "Right?")),
			ask("simple_python_1", says("user", "Mended?")),
			ask("simple_python_2", says("user", "Wrong?")),
			ask("simple_python_3", says("user", "Answered?")),
			ask("simple_python_4", says("user", "Unread?")),
			ask("live_parallel_7-2-0", says("system", "Be exact.")+","+says("user", "Two?")+","+says("user", "Really two?")),
			ask("irrelevance_1", says("user", "None?")),
			ask("irrelevance_2", says("user", "One too many?")),
			ask("simple_java_1", says("user", "In Java?")),
			ask("simple_python_9", says("user", "Nobody knows?")),
		},
		"possible_answer/BFCL_v4_x.json": {
			want("simple_python_0", right), want("simple_python_1", right), want("simple_python_2", right), want("simple_python_3", right), want("simple_python_4", right),
			want("live_parallel_7-2-0", `[{"geo.area":{"base":[1],"unit":[""]}},{"geo.area":{"base":[2],"unit":[""]}}]`),
		},
	}
	if err := os.Mkdir(filepath.Join(dir, "possible_answer"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, rows := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(strings.Join(rows, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Read(filepath.Join(dir, "BFCL_v4_x.json"))
	if err != nil || len(d.Faults) > 0 {
		t.Fatal(err, d.Faults)
	}
	return d
}

func callText(arguments string) string {
	return "<tool_call>\n{\"name\": \"geo.area\", \"arguments\": " + arguments + "}\n</tool_call>"
}

// What the model says to each, how that ends, and how it is judged.
var functionCases = []struct{ question, says, want string }{
	{"Right?", callText(`{"base": 10, "unit": "m"}`), "called 1: right true strict true"},
	{"Mended?", callText(`{'base': 10,}`), "called 1: right true strict false"},
	{"Wrong?", callText(`{"base": 11}`), "called 1: right false strict false value_error:others"},
	{"Answered?", "It is 10.", "answered 0: right false strict false simple_function_checker:wrong_count"},
	{"Unread?", "<tool_call>\nbase is ten\n</tool_call>", "format_error 0: right false strict false simple_function_checker:wrong_count"},
	{"Two?\nReally two?", callText(`{"base": 2}`) + "\n" + callText(`{"base": 1}`), "called 2: right true strict true"},
	{"None?", "Nothing fits.", "answered 0: right true strict true"},
	{"One too many?", callText(`{"base": 1}`), "called 1: right false strict false irrelevance_error:decoder_success"},
	{"In Java?", callText(`{"base": 1}`), "called 1: not judged"},
	{"Nobody knows?", callText(`{"base": 1}`), "called 1: not judged"},
}

func functionBatch(t *testing.T, dir string, d *Dataset) *Batch {
	t.Helper()
	m := caller{}
	for _, c := range functionCases {
		m[c.question] = c.says
	}
	s := server(t, "caller", m)
	s.Runner.Tools = nil
	b := newBatch(t, dir, d, s)
	b.Rollouts = 1
	return b
}

// judgedAs tells the results of a batch, in the order of the cases.
func judgedAs(t *testing.T, b *Batch) []string {
	t.Helper()
	items := b.items()
	var out []string
	err := b.Results(func(r Result) error {
		text := fmt.Sprintf("%s %d: not judged", r.Termination, len(r.Made))
		if s, ok := items[r.Item].Score(&r); ok {
			text = strings.TrimSpace(fmt.Sprintf("%s %d: right %v strict %v %s", r.Termination, len(r.Made), s.Right, s.Strict, s.Fault))
		}
		if r.Turns != 1 || r.Requests != 1 || r.Calls != len(r.Made) || r.Error != "" {
			t.Errorf("%s: %+v", r.Item, r)
		}
		out = append(out, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantedVerdicts() []string {
	var out []string
	for _, c := range functionCases {
		out = append(out, c.want)
	}
	return out
}

// The functions of a row are the tools of its rollouts, whose first turn ends
// them: its calls are what is judged. The journals play.
func TestFunctions(t *testing.T) {
	b := functionBatch(t, t.TempDir(), functionRows(t))
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	if got, want := judgedAs(t, b), wantedVerdicts(); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	err := b.Results(func(r Result) error {
		runs, err := trace.ReadFile(filepath.Join(b.Dir, r.Journal))
		if err != nil {
			return err
		}
		report, err := trace.NewDeck(runs).Replay(t.Context(), 0)
		if err != nil || len(report.Differences) > 0 || report.Outcome.Termination != r.Termination {
			t.Errorf("%s: %+v %v", r.Item, report, err)
		}
		if findings := trace.NewDeck(runs).Verify(0); len(findings) > 0 {
			t.Errorf("%s: %v", r.Item, findings)
		}
		if _, err := trace.NewDeck(runs).Rollout(t.Context(), 0); err != nil {
			t.Errorf("%s: %v", r.Item, err)
		}
		if h := runs[0].Header; len(h.Tools) != 1 || h.Tools[0].Name != "geo.area" || r.Item == "live_parallel_7-2-0" && h.Task.System != "Be exact." {
			t.Errorf("%s: %+v", r.Item, h)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteResults(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(b.Dir, ResultsName))
	if err != nil || !bytes.Contains(text, []byte(`"made":[{"name":"geo.area","arguments":{"base": 10, "unit": "m"}}]`)) && !bytes.Contains(text, []byte(`"made":[{"name":"geo.area","arguments":{"base":10,"unit":"m"}}]`)) ||
		!bytes.Contains(text, []byte(`"score":{"right":true,"strict":true}`)) || !bytes.Contains(text, []byte(`"fault":"value_error:others"`)) {
		t.Errorf("%v:\n%s", err, text)
	}
}

// A rollout whose process was killed after some of its records gives the same
// calls.
func TestFunctionsGoOn(t *testing.T) {
	d := functionRows(t)
	b := functionBatch(t, t.TempDir(), d)
	if _, err := finish(t, b); err != nil {
		t.Fatal(err)
	}
	journals := map[string][][]byte{} // their lines
	most := 0
	_ = b.Results(func(r Result) error {
		text, err := os.ReadFile(filepath.Join(b.Dir, r.Journal))
		if err != nil {
			t.Fatal(err)
		}
		journals[r.Journal] = bytes.SplitAfter(text, []byte("\n"))
		most = max(most, len(journals[r.Journal]))
		return nil
	})
	if len(journals) != len(functionCases) {
		t.Fatalf("%d journals", len(journals))
	}
	for n := 0; n <= most; n += 3 { // the journals are of different lengths
		dir := t.TempDir()
		again := functionBatch(t, dir, d)
		for name, lines := range journals {
			if err := os.WriteFile(filepath.Join(dir, name), bytes.Join(lines[:min(n, len(lines))], nil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		events, err := finish(t, again)
		if err != nil || len(of[Anew](events)) > 0 {
			t.Fatalf("after %d lines: %v %v", n, err, of[Anew](events))
		}
		if got, want := judgedAs(t, again), wantedVerdicts(); !slices.Equal(got, want) {
			t.Errorf("after %d lines:\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Rows whose functions cannot be offered are named.
func TestBrokenFunctions(t *testing.T) {
	row := func(id, messages, functions string) string {
		return fmt.Sprintf(`{"id":%q,"question":[[%s]],"function":%s}`, id, messages, functions)
	}
	const user = `{"role":"user","content":"Who?"}`
	d, err := Read(file(t, "BFCL_v4_simple_python.json", strings.Join([]string{
		row("simple_python_0", user, "["+area+"]"),
		row("simple_python_1", user, "["+area+","+area+"]"),
		row("simple_python_2", user, `[{"name":"x"}]`),
		row("simple_python_3", user+`,{"role":"assistant","content":"I."},`+user, "["+area+"]"),
		row("simple_python_4", `{"role":"system","content":"x"}`, "["+area+"]"),
		row("simple_python_5", user, `[]`),
		row("simple_python_6", user, `7`),
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(d.Faults)
	for _, want := range []string{
		"line 2: its functions cannot be offered: ", "line 3: the function x has no parameters", "line 4: it is a conversation in which an assistant has spoken already", "line 5: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if len(d.Items) != 3 || len(d.Faults) != 4 {
		t.Errorf("%d items, %s", len(d.Items), got)
	}
}

// A failed rollout has no calls, and is wrong.
func TestFailedFunctions(t *testing.T) {
	it := Item{ID: "irrelevance_1", Question: "Who?", Functions: json.RawMessage("[" + area + "]")}
	s, ok := it.Score(&Result{Error: "gone"})
	if !ok || s.Right || s.Strict || s.Fault != FaultFailed || s.Reason != "gone" {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := (&Item{ID: "irrelevance_1", Question: "Who?"}).Score(&Result{}); ok {
		t.Error("an item without functions is judged")
	}
	r, task := runner.Runner{}, runner.Task{System: "x"}
	if err := (&Item{Question: "Who?"}).Equip(&r, &task); err != nil || r.CallsEnd || r.Tools != nil || task.System != "x" {
		t.Errorf("%+v %v", r, err)
	}
}
