package endtoend

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/batch"
	"stopgap/models/builtin/train"
)

var draw = flag.Bool("draw", false, "TestComparedQuestions draws the questions of docs/demo/compare anew")

// compareFolder is that of the questions that the comparison asks, and of the
// documents that answer them.
const compareFolder = "docs/demo/compare"

// A comparedQuestion is a line of questions.jsonl.
type comparedQuestion struct {
	ID        string   `json:"id"`
	Question  string   `json:"question"`
	Answer    string   `json:"answer"`
	Citations []string `json:"citations,omitempty"`
}

// A comparedDocument is a line of corpus.jsonl.
type comparedDocument struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// drawQuestions draws questions of the exam of the built-in model, whose names
// and words training never has, and puts their documents into one corpus. Worlds
// that share a document with others are left out.
func drawQuestions(n int) (questions []comparedQuestion, documents []comparedDocument, err error) {
	const seed = 20261122 // of no other exam
	ids, titles := map[string]bool{}, map[string]bool{}
	for number := uint64(0); len(questions) < n; number++ {
		kind := train.Kinds[len(questions)%len(train.Kinds)]
		q := train.Ask(seed, number, kind)
		docs, err := documentsOf(q.Files)
		if err != nil {
			return nil, nil, err
		}
		clash := false
		for _, d := range docs {
			clash = clash || ids[d.ID] || titles[strings.ToLower(d.Title)]
		}
		if clash {
			continue
		}
		for _, d := range docs {
			ids[d.ID], titles[strings.ToLower(d.Title)] = true, true
		}
		out := comparedQuestion{ID: fmt.Sprintf("%s-%03d", strings.ReplaceAll(string(kind), " ", "-"), len(questions)+1), Question: q.Text, Answer: q.Answer}
		if at := strings.LastIndex(q.Answer, " ["); at >= 0 && kind != train.Absent {
			out.Answer, out.Citations = q.Answer[:at], []string{strings.Trim(q.Answer[at:], " []")}
		}
		questions, documents = append(questions, out), append(documents, docs...)
	}
	return questions, documents, nil
}

func documentsOf(files fs.FS) (out []comparedDocument, err error) {
	names, err := fs.Glob(files, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		title, body, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n\n")
		out = append(out, comparedDocument{name, title, strings.TrimSpace(body)})
	}
	return out, nil
}

// jsonLines writes values, a line each.
func jsonLines[T any](values []T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// The questions that the comparison asks are there, each with its documents.
func TestComparedQuestions(t *testing.T) {
	folder := filepath.Join(root, compareFolder)
	if *draw {
		questions, documents, err := drawQuestions(200)
		if err != nil {
			t.Fatal(err)
		}
		for name, lines := range map[string]func() ([]byte, error){
			"questions.jsonl": func() ([]byte, error) { return jsonLines(questions) },
			"corpus.jsonl":    func() ([]byte, error) { return jsonLines(documents) },
		} {
			text, err := lines()
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "corpus.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for line := range bytes.Lines(text) {
		var d comparedDocument
		if err := json.Unmarshal(line, &d); err != nil {
			t.Fatal(err)
		}
		if there[d.ID] != "" {
			t.Errorf("%s is there twice", d.ID)
		}
		there[d.ID] = d.Text
	}
	data, err := batch.Read(filepath.Join(folder, "questions.jsonl"))
	if err != nil || len(data.Items) != 200 || len(data.Faults) > 0 {
		t.Fatalf("%v: %d questions, %v", err, len(data.Items), data.Faults)
	}
	for _, it := range data.Items {
		if len(it.Answers) != 1 || len(it.Documents) > 1 {
			t.Errorf("%+v", it)
		}
		for _, id := range it.Documents {
			if !strings.Contains(there[id], it.Answers[0]) {
				t.Errorf("%s: %s does not tell %q", it.ID, id, it.Answers[0])
			}
		}
	}
}
