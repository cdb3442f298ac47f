package ollamatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/automaton"
)

// completion asks llama-server for a completion and gives the pieces, the
// number of tokens, the end-of-generation token among them, and why it stopped.
func completion(t *testing.T, url, prompt string) (pieces []string, tokens int, stop string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	body, err := json.Marshal(map[string]any{"prompt": prompt, "stream": true, "n_predict": 300})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/completion", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // llama-server may close a connection that was used
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event struct {
			Content  string
			Tokens   []int
			Stop     bool
			StopType string `json:"stop_type"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%v in %s", err, data)
		}
		if event.Stop {
			stop = event.StopType
			continue
		}
		tokens += len(event.Tokens)
		if event.Content != "" {
			pieces = append(pieces, event.Content)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return pieces, tokens, stop
}

// The same files, on llama.cpp's own server.
func TestFollowsTheScriptInLlamaServer(t *testing.T) {
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			a, path := write(t, r.script, automaton.Options{Name: r.name})
			url := LlamaServer(t, path, "-c", "2048", "-np", "1")
			prompt := ""
			for i, turn := range r.script.Turns {
				prompt += r.prompts[i]
				pieces, tokens, stop := completion(t, url, prompt)
				want := a.Pieces(i)
				if !slices.Equal(pieces, want) || tokens != len(want)+1 {
					t.Errorf("turn %d: got %d tokens %q, want %q", i+1, tokens, pieces, want)
				}
				if stop != "eos" {
					t.Errorf("turn %d: stopped by %q, want eos", i+1, stop)
				}
				prompt += turn.Text
			}
		})
	}
}
