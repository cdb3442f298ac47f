package template

import (
	"encoding/json"
	"testing"
)

func TestFit(t *testing.T) {
	tool := Tool{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}},"n":{"type":"integer"},"s":{"type":"string"}},"required":["list"]}`)}
	for arguments, want := range map[string]string{
		`{"list":"http://a/"}`:       `{"list":["http://a/"]}`,
		`{"list":["a"],"n":"5"}`:     `{"list":["a"],"n":5}`,
		`{"s": 5, "other": {}}`:      `{"other":{},"s":"5"}`,
		`{"list": ["a"], "s": "as"}`: `{"list": ["a"], "s": "as"}`, // to the byte
		`{"s":{}}`:                   `{"s":{}}`,
		`{"list":{"a":1}}`:           `{"list":{"a":1}}`,
		``:                           ``, `null`: `null`, `[1]`: `[1]`, `{"s":`: `{"s":`,
	} {
		if got := tool.Fit(json.RawMessage(arguments)); string(got) != want {
			t.Errorf("%s became %s, want %s", arguments, got, want)
		}
	}
	if got := (Tool{Name: "t"}).Fit(json.RawMessage(`{"a":"5"}`)); string(got) != `{"a":"5"}` {
		t.Errorf("without parameters: %s", got)
	}
}
