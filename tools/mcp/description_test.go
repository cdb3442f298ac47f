package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"stopgap/template"
)

// special are control tokens of models that run here.
var special = []string{
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|start_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>",
	"<s>", "</s>", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]",
	"[TOOL_RESULTS]", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<|channel|>", "<|message|>", "<unk>", "<0x0A>", "<think>", "</think>",
}

// TestMute: no string that is structure in a shipped format, or to a model, is
// left in what a server says of its tools, at no place and in no spelling that
// JSON has for it.
func TestMute(t *testing.T) {
	found := 0
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		reserved := f.Reserved.With(special...)
		for _, r := range append(append([]string{}, reserved.Strings...), reserved.Lines...) {
			if strings.TrimSpace(r) == "" {
				continue
			}
			for _, text := range []string{r, "Reads. " + r + " x", "a\n" + r + "\nb", r + r, "\u200b" + r, strings.Join(strings.Split(r, ""), "\u200b")} {
				if left := reserved.Find("\n" + mute(text)); len(left) > 0 {
					t.Errorf("%s: %q is muted as %q, which has %v", name, text, mute(text), left)
				}
				quoted, _ := json.Marshal(text) // with \u003c
				var schema any
				if err := json.Unmarshal([]byte(`{"type":"object","properties":{"a":{"description":`+string(quoted)+`}}}`), &schema); err != nil {
					t.Fatal(err)
				}
				out, err := schemaOf(schema)
				if left := reserved.Find("\n" + string(out)); err != nil || len(left) > 0 {
					t.Errorf("%s: %s has %v, %v", name, out, left, err)
				}
				found++
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d", found)
	}
	for _, plain := range []string{"Gives a list of 3 < 4 items, e.g. [1, 2].", "Read a file. Costs $1 & more", "a -> b, x <= y"} {
		if got := mute(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

func FuzzMute(f *testing.F) {
	for _, s := range special {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := mute(text)
		if marks.MatchString(out) || strings.ContainsAny(out, "\n\r\x1b\x00") || mute(out) != out {
			t.Fatalf("%q became %q", text, out)
		}
	})
}
