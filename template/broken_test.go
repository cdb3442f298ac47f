package template

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A brokenFile is a file of testdata/broken; its README says what the keys mean.
type brokenFile struct {
	Name   string `yaml:"-"`
	Format string
	Cases  []brokenCase
}

type brokenCase struct {
	Name     string
	Text     string
	InThink  bool `yaml:"in_think"`
	Calls    []brokenCall
	Answer   *string
	Problems []ProblemKind
	Intact   bool
	Loss     bool
}

type brokenCall struct {
	Name      string
	Arguments map[string]any
}

// brokenFiles loads the cases and the tools that they offer.
func brokenFiles(t testing.TB) ([]brokenFile, []Tool) {
	t.Helper()
	_, tools := brokenIn(t, "testdata/broken/tools.yaml")
	files, _ := brokenIn(t, "testdata/broken/*.yaml")
	return files, tools
}

func brokenIn(t testing.TB, pattern string) ([]brokenFile, []Tool) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var files []brokenFile
	var tools []Tool
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(name) == "tools.yaml" {
			tools = brokenTools(t, src)
			continue
		}
		file := brokenFile{Name: strings.TrimSuffix(filepath.Base(name), ".yaml")}
		if err := yaml.UnmarshalWithOptions(src, &file, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files = append(files, file)
	}
	return files, tools
}

func brokenTools(t testing.TB, src []byte) []Tool {
	t.Helper()
	var list []struct {
		Name, Description string
		Parameters        yaml.MapSlice // in the order of the file
	}
	if err := yaml.UnmarshalWithOptions(src, &list, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var tools []Tool
	for _, e := range list {
		raw, err := yaml.MarshalWithOptions(e.Parameters, yaml.JSON())
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, Tool{Name: e.Name, Description: e.Description, Parameters: json.RawMessage(raw)})
	}
	return tools
}

// heldOut says that a case was not looked at while the parser was written: three
// of ten, by a hash of the name.
func heldOut(file brokenFile, c brokenCase) bool {
	h := fnv.New32a()
	h.Write([]byte(file.Name + "/" + c.Name))
	return h.Sum32()%10 >= 7
}

// faults gives what is wrong with a turn: of its calls and its answer, and the
// problems that it should name and does not.
func (c brokenCase) faults(turn Turn, schemas map[string]*jsonschema.Schema) (wrong []string, unnamed []ProblemKind) {
	for _, kind := range c.Problems {
		named := slices.ContainsFunc(turn.Problems, func(p Problem) bool { return p.Kind == kind })
		// Parse leaves the arguments to whoever runs the tools.
		if !named && (kind != BadArguments || !slices.ContainsFunc(turn.Calls, func(c Call) bool { return refused(schemas, c) })) {
			unnamed = append(unnamed, kind)
		}
	}
	if c.Loss {
		return nil, unnamed
	}
	if got, want := spellCalls(turn.Calls), c.spellCalls(); !slices.Equal(got, want) {
		wrong = append(wrong, fmt.Sprintf("calls\n    got  %s\n    want %s", strings.Join(got, "; "), strings.Join(want, "; ")))
	}
	switch {
	case c.Answer != nil && (!turn.Answered || turn.Answer != strings.TrimSpace(*c.Answer)):
		wrong = append(wrong, fmt.Sprintf("answered %v\n    got  %q\n    want %q", turn.Answered, turn.Answer, *c.Answer))
	case c.Answer == nil && turn.Answered:
		wrong = append(wrong, fmt.Sprintf("an answer where there is none: %q", turn.Answer))
	}
	return wrong, unnamed
}

// refused reports whether the tool's schema refuses the arguments of a call.
func refused(schemas map[string]*jsonschema.Schema, c Call) bool {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(c.Arguments)))
	return err != nil || schemas[c.Name] != nil && schemas[c.Name].Validate(v) != nil
}

func brokenSchemas(t *testing.T, tools []Tool) map[string]*jsonschema.Schema {
	t.Helper()
	schemas := map[string]*jsonschema.Schema{}
	for _, tool := range tools {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Parameters)))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(tool.Name, doc); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = c.Compile(tool.Name); err != nil {
			t.Fatal(err)
		}
	}
	return schemas
}

// spellCalls spells calls so that equal JSON values are equal texts.
func spellCalls(calls []Call) []string {
	var out []string
	for _, c := range calls {
		out = append(out, c.Name+canonicalJSON(c.Arguments))
	}
	return out
}

func (c brokenCase) spellCalls() []string {
	var out []string
	for _, call := range c.Calls {
		raw, err := encode(call.Arguments)
		if err != nil {
			return []string{err.Error()}
		}
		if call.Arguments == nil {
			raw = json.RawMessage("{}")
		}
		out = append(out, call.Name+canonicalJSON(raw))
	}
	return out
}

// canonicalJSON sorts the keys and spells numbers exactly.
func canonicalJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return err.Error()
	}
	out, err := encode(exactNumbers(v))
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func exactNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = exactNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = exactNumbers(e)
		}
	case json.Number:
		if r, ok := new(big.Rat).SetString(string(v)); ok {
			return json.RawMessage(`"number ` + r.RatString() + `"`)
		}
	}
	return v
}

// A tally counts the cases of a file, or of all.
type tally struct{ intact, recovered, none, named share }

type share struct{ ok, all int }

func (s *share) count(ok bool) {
	s.all++
	if ok {
		s.ok++
	}
}

func (s share) String() string { return fmt.Sprintf("%d/%d", s.ok, s.all) }

func (s share) percent() float64 {
	if s.all == 0 {
		return 100
	}
	return 100 * float64(s.ok) / float64(s.all)
}

func (t *tally) add(o tally) {
	for _, p := range []struct {
		to   *share
		from share
	}{{&t.intact, o.intact}, {&t.recovered, o.recovered}, {&t.none, o.none}, {&t.named, o.named}} {
		p.to.ok += p.from.ok
		p.to.all += p.from.all
	}
}

func (t tally) row(name string) string {
	return fmt.Sprintf("%-16s %8s %10s %5.1f %% %8s %8s", name, t.intact, t.recovered, t.recovered.percent(), t.none, t.named)
}

// TestBroken parses what models write instead of calls. At least 95 % of the
// calls that a person would read are read, at least 90 % in each spelling; all
// that is as it should be stays as it is; nothing becomes a call that is none.
func TestBroken(t *testing.T) {
	files, tools := brokenFiles(t)
	schemas := brokenSchemas(t, tools)
	var seen, held, all tally
	table := []string{fmt.Sprintf("%-16s %8s %10s %7s %8s %8s", "", "intact", "recovered", "", "no call", "problems")}
	for _, file := range files {
		f, err := Load(file.Format)
		if err != nil {
			t.Errorf("%s: %v", file.Name, err)
			continue
		}
		var mine tally
		for _, c := range file.Cases {
			one := judge(t, f, file, c, tools, schemas)
			mine.add(one)
			if heldOut(file, c) {
				held.add(one)
			} else {
				seen.add(one)
			}
		}
		table = append(table, mine.row(file.Name))
		all.add(mine)
		if mine.recovered.percent() < 90 {
			t.Errorf("%s: %v of the calls recovered", file.Name, mine.recovered)
		}
	}
	table = append(table, seen.row("looked at"), held.row("held out"), all.row("all"))
	t.Log("\n" + strings.Join(table, "\n"))
	if all.recovered.percent() < 95 {
		t.Errorf("%v of the calls recovered", all.recovered)
	}
	if all.intact.ok < all.intact.all || all.none.ok < all.none.all {
		t.Errorf("%v intact turns are read, %v turns without a call", all.intact, all.none)
	}
}

// judge parses one case and counts it.
func judge(t *testing.T, f *Format, file brokenFile, c brokenCase, tools []Tool, schemas map[string]*jsonschema.Schema) (one tally) {
	t.Helper()
	r := Reading{InThink: c.InThink, Tools: tools}
	turn := f.Parse(c.Text, r)
	wrong, unnamed := c.faults(turn, schemas)
	if len(c.Problems) > 0 {
		one.named.count(len(unnamed) == 0)
	}
	switch {
	case c.Intact:
		r.Strict = true
		if strict := f.Parse(c.Text, r); len(wrong) == 0 && !reflect.DeepEqual(strict, turn) {
			wrong = append(wrong, fmt.Sprintf("a strict reading gives\n    %+v\n    %+v", strict, turn))
		}
		for _, call := range turn.Calls {
			if len(call.Repairs) > 0 {
				wrong = append(wrong, fmt.Sprintf("intact, yet repaired: %v", call.Repairs))
			}
		}
		one.intact.count(len(wrong) == 0)
	case len(c.Calls) > 0:
		one.recovered.count(len(wrong) == 0)
	default:
		one.none.count(len(wrong) == 0)
	}
	if len(wrong) > 0 || len(unnamed) > 0 {
		if heldOut(file, c) && os.Getenv("HELD") == "" {
			return one
		}
		t.Logf("%s/%s\n  %q\n  %s\n  not named %v; problems %v, repairs %v", file.Name, c.Name, c.Text, strings.Join(wrong, "\n  "), unnamed, turn.Problems, repairsOf(turn))
	}
	return one
}

// plainInputs are cases whose arguments are plain text, or stand in a row without
// brackets: nobody can tell that they are cut.
var plainInputs = map[string]bool{
	"plain text as the input": true, "plain text as the input and an invented observation": true, "plain text as the arguments": true,
	"an expression as the input": true, "the required argument as plain text where others are optional": true,
	"key=value pairs": true, "JSON without its braces": true, "key: value lines": true, "one key=value pair without quotes": true, "the call is written as ReAct": true,
}

// tagEnd gives the place behind the tag that text[:i] ends in.
func tagEnd(text string, i int) int {
	if open := strings.LastIndexByte(text[:i], '<'); open >= 0 {
		if n := strings.IndexByte(text[i:], '>'); n >= 0 && n < 16 && !strings.ContainsAny(text[open:i+n], " \n") {
			return i + n + 1
		}
	}
	return i
}

// TestCut cuts every turn at every byte. What is left of a call is no call, and
// what was complete before stays what it is.
func TestCut(t *testing.T) {
	files, tools := brokenFiles(t)
	for _, file := range files {
		f, err := Load(file.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			if c.Loss || plainInputs[c.Name] {
				continue
			}
			want := c.spellCalls()
			for i := range c.Text {
				turn := f.Parse(c.Text[:i], Reading{InThink: c.InThink, Tools: tools})
				if len(turn.Calls) == 0 {
					continue
				}
				var strict []string // complete as it stands, or with the rest of a tag
				for _, text := range []string{c.Text[:i], c.Text[:tagEnd(c.Text, i)]} {
					strict = append(strict, spellCalls(f.Parse(text, Reading{InThink: c.InThink, Tools: tools, Strict: true}).Calls)...)
				}
				for _, call := range spellCalls(turn.Calls) {
					if !slices.Contains(want, call) && !slices.Contains(strict, call) {
						t.Errorf("%s/%s: %q\n  gives %s\n  instead of %s", file.Name, c.Name, c.Text[:i], call, want)
					}
				}
			}
		}
	}
}

func repairsOf(t Turn) (out [][]Repair) {
	for _, c := range t.Calls {
		out = append(out, c.Repairs)
	}
	return out
}

// TestBrokenSecond parses the cases of a second judge, written after the parser
// and without looking at it: they show what the rules are worth beyond the
// texts that they were made for.
func TestBrokenSecond(t *testing.T) {
	_, tools := brokenFiles(t)
	files, _ := brokenIn(t, "testdata/broken/second/*.yaml")
	schemas := brokenSchemas(t, tools)
	var all tally
	for _, file := range files {
		f, err := Load(file.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range file.Cases {
			wrong, unnamed := c.faults(f.Parse(c.Text, Reading{InThink: c.InThink, Tools: tools}), schemas)
			if ok := len(wrong)+len(unnamed) == 0; !ok {
				t.Logf("%s/%s: %q\n%s %v", file.Name, c.Name, c.Text, strings.Join(wrong, "\n"), unnamed)
			}
			switch {
			case c.Intact:
				all.intact.count(len(wrong) == 0)
			case len(c.Calls) > 0:
				all.recovered.count(len(wrong) == 0)
			default:
				all.none.count(len(wrong)+len(unnamed) == 0)
			}
		}
	}
	t.Log(all.row("second"))
	if all.recovered.percent() < 90 || all.intact.ok < all.intact.all || all.none.percent() < 85 {
		t.Errorf("%v of the calls recovered, %v intact turns are read, %v turns without a call", all.recovered, all.intact, all.none)
	}
}
