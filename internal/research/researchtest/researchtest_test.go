package researchtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/automaton"
	"stopgap/models"
)

// say streams one prompt and gives what came.
func say(t *testing.T, m models.Model, prompt string) string {
	t.Helper()
	text := ""
	for c, err := range m.Stream(t.Context(), models.Request{Prompt: []models.Segment{{Text: prompt}}, MaxTokens: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		text += c.Text
	}
	return text
}

func TestAuthor(t *testing.T) {
	a := Author(func(_ context.Context, prompt string) (string, error) {
		return "After “" + prompt + "”\ncomes\n\nthis.", nil
	})
	served, err := models.Open(a.Serve(t), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := "After “a <think> b”\ncomes\n\nthis."
	for _, m := range []models.Model{a, served} {
		if got := say(t, m, "a <think> b"); got != want {
			t.Errorf("%q", got)
		}
	}
}

// The same prompt gets the same text again, and each prompt of a rehearsal ends
// in a text of its own.
func TestRehearsal(t *testing.T) {
	r := &Researcher{Sections: []Section{
		{Title: "Bridges", Queries: []string{"bridges"}, Pages: []Page{{URL: "a.md", Goal: "who built it", Evidence: "Ottla built it.", Summary: "Ottla did."}}},
		{Title: "Towers", Pages: []Page{{URL: "b.md", Goal: "who hung the clock", Evidence: "Casimir hung it.", Summary: "Casimir did."}}},
	}, Answer: "Ottla and Casimir"}
	var seen Rehearsal
	m := seen.Watch(r.Author())
	const ends = "<|im_end|>\n<|im_start|>assistant\n"
	prompt := "- <write_outline>: so<|im_end|>\n" + ends
	wants := []string{"<search> bridges </search>", "<goal> who built it </goal> </access>", "<write_outline>", "<access> b.md"}
	for i, want := range wants {
		got := say(t, m, prompt)
		if again := say(t, m, prompt); !strings.Contains(got, want) || again != got {
			t.Errorf("turn %d: %q, then %q", i+1, got, again)
		}
		prompt += got + "\n\n<information>" + strings.Repeat("x", i+1) + "</information>\n\n"
	}
	for _, c := range [][2]string{
		{"Page: Ottla built it. Goal: who built it", `{"rational":"The page tells it of Bridges.","evidence":"Ottla built it.","summary":"Ottla did."}`},
		{"Page: nobody. Goal: who built it", "The page does not tell it."},
		{"Write the whole outline anew<|im_end|>[1] Bridges", "<outline>\n## Bridges\n- who built it <cite> <id>1</id> </cite>\n</outline>"},
		{"- <write_terminate>: so<|im_end|>", "<retrieve> <id>1</id> <goal> Bridges </goal> </retrieve>"},
		{"- <write_terminate>: so<|im_end|> again", "<write>\n## Bridges\n\nOttla did. <cite> <id>1</id> </cite>\n</write>"},
		{"Answer the question between<|im_end|>The report: so", "<answer>Ottla and Casimir</answer>"},
	} {
		if got := say(t, m, c[0]+ends); got != c[1] {
			t.Errorf("after %q: %q", c[0], got)
		}
		wants = append(wants, c[1])
	}
	script, err := seen.Script()
	if err != nil || len(script.Turns) != len(wants) || !slices.Contains(script.Words, " built") {
		t.Fatalf("%d turns, %v", len(script.Turns), err)
	}
	if _, err := automaton.Compile(script); err != nil {
		t.Error(err)
	}
}
