package own

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	os.Exit(m.Run())
}

func declare(t *testing.T, text string) Declaration {
	t.Helper()
	var d Declaration
	if err := yaml.UnmarshalWithOptions([]byte(text), &d, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return d
}

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func try(t *testing.T, text, args string, vars map[string]string) (tools.Spec, tools.Result) {
	t.Helper()
	made, err := New("mine", declare(t, text), environment(vars))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tools.NewSet([]tools.Tool{made}, tools.Options{MaxTokens: -1})
	if err != nil {
		t.Fatal(err)
	}
	return made.Spec(), set.Session().Run(t.Context(), []tools.Call{{Name: "mine", Arguments: json.RawMessage(args)}})[0]
}

const text = "description: d\nparameters: {type: object, properties: {z: {type: string}, a: {}}, required: [z]}\n"

func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name, declared, args string
		status               tools.Status
		want                 string
	}{
		{"standard input", "command: [cat]", `{"z":"\"x\" $(id)"}`, tools.OK, "{\"z\":\"\\\"x\\\" $(id)\"}\n"},
		{"one argument", "command: [printf, '%s|', '{z}', 'b{a}']", `{"z":"x y; id $(id) | > 'q'","a":[1]}`, tools.OK, "x y; id $(id) | > 'q'|b[1]|"},
		{"left out", "command: [printf, '%s|', '{a}', '{z}']", `{"z":"x","a":null}`, tools.OK, "x|"},
		{"line breaks", "command: [printf, '%s', '{z}']", `{"z":"a\nb"}`, tools.OK, "a\nb"},
		{"an option", "command: [ls, '{z}']", `{"z":"--help"}`, tools.Failed, "begins with a dash"},
		{"no option", "command: [printf, '%s', --, '{z}']", `{"z":"--help"}`, tools.OK, "----help"},
		{"a zero byte", "command: [printf, '{z}']", `{"z":"a\u0000b"}`, tools.Failed, "zero byte"},
		{"behind the code", `command: [sh, -c, 'printf %s "$1"', sh, '{z}']`, `{"z":"$(id); x"}`, tools.OK, "$(id); x"},
		{"exit code", "command: [sh, -c, 'echo out; echo why >&2; exit 3']", `{"z":"x"}`, tools.Failed, "Error: mine failed: exit code 3: why\nOutput so far:\nout\n"},
		{"no program", "command: [/nonexistent/program]", `{"z":"x"}`, tools.Failed, "/nonexistent/program"},
		{"flood", "command: [sh, -c, 'exec yes']", `{"z":"x"}`, tools.Failed, "wrote more than 1024 KiB"},
		{"no time", "timeout: 300ms\ncommand: [sh, -c, 'echo begun; sleep 60 & sleep 60']", `{"z":"x"}`, tools.TimedOut, "did not finish within 300ms.\nOutput so far:\nbegun"},
		{"environment", "env: {GREETING: 'hi ${NAME}'}\ncommand: [sh, -c, 'echo $GREETING $OTHER $HOME']", `{"z":"x"}`, tools.OK, "hi **** /home/me\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, res := try(t, text+c.declared, c.args, map[string]string{"NAME": "secret-name", "OTHER": "not-passed", "HOME": "/home/me"})
			if res.Status != c.status || !strings.Contains(res.Content, c.want) {
				t.Errorf("%s %q", res.Status, res.Content)
			}
			if !spec.SideEffects || !slices.Equal(spec.Capabilities, []tools.Capability{tools.Code}) {
				t.Errorf("%+v", spec)
			}
		})
	}
	if spec, _ := try(t, text+"command: ['true']\nside_effects: false\ncapabilities: [files]", `{"z":""}`, nil); spec.SideEffects ||
		!slices.Equal(spec.Capabilities, []tools.Capability{tools.Code, tools.Files}) {
		t.Errorf("%+v", spec)
	}
	if spec, _ := try(t, text+"command: ['true']", `{"z":""}`, nil); string(spec.Parameters) != `{"type": "object", "properties": {"z": {"type": "string"}, "a": {}}, "required": ["z"]}` {
		t.Errorf("the order is gone: %s", spec.Parameters)
	}
}

// In a sandbox a command sees what is listed and no more.
func TestSandbox(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "note"), []byte("in the folder"), 0o644); err != nil {
		t.Fatal(err)
	}
	show := "command: [sh, -c, 'cat " + home + "/note; echo x > " + home + "/new']\n"
	_, res := try(t, text+show+"sandbox: {}", `{"z":""}`, nil)
	if strings.Contains(res.Content, "no working sandbox") {
		if os.Getenv("STOPGAP_REQUIRE_BWRAP") != "" {
			t.Fatal(res.Content)
		}
		t.Skip(res.Content)
	}
	if res.Status != tools.Failed || strings.Contains(res.Content, "in the folder") {
		t.Errorf("nothing is listed: %+v", res)
	}
	_, res = try(t, text+show+"sandbox: {read: ["+home+"]}", `{"z":""}`, nil)
	if res.Status != tools.Failed || !strings.Contains(res.Content, "in the folder") {
		t.Errorf("it may read: %+v", res)
	}
	if _, err := os.Stat(filepath.Join(home, "new")); err == nil {
		t.Error("it wrote")
	}
	if _, res = try(t, text+show+"sandbox: {write: ["+home+"]}", `{"z":""}`, nil); res.Status != tools.OK {
		t.Errorf("it may write: %+v", res)
	}
}

func TestEndpoints(t *testing.T) {
	type request struct{ method, uri, body string }
	requests := make(chan request, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		requests <- request{r.Method, r.RequestURI, string(b)}
		switch {
		case strings.HasSuffix(r.URL.Path, "/away"):
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/large"):
			fmt.Fprint(w, strings.Repeat("x", mostOutput+1))
		case strings.HasSuffix(r.URL.Path, "/binary"):
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 'P', 0, 0xff})
		case strings.HasSuffix(r.URL.Path, "/none"):
			http.Error(w, "no such thing", http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, "/slow"):
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
		default:
			fmt.Fprintf(w, "key %s", r.Header.Get("X-Key"))
		}
	}))
	defer web.Close()
	at := "url: " + web.URL
	vars := map[string]string{"KEY": "very-secret"}
	for _, c := range []struct {
		declared, args string
		status         tools.Status
		want, uri      string
	}{
		{at + "/p/{z}\nheaders: {X-Key: '${KEY}'}", `{"z":"a/b?c=d&e#f"}`, tools.OK, "key ****", "/p/a%2Fb%3Fc=d&e%23f"},
		{at + "/p?q={z}&k=1", `{"z":"a&admin=1","a":[2]}`, tools.OK, "key ", "/p?q=a%26admin%3D1&k=1&a=%5B2%5D"},
		{at + "/p/{z}", `{"z":".."}`, tools.Failed, "leads out of its place", ""},
		{at + "/p/{z}", `{"z":"@evil.example/"}`, tools.OK, "key", "/p/@evil.example%2F"},
		{at + "/away", `{"z":""}`, tools.Failed, "leads elsewhere", "/away?z="},
		{at + "/large", `{"z":""}`, tools.Failed, "more than 1024 KiB", "/large?z="},
		{at + "/binary", `{"z":""}`, tools.OK, "[4 bytes that are no text, image/png]", "/binary?z="},
		{at + "/none", `{"z":""}`, tools.Failed, "it answered 404 Not Found\nOutput so far:\nno such thing", "/none?z="},
		{"timeout: 200ms\n" + at + "/slow", `{"z":""}`, tools.TimedOut, "did not finish", "/slow?z="},
		{"url: http://127.0.0.1:1/{z}", `{"z":"q"}`, tools.Failed, "refused", ""},
	} {
		spec, res := try(t, text+c.declared, c.args, vars)
		if res.Status != c.status || !strings.Contains(res.Content, c.want) || strings.Contains(res.Content, "very-secret") {
			t.Errorf("%s %s: %s %.200q", c.declared, c.args, res.Status, res.Content)
		}
		var seen request
		if c.uri != "" {
			seen = <-requests
		}
		if seen.uri != c.uri || len(requests) > 0 {
			t.Errorf("%s %s: asked for %v", c.declared, c.args, seen)
		}
		if spec.SideEffects || !slices.Equal(spec.Capabilities, []tools.Capability{tools.Net}) {
			t.Errorf("%+v", spec)
		}
	}
	spec, res := try(t, text+"method: post\n"+at+"/p/{z}", `{"z":"v"}`, vars)
	if seen := <-requests; res.Status != tools.OK || seen.body != `{"z":"v"}` || seen.method != http.MethodPost || !spec.SideEffects {
		t.Errorf("%+v, sent %+v", res, seen)
	}
}

func TestBadDeclarations(t *testing.T) {
	for declared, want := range map[string]string{
		"":                                                       "neither a command nor a url",
		"command: [ls]\nurl: http://x":                           "both",
		"command: ['{z}']":                                       "the program itself",
		"command: [ls, '{other}']":                               "{other} stands for no property",
		"command: [sh, -c, 'ls {z}']":                            "would be run as code",
		"command: [env, A=b, bash, -lc, '{z}']":                  "would be run as code",
		"command: [python3, -c, 'print({a})']":                   "would be run as code",
		"command: [perl, -ne, '{z}', f]":                         "would be run as code",
		"command: [awk, '{z}', f]":                               "would be run as code",
		"command: [/usr/bin/python3, '{z}']":                     "would be run as code",
		"command: [su, me, -c, '{z}']":                           "would be run as code",
		"command: [osascript, -e, '{z}']":                        "would be run as code",
		"command: [ssh, host, '{z}']":                            "would be run as code",
		"command: [powershell.exe, -NoProfile, -Command, '{z}']": "would be run as code",
		"command: [ls]\nenv: {A: '${NONE}'}":                     "NONE, which it needs, is not set",
		"command: [ls]\nmethod: GET":                             "are for a url",
		"command: [ls]\ncapabilities: [all]":                     `"all" is no capability`,
		"url: http://{z}.example/":                               "its url is",
		"url: http://example.com/{no}":                           "{no} stands for no property",
		"url: file:///etc/passwd":                                "neither http",
		"url: http://me:secret@example.com/":                     "no password",
		"url: http://x/\nmethod: TRACE":                          `"TRACE" is no method`,
		"url: http://x/\ndir: /":                                 "are for a command",
		"url: http://x/\nheaders: {A: '${NONE}'}":                "NONE, which it needs",
	} {
		if _, err := New("mine", declare(t, text+declared), environment(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", declared, err)
		}
	}
	for name, want := range map[string]string{"a.b": "its name", "": "its name", "<x>": "its name"} {
		if _, err := New(name, declare(t, text+"command: [ls]"), environment(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for declared, want := range map[string]string{
		"command: [ls]": "no description", "description: d\ncommand: [ls]\nparameters: [1]": "not a JSON schema", "description: d\nparameters: {type: object, properties: {a: {type: what}}}\ncommand: [ls]": "no JSON schema",
	} {
		if _, err := New("mine", declare(t, declared), environment(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", declared, err)
		}
	}
	if _, err := New("mine", declare(t, text+"command: [python3, script.py, --where, '{z}']"), environment(nil)); err != nil {
		t.Error(err)
	}
}

// Our own files stay as they are in a folder that a command may write: what they
// say is run.
func TestSandboxProtects(t *testing.T) {
	folder := t.TempDir()
	d := declare(t, text+"command: [sh, -c, 'echo x > "+folder+"/out; echo x > "+folder+"/tools.yaml']\nsandbox: {write: ["+folder+"]}")
	d.Sandbox.Protect = []string{filepath.Join(folder, "tools.yaml")}
	made, err := New("mine", d, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	_, err = made.Run(t.Context(), json.RawMessage(`{"z":""}`))
	if none := (*sandbox.UnavailableError)(nil); errors.As(err, &none) && os.Getenv("STOPGAP_REQUIRE_BWRAP") == "" {
		t.Skip(err)
	}
	if list, _ := os.ReadDir(folder); err == nil || len(list) != 1 || list[0].Name() != "out" {
		t.Errorf("%v; there is %v", err, list)
	}
}

// A secret that begins like another one leaves nothing of it.
func TestSecretsInSecrets(t *testing.T) {
	_, res := try(t, text+"env: {A: '${SHORT}', B: '${LONG}'}\ncommand: [sh, -c, 'echo $A $B']", `{"z":""}`, map[string]string{"SHORT": "secret", "LONG": "secret-of-mine"})
	if res.Content != "**** ****\n" {
		t.Errorf("%q", res.Content)
	}
}
