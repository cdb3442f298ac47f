package template

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestBlockFunctions renders one expression each, over .Values.json as JSON.
// The wanted texts are what Python 3 gives.
func TestBlockFunctions(t *testing.T) {
	const value = `{"b": [], "a": {"x": [1, 1E2, -0.0, null], "é": "q\"'\u2028\n"}, "t": true, "n": null, "s": "it's", "e": {}}`
	for _, c := range []struct{ expression, want string }{
		{`{{indent 2 0 .}}`, "{\n  \"b\": [],\n  \"a\": {\n    \"x\": [\n      1,\n      100.0,\n      -0.0,\n      null\n    ],\n    \"é\": \"q\\\"'\u2028\\n\"\n  },\n  \"t\": true,\n  \"n\": null,\n  \"s\": \"it's\",\n  \"e\": {}\n}"},
		{`{{field . "a" | indent 1 2}}`, "{\n   \"x\": [\n    1,\n    100.0,\n    -0.0,\n    null\n   ],\n   \"é\": \"q\\\"'\u2028\\n\"\n  }"},
		{`{{field . "e" | indent 4 1}}`, "{}"},
		{`{{str .}}`, `{'b': [], 'a': {'x': [1, 100.0, -0.0, None], 'é': 'q"\'\u2028\n'}, 't': True, 'n': None, 's': "it's", 'e': {}}`},
		{`{{range entries .}}{{str .JSON}};{{end}}`, `[];{'x': [1, 100.0, -0.0, None], 'é': 'q"\'\u2028\n'};True;None;it's;{};`},
		{`{{python .}}`, `{"b": [], "a": {"x": [1, 1E2, -0.0, None], "é": "q\"'` + "\u2028" + `\n"}, "t": True, "n": None, "s": "it's", "e": {}}`},
		{`{{range entries .}}{{.Key}}={{.Text}} {{end}}`, `b=[] a={"x": [1, 100.0, -0.0, null], "é": "q\"'` + "\u2028" + `\n"} t=true n=null s=it's e={} `},
		{`{{range entries .}}{{kind .JSON}} {{end}}{{kind (field . "none")}}`, "array object boolean null string object "},
		{`{{if field . "n"}}there{{end}}{{if field . "none"}}not{{end}}{{range entries (field . "b")}}x{{end}}{{range entries (field . "none")}}x{{end}}`, "there"},
		{`{{date "%d %b %Y" "2024-07-06"}}; {{date "%A, %B %Y-%m-%d %a %y 5%%" "2024-12-31"}}`, "06 Jul 2024; Tuesday, December 2024-12-31 Tue 24 5%"},
	} {
		if got, err := rendered(t, c.expression, value); err != nil || got != c.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.expression, got, err, c.want)
		}
	}
	for expression, want := range map[string]string{
		`{{date "%d" "26 July"}}`:         `"26 July" is no date`,
		`{{date "%d" "2024-02-30"}}`:      `"2024-02-30" is no date`,
		`{{date "%H" "2024-02-20"}}`:      "date does not know %H",
		`{{date "5%" "2024-02-20"}}`:      "date does not know %",
		`{{indent 0 0 .}}`:                "a width from 1",
		`{{indent 4 -1 .}}`:               "a level from 0",
		`{{indent 1000000 1 .}}`:          "to 64",
		`{{str (field . "none")}}`:        "not JSON",
		`{{indent 4 0 (field . "none")}}`: "not JSON",
	} {
		if got, err := rendered(t, expression, value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v", expression, got, err)
		}
	}
}

// rendered gives what an expression makes of a JSON value.
func rendered(t *testing.T, expression, value string) (string, error) {
	t.Helper()
	f := compile(t, goodHead+"---\n"+goodBlocks)
	blocks, err := f.blocks.New("expression").Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	err = blocks.Execute(&b, json.RawMessage(value))
	return b.String(), err
}

// TestRepr compares with what Python's repr gives.
func TestRepr(t *testing.T) {
	for text, want := range map[string]string{
		"":                      `''`,
		`a'b`:                   `"a'b"`,
		`a"b`:                   `'a"b'`,
		`a'b"`:                  `'a\'b"'`,
		"\\\n\r\t\b\x00\x7f":    `'\\\n\r\t\x08\x00\x7f'`,
		"é\u00a0\u00ad\u200b北🦉": `'é\xa0\xad\u200b北🦉'`,
		"\U000e0001":            `'\U000e0001'`,
	} {
		if got := pythonRepr(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for number, want := range map[string]string{"1e400": "inf", "-1e400": "-inf", "1e5": "100000.0", "-0": "0", "7": "7"} {
		if got := reprNumber(number); got != want {
			t.Errorf("%s: got %s, want %s", number, got, want)
		}
	}
}
