package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"

	"stopgap/internal/research/researchtest"
)

const (
	demoScript   = "../../docs/demo/research.yaml"
	demoQuestion = "How was Comet Voss found, and who made that possible?"
)

// demonstration is the research of docs/research.md.
func demonstration() *researchtest.Researcher {
	return &researchtest.Researcher{
		Answer: "Anneke Voss found it in 1947 with the Lantern, whose mirror Ilse Marrow had ground in a herring shed.",
		Sections: []researchtest.Section{
			{Title: "The discovery", Queries: []string{"Comet Voss discovered"}, Pages: []researchtest.Page{
				{URL: "voss-comet.md", Goal: "who found the comet, when, and with what",
					Evidence: "Comet Voss was discovered by Anneke Voss in 1947, with the Lantern.", Summary: "Anneke Voss discovered the comet in 1947 with the Lantern."},
				{URL: "halden-observatory.md", Goal: "where the Lantern stands",
					Evidence: "Its largest telescope is called the Lantern.", Summary: "The Lantern is the largest telescope of the Halden Observatory."},
			}},
			{Title: "The telescope", Queries: []string{"Lantern mirror", "Ilse Marrow"}, Pages: []researchtest.Page{
				{URL: "the-lantern.md", Goal: "who made the mirror",
					Evidence: "Its mirror was ground by Ilse Marrow in a herring shed.", Summary: "Ilse Marrow ground the mirror of the Lantern."},
				{URL: "ilse-marrow.md", Goal: "what she was by trade",
					Evidence: "Ilse Marrow was a glass maker, born in Port Saltmere in 1888.", Summary: "She was a glass maker from Port Saltmere."},
			}},
		},
	}
}

// TestResearchDemonstration: the script of the documentation is what a model
// said that read its prompts, and gives the same report.
func TestResearchDemonstration(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var rehearsal researchtest.Rehearsal
	want := researched(t, rehearsal.Watch(demonstration().Author()).Serve(t))
	said, err := rehearsal.Script()
	if err != nil {
		t.Fatal(err)
	}
	type turn struct {
		After string `yaml:"after"`
		Text  string `yaml:"text"`
	}
	script := struct {
		Name  string `yaml:"name"`
		Turns []turn `yaml:"turns"`
	}{Name: "researcher"}
	for _, s := range said.Turns {
		script.Turns = append(script.Turns, turn{s.After, s.Text})
	}
	text, err := yaml.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("# What the model of docs/research.md says, and after which ends of its prompts.\n# go test ./cmd/stopgap -run ResearchDemonstration -update writes it.\n"), text...)
	if *update {
		if err := os.WriteFile(demoScript, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile(demoScript); err != nil || !bytes.Equal(old, text) {
		t.Errorf("%s is not what the model says: %v (go test -update writes it)", demoScript, err)
	}
	if got := researched(t, "script:"+demoScript); got != want {
		t.Errorf("the script's report is\n%s\nwant\n%s", got, want)
	}
}

// researched gives the report of the demonstration by a model.
func researched(t *testing.T, model string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "report.md")
	var stdout, stderr bytes.Buffer
	code := run([]string{"research", demoQuestion, "--model", model, "--corpus", "../../docs/demo/corpus", "--date", "2026-11-22", "--out", out},
		nil, &stdout, &stderr)
	if code != 0 || stdout.String() != demonstration().Answer+"\n" {
		t.Fatalf("code %d\n%s\n%s", code, &stdout, &stderr)
	}
	report, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(report)
}
