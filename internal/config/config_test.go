package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var known = []string{"model", "max-turns", "timeout", "stop", "set", "quiet", "temperature"}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flags() *pflag.FlagSet {
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.String("model", "", "")
	f.Int("max-turns", 20, "")
	f.Duration("timeout", 0, "")
	f.StringArray("stop", nil, "")
	f.StringArray("set", nil, "")
	f.Bool("quiet", false, "")
	f.Float64("temperature", 1, "")
	return f
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// TestPrecedence: a flag beats the environment, that the file, that the default.
func TestPrecedence(t *testing.T) {
	text := "model: from-file\nmax-turns: 3\nstop: [a, \"b,c\"]\nset:\n  x: 1\n  y: \"two words\"\n"
	for _, c := range []struct {
		name, args, setting string
		env                 map[string]string
		file                string
		value, origin       string
	}{
		{"default", "", "model", nil, "", "", "default"},
		{"file", "", "model", nil, text, "from-file", "file PATH:1"},
		{"environment", "", "model", map[string]string{"STOPGAP_MODEL": "from-env"}, text, "from-env", "environment STOPGAP_MODEL"},
		{"flag", "--model=from-flag", "model", map[string]string{"STOPGAP_MODEL": "from-env"}, text, "from-flag", "flag --model"},
		{"flag as the default is", "--max-turns=20", "max-turns", nil, text, "20", "flag --max-turns"},
		{"an empty variable is none", "", "model", map[string]string{"STOPGAP_MODEL": ""}, text, "from-file", "file PATH:1"},
		{"number", "", "max-turns", nil, text, "3", "file PATH:2"},
		{"list", "", "stop", nil, text, `[a,"b,c"]`, "file PATH:3"},
		{"a list replaces a list", "--stop=z", "stop", nil, text, `[z]`, "flag --stop"},
		{"mapping", "", "set", nil, text, `[x=1,y=two words]`, "file PATH:4"},
		{"lines of a variable", "", "stop", map[string]string{"STOPGAP_STOP": "a b\nc\n"}, text, `[a b,c]`, "environment STOPGAP_STOP"},
		{"nothing behind the colon", "", "model", nil, "model:\n", "", "default"},
		{"one line", "", "quiet", nil, "quiet: true", "true", "file PATH:1"},
		{"flow", "", "temperature", nil, "{temperature: 0.5}", "0.5", "file PATH:1"},
		{"quoted number", "", "model", nil, `model: "08"`, "08", "file PATH:1"},
		{"block text", "", "model", nil, "model: |\n  a\n  b\n", "a\nb\n", "file PATH:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := file(t, c.file)
			read, err := Read(path, known)
			if err != nil {
				t.Fatal(err)
			}
			f := flags()
			if err := f.Parse(strings.Fields(c.args)); err != nil {
				t.Fatal(err)
			}
			origins, err := Apply(f, append(known, "not-a-flag-here"), lookup(c.env), read)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Lookup(c.setting).Value.String(); got != c.value && got != "["+c.value+"]" {
				t.Errorf("value %q, not %q", got, c.value)
			}
			if got := strings.ReplaceAll(origins[c.setting].String(), path, "PATH"); got != c.origin {
				t.Errorf("origin %q, not %q", got, c.origin)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		reason     string
		near       string
	}{
		{"unknown", "model: a\n\nmax-turn: 5\n", 3, `unknown setting "max-turn"`, "max-turns"},
		{"unknown and like nothing", "zzz: 5\n", 1, `unknown setting "zzz"`, ""},
		{"underscores", "max_turns: 5\n", 1, `unknown setting "max_turns"`, "max-turns"},
		{"a list", "- model\n", 1, "not a mapping", ""},
		{"a word", "model\n", 1, "not a mapping", ""},
		{"nested", "set:\n  a:\n    b: c\n", 2, "plain keys and values", ""},
		{"list of lists", "stop:\n  - [a]\n", 2, "plain value", ""},
		{"syntax", "model: [a\n", 1, "", ""},
		{"twice", "model: a\nmodel: b\n", 2, "", ""},
		{"alias", "model: &x a\nstop: [*x]\n", 1, "must be a value", ""},
		{"tab", "set:\n\ta: b\n", 2, "", ""},
	} {
		_, err := Read(file(t, c.text), known)
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if bad.Line != c.line || !strings.Contains(bad.Reason, c.reason) || bad.Near != c.near {
			t.Errorf("%s: line %d, %q, near %q", c.name, bad.Line, bad.Reason, bad.Near)
		}
		if !strings.HasSuffix(strings.SplitN(bad.Error(), ": ", 2)[0], fmt.Sprintf("config.yaml:%d", c.line)) {
			t.Errorf("%s: %v", c.name, bad)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "missing"), known); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	var bad *Error
	if _, err := Read(file(t, strings.Repeat("#", fileLimit+1)), known); !errors.As(err, &bad) {
		t.Errorf("a huge file: %v", err)
	}
	if _, err := Read(t.TempDir(), known); !errors.As(err, &bad) {
		t.Errorf("a folder: %v", err)
	}
}

// TestSecretsStayOutOfErrors: a fault in the file never quotes the lines around it.
func TestSecretsStayOutOfErrors(t *testing.T) {
	_, err := Read(file(t, "model: http://me:geheim@host\nstop: [\n"), known)
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}

func TestValueErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		env  map[string]string
		want string
	}{
		{"max-turns: many\n", nil, `PATH:1: "many" is not a value for max-turns: not a whole number`},
		{"quiet: maybe\n", nil, `PATH:1: "maybe" is not a value for quiet: neither true nor false`},
		{"temperature: warm\n", nil, `PATH:1: "warm" is not a value for temperature: not a number`},
		{"max-turns: 99999999999999999999\n", nil, `PATH:1: "99999999999999999999" is not a value for max-turns: out of range`},
		{"model: [a, b]\n", nil, `PATH:1: "a, b" is not a value for model: one value is wanted`},
		{"", map[string]string{"STOPGAP_TIMEOUT": "soon"}, `STOPGAP_TIMEOUT: "soon" is not a value for timeout: invalid duration "soon"`},
	} {
		path := file(t, c.text)
		read, err := Read(path, known)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Apply(flags(), known, lookup(c.env), read)
		var bad *ValueError
		if !errors.As(err, &bad) || strings.ReplaceAll(err.Error(), path, "PATH") != c.want {
			t.Errorf("%v, not %s", err, c.want)
		}
	}
}

// TestReadList: each item is a file of its own, with the lines of the whole.
func TestReadList(t *testing.T) {
	path := file(t, "# two\n- model: a[b[c\n  max-turns: 3\n\n- {stop: [x], set: {a: b}}\n-\n")
	list, err := ReadList(path, known)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d items, %v", len(list), err)
	}
	f := flags()
	for i, line := range []int{2, 5, 6} {
		if list[i].Line != line || list[i].Path != path {
			t.Errorf("item %d is at %s:%d", i, list[i].Path, list[i].Line)
		}
		if err := list[i].Set(f); err != nil {
			t.Error(err)
		}
	}
	for name, want := range map[string]string{"model": "a[b[c", "max-turns": "3", "stop": "[x]", "set": "[a=b]", "timeout": "0s"} {
		if got := f.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"model: a\n":                    "PATH:1: not a list: each item begins with \"- \"",
		"just words\n":                  "PATH:1: not a list: each item begins with \"- \"",
		"- model: a\n- words\n":         "PATH:2: not a mapping of settings to values",
		"- model: a\n- max-turn: 5\n":   `PATH:2: unknown setting "max-turn"`,
		"- model: a\n  model: b\n":      `PATH:2: mapping key "model" already defined at [1:3]`,
		"- model: a\n---\n- modle: b\n": `PATH:3: unknown setting "modle"`,
	} {
		path := file(t, text)
		if _, err := ReadList(path, known); err == nil || strings.ReplaceAll(err.Error(), path, "PATH") != want {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "[]", "~"} {
		if list, err := ReadList(file(t, text), known); err != nil || len(list) != 0 {
			t.Errorf("%q: %d items, %v", text, len(list), err)
		}
	}
	list, err = ReadList(file(t, "- quiet: true\n  max-turns: many\n"), known)
	if err != nil {
		t.Fatal(err)
	}
	var bad *ValueError
	if err := list[0].Set(flags()); !errors.As(err, &bad) || !strings.Contains(err.Error(), `:2: "many" is not a value for max-turns`) {
		t.Errorf("%v", err)
	}
}

// TestDeepNesting: the YAML parser needs memory with the square of the depth.
func TestDeepNesting(t *testing.T) {
	for _, level := range []string{"[", "[\n", "[a, ", "{a: ", "- ", "? ", "{a: [ "} {
		var bad *Error
		if _, err := Read(file(t, strings.Repeat(level, 100_000)), known); !errors.As(err, &bad) || bad.Reason != "nested too deeply" {
			t.Errorf("%q: %.100v", level, err)
		}
	}
	text := "stop:\n" + strings.Repeat("  - '[({ \\[ [^[a-z{2,}'\n", 1000) + "model: ----------" + strings.Repeat("-", 200)
	if _, err := Read(file(t, text), known); err != nil {
		t.Errorf("%.200v", err)
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"modle": "model", "max-turn": "max-turns", "MODEL": "model", "temp": "temperature", "x": "", "": "", "quite": "quiet",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, not %q", word, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"model: a", "set: {a: b}", "stop: [a, b]", "? a\n: b", "a: &x [*x]", "<<: {model: a}", "---\nmodel: a\n---\nmodel: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := file(t, text)
		read, err := Read(path, known)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatalf("%q: %v has no type", text, err)
			}
			return
		}
		_, err = Apply(flags(), known, lookup(nil), read)
		var bad *ValueError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%q: %v has no type", text, err)
		}
	})
}
