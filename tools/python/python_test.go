package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	os.Exit(m.Run())
}

// call runs code and gives what the model reads.
func call(t *testing.T, p *Interpreter, code string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Run(t.Context(), args)
	if none := (*sandbox.UnavailableError)(nil); errors.As(err, &none) && os.Getenv("STOPGAP_REQUIRE_BWRAP") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return text
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("STOPGAP_REQUIRE_BWRAP") == "" {
		t.Skip("there is no Python")
	}
}

// words are what the model reads of some code, with and without a sandbox.
var words = []struct{ code, want string }{
	{"", "[Python Interpreter Error]: Formatting error."},
	{" \n", "[Python Interpreter Error]: Formatting error."},
	{"x = 1", "Finished execution."},
	{"print(6 * 7)", "stdout:\n42\n"},
	{"import sys\nprint('a')\nprint('b', file=sys.stderr)", "stdout:\na\n\nstderr:\nb\n"},
	{"raise SystemExit(3)", "[PythonInterpreter Error] The code ended with exit code 3."},
	{"print('中文', '\\udc80')", "stdout:\n中文 \\udc80\n"},
	{"import os\nprint(sorted(os.listdir('.')), __name__)", "stdout:\n['main.py'] __main__\n"},
	{"print(input())", "stderr:\nTraceback (most recent call last):\n  File \"DIR/main.py\", line 1, in <module>\n    print(input())\n"},
}

func TestWords(t *testing.T) {
	needPython(t)
	for name, o := range map[string]Options{"sandbox": {}, "unsafe": {Unsafe: true}} {
		t.Run(name, func(t *testing.T) {
			p := New(o)
			for _, w := range words {
				got := call(t, p, w.code)
				want, head := strings.CutSuffix(w.want, "DIR/main.py\", line 1, in <module>\n    print(input())\n")
				if got != w.want && (!head || !strings.HasPrefix(got, want) || !strings.Contains(got, "EOFError")) {
					t.Errorf("%q gave %q, want %q", w.code, got, w.want)
				}
			}
		})
	}
}

// A program that is no Python is an error that says so, and one that hangs with
// children of its own is left when there is no more time.
func TestBadPython(t *testing.T) {
	hanging := filepath.Join(t.TempDir(), "hanging")
	if err := os.WriteFile(hanging, []byte("#!/bin/sh\nsleep 120\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"true": "true does not work as Python: it does not say where its libraries are", "false": "false does not work as Python: exit status 1",
		"no-such-python": "there is no Python here", hanging: "deadline",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if name == hanging {
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		}
		start := time.Now()
		_, err := New(Options{Python: name}).Run(ctx, json.RawMessage(`{"code":"1"}`))
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || time.Since(start) > 100*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(start))
		}
	}
}

func TestLimits(t *testing.T) {
	needPython(t)
	for _, l := range []struct {
		code    string
		options Options
		want    string
	}{
		{"print('so far')\nwhile True: pass", Options{Timeout: 5 * time.Second}, "stdout:\nso far\n\n[PythonInterpreter Error] TimeoutError: Execution timed out."},
		{"while True: print('x' * 1000)", Options{Limits: sandbox.Limits{Output: 1 << 10}}, "[PythonInterpreter Error] OutputError: The code wrote more than 1.0 KiB; print less."},
		{"import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(300): m.write(b'x' * (1 << 20))\nimport time; time.sleep(60)", Options{Limits: sandbox.Limits{Memory: 128 << 20}}, "[PythonInterpreter Error] MemoryError: The code used more than 128 MiB of memory."},
		{"x = 'x' * (4 << 30)", Options{}, "MemoryError"},
	} {
		got := call(t, New(l.options), l.code)
		for ; l.options.Timeout > 0 && l.options.Timeout < time.Minute && !strings.Contains(got, "so far"); got = call(t, New(l.options), l.code) {
			l.options.Timeout *= 2 // Python was not up before
		}
		if !strings.HasSuffix(strings.TrimSpace(got), l.want) {
			t.Errorf("%.40q gave %.300q, want %q", l.code, got, l.want)
		}
	}
}

// TestVirtualEnvironment: a Python outside of the system is visible with its
// libraries, and what lies beside it is not.
func TestVirtualEnvironment(t *testing.T) {
	needPython(t)
	dir := t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) { // root's sandbox is nobody's
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("/usr/bin/python3", "-m", "venv", "--without-pip", "--symlinks", dir+"/venv").CombinedOutput(); err != nil {
		t.Skipf("no virtual environments here: %s", out)
	}
	library, _ := filepath.Glob(dir + "/venv/lib/python3*/site-packages")
	if len(library) != 1 {
		t.Fatal(library)
	}
	for path, text := range map[string]string{library[0] + "/mine.py": "VALUE = 42", dir + "/secret": "secret"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := New(Options{Python: dir + "/venv/bin/python"})
	if got, want := call(t, p, "import mine, os\nprint(mine.VALUE, os.path.exists('"+dir+"/secret'))"), "stdout:\n42 False\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoPython(t *testing.T) {
	_, err := New(Options{Python: "no-such-python"}).Run(t.Context(), json.RawMessage(`{"code":"1"}`))
	if err == nil || !strings.Contains(err.Error(), "there is no Python here") {
		t.Error(err)
	}
}

// TestInSet: the tool within a set, which has a deadline of its own.
func TestInSet(t *testing.T) {
	p := New(Options{})
	set, err := tools.NewSet([]tools.Tool{p}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Deadline() <= DefaultTimeout {
		t.Errorf("the set gives up after %s, before the code is ended", p.Deadline())
	}
	res := set.Session().Run(t.Context(), []tools.Call{{Name: "PythonInterpreter", Arguments: json.RawMessage(`{}`)}})
	if res[0].Content != noCode {
		t.Errorf("%+v", res[0])
	}
	if c := p.Spec().Capabilities; !slices.Equal(c, []tools.Capability{tools.Code}) {
		t.Error(c)
	}
}

// TestEndpoint plays a SandboxFusion server.
func TestEndpoint(t *testing.T) {
	var asked []runRequest
	answers := map[string]string{
		"out":    `{"status":"Success","message":"","run_result":{"status":"Finished","execution_time":0.1,"return_code":0,"stdout":"42\n","stderr":""}}`,
		"both":   `{"status":"Failed","message":"","run_result":{"status":"Finished","execution_time":0.1,"return_code":1,"stdout":"a\n","stderr":"b\n"}}`,
		"none":   `{"status":"Success","message":"","run_result":{"status":"Finished","execution_time":0.1,"return_code":0,"stdout":"","stderr":""}}`,
		"long":   `{"status":"Failed","message":"","run_result":{"status":"TimeLimitExceeded","execution_time":50.1,"stdout":"a\n","stderr":""}}`,
		"almost": `{"status":"Success","message":"","run_result":{"status":"Finished","execution_time":49.5,"stdout":"","stderr":""}}`,
		"sick":   `{"status":"SandboxError","message":"no room","run_result":null}`,
		"html":   `<html>`,
		"huge":   `"` + strings.Repeat("x", maxAnswer) + `"`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in runRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Method != http.MethodPost || r.URL.Path != "/run_code" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		asked = append(asked, in)
		switch in.Code {
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
		case "elsewhere":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, answers[in.Code])
		}
	}))
	defer server.Close()
	p := New(Options{Endpoints: []string{strings.Replace(server.URL, "http://", "http://me:secret@", 1) + "/"}})
	on := " on endpoint " + server.URL + "/"
	for code, want := range map[string]string{
		"out": "stdout:\n42\n", "both": "stdout:\na\n\nstderr:\nb\n", "none": "Finished execution.",
		"long":      "stdout:\na\n\n[PythonInterpreter Error] TimeoutError: Execution timed out.",
		"almost":    "[PythonInterpreter Error] TimeoutError: Execution timed out.",
		"sick":      "[Python Interpreter Error]: the sandbox failed: no room" + on,
		"html":      "[Python Interpreter Error]: the answer is not that of a SandboxFusion server" + on,
		"huge":      "[Python Interpreter Error]: the answer is longer than 8 MiB" + on,
		"500":       "[Python Interpreter Error]: the server answered 500 Internal Server Error" + on,
		"elsewhere": "[Python Interpreter Error]: the server answered 307 Temporary Redirect" + on,
	} {
		asked = nil
		if got := call(t, p, code); got != want {
			t.Errorf("%s gave %q, want %q", code, got, want)
		}
		if n := map[bool]int{true: attempts, false: 1}[strings.Contains(want, on)]; len(asked) != n {
			t.Errorf("%s was asked %d times, want %d", code, len(asked), n)
		}
		if asked[0].Language != "python" || asked[0].RunTimeout != 50 {
			t.Errorf("asked %+v", asked[0])
		}
	}
	if c := p.Spec().Capabilities; !slices.Contains(c, tools.Net) {
		t.Error(c)
	}
}

// TestEndpointThatHangs: a server that does not answer is given up on.
func TestEndpointThatHangs(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer server.Close()
	defer close(stop)
	p := New(Options{Endpoints: []string{server.URL}})
	p.patience = 10 * time.Millisecond
	if got, want := call(t, p, "x"), "[Python Interpreter Error] TimeoutError: Execution timed out on endpoint "+server.URL+"."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
