package sample

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// A Kind says what it takes to answer a question.
type Kind string

const (
	OneHop  Kind = "one hop"              // a document tells the answer
	TwoHops Kind = "two hops"             // a document names the one that tells it
	Missing Kind = "not in the documents" // no document tells it
)

// A Question is about the documents.
type Question struct {
	Question string `json:"question"`
	Kind     Kind   `json:"kind"`
	// Answer is the text that an exact answer gives, as the last of the
	// documents tells it. Empty where Kind is Missing.
	Answer string `json:"answer"`
	// Documents are the ids on the way to the answer. Where Kind is Missing
	// there is only the one that is asked about, if there is one.
	Documents []string `json:"documents"`
	// Suggested says that the question is a good first one: the built-in model
	// answers it. Only questions with one hop or two are.
	Suggested bool `json:"suggested"`
	// Missing is the part of the question that the documents do not tell.
	Missing string `json:"missing"`
}

//go:embed questions.json
var questions []byte

// Questions gives the questions, those of one kind after those of another.
func Questions() []Question {
	var list []Question
	if err := json.Unmarshal(questions, &list); err != nil {
		panic(fmt.Sprintf("questions.json: %v", err)) // it is part of the program
	}
	return list
}

// Suggestions gives three questions to begin with: two with one hop and one
// with two. Each turn gives others, until all that are suggested had theirs.
func Suggestions(turn int) []Question {
	var one, two []Question
	for _, q := range Questions() {
		switch {
		case q.Suggested && q.Kind == OneHop:
			one = append(one, q)
		case q.Suggested && q.Kind == TwoHops:
			two = append(two, q)
		}
	}
	return []Question{one[2*turn%len(one)], one[(2*turn+1)%len(one)], two[turn%len(two)]}
}
