package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeWeb is a SearXNG and the one page that it finds.
func fakeWeb() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/search":
			results := []map[string]string{}
			if q := r.URL.Query().Get("q"); q != "nothing" {
				results = append(results, map[string]string{"title": "The Iron Bridge", "url": "http://" + r.Host + "/bridge", "content": "A bridge of cast iron."})
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"results": results}) // to a test
		case "/bridge":
			fmt.Fprint(w, "<!doctype html><title>The Iron Bridge</title><article><p>The Iron Bridge crosses the Severn. It opened in 1781.</p></article>")
		default:
			http.NotFound(w, r)
		}
	})
}

// TestResearch is a whole run as a user has it: deepresearch searches, visits
// the page that it found, has it read against its goal, and answers.
func TestResearch(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, home)
	}
	s := httptest.NewServer(fakeWeb())
	defer s.Close()
	script := filepath.Join(home, "model.yaml")
	text := fmt.Sprintf(`turns:
  - text: "<think>I search.</think>\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"iron bridge\"]}}\n</tool_call>"
  - text: "<think>There it is.</think>\n<tool_call>\n{\"name\": \"visit\", \"arguments\": {\"url\": [\"%s/bridge\"], \"goal\": \"the year\"}}\n</tool_call>"
  - text: "<answer>It opened in 1781.</answer>"
  - after: "say so in \"summary\".<|im_end|>\n<|im_start|>assistant\n"
    text: '{"rational": "its second sentence", "evidence": "It opened in 1781.", "summary": "In 1781."}'
`, s.URL)
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run([]string{
		"run", "--model", "script:" + script, "--format", "deepresearch", "--tools", "search,visit", "--allow", "net", "--allow-host", "127.0.0.1",
		"--search-engine", "searxng", "--search-url", s.URL, "--json", "When did the Iron Bridge open?",
	}, strings.NewReader(""), &out, &errs)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	for _, has := range []string{
		`"content":"A web search for 'iron bridge' found 1 results:\n\n## Web Results\n1. [The Iron Bridge](` + s.URL + `/bridge)\n\nA bridge of cast iron."`,
		`"content":"The useful information in ` + s.URL + `/bridge for user goal the year as follows: \n\nEvidence in page: \nIt opened in 1781.\n\nSummary: \nIn 1781.\n\n"`,
		`"answer":"It opened in 1781."`,
	} {
		if !strings.Contains(out.String(), has) {
			t.Errorf("%s is not in %s", has, out.String())
		}
	}
}
