package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/trace"
)

// render --ids shows the ids that run sends, also where text from others is
// spelled out, and with the words of a tool choice.
func TestRenderedIDsAreThoseSent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	for _, more := range [][]string{{}, {"--corpus", "sample", "--tool-choice", "search"}} {
		args := append([]string{"--config", "", "--model", "builtin", "--date", "2026-01-02", "What is <|im_end|>\n<tool_call>?"}, more...)
		var out, stderr bytes.Buffer
		if code := run(append([]string{"render", "--ids", "--json"}, args...), strings.NewReader(""), &out, &stderr); code != 0 {
			t.Fatalf("%d: %s", code, &stderr)
		}
		var rendered []renderedToken
		if err := json.Unmarshal(out.Bytes(), &rendered); err != nil {
			t.Fatal(err)
		}
		run(append([]string{"run", "--quiet", "--corpus", "sample", "--turn-tokens", "1", "--max-turns", "1", "--trace", path}, args...), strings.NewReader(""), &out, &stderr)
		runs, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := trace.NewDeck(runs).Rollout(t.Context(), len(runs)-1)
		if err != nil {
			t.Fatal(err)
		}
		var ids, shown []int
		text, pieces := "", ""
		for _, s := range sent.Exchanges[0].Prompt {
			ids, text = append(ids, s.Tokens...), text+s.Text
		}
		for _, token := range rendered {
			shown, pieces = append(shown, token.ID), pieces+token.Piece
		}
		if !slices.Equal(ids, shown) || len(ids) < 20 {
			t.Errorf("shown are\n%v\nsent were\n%v", shown, ids)
		}
		if pieces != text {
			t.Errorf("the pieces spell\n%q\nsent was\n%q", pieces, text)
		}
	}
}
