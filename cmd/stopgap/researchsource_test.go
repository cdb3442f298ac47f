package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/research/researchtest"
)

// TestResearchSources: one research reads a document of the corpus, a page of
// the web and a file of a folder, and what is in none of them is told.
func TestResearchSources(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	web := httptest.NewServer(fakeWeb())
	defer web.Close()
	for name, text := range map[string]string{"docs/tolls.md": "# Tolls\n\nA toll of one penny was asked for.", "files/ledger.csv": "year,tolls\n1781,12\n"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	author := &researchtest.Researcher{Answer: "In 1781, for a penny.", Sections: []researchtest.Section{{
		Title: "The bridge", Queries: []string{"bridge"}, Pages: []researchtest.Page{
			{URL: web.URL + "/bridge", Goal: "when it opened", Evidence: "It opened in 1781.", Summary: "It is from 1781."},
			{URL: "tolls.md", Goal: "what it cost", Evidence: "A toll of one penny was asked for.", Summary: "A penny."},
			{URL: "ledger.csv", Goal: "how many tolls there were", Evidence: "1781", Summary: "Twelve in 1781."},
			{URL: "nowhere.md", Goal: "what is nowhere", Evidence: "Nothing.", Summary: "Nothing.", Unread: true},
			{URL: web.URL + "/gone", Goal: "what is gone", Evidence: "Nothing.", Summary: "Nothing.", Unread: true},
		},
	}}}
	out := filepath.Join(home, "bridge.md")
	var stdout, stderr bytes.Buffer
	code := run([]string{
		"research", "When did the bridge open, and what did it cost?", "--model", author.Author().Serve(t), "--corpus", filepath.Join(home, "docs"),
		"--allow", "net,files", "--allow-host", "127.0.0.1", "--search-engine", "searxng", "--search-url", web.URL, "--folder", filepath.Join(home, "files"), "--out", out,
	}, strings.NewReader(""), &stdout, &stderr)
	report, err := os.ReadFile(out)
	if code != 0 || err != nil || stdout.String() != author.Answer+"\n" {
		t.Fatalf("code %d, %v\n%s\n%s", code, err, &stdout, &stderr)
	}
	for _, has := range []string{
		"3 citations of 3 sources, all supported", "The Iron Bridge", "Tolls", "ledger.csv",
		"there is no file", "404 Not Found", "## What went wrong",
	} {
		if !strings.Contains(string(report), has) {
			t.Errorf("the report has no %q:\n%s", has, report)
		}
	}
}
