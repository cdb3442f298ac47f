package template

import (
	"slices"
	"testing"
)

// TestRecognise: what a model's own chat template renders is recognised as a
// format that goes on in the same way.
func TestRecognise(t *testing.T) {
	for _, ref := range readReferences(t) {
		want := load(t, ref.Format)
		for _, c := range ref.Conversations {
			if len(c.Tools) == 0 || len(c.Steps) > 0 || ref.Format == "qwq" { // whose tools stand in the question
				continue
			}
			got, err := Recognise(c.Rendered)
			if err != nil || got.Call.Kind != want.Call.Kind || got.Call.Open != want.Call.Open || got.Call.Between != want.Call.Between ||
				!slices.Equal(got.Call.Name, want.Call.Name) || got.Think != want.Think {
				t.Errorf("%s/%s: recognised %+v, %v", ref.Format, c.Name, got, err)
			}
		}
	}
	if f, err := Recognise("Question: q\nAnswer:"); err == nil {
		t.Errorf("recognised %s", f.Name)
	}
}
