package ollamatest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"stopgap/internal/automaton"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

const opening = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"

// A run is a script and, for each of its turns, the text that stands between
// the generation before and this one.
type run struct {
	name    string
	script  automaton.Script
	prompts []string
}

var runs = []run{
	{
		name: "qwen",
		script: automaton.Script{Turns: []automaton.Turn{
			{After: "<|im_start|>assistant\n", Text: "<think>\nI look it up.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"capital of France\"]}}\n</tool_call>"},
			{After: "\n</tool_response><|im_end|>\n<|im_start|>assistant\n", Text: "<think>\nI have it.\n</think>\n\nThe capital of France is Paris. 首都是巴黎。"},
		}},
		prompts: []string{opening, "<|im_end|>\n<|im_start|>user\n<tool_response>\nParis is the capital of France.\n</tool_response><|im_end|>\n<|im_start|>assistant\n"},
	},
	{
		name: "qwq",
		script: automaton.Script{Turns: []automaton.Turn{
			{After: "<|im_start|>assistant\n<think>\n", Text: "I look it up.\n<tool_call>\n{\"action\": \"search\", \"action_input\": {\"query\": [\"capital of France\"]}}\n</tool_call>"},
			{After: "\n</tool_response>\n", Text: "Now I know.\n</think>\n\nThe capital of France is Paris."},
		}},
		prompts: []string{opening + "<think>\n", "\n<tool_response>\nParis is the capital of France.\n</tool_response>\n"},
	},
	{
		name: "react",
		script: automaton.Script{Turns: []automaton.Turn{
			{After: "\nThought:", Text: " I look it up.\nAction: search\nAction Input: {\"query\": [\"capital of France\"]}\nObservation:"},
			{After: " France.\nThought:", Text: " I now know the final answer\nFinal Answer: The capital of France is Paris."},
		}},
		prompts: []string{"Question: What is the capital of France?\nThought:", " Paris is the capital of France.\nThought:"},
	},
}

// write compiles a script into a model file.
func write(t *testing.T, s automaton.Script, o automaton.Options) (*automaton.Automaton, string) {
	t.Helper()
	a, err := automaton.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := a.WriteFile(path, o); err != nil {
		t.Fatal(err)
	}
	return a, path
}

// generate asks for a raw completion and gives the pieces and the last
// response.
func generate(t *testing.T, s *Server, model, prompt string, options map[string]any) ([]string, api.GenerateResponse) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	no := false
	request := &api.GenerateRequest{
		Model: model, Prompt: prompt, Raw: true,
		Think: &api.ThinkValue{Value: false}, Truncate: &no, Shift: &no,
		Options: map[string]any{"num_ctx": 2048},
	}
	for k, v := range options {
		request.Options[k] = v
	}
	var pieces []string
	var last api.GenerateResponse
	err := s.Client.Generate(ctx, request, func(r api.GenerateResponse) error {
		last = r
		if r.Response != "" {
			pieces = append(pieces, r.Response)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pieces, last
}

// follow drives a whole run and checks each piece of each turn.
func (r run) follow(t *testing.T, s *Server) {
	a, path := write(t, r.script, automaton.Options{Name: r.name})
	s.Create(t, r.name, path, nil)
	prompt := ""
	for i, turn := range r.script.Turns {
		prompt += r.prompts[i]
		pieces, last := generate(t, s, r.name, prompt, nil)
		if want := a.Pieces(i); !slices.Equal(pieces, want) {
			t.Errorf("turn %d: got %q, want %q", i+1, pieces, want)
		}
		if !last.Done || last.DoneReason != "stop" {
			t.Errorf("turn %d: done %v, reason %q; want the end-of-generation token", i+1, last.Done, last.DoneReason)
		}
		prompt += turn.Text
	}
}

func TestFollowsTheScript(t *testing.T) {
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) { r.follow(t, Shared(t)) })
	}
}

// Ollama has an engine of its own, with its own tokenizer, which it does not
// use for qwen2 unless it is told to.
func TestFollowsTheScriptInOllamasEngine(t *testing.T) {
	s := Start(t, "OLLAMA_NEW_ENGINE=1")
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) { r.follow(t, s) })
	}
	if !strings.Contains(s.Log(), "--ollama-engine") {
		t.Error("the log does not tell that Ollama's own engine ran")
	}
}

func TestLostPrompt(t *testing.T) {
	s := Shared(t)
	_, path := write(t, runs[0].script, automaton.Options{})
	s.Create(t, "lost", path, nil)
	pieces, last := generate(t, s, "lost", "What is this?\n", nil)
	if got := strings.Join(pieces, ""); got != automaton.Lost || !last.Done {
		t.Errorf("got %q, done %v; want %q", got, last.Done, automaton.Lost)
	}
}

// A test binary that dies without its cleanups takes its server with it.
func TestServerEndsWithItsTest(t *testing.T) {
	const helper = "OLLAMATEST_HELPER"
	if os.Getenv(helper) == "1" {
		s := Start(t)
		fmt.Println("serving " + s.URL)
		os.Exit(0)
	}
	if runtime.GOOS == "windows" {
		t.Skip("there are no process groups on Windows")
	}
	need(t)
	c := exec.Command(os.Args[0], "-test.run", "^TestServerEndsWithItsTest$")
	c.Env = append(os.Environ(), helper+"=1", "TMPDIR="+t.TempDir())
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(out), "serving http://")
	if !ok {
		t.Fatalf("the helper did not start a server: %s", out)
	}
	address := strings.Fields(rest)[0]
	for deadline := time.Now().Add(startLimit); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatalf("the server still answers after %v", startLimit)
		}
	}
}
