package endtoend

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"stopgap/template"
)

// formatsPage reads docs/formats.md.
func formatsPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs/formats.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// cells gives the rows of the page's table with that head, without the columns'
// line.
func cells(t *testing.T, page, head string) [][]string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+head+"\n")
	if !found {
		t.Fatalf("docs/formats.md has no table %q", head)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if !strings.HasPrefix(line, "|---") {
			row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			rows = append(rows, row)
		}
	}
	return rows
}

// code gives the text of a cell that is code.
func code(cell string) string {
	cell = strings.TrimSpace(cell)
	marks := cell[:len(cell)-len(strings.TrimLeft(cell, "`"))]
	cell = strings.TrimSuffix(strings.TrimPrefix(cell, marks), marks)
	return strings.NewReplacer(`\|`, "|", "↵", "\n").Replace(cell)
}

// The page names every key of a head.
func TestFormatsPageKeys(t *testing.T) {
	page := formatsPage(t)
	_, table, _ := strings.Cut(page, "\n| key | what it says |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, key := range headKeys(reflect.TypeFor[template.Head](), "") {
		if !strings.Contains(table, "`"+key+"`") {
			t.Errorf("the table of keys does not have %s", key)
		}
	}
}

// headKeys are the keys of a struct, those inside of others with a dot between.
func headKeys(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return []string{strings.TrimSuffix(path, ".")}
	}
	var keys []string
	for i := range of.NumField() {
		field := of.Field(i)
		keys = append(keys, headKeys(field.Type, path+field.Tag.Get("yaml")+".")...)
	}
	return keys
}

// The page names every block, all that a block sees, and every function.
func TestFormatsPageBlocks(t *testing.T) {
	page := formatsPage(t)
	src := sources(t)
	_, err := template.Compile("x", []byte("extends: qwen\n---\n{{define \"x\"}}x{{end}}\n"))
	_, list, found := strings.Cut(err.Error(), "the blocks are ")
	if !found {
		t.Fatalf("the error does not list the blocks: %v", err)
	}
	for _, block := range strings.Split(list, ", ") {
		if !strings.Contains(page, "\n| `"+block+"` | ") {
			t.Errorf("the table of blocks does not have %s", block)
		}
	}
	for _, name := range []string{"openingData", "Tool", "continuationData", "resultData", "wordsData", "callsData", "callData", "entry"} {
		for _, field := range fields(t, src, name) {
			if !strings.Contains(page, "`."+field+"`") {
				t.Errorf("the page does not have .%s, which blocks see", field)
			}
		}
	}
	for _, function := range functions(src) {
		if !strings.Contains(page, "\n| `"+function+"` | ") {
			t.Errorf("the table of functions does not have %s", function)
		}
	}
}

// sources are the files of package template, parsed.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, "template", "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// fields are those of a struct, whether it is exported or not.
func fields(t *testing.T, files []*ast.File, name string) (out []string) {
	t.Helper()
	inspect(files, func(n ast.Node) {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				for _, n := range field.Names {
					out = append(out, n.Name)
				}
			}
		}
	})
	if len(out) == 0 {
		t.Fatalf("package template has no struct %s", name)
	}
	return out
}

// functions are the keys of the map of functions.
func functions(files []*ast.File) (out []string) {
	inspect(files, func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "funcs" || len(spec.Values) != 1 {
			return
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			name, _ := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			out = append(out, name)
		}
	})
	return out
}

// constants are the values of the typed string constants of package template.
func constants(t *testing.T, typ string) (out []string) {
	t.Helper()
	inspect(sources(t), func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ && len(spec.Values) == 1 {
			value, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			out = append(out, value)
		}
	})
	if len(out) == 0 {
		t.Fatalf("package template has no constants of the type %s", typ)
	}
	return out
}

func inspect(files []*ast.File, see func(ast.Node)) {
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			see(n)
			return true
		})
	}
}

// pageTools are the tools that the examples of the page call.
var pageTools = []template.Tool{
	{Name: "search", Parameters: []byte(`{"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["query"]}`)},
	{Name: "python", Parameters: []byte(`{"type": "object", "properties": {"code": {"type": "string"}}}`)},
}

// Each kind of call is read from its example, with the keys beside it.
func TestFormatsPageCalls(t *testing.T) {
	var kinds []string
	for _, row := range cells(t, formatsPage(t), "| kind | a call | keys |") {
		kind, _, _ := strings.Cut(row[0], ",")
		kind, keys := code(kind), code(row[2])
		kinds = append(kinds, kind)
		base := "qwen"
		if kind == string(template.LineCalls) {
			base = "react"
		}
		shipped, err := template.Load(base)
		if err != nil {
			t.Fatal(err)
		}
		f := *shipped
		f.Call = template.Spelling{Kind: template.CallKind(kind)}
		if err := yaml.UnmarshalWithOptions([]byte(keys), &f.Call, yaml.Strict()); err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		turn := f.Parse(code(row[1]), template.Reading{Tools: pageTools, Strict: true})
		if len(turn.Calls) != 1 || len(turn.Problems) != 0 {
			t.Errorf("%s: %d calls and the problems %v in %q", row[0], len(turn.Calls), turn.Problems, code(row[1]))
		}
	}
	kinds = slices.Compact(kinds)
	if want := constants(t, "CallKind"); !slices.Equal(kinds, want) {
		t.Errorf("the table of calls has the kinds %v, there are %v", kinds, want)
	}
}

// The repairs are all on the page, in their order, and the call of each example
// needs just this one.
func TestFormatsPageRepairs(t *testing.T) {
	f, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range cells(t, formatsPage(t), "| repair | what was done | the model writes, in `qwen` |") {
		name := code(row[0])
		listed = append(listed, name)
		turn := f.Parse(code(row[2]), template.Reading{Tools: pageTools})
		switch {
		case len(turn.Calls) != 1 || turn.Calls[0].Name != "search" || !strings.Contains(string(turn.Calls[0].Arguments), "owl"):
			t.Errorf("%s: the calls are %v", name, turn.Calls)
		case !slices.Equal(but(turn.Calls[0].Repairs, template.RepairAround, name), []template.Repair{template.Repair(name)}):
			t.Errorf("%s: the repairs are %v", name, turn.Calls[0].Repairs)
		}
	}
	if want := constants(t, "Repair"); !slices.Equal(listed, want) {
		t.Errorf("the table has %v, there are %v", listed, want)
	}
}

// but leaves out a repair, except where it is the one that is looked for: a line
// end before the JSON counts as one that stands around it.
func but(repairs []template.Repair, without template.Repair, name string) []template.Repair {
	return slices.DeleteFunc(slices.Clone(repairs), func(r template.Repair) bool { return r == without && string(r) != name })
}

// The problems are all on the page, and each example has the problem.
func TestFormatsPageProblems(t *testing.T) {
	f, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range cells(t, formatsPage(t), "| problem | what happened | what the model gets | for example, in `qwen` |") {
		kind := template.ProblemKind(code(row[0]))
		listed = append(listed, string(kind))
		if kind == template.BadArguments || kind == template.RepeatedCall { // the runner's to say
			continue
		}
		turn := f.Parse(code(row[3]), template.Reading{Tools: pageTools})
		if len(turn.Problems) != 1 || turn.Problems[0].Kind != kind {
			t.Errorf("%s: the problems are %v", kind, turn.Problems)
		}
	}
	if want := constants(t, "ProblemKind"); !slices.Equal(listed, want) {
		t.Errorf("the table has %v, there are %v", listed, want)
	}
}

// What the page says of constrained calls: the kinds json and lines have a frame.
func TestFormatsPageConstrain(t *testing.T) {
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		_, can := f.Frame()
		if want := f.Call.Kind == template.JSONCalls || f.Call.Kind == template.LineCalls; f.Opening == template.OpenOwn && can != want {
			t.Errorf("format %s: %v", name, can)
		}
	}
}

// The page's table of models names formats that there are, and all of them.
func TestFormatsPageModels(t *testing.T) {
	var named []string
	for _, row := range cells(t, formatsPage(t), "| model | format |") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			named = append(named, m[1])
		}
	}
	slices.Sort(named)
	if named = slices.Compact(named); !slices.Equal(named, template.Names()) {
		t.Errorf("the table names %v, there are %v", named, template.Names())
	}
}
