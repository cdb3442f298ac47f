package corpus

import (
	"cmp"
	"encoding/json"
	"strings"
)

// What Search-R1's retrieval server and ASearcher's speak. See
// https://github.com/PeterGriffinJin/Search-R1 (search_r1/search/retrieval_server.py)
// and https://github.com/inclusionAI/ASearcher (tools/).

// A retrieveRequest is the body of POST /retrieve.
type retrieveRequest struct {
	Queries      []string `json:"queries"`
	TopK         *int     `json:"topk,omitempty"`
	ReturnScores bool     `json:"return_scores"`
}

// A retrieveAnswer has a list of documents for each query: bare ones, or each as
// {"document", "score"} where scores were asked for.
type retrieveAnswer struct {
	Result [][]json.RawMessage `json:"result"`
}

// A wireScored is a document with its score.
type wireScored struct {
	Document json.RawMessage `json:"document"`
	Score    float64         `json:"score"`
}

// A wireDocument is a document or a passage. Contents is the title in quotes, a
// newline, and the text. URL is what /access takes: Search-R1 has none, ASearcher
// has no ID.
type wireDocument struct {
	ID       json.RawMessage `json:"id,omitempty"` // a string, or a number
	Contents string          `json:"contents"`
	Title    string          `json:"title,omitempty"`
	Text     string          `json:"text,omitempty"` // some corpora have it in the place of contents
	URL      string          `json:"url,omitempty"`
}

// An accessRequest is the body of POST /access.
type accessRequest struct {
	URLs []string `json:"urls"`
}

// An accessAnswer has a document for each address, null for one that is not
// known.
type accessAnswer struct {
	Result []*wireDocument `json:"result"`
}

// defaultTopK is how many documents Search-R1 gives where nobody says.
const defaultTopK = 3

func onWire(id, title, text string) wireDocument {
	quoted, _ := json.Marshal(id) // a string always can be
	return wireDocument{ID: quoted, URL: id, Title: title, Contents: `"` + title + "\"\n" + text}
}

// document reads what a server sent. name is its id where it has none.
func (w wireDocument) document(name string) Document {
	d := Document{ID: cmp.Or(w.URL, plainID(w.ID), name), Title: w.Title, Text: cmp.Or(w.Contents, w.Text)}
	if first, rest, ok := strings.Cut(d.Text, "\n"); ok && w.Contents != "" {
		title := strings.TrimSpace(first)
		if bare := strings.Trim(title, `"`); bare != title || d.Title == "" || d.Title == title {
			d.Title, d.Text = cmp.Or(d.Title, bare), rest
		}
	}
	d.Text = strings.Trim(newlines.Replace(strings.ReplaceAll(d.Text, "\x00", " ")), "\n")
	d.Title = cmp.Or(squeeze(d.Title), d.ID)
	return d
}

// plainID is an id as text: 7 and "7" are the same.
func plainID(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}
