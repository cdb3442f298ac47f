package compare

import "stopgap/template"

// A Segment is a piece of a run's text and who wrote it.
type Segment struct {
	// Source is template, user, tool, model or runner.
	Source template.Source `json:"source"`
	Text   string          `json:"text"`
	// Cut is how many bytes were left out in the middle of the text, at Text[At:].
	Cut int `json:"cut,omitempty"`
	At  int `json:"at,omitempty"`
}
