package batch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a dataset and gives its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// brief tells the items of a dataset in a line each.
func briefly(d *Dataset) string {
	var b strings.Builder
	for _, it := range d.Items {
		fmt.Fprintf(&b, "%d %s: %s %q\n", it.Line, it.ID, it.Question, it.Answers)
	}
	return b.String()
}

// The shapes of the datasets that are recognised, each as its own files have it.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		shape            Shape
		want             string
	}{
		{"hotpotqa", "h.json", `[{"_id":"5a8b57f2","answer":"yes","question":"Were both American?","supporting_facts":[["A",0]],"context":[["A",["s"]]],"type":"comparison","level":"hard"}]`,
			HotpotQA, "1 5a8b57f2: Were both American? [\"yes\"]\n"},
		{"hotpotqa of the hub", "h.jsonl", `{"id":"5a8b","question":"Who?","answer":"He","type":"bridge","level":"easy","supporting_facts":{"title":["A"],"sent_id":[0]}}`,
			HotpotQA, "1 5a8b: Who? [\"He\"]\n"},
		{"musique", "m.jsonl", `{"id":"2hop__1_2","paragraphs":[],"question":"Who?","question_decomposition":[],"answer":"Ann","answer_aliases":["Anna","Ann"],"answerable":true}`,
			MuSiQue, "1 2hop__1_2: Who? [\"Ann\" \"Anna\"]\n"},
		{"nq", "n.jsonl", `{"id":"test_0","question":"when?","golden_answers":["1964","in 1964"]}`, NQ, "1 test_0: when? [\"1964\" \"in 1964\"]\n"},
		{"nq of Search-R1", "n.jsonl", `{"id":"test_0","prompt":[{"role":"user","content":"Answer. when?"}],"reward_model":{"ground_truth":{"target":["1964"]},"style":"rule"}}`,
			NQ, "1 test_0: Answer. when? [\"1964\"]\n"},
		{"bamboogle", "b.csv", "Question,Answer\n\"Who was president, when it was founded?\",Ulysses S. Grant\nWho?,\"He, \"\"she\"\"\"\n",
			Bamboogle, "2 0caebc56c68f: Who was president, when it was founded? [\"Ulysses S. Grant\"]\n3 d991a24e8e04: Who? [\"He, \\\"she\\\"\"]\n"},
		{"deepresearch", "d.jsonl", `{"messages":[{"role":"system","content":"s"},{"role":"user","content":"Why?"}],"answer":"so"}`, DeepResearch, "1 5d8a995a6fa7: Why? [\"so\"]\n"},
		{"deepresearch, parts", "d.json", `[{"messages":[{"role":"user","content":[{"type":"text","text":"Why?"}]}]}]`, DeepResearch, "1 5d8a995a6fa7: Why? []\n"},
		{"triviaqa", "t.jsonl", `{"question_id":"tc_1","question":"Who?","answer":{"value":"Ann","aliases":["Anna"]}}`, Questions, "1 tc_1: Who? [\"Ann\" \"Anna\"]\n"},
		{"squad", "s.jsonl", `{"id":"x","question":"Who?","answers":{"text":["Ann","Ann"],"answer_start":[1,2]}}`, Questions, "1 x: Who? [\"Ann\"]\n"},
		{"numbers", "n.jsonl", `{"id":12345678901234567890,"question":"How many?","answer":3}`, Questions, "1 12345678901234567890: How many? [\"3\"]\n"},
		{"tabs and a list in a cell", "t.tsv", "id\tquestion\tgolden_answers\n1\tSay \"hi\"\t[\"a\",\"b\"]\n", NQ, "2 1: Say \"hi\" [\"a\" \"b\"]\n"},
		{"a mark before it, empty lines", "b.jsonl", "\ufeff\n\n{\"question\":\"Who?\"}\r\n\n", Questions, "3 d991a24e8e04: Who? []\n"},
		{"the same question twice", "s.jsonl", "{\"question\":\"Who?\"}\n{\"question\":\"Who?\"}\n", Questions, "1 d991a24e8e04: Who? []\n2 d991a24e8e04-2: Who? []\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Read(file(t, c.file, c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := briefly(d); got != c.want || d.Shape != c.shape || len(d.Faults) > 0 {
				t.Errorf("%s, %v:\n%swant\n%s", d.Shape, d.Faults, got, c.want)
			}
		})
	}
}

// The documents of an answer, as datasets name them. A dataset that names none
// keeps its hashes.
func TestGoldDocuments(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"hotpotqa":            {`{"_id":"a","question":"Who?","answer":"x","supporting_facts":[["The Lantern",0],["The Lantern",2],["Ilse Marrow",1]]}`, `["The Lantern" "Ilse Marrow"]`},
		"hotpotqa of the hub": {`{"id":"a","question":"Who?","answer":"x","supporting_facts":{"title":["A","B","A"],"sent_id":[0,1,2]}}`, `["A" "B"]`},
		"musique":             {`{"id":"a","question":"Who?","answer_aliases":[],"paragraphs":[{"idx":0,"title":"A","paragraph_text":"…","is_supporting":false},{"idx":1,"title":"B","is_supporting":true},{"title":"","is_supporting":true}]}`, `["B"]`},
		"flashrag":            {`{"id":"a","question":"Who?","golden_answers":["x"],"metadata":{"supporting_facts":{"title":["A"],"sent_id":[0]},"metadata":{}}}`, `["A"]`},
		"ids":                 {`{"question":"Who?","citations":["a.md","b.md","a.md"]}`, `["a.md" "b.md"]`},
		"one id":              {`{"question":"Who?","gold_documents":7}`, `["7"]`},
		"objects":             {`{"question":"Who?","gold_docs":[{"docid":"12","text":"…"},{"title":"A"},{"text":"…"},3]}`, `["12" "A" "3"]`},
		"nothing":             {`{"question":"Who?","supporting_facts":[],"paragraphs":7,"citations":null,"metadata":"x"}`, `[]`},
	} {
		d, err := Read(file(t, "d.jsonl", c.text))
		if err != nil || len(d.Items) != 1 {
			t.Fatalf("%s: %v %+v", name, err, d)
		}
		if got := fmt.Sprintf("%q", d.Items[0].Documents); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
	d, err := Read(file(t, "d.csv", "question,supporting_facts\nWho?,\"[[\"\"A\"\",0]]\"\n"))
	if err != nil || fmt.Sprint(d.Items[0].Documents) != "[A]" {
		t.Errorf("CSV: %+v %v", d, err)
	}
	d, err = Read(filepath.Join("testdata", "hotpotqa.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q", d.Items[0].Documents); got != `["A" "B"]` {
		t.Errorf("Parquet: %s", got)
	}
	plain := Item{ID: "a", Question: "Who?", Answers: []string{"x"}}
	if got := plain.digest(); got != "1b1c328260a0f378" {
		t.Errorf("the hash of a question has changed: %s", got)
	}
}

// Lines that are no question are named, and cost no other line.
func TestBrokenLines(t *testing.T) {
	d, err := Read(file(t, "b.jsonl", strings.Join([]string{
		`{"id":"a","question":"Who?"}`, `{"id":"b","question":`, `[1]`, `{"id":"c","answer":"x"}`, `{"id":"d","question":" "}`,
		`{"id":"a","question":"What?"}`, `{"id":"e","question":{"x":1}}`, `{"id":"f","question":"a\u0000b"}`, `null`, `{"id":"g","question":"When?"}`,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := `[line 2: not JSON: unexpected end of JSON input line 3: not a JSON object ` +
		`line 4: there is no question: neither question nor messages line 5: its question is empty ` +
		`line 6: its id "a" is that of line 1 line 7: there is no question: neither question nor messages ` +
		`line 8: its question is not text line 9: there is no question: neither question nor messages]`
	if got := fmt.Sprint(d.Faults); got != want || len(d.Items) != 2 || d.Items[1].Line != 10 {
		t.Errorf("%s\nwant\n%s\n%s", got, want, briefly(d))
	}
	d, err = Read(file(t, "b.csv", "question,answer\nWho?,x\n\"open,x\nWhat?,y,z\n"))
	if err != nil || len(d.Items) != 1 || len(d.Faults) == 0 || d.Faults[0].Line != 3 {
		t.Errorf("%v, %v", d, err)
	}
}

// What is no dataset is said of the file.
func TestNoDataset(t *testing.T) {
	for name, c := range map[string]struct{ file, text, says string }{
		"empty":      {"e.jsonl", "", "it has no questions"},
		"only space": {"e.json", " \n", "it has no questions"},
		"cut off":    {"c.json", `[{"question":"Who?"},{"question":`, "object 2: not JSON"},
		"no end":     {"c.json", `[{"question":"Who?"}`, "the array has no end"},
		"other kind": {"c.xlsx", `x`, `".xlsx" is no kind of dataset`},
		"parquet":    {"c.parquet", `x`, "Parquet"},
	} {
		_, err := Read(file(t, c.file, c.text))
		if !is[*DataError](err) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.jsonl")); !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), "none.jsonl") != 1 {
		t.Errorf("%v", err)
	}
	if _, err := Read(t.TempDir()); !is[*DataError](err) {
		t.Errorf("%v", err)
	}
}

// BFCL's files are JSON lines whatever their name, with the calls that are right
// in a file beside them.
func TestBFCL(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "possible_answer"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"BFCL_v4_simple_python.json":                 `{"id":"simple_python_0","question":[[{"role":"user","content":"What is the area?"}]],"function":[{"name":"area","parameters":{}}]}`,
		"possible_answer/BFCL_v4_simple_python.json": `{"id":"simple_python_0","ground_truth":[{"area":{"base":[10]}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Read(filepath.Join(dir, "BFCL_v4_simple_python.json"))
	if err != nil {
		t.Fatal(err)
	}
	it := d.Items[0]
	if d.Shape != BFCL || it.Question != "What is the area?" || string(it.Functions) != `[{"name":"area","parameters":{}}]` || string(it.Calls) != `[{"area":{"base":[10]}}]` {
		t.Errorf("%s %+v", d.Shape, it)
	}
}
