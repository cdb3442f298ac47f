package batch

import (
	"encoding/json"
	"strings"
)

// documentKeys are columns that name the documents of an answer outright.
var documentKeys = []string{"citations", "gold_documents", "gold_docs"}

// documents gives the documents that the dataset names as those of the answer,
// by title or by id: a column of its own; HotpotQA's and 2WikiMultihopQA's
// supporting_facts, as their files have them ([[title, sentence], …]) and as
// Parquet has them ({"title": […]}); MuSiQue's paragraphs that are supporting.
// FlashRAG keeps the same below metadata.
func (r row) documents() []string {
	var names []string
	for _, key := range documentKeys {
		if names = named(cell(r[key])); len(names) > 0 {
			return distinct(names)
		}
	}
	if names = supportingFacts(cell(r["supporting_facts"])); len(names) == 0 {
		names = supportingParagraphs(cell(r["paragraphs"]))
	}
	if below, err := newRow(cell(r["metadata"])); err == nil && len(names) == 0 {
		delete(below, "metadata") // once is enough
		names = below.documents()
	}
	return distinct(names)
}

// cell gives the list or the object that a cell of a CSV file holds as a text.
func cell(v json.RawMessage) json.RawMessage {
	var s string
	if json.Unmarshal(v, &s) == nil && json.Valid([]byte(s)) && strings.ContainsAny(s, "[{") {
		return json.RawMessage(s)
	}
	return v
}

// named reads names of documents: a text, a list of texts, or of objects with an
// id or a title.
func named(v json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		list = []json.RawMessage{v}
	}
	var out []string
	for _, x := range list {
		name, ok := scalar(x)
		if r, err := newRow(x); err == nil {
			name, ok = r.text("docid", "doc_id", "id", "title", "url")
		}
		if ok && name != "" {
			out = append(out, name)
		}
	}
	return out
}

// supportingFacts gives the titles of HotpotQA's facts.
func supportingFacts(v json.RawMessage) []string {
	var columns struct{ Title []string }
	if json.Unmarshal(v, &columns) == nil {
		return columns.Title
	}
	var facts [][]json.RawMessage
	if json.Unmarshal(v, &facts) != nil {
		return nil
	}
	var out []string
	for _, fact := range facts {
		if len(fact) > 0 {
			out = append(out, named(fact[0])...)
		}
	}
	return out
}

// supportingParagraphs gives the titles of MuSiQue's paragraphs that support the
// answer.
func supportingParagraphs(v json.RawMessage) []string {
	var paragraphs []struct {
		Title      string `json:"title"`
		Supporting bool   `json:"is_supporting"`
	}
	if json.Unmarshal(v, &paragraphs) != nil {
		return nil
	}
	var out []string
	for _, p := range paragraphs {
		if p.Supporting && p.Title != "" {
			out = append(out, p.Title)
		}
	}
	return out
}
