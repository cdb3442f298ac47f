package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// A Shape is how a dataset's rows are written.
type Shape string

// The shapes that are recognised. Questions is any other row with a question.
const (
	BFCL         Shape = "BFCL"         // question [[{role, content}]], function
	HotpotQA     Shape = "HotpotQA"     // _id or id, question, answer, supporting_facts; 2WikiMultihopQA is like it
	MuSiQue      Shape = "MuSiQue"      // id, question, answer, answer_aliases
	NQ           Shape = "NQ"           // question, golden_answers; Search-R1's prompt and reward_model
	Bamboogle    Shape = "Bamboogle"    // Question, Answer
	DeepResearch Shape = "DeepResearch" // question, answer; or messages
	Questions    Shape = "questions"
)

// A row is one object of a file, its keys in small letters.
type row map[string]json.RawMessage

// newRow reads an object.
func newRow(object []byte) (row, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(object, &fields); err != nil {
		if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
			return nil, errors.New("not JSON: " + bad.Error())
		}
		return nil, errors.New("not a JSON object")
	}
	r := row{}
	for key, value := range fields {
		r[strings.ToLower(strings.TrimSpace(key))] = value
	}
	return r, nil
}

// has reports whether all keys are there.
func (r row) has(keys ...string) bool {
	for _, key := range keys {
		if v := r[key]; len(v) == 0 || bytes.Equal(v, []byte("null")) {
			return false
		}
	}
	return true
}

// text gives the value of the first key that is a text or a number.
func (r row) text(keys ...string) (string, bool) {
	for _, key := range keys {
		if s, ok := scalar(r[key]); ok {
			return s, true
		}
	}
	return "", false
}

// scalar reads a text, a number or a truth value.
func scalar(v json.RawMessage) (string, bool) {
	var x any
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	if dec.Decode(&x) != nil {
		return "", false
	}
	switch x := x.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return strconv.FormatBool(x), true
	}
	return "", false
}

// The names of columns that datasets have for the same thing.
var (
	idKeys       = []string{"id", "_id", "qid", "task_id", "example_id", "question_id"}
	questionKeys = []string{"question", "problem", "query", "question_text"}
	answerKeys   = []string{"golden_answers", "answers", "answer", "final answer", "final_answer", "gold"}
)

// item reads a row as a question.
func (r row) item() (Item, Shape, error) {
	var it Item
	it.ID, _ = r.text(idKeys...)
	shape := r.shape()
	question, ok := r.text(questionKeys...)
	if !ok {
		for _, key := range []string{"question", "messages", "prompt"} {
			if question, ok = asked(r[key]); ok {
				break
			}
		}
	}
	if !ok {
		return it, shape, errors.New("there is no question: neither question nor messages")
	}
	it.Question = strings.TrimRight(question, "\r\n")
	for _, key := range answerKeys {
		if it.Answers = texts(r[key]); len(it.Answers) > 0 {
			break
		}
	}
	if len(it.Answers) == 0 {
		it.Answers = r.target()
	}
	it.Answers = distinct(append(it.Answers, texts(r["answer_aliases"])...))
	it.Documents = r.documents()
	if shape == BFCL {
		if err := it.readFunctions(r); err != nil {
			return it, shape, err
		}
	}
	return it, shape, checkText(it.Question)
}

// shape recognises the dataset that a row comes from.
func (r row) shape() Shape {
	_, plain := r.text("question")
	switch {
	case r.has("function") && r.has("question") && !plain:
		return BFCL
	case r.has("supporting_facts") || r.has("_id", "question", "answer"):
		return HotpotQA
	case r.has("answer_aliases") || r.has("paragraphs", "question_decomposition"):
		return MuSiQue
	case r.has("golden_answers") || r.has("reward_model"):
		return NQ
	case len(r) == 2 && r.has("question", "answer"):
		return Bamboogle
	case r.has("messages"):
		return DeepResearch
	}
	return Questions
}

// asked gives the text of the last message of a user, in a list of messages or
// in the first of several such lists, as BFCL has them.
func asked(v json.RawMessage) (string, bool) {
	var turns []json.RawMessage
	if json.Unmarshal(v, &turns) != nil {
		return "", false
	}
	if len(turns) > 0 && bytes.HasPrefix(bytes.TrimSpace(turns[0]), []byte("[")) {
		return asked(turns[0])
	}
	found, ok := "", false
	for _, turn := range turns {
		var m struct {
			Role    string
			Content json.RawMessage
		}
		if json.Unmarshal(turn, &m) == nil && m.Role == "user" {
			found, ok = content(m.Content)
		}
	}
	return found, ok
}

// content reads what a message says: a text, or a list of parts.
func content(v json.RawMessage) (string, bool) {
	if s, ok := scalar(v); ok {
		return s, true
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(v, &parts) != nil {
		return "", false
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), b.Len() > 0
}

// texts reads gold answers: a text, a list, SQuAD's {"text": […]}, TriviaQA's
// {"value", "aliases"}. A cell of a CSV file may hold the list as JSON.
func texts(v json.RawMessage) []string {
	if s, ok := scalar(v); ok {
		var list []string
		if strings.HasPrefix(strings.TrimSpace(s), "[") && json.Unmarshal([]byte(s), &list) == nil {
			return list
		}
		if s == "" {
			return nil
		}
		return []string{s}
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil {
		var out []string
		for _, x := range list {
			out = append(out, texts(x)...)
		}
		return out
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil {
		return nil
	}
	return append(append(texts(object["text"]), texts(object["value"])...), texts(object["aliases"])...)
}

// target is the gold answer of Search-R1's rows: reward_model.ground_truth.target.
func (r row) target() []string {
	var m struct {
		Truth struct {
			Target json.RawMessage `json:"target"`
		} `json:"ground_truth"`
	}
	if json.Unmarshal(r["reward_model"], &m) != nil {
		return nil
	}
	return texts(m.Truth.Target)
}

// distinct leaves out what has been there before.
func distinct(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
