package bfcl

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// folder has the sample rows of BFCL v4. STOPGAP_BFCL names another, such as the
// data of the package bfcl-eval, with STOPGAP_BFCL_GOLDENS of that.
func folder(t *testing.T) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("STOPGAP_BFCL"), "../../../../shared/testdata/bfcl")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the sample rows of BFCL are not there: %v", err)
	}
	return dir
}

func samples(t *testing.T) map[string]*Item {
	t.Helper()
	items, _, err := ReadFolder(folder(t))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*Item{}
	for _, it := range items {
		out[it.ID] = it
	}
	return out
}

// The verdicts are those of the official checker, with the same names for what
// is wrong.
func TestVerdictsAreTheOfficialCheckers(t *testing.T) {
	items := samples(t)
	f, err := os.Open(cmp.Or(os.Getenv("STOPGAP_BFCL_GOLDENS"), "testdata/goldens.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	answers, rows, faults := 0, map[string]bool{}, map[string]int{}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var g struct {
			ID          string
			Underscores bool
			Calls       []Call
			Fault       string
		}
		if err := json.Unmarshal(sc.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		it := items[g.ID]
		if it == nil {
			t.Fatalf("there is no row %s", g.ID)
		}
		answers, rows[g.ID] = answers+1, true
		faults[g.Fault]++
		if got := it.Check(g.Calls, g.Underscores); got.Fault != g.Fault {
			t.Errorf("%s: %q (%s), the official checker says %q of\n%s", g.ID, got.Fault, got.Reason, g.Fault, sc.Text())
		}
	}
	t.Logf("%d answers to %d rows: %v", answers, len(rows), faults)
	if answers < 2000 || len(rows) < 160 || len(faults) < 15 || faults[""] < 500 {
		t.Errorf("%d answers to %d rows with the faults %v prove little", answers, len(rows), faults)
	}
}

func TestIrrelevance(t *testing.T) {
	n := 0
	for _, it := range samples(t) {
		if it.Category != "irrelevance" {
			continue
		}
		n++
		if v := it.Check(nil, false); !v.OK() {
			t.Errorf("%s: no call is %v", it.ID, v)
		}
		if v := it.Check([]Call{{"any", []byte("{}")}}, false); v.Fault != "irrelevance_error:decoder_success" {
			t.Errorf("%s: a call is %v", it.ID, v)
		}
		it.Category = "live_relevance"
		if v := it.Check(nil, false); v.OK() {
			t.Errorf("%s: relevance without a call is %v", it.ID, v)
		}
	}
	if n == 0 {
		t.Error("no row")
	}
}

func TestSampleRows(t *testing.T) {
	count := map[string]int{}
	for _, it := range samples(t) {
		count[it.Category]++
		if it.Question == "" || strings.HasSuffix(it.Category, "relevance") == (len(it.truth) > 0) {
			t.Errorf("%s is not whole: %+v", it.ID, it)
		}
		tools, err := it.Tools(true)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if strings.Contains(tool.Name, ".") || bytes.Contains(tool.Parameters, []byte(`"type":"dict"`)) || bytes.Contains(tool.Parameters, []byte(`"type":"float"`)) {
				t.Errorf("%s: %s %s", it.ID, tool.Name, tool.Parameters)
			}
		}
	}
	if os.Getenv("STOPGAP_BFCL") == "" {
		for _, c := range []string{"simple", "multiple", "parallel", "parallel_multiple", "irrelevance"} {
			if count[c] != 40 {
				t.Errorf("%d rows of %s", count[c], c)
			}
		}
	}
}

// write makes a folder with one file and its answers.
func write(t *testing.T, name, rows, answers string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "possible_answer"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{name: rows, "possible_answer/" + name: answers} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

const (
	row = `{"id": "simple_python_0", "question": [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]], "function": [{"name": "a.b", "description": "d.",` +
		` "parameters": {"type": "dict", "properties": {"x": {"type": "float", "description": "e."}, "l": {"type": "tuple", "items": {"type": "dict", "properties": {"y": {"type": "any"}}}}}, "required": ["x"]}}]}`
	truth = `{"id": "simple_python_0", "ground_truth": [{"a.b": {"x": [1.5], "l": ["", [{"y": ["Z"]}]]}}]}`
)

func TestTools(t *testing.T) {
	items, err := Read(write(t, "BFCL_v4_simple_python.json", row, truth))
	if err != nil {
		t.Fatal(err)
	}
	tools, err := items[0].Tools(false)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"x":{"type":"number","description":"e. This is a float type value.","format":"float"},` +
		`"l":{"type":"array","items":{"type":"object","properties":{"y":{"type":"string"}}}}},"required":["x"]}`
	if len(tools) != 1 || tools[0].Name != "a.b" || string(tools[0].Parameters) != want || items[0].System != "Be brief." {
		t.Errorf("%+v of\n%s, want\n%s", items[0], tools[0].Parameters, want)
	}
	// The schema was made of a copy: the rules still know the file's own types.
	for arguments, fault := range map[string]string{
		`{"x": 1.5}`:                   "",
		`{"x": 1.5, "l": [{"y":"z"}]}`: "",
		`{"x": 1.5, "l": [{"y":"w"}]}`: "value_error:dict_value",
		`{"x": 1.5, "l": [{}, {}]}`:    "value_error:list_dict_count",
		`{"x": "1.5"}`:                 "type_error:simple",
		`[]`:                           "ast_decoder:decoder_wrong_output_format",
	} {
		if v := items[0].Check([]Call{{"a.b", []byte(arguments)}}, false); v.Fault != fault {
			t.Errorf("%s is %q, want %q", arguments, v.Fault, fault)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for name, c := range map[string]struct{ file, rows, answers, want string }{
		"another category": {"BFCL_v4_multi_turn_base.json", row, truth, "not a category"},
		"another language": {"BFCL_v4_simple_java.json", row, truth, "not a category"},
		"no JSON":          {"BFCL_v4_simple_python.json", "x", truth, "BFCL_v4_simple_python.json:1: invalid character"},
		"a list":           {"BFCL_v4_simple_python.json", row + "\n[]", truth, ":2: the line is not a JSON object"},
		"no id":            {"BFCL_v4_simple_python.json", "{}", truth, "no \"id\""},
		"two turns":        {"BFCL_v4_simple_python.json", `{"id":"a","question":[[],[]]}`, truth, "not one turn"},
		"an assistant":     {"BFCL_v4_simple_python.json", `{"id":"a","question":[[{"role":"assistant","content":"x"}]]}`, truth, "asks nothing"},
		"no question":      {"BFCL_v4_simple_python.json", `{"id":"a","question":[[]],"function":[]}`, truth, "asks nothing"},
		"a bad function":   {"BFCL_v4_simple_python.json", `{"id":"a","question":[[{"role":"user","content":"x"}]],"function":[{"name":"f"}]}`, truth, "no parameters"},
		"no answer":        {"BFCL_v4_simple_python.json", row, "", "no answer for simple_python_0"},
		"nested deeply":    {"BFCL_v4_simple_python.json", strings.Repeat("[", 8_000_000), truth, "nested deeper than 1000 levels"},
		"a bad answer":     {"BFCL_v4_simple_python.json", row, `{"id":"a","ground_truth":[{"f":1}]}`, "has no parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(write(t, c.file, c.rows, c.answers))
			if _, ok := errors.AsType[*FileError](err); !ok || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What a model nests without end, or a file leaves out, ends no process.
func TestHostileItems(t *testing.T) {
	items, err := Read(write(t, "BFCL_v4_simple_python.json", row, truth))
	if err != nil {
		t.Fatal(err)
	}
	deep := json.RawMessage(`{"a":` + strings.Repeat("[", 8_000_000) + strings.Repeat("]", 8_000_000) + `}`)
	if v := items[0].Check([]Call{{Name: "f", Arguments: deep}}, false); v.Fault != "ast_decoder:decoder_wrong_output_format" {
		t.Errorf("nested deeply: %+v", v)
	}
	items, err = Read(write(t, "BFCL_v4_simple_python.json", `{"id":"simple_python_0","question":[[{"role":"user","content":"x"}]],"function":[]}`, truth))
	if err != nil {
		t.Fatal(err)
	}
	if v := items[0].Check([]Call{{Name: "f", Arguments: json.RawMessage(`{}`)}}, false); v.Fault != Unjudged {
		t.Errorf("without a function: %+v", v)
	}
}

// A folder may have any name.
func TestFolderOfAnyName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data[v4]*")
	if err := os.Rename(filepath.Dir(write(t, "BFCL_v4_simple_python.json", row, truth)), dir); err != nil {
		t.Skip("the file system does not take the name: ", err)
	}
	if items, _, err := ReadFolder(dir); err != nil || len(items) != 1 {
		t.Errorf("%d items, %v", len(items), err)
	}
}

// The committed goldens are what the script writes.
func TestGoldensAreTheScripts(t *testing.T) {
	dir := folder(t)
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import bfcl_eval").Run()
	}
	if err != nil || os.Getenv("STOPGAP_BFCL") != "" {
		t.Skip("there is no python3 with bfcl-eval: the goldens are compared, but not made again")
	}
	made := filepath.Join(t.TempDir(), "goldens.jsonl.gz")
	if out, err := exec.Command(python, "testdata/goldens.py", dir, made).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Equal(unpacked(t, made), unpacked(t, "testdata/goldens.jsonl.gz")) {
		t.Error("testdata/goldens.py writes something else")
	}
}

func unpacked(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(z); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
