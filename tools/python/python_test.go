package python

import (
	"encoding/json"
	"os"
	"testing"

	"stopgap/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	os.Exit(m.Run())
}

func call(t *testing.T, p *Interpreter, code string) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Run(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWords(t *testing.T) {
	p := New(Options{})
	for code, want := range map[string]string{
		"":             "[Python Interpreter Error]: Formatting error.",
		"x = 1":        "Finished execution.",
		"print(6 * 7)": "stdout:\n42\n",
		"import sys\nprint('a')\nprint('b', file=sys.stderr)": "stdout:\na\n\nstderr:\nb\n",
		"raise SystemExit(3)": "[PythonInterpreter Error] The code ended with exit code 3.",
	} {
		if got := call(t, p, code); got != want {
			t.Errorf("%q gave %q, want %q", code, got, want)
		}
	}
}
