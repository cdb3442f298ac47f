package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stopgap/tools/document"
	"stopgap/tools/sandbox"
)

var update = flag.Bool("update", false, "rewrite the golden files and the scripts' outputs")

func TestMain(m *testing.M) {
	document.Child()
	sandbox.Child()
	testscript.Main(m, map[string]func(){"stopgap": main})
}

// TestScripts runs the scripts of testdata/script, one or more a command. A
// script sees no home folder but its own and no model server but the ones that
// it is given: $OLLAMA_HOST is a port where nobody listens, $FAKE_OLLAMA one
// where an Ollama with one small model does, and $FAKE_WEB a SearXNG with a page.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: false,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA", "USERPROFILE"} {
				env.Setenv(name, home)
			}
			server := httptest.NewServer(fakeOllama())
			env.Defer(server.Close)
			env.Setenv("OLLAMA_HOST", "127.0.0.1:1") // a free port that was asked for could be another server's soon
			env.Setenv("FAKE_OLLAMA", server.URL)
			site := httptest.NewServer(fakeWeb())
			env.Defer(site.Close)
			env.Setenv("FAKE_WEB", site.URL)
			env.Setenv("NO_PROXY", "127.0.0.1")
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition == "no-local-server" {
				return !somebodyListens(), nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"repeat":  repeat,
			"zero":    zero,
			"damage":  damage,
			"cut":     cut,
			"reframe": reframe,
		},
	})
}

// somebodyListens reports whether this machine has a server where stopgap
// looks for one, which would answer in place of the scripts'.
func somebodyListens() bool {
	for _, port := range []string{"8080", "8000", "30000", "1234"} {
		if c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
			c.Close()
			return true
		}
	}
	return false
}

// exits runs stopgap and wants an exit code: exits 2 run --nope.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGUMENT…")
	}
	code := "0"
	if err := ts.Exec("stopgap", args[1:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, not %s", code, args[0])
	}
}

// repeat writes a file of N times a text: repeat FILE N TEXT.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat FILE N TEXT")
	}
	_, err := fmt.Sscan(args[1], &n)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[2], n)), 0o600))
}

// zero writes a file with a zero byte in it: zero FILE.
func zero(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte("a question\x00with a zero"), 0o600))
}

// fakeOllama is as much of Ollama as the command line asks for: one model with
// a context of 4096 tokens that knows one answer. Its answers have the shapes
// of Ollama 0.17.4's.
func fakeOllama() http.Handler {
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client may have gone
	}
	type object = map[string]any
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"version": "0.17.4"})
	})
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"models": []object{{
			"name": "small:1b", "model": "small:1b", "size": 1_300_000_000, "modified_at": "2026-01-02T03:04:05Z",
			"details": object{"parameter_size": "1B", "quantization_level": "Q4_K_M"},
		}}})
	})
	mux.HandleFunc("GET /api/ps", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, object{"models": []object{{"name": "small:1b", "model": "small:1b", "context_length": 4096}}})
	})
	mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, r *http.Request) {
		if fakeModel(w, r) == nil {
			return
		}
		answer(w, object{
			"capabilities": []string{"completion"}, "parameters": `stop "<|im_end|>"`,
			"model_info": object{"general.architecture": "qwen2", "qwen2.context_length": 32768},
		})
	})
	mux.HandleFunc("POST /api/generate", func(w http.ResponseWriter, r *http.Request) {
		request := fakeModel(w, r)
		if request == nil {
			return
		}
		if prompt := request["prompt"].(string); len(prompt) > 12000 {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, object{"error": "the input length exceeds the context length"})
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		line := json.NewEncoder(w)
		for _, piece := range []string{"It", " is", " a", " small", " answer."} {
			_ = line.Encode(object{"model": "small:1b", "response": piece, "done": false}) // the client may have gone
		}
		_ = line.Encode(object{
			"model": "small:1b", "response": "", "done": true, "done_reason": "stop",
			"prompt_eval_count": 20, "prompt_eval_duration": 1000, "eval_count": 6, "eval_duration": 1000,
		})
	})
	return mux
}

// fakeModel reads a request; it is nil where the model is another one.
func fakeModel(w http.ResponseWriter, r *http.Request) map[string]any {
	var request map[string]any
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	if request["model"] != "small:1b" {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":"model '%v' not found"}`, request["model"])
		return nil
	}
	return request
}
