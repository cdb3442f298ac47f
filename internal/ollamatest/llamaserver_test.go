package ollamatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/internal/automaton"
)

// llamaServer runs llama-server with a model and gives its URL.
func llamaServer(t *testing.T, gguf string) string {
	t.Helper()
	binary := os.Getenv("STOPGAP_LLAMA_SERVER")
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("llama-server"); err != nil {
			t.Skip("needs llama-server: there is none on the PATH and STOPGAP_LLAMA_SERVER is not set")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	var log bytes.Buffer
	c := newProcess(binary, "-m", gguf, "--host", "127.0.0.1", "--port", port, "-c", "2048", "-np", "1", "-t", "1")
	c.Stdout, c.Stderr = &log, &log
	if err := c.launch(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = c.Wait(); close(exited) }() // it is stopped by a signal
	t.Cleanup(func() { c.kill(); <-exited })
	url := "http://127.0.0.1:" + port
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-exited:
			t.Fatalf("llama-server ended before it answered:\n%s", log.String())
		default:
		}
		if r, err := http.Get(url + "/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return url
			}
		}
	}
	t.Fatalf("llama-server does not answer within %v", startLimit)
	return ""
}

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
			url := llamaServer(t, path)
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
