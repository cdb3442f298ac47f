package files

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/tools"
	"stopgap/tools/document"
	"stopgap/tools/goal"
)

func TestMain(m *testing.M) {
	document.Child()
	os.Exit(m.Run())
}

// folder has a few files, and beside it one that nobody may read.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret.txt": "the secret", "in/a.csv": "year,who\n1947,Voss\n", "in/sub/b.md": "# Lantern\n\nA telescope.\n",
		"in/empty.txt": "", "in/old.doc": "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := filepath.Join(dir, "in")
	for link, to := range map[string]string{"link.txt": "../secret.txt", "whole": "..", "good.md": "sub/b.md"} {
		if err := os.Symlink(to, filepath.Join(in, link)); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	return in
}

// call runs the tool as a run does, with its arguments checked.
func call(t *testing.T, o Options, args string) (string, tools.Status) {
	t.Helper()
	set, err := tools.NewSet([]tools.Tool{New(o)}, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res := set.Session().Run(context.Background(), []tools.Call{{Name: "parse_file", Arguments: json.RawMessage(args)}})[0]
	return res.Content, res.Status
}

func TestParseFile(t *testing.T) {
	in := folder(t)
	absolute, _ := json.Marshal(filepath.Join(in, "a.csv"))
	outside, _ := json.Marshal(filepath.Join(filepath.Dir(in), "secret.txt"))
	table := "a [a.csv]\n\n| year | who |\n| --- | --- |\n| 1947 | Voss |"
	for _, tt := range []struct {
		name, args, want string
		status           tools.Status
	}{
		{"one", `{"files":["a.csv"]}`, table, tools.OK},
		{"a string", `{"files":"a.csv"}`, table, tools.OK},
		{"below", `{"files":["sub/b.md"]}`, "Lantern [sub/b.md]\n\n# Lantern\n\nA telescope.", tools.OK},
		{"a link inside", `{"files":["good.md"]}`, "A telescope.", tools.OK},
		{"in full", `{"files":[` + string(absolute) + `]}`, "1947", tools.OK},
		{"several, one of them missing", `{"files":["nope.pdf","a.csv"]}`, "Error: there is no file \"nope.pdf\".\n\n" + table, tools.OK},
		{"missing", `{"files":["nope.pdf"]}`, `there is no file "nope.pdf"`, tools.Failed},
		{"none", `{"files":[]}`, "minItems", tools.BadArguments},
		{"a folder", `{"files":["sub"]}`, "is a folder", tools.Failed},
		{"empty", `{"files":["empty.txt"]}`, "empty.txt is empty", tools.Failed},
		{"needs a converter", `{"files":["old.doc"]}`, "takes an external command, and none is configured", tools.Failed},
		{"above", `{"files":["../secret.txt"]}`, "is outside of the folder", tools.Failed},
		{"above and back", `{"files":["sub/../../secret.txt"]}`, "is outside of the folder", tools.Failed},
		{"outside in full", `{"files":[` + string(outside) + `]}`, "is outside of the folder", tools.Failed},
		{"as an address", `{"files":["file:///etc/passwd"]}`, "is outside of the folder", tools.Failed},
		{"a link to the outside", `{"files":["link.txt"]}`, "cannot be read: path escapes from parent", tools.Failed},
		{"a folder's link to the outside", `{"files":["whole/secret.txt"]}`, "cannot be read: path escapes from parent", tools.Failed},
		{"a goal without a model", `{"files":["a.csv"],"goal":"who?"}`, "no model", tools.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, status := call(t, Options{Folder: in}, tt.args)
			if status != tt.status || tt.name != "none" && !strings.Contains(got, tt.want) {
				t.Errorf("%s: %q, want %q", status, got, tt.want)
			}
			if strings.Contains(got, "the secret") {
				t.Errorf("the secret is out: %q", got)
			}
		})
	}
}

func TestGoal(t *testing.T) {
	var asked string
	o := Options{Folder: folder(t), Goal: goal.Reader{Ask: func(_ context.Context, prompt string, _ json.RawMessage) (string, error) {
		asked = prompt
		return `{"rational":"the second row","evidence":"1947, Voss","summary":"It was Voss."}`, nil
	}}}
	got, status := call(t, o, `{"files":["a.csv"],"goal":"who?"}`)
	if want := goal.Frame("a.csv", "who?", goal.Finding{Evidence: "1947, Voss", Summary: "It was Voss."}); status != tools.OK || got != want {
		t.Errorf("%s: got %q, want %q", status, got, want)
	}
	if !strings.Contains(asked, "| 1947 | Voss |") {
		t.Errorf("the model was asked %q", asked)
	}
	o.Goal.Ask = func(context.Context, string, json.RawMessage) (string, error) { return "", errors.New("gone") }
	if got, status := call(t, o, `{"files":["a.csv"],"goal":"who?"}`); status != tools.Failed || !strings.Contains(got, "gone") {
		t.Errorf("%s: %q", status, got)
	}
}
