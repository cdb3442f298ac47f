package probe

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/eval/bfcl"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// An oracle writes one turn, as a format spells it.
type oracle struct {
	format   *template.Format
	turn     template.Turn
	mangle   func(string) string
	requests int
}

func (o *oracle) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		o.requests++
		var prompt strings.Builder
		for _, s := range req.Prompt {
			prompt.WriteString(s.Text)
		}
		think := o.format.Think
		inThink := think.Close != "" && strings.LastIndex(prompt.String(), think.Open) > strings.LastIndex(prompt.String(), think.Close)
		text, err := o.format.Write(o.turn, inThink)
		if o.mangle != nil {
			text = o.mangle(text)
		}
		if err != nil {
			yield(models.Chunk{}, err)
			return
		}
		yield(models.Chunk{Text: text, Final: &models.Final{Finish: models.FinishStop}}, nil)
	}
}

// suite gives the cases as they are written beside what they became.
func suite(t *testing.T) ([]*Case, []written) {
	t.Helper()
	cases, err := Suite()
	if err != nil {
		t.Fatal(err)
	}
	var all []written
	err = eachLine("suite/cases.jsonl", func(line []byte) error {
		var w written
		err := strict(line, &w)
		all = append(all, w)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases, all
}

// rightTurn is a turn that an expectation holds right.
func rightTurn(t *testing.T, e expectation) template.Turn {
	t.Helper()
	var turn template.Turn
	for _, c := range e.Calls {
		arguments := map[string]any{}
		for name, values := range c.Arguments {
			if i := slices.IndexFunc(values, func(v any) bool { return v != nil }); i >= 0 && !anyOf(nil, values) {
				arguments[name] = values[i]
			}
		}
		b, err := json.Marshal(arguments)
		if err != nil {
			t.Fatal(err)
		}
		turn.Calls = append(turn.Calls, template.Call{Name: c.Name, Arguments: b})
	}
	if len(e.Calls) == 0 {
		turn.Answer, turn.Answered = "Good.", true
		if len(e.Says) > 0 {
			turn.Answer = "It is " + e.Says[0] + "."
		}
		turn.Text = turn.Answer
	}
	return turn
}

// What the suite holds right is right, strictly, in every format that can call
// any tool, played by the real runner.
func TestRightRepliesAreRightInEveryFormat(t *testing.T) {
	cases, all := suite(t)
	played := 0
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if f.Opening != template.OpenOwn || f.Call.Kind == template.TagCalls {
			continue
		}
		played++
		t.Run(name, func(t *testing.T) {
			for i, c := range cases {
				if len(all[i].Right[0].Calls) > 1 && (f.SingleCall || f.Call.Kind == template.LineCalls) {
					continue // one call a turn
				}
				if name != "qwen" && name != "react" && i%4 != played%4 {
					continue // a slice: each format plays others
				}
				for _, e := range all[i].Right {
					m := &oracle{format: f, turn: rightTurn(t, e)}
					p := Prober{Runner: runner.Runner{Model: m, Format: f}}
					res, err := p.Ask(t.Context(), c)
					if err != nil || !res.Strict || !res.Right || m.requests != 1 {
						t.Errorf("%s: %v, %d requests, %+v", c.ID, err, m.requests, res)
					}
				}
			}
		})
	}
	if played < 8 {
		t.Errorf("only %d formats were played", played)
	}
}

// Right answers to BFCL's rows are right too, with the schemas that are made of
// its functions.
func TestBFCLThroughTheRunner(t *testing.T) {
	const dir = "../../../../shared/testdata/bfcl"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the sample rows of BFCL are not there: %v", err)
	}
	items, left, err := bfcl.ReadFolder(dir)
	if err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	for _, underscores := range []bool{false, true} {
		cases, _, err := FromBFCL(items, underscores)
		if err != nil {
			t.Fatal(err)
		}
		f, err := template.Load("qwen")
		if err != nil {
			t.Fatal(err)
		}
		groups := map[string]int{}
		for _, c := range cases {
			if c.ID == "parallel_multiple_26" {
				continue // its right answer has a parameter that its function has not
			}
			truth := groundTruth(t, dir, c.ID)
			turn := template.Turn{Answer: "No.", Text: "No.", Answered: true}
			if c.Wanted {
				turn = template.Turn{Calls: truth}
			}
			for i := range turn.Calls {
				if underscores {
					turn.Calls[i].Name = strings.ReplaceAll(turn.Calls[i].Name, ".", "_")
				}
			}
			res, err := (&Prober{Runner: runner.Runner{Model: &oracle{format: f, turn: turn}, Format: f}}).Ask(t.Context(), c)
			if err != nil || !res.Strict {
				t.Errorf("%s: %v %+v", c.ID, err, res)
			}
			groups[c.Group]++
		}
		if len(groups) != 5 {
			t.Errorf("the groups are %v", groups)
		}
	}
}

// groundTruth makes calls of the first right values of a row.
func groundTruth(t *testing.T, dir, id string) []template.Call {
	t.Helper()
	for _, category := range []string{"simple_python", "multiple", "parallel", "parallel_multiple"} {
		b, err := os.ReadFile(dir + "/possible_answer/BFCL_v4_" + category + ".json")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var row struct {
				ID    string
				Truth []map[string]map[string][]any `json:"ground_truth"`
			}
			dec := json.NewDecoder(strings.NewReader(line))
			dec.UseNumber() // 5 and 5.0 are different to BFCL
			if err := dec.Decode(&row); err != nil {
				t.Fatal(err)
			}
			if row.ID == id {
				return callsOf(t, row.Truth)
			}
		}
	}
	return nil
}

func callsOf(t *testing.T, truth []map[string]map[string][]any) (calls []template.Call) {
	for _, answer := range truth {
		for name, parameters := range answer {
			arguments := map[string]any{}
			for p, values := range parameters {
				if values[0] != "" {
					arguments[p] = concrete(values[0])
				}
			}
			b, err := json.Marshal(arguments)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, template.Call{Name: name, Arguments: b})
		}
	}
	return calls
}

// concrete takes the first right value for each key of an object.
func concrete(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, w := range v {
			if l, ok := w.([]any); ok && l[0] != "" {
				out[k] = l[0]
			}
		}
		return out
	case []any:
		out := []any{}
		for _, w := range v {
			out = append(out, concrete(w))
		}
		return out
	}
	return v
}

func TestWhatTheSuiteIs(t *testing.T) {
	cases, all := suite(t)
	ids, groups, languages := map[string]bool{}, map[string]int{}, map[string]int{}
	for i, c := range cases {
		if ids[c.ID] {
			t.Errorf("%s is there twice", c.ID)
		}
		ids[c.ID] = true
		groups[c.Group]++
		languages[c.Language]++
		if _, err := c.set(); err != nil {
			t.Errorf("%s: %v", c.ID, err)
		}
		for _, e := range all[i].Right {
			for _, call := range e.Calls {
				checkExpected(t, c, call)
			}
		}
		if (c.Group == "none" || c.Group == "known") == c.Wanted {
			t.Errorf("%s: wanted is %v", c.ID, c.Wanted)
		}
		if c.Group == "notice" && len(c.History) == 0 {
			t.Errorf("%s has no history", c.ID)
		}
	}
	want := []string{"choose", "enums", "known", "nested", "none", "notice", "optional", "two", "types"}
	if len(cases) < 120 || !slices.Equal(slices.Sorted(maps.Keys(groups)), want) || languages["en"] < 60 || languages["zh"] < 60 {
		t.Errorf("%d cases, %v, %v", len(cases), groups, languages)
	}
}

// checkExpected: every value that is held right fits the schema, and nothing that
// must be given may be left out.
func checkExpected(t *testing.T, c *Case, want expected) {
	t.Helper()
	i := slices.IndexFunc(c.Tools, func(s tools.Spec) bool { return s.Name == want.Name })
	if i < 0 {
		t.Errorf("%s: %s is not offered", c.ID, want.Name)
		return
	}
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(c.Tools[i].Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range want.Arguments {
		if schema.Properties[name] == nil {
			t.Errorf("%s: %s has no %q", c.ID, want.Name, name)
		}
	}
	for name := range schema.Properties {
		values, ok := want.Arguments[name]
		if required := slices.Contains(schema.Required, name); required && anyOf(nil, values) || required && !ok {
			t.Errorf("%s: %q of %s must be given", c.ID, name, want.Name)
		}
		if !ok {
			t.Errorf("%s does not say what %q of %s may be", c.ID, name, want.Name)
		}
	}
}

// Every fault is found and named.
func TestFaults(t *testing.T) {
	f, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := suite(t)
	call := func(name, arguments string) template.Turn {
		return template.Turn{Calls: []template.Call{{Name: name, Arguments: []byte(arguments)}}}
	}
	text := func(s string) template.Turn { return template.Turn{Text: s, Answer: s, Answered: true} }
	for _, c := range []struct {
		id    string
		turn  template.Turn
		fault string
	}{
		{"choose_en_1", text("It rains."), FaultNoCall},
		{"choose_en_1", call("get_time", `{"city": "Oslo"}`), FaultTool},
		{"choose_en_1", call("get_weather", `{}`), FaultMissing},
		{"choose_en_1", call("get_weather", `{"city": "Bergen"}`), FaultValue},
		{"choose_en_1", call("get_weather", `{"city": "oslo", "unit": "fahrenheit"}`), FaultValue},
		{"choose_en_1", call("get_weather", `{"city": "oslo", "unit": "celsius"}`), ""},
		{"choose_en_1", call("get_weather", `{"city": "Oslo", "day": 1}`), FaultUnexpected},
		{"types_en_1", call("compute_statistics", `{"numbers": [3, 9, "4", 12.5], "measure": "median"}`), ""}, // repaired
		{"types_en_1", call("compute_statistics", `{"numbers": [3.0, 9, 4, 12.50], "measure": "median"}`), ""},
		{"two_en_1", call("get_weather", `{"city": "Rome"}`), FaultCount},
		{"none_en_2", call("get_weather", `{"city": "Paris"}`), FaultCall},
		{"none_en_2", text("It was Picasso."), FaultAnswer},
		{"notice_en_1", text("It has 31 degrees."), FaultNoCall},
		{"notice_en_1", text("The response is about Cairo."), ""},
		{"notice_en_5", text("It is noon."), FaultNoCall},
		{"nested_en_1", call("order_pizza", `{"pizza": {"toppings": ["mushrooms", "olives"], "size": "large"}, "address": {"city": "Leeds", "street": "5 Hill Road"}}`), ""},
		{"nested_en_1", call("order_pizza", `{"pizza": {"toppings": ["olives", "mushrooms"], "size": "large"}, "address": {"city": "Leeds", "street": "5 Hill Road"}}`), FaultValue},
		{"choose_zh_1", call("query_train", `{"origin": "上海", "destination": "南京", "date": "2026-03-05"}`), ""},
	} {
		i := slices.IndexFunc(cases, func(x *Case) bool { return x.ID == c.id })
		res, err := (&Prober{Runner: runner.Runner{Model: &oracle{format: f, turn: c.turn}, Format: f}}).Ask(t.Context(), cases[i])
		if err != nil || res.Fault != c.fault || res.Right != (c.fault == "") {
			t.Errorf("%s: %v %+v, want %q", c.id, err, res, c.fault)
		}
	}
}

// A call that had to be repaired is right, and not strictly.
func TestRepairedIsNotStrict(t *testing.T) {
	f, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	cases, all := suite(t)
	m := &oracle{format: f, turn: rightTurn(t, all[0].Right[0]), mangle: func(s string) string { return strings.Replace(s, `"}}`, `",}}`, 1) }}
	res, err := (&Prober{Runner: runner.Runner{Model: m, Format: f}}).Ask(t.Context(), cases[0])
	if err != nil || !res.Right || res.Strict || len(res.Calls) != 1 || len(res.Calls[0].Repairs) == 0 {
		t.Errorf("%v %+v", err, res)
	}
	s := Summarise([]Result{res, {Group: "x", Strict: true, Right: true}})
	if s.Right.Estimate != 1 || s.Strict.Estimate != 0.5 || len(s.Repairs) != 1 || len(s.Groups) != 2 || s.Propensity != nil {
		t.Errorf("%+v", s)
	}
}

// Errors that end one case are its own; those that would end all are told.
func TestErrors(t *testing.T) {
	f, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := suite(t)
	own := failing{&models.OverflowError{}}
	res, err := (&Prober{Runner: runner.Runner{Model: own, Format: f}}).Ask(t.Context(), cases[0])
	if err != nil || res.Fault != FaultError || res.Right {
		t.Errorf("%v %+v", err, res)
	}
	gone := failing{&models.UnreachableError{URL: "http://127.0.0.1:1"}}
	if _, err := (&Prober{Runner: runner.Runner{Model: gone, Format: f}}).Ask(t.Context(), cases[0]); err == nil {
		t.Error("a server that is not there is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Prober{Runner: runner.Runner{Model: gone, Format: f}}).Ask(ctx, cases[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption gives %v", err)
	}
}

type failing struct{ err error }

func (f failing) Stream(context.Context, models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) { yield(models.Chunk{}, f.err) }
}

func TestPropensity(t *testing.T) {
	p := func(f float64) *float64 { return &f }
	s := Summarise([]Result{
		{Wanted: true, Propensity: p(-1)}, {Wanted: true, Propensity: p(-3)}, {Propensity: p(-2)}, {Propensity: p(-9)}, {Wanted: true},
	})
	if s.Propensity == nil || *s.Propensity.Wanted != -2 || *s.Propensity.Unwanted != -5.5 || *s.Propensity.AUC != 0.75 {
		t.Errorf("%+v", s.Propensity)
	}
}

func TestSeedsDoNotDependOnTheOrder(t *testing.T) {
	one := 1
	a, b := seedFor(&one, "a"), seedFor(&one, "b")
	if *a == *b || *a != *seedFor(&one, "a") || *a < 0 || seedFor(nil, "a") != nil {
		t.Errorf("%d, %d", *a, *b)
	}
}

func TestDecision(t *testing.T) {
	for _, c := range []struct {
		format, text, thought, words string
		ok                           bool
	}{
		{"qwen", "It is.", "", "<tool_call>", true},
		{"qwen", "<think>\nHm.\n</think>\n\nIt is.", "<think>\nHm.\n</think>\n\n", "<tool_call>", true},
		{"qwen", "<think>\nHm, hm, hm", "", "<tool_call>", false},
		{"react", " I look.\nAction: f\nAction Input: {}", " I look.", "\nAction:", true},
		{"react", " I know.\nFinal Answer: 3\nAction: no", " I know.", "\nAction:", true},
		{"react", " Hm", "", "Action:", false},
	} {
		f, err := template.Load(c.format)
		if err != nil {
			t.Fatal(err)
		}
		thought, words, ok := decision(f, nil, c.text)
		if thought != c.thought || words != c.words || ok != c.ok {
			t.Errorf("%s, %q: %q, %q, %v", c.format, c.text, thought, words, ok)
		}
	}
}
