package models

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func script(t *testing.T, yaml string, opts Options) Model {
	t.Helper()
	s, err := ParseScript([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s.Open(opts)
}

func TestScriptTurns(t *testing.T) {
	m := script(t, `
name: demo
turns:
  - text: first
  - after: "</tool_response>\n"
    text: after a response
  - text: second
  - text: third
`, Options{})
	say := func(prompt string) string { return complete(t, m, Request{Prompt: text(prompt)}).text }
	check(t, "a new prompt", say("Q"), "first")
	check(t, "the same prompt", say("Q"), "first")
	check(t, "its continuation", say("Q first, go on"), "second")
	check(t, "a response", say("Q first, go on second</tool_response>\n"), "after a response")
	check(t, "after the response", say("Q first, go on second</tool_response>\nAnd?"), "third")
	check(t, "another conversation", say("R"), "first")
	check(t, "a continuation of the first", say("Q fir"), "second")
	got := listen(t, t.Context(), m, Request{Prompt: text("Q first, go on second</tool_response>\nAnd? third and more")})
	var s *ServerError
	if !errors.As(got.err, &s) {
		t.Errorf("after the last turn: %v, %v", got.text, got.err)
	}
}

func TestScriptLimits(t *testing.T) {
	m := script(t, "context: 8\nturns: [{text: a b c d e f g h i j}]", Options{})
	got := complete(t, m, Request{Prompt: text("x y"), MaxTokens: 3})
	check(t, "text", got.text, "a b c")
	check(t, "finish", got.final.Finish, FinishLength)
	check(t, "usage", got.final.Usage, Usage{Prompt: Known(2), Evaluated: Known(2), Reused: Known(0), Generated: Known(3)})
	got = complete(t, m, Request{Prompt: text("x y")})
	check(t, "text", got.text, "a b c d e f")
	check(t, "finish", got.final.Finish, FinishContext)
	check(t, "reused", got.final.Usage.Reused, Known(1)) // the last one is always computed
	got = complete(t, m, Request{Prompt: text("x y"), Stop: []string{"d e", "c "}})
	check(t, "text", got.text, "a b ")
	check(t, "finish", got.final.Finish, FinishStop)
	var o *OverflowError
	got = listen(t, t.Context(), m, Request{Prompt: text("1 2 3 4 5 6 7 8 9")})
	if !errors.As(got.err, &o) || *o != (OverflowError{Known(9), Known(8)}) {
		t.Errorf("error is %v, want an OverflowError", got.err)
	}
}

func TestScriptReusesWhatItHasRead(t *testing.T) {
	m := script(t, "turns: [{text: one two}, {text: three}]", Options{})
	complete(t, m, Request{Prompt: text("a b c")})
	u := complete(t, m, Request{Prompt: text("a b cone two d e")}).final.Usage
	check(t, "usage", u, Usage{Prompt: Known(6), Reused: Known(4), Evaluated: Known(2), Generated: Known(1)})
	report := measure(t, script(t, "turns: [{text: a}, {text: b}, {text: c}]", Options{}))
	check(t, "verdict", report.Verdict, PrefixKept)
}

func TestScriptFinishes(t *testing.T) {
	for _, f := range []Finish{FinishStop, FinishLength, FinishContext} {
		m := script(t, "turns: [{text: a, finish: "+string(f)+"}]", Options{})
		check(t, "finish", complete(t, m, Request{Prompt: text("p")}).final.Finish, f)
	}
}

func TestScriptChunks(t *testing.T) {
	m := script(t, "turns: [{text: aé三b, chunk: 2}]", Options{})
	var pieces []string
	for _, c := range complete(t, m, Request{Prompt: text("p")}).chunks {
		pieces = append(pieces, c.Text)
	}
	check(t, "pieces", strings.Join(pieces, "|"), "a\xc3|\xa9\xe4|\xb8\x89|b|")
	long := strings.Repeat("三", 100)
	got := complete(t, script(t, "turns: [{text: "+long+"}]", Options{}), Request{Prompt: text("p")})
	check(t, "text", got.text, long)
	check(t, "whether a long word is cut", len(got.chunks) > 5, true)
}

func TestScriptFaults(t *testing.T) {
	const limit = 20 * time.Millisecond
	open := func(fault string) told {
		m := script(t, "turns: [{text: a b, error: "+fault+"}]", Options{BetweenTokens: limit, FirstToken: limit})
		return listen(t, t.Context(), m, Request{Prompt: text("p")})
	}
	var c *CutError
	if got := open("cut"); !errors.As(got.err, &c) || c.Bytes != 3 || c.Tokens != 2 || got.text != "a b" {
		t.Errorf("cut: %q, %v", got.text, got.err)
	}
	var st *StallError
	if got := open("stall"); !errors.As(got.err, &st) || st.Phase != StallBetweenTokens || got.text != "a b" {
		t.Errorf("stall: %q, %v", got.text, got.err)
	}
	var s *ServerError
	if got := open("server"); !errors.As(got.err, &s) {
		t.Errorf("server: %v", got.err)
	}
	m := script(t, "turns: [{error: stall}]", Options{FirstToken: limit})
	if got := listen(t, t.Context(), m, Request{Prompt: text("p")}); !errors.As(got.err, &st) || st.Phase != StallFirstToken {
		t.Errorf("stall before the first token: %v", got.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	m = script(t, "turns: [{text: a, error: stall}]", Options{BetweenTokens: -1})
	if got := listen(t, ctx, m, Request{Prompt: text("p")}); !errors.Is(got.err, context.DeadlineExceeded) {
		t.Errorf("stall without a limit: %v", got.err)
	}
	m = script(t, "turns: [{text: a b c, delay: 1h}]", Options{})
	ctx, cancel = context.WithTimeout(t.Context(), limit)
	defer cancel()
	if got := listen(t, ctx, m, Request{Prompt: text("p")}); !errors.Is(got.err, context.DeadlineExceeded) {
		t.Errorf("a long delay: %v", got.err)
	}
}

func TestBadScripts(t *testing.T) {
	for _, yaml := range []string{
		"", "turns: []", "turns: 5", "nonsense", "turns: [{text: a, txt: b}]", "turns: [{finish: never}]",
		"turns: [{error: fire}]", "turns: [{error: cut, finish: stop}]", "turns: [{chunk: -1}]", "context: -1\nturns: [{text: a}]",
		"turns: [{delay: -1s}]", "turns: [{delay: soon}]", "\x00\xff", "turns: [{text: a}", "turns:\n  - &a\n    text: *a",
	} {
		if s, err := ParseScript([]byte(yaml)); err == nil {
			t.Errorf("%q is taken for a script: %+v", yaml, s)
		}
	}
	_, err := Open("script:"+filepath.Join(t.TempDir(), "missing.yaml"), Options{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Open("script:"+t.TempDir(), Options{}); err == nil {
		t.Error("a folder is taken for a script")
	}
}

func FuzzScript(f *testing.F) {
	f.Add([]byte("turns: [{text: a b c, after: x, finish: stop, chunk: 1}]"))
	f.Add([]byte("name: n\ncontext: 9\nturns:\n  - text: |\n      a\n    error: cut\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseScript(b)
		if err != nil {
			return
		}
		for i := range s.Turns { // nothing that takes time
			s.Turns[i].Delay = 0
			if s.Turns[i].Error == scriptStall {
				s.Turns[i].Error = scriptCut
			}
		}
		m := s.Open(Options{})
		said, ended := "", false
		for c, err := range m.Stream(t.Context(), Request{Prompt: text("p")}) {
			said += c.Text
			ended = err != nil || c.Final != nil
		}
		if !ended {
			t.Error("the stream has no end")
		}
		whole := false
		for _, turn := range s.Turns {
			whole = whole || strings.HasPrefix(turn.Text, said)
		}
		if !whole {
			t.Errorf("%q is in no turn", said)
		}
	})
}

// Two scripts are two models: a file without a name has that of the file.
func TestScriptNames(t *testing.T) {
	dir := t.TempDir()
	for _, c := range [][3]string{
		{"a.yaml", "turns: [{text: A}]", "script:a.yaml"},
		{"b.yaml", "turns: [{text: B}]", "script:b.yaml"},
		{"c.yaml", "name: weather\nturns: [{text: C}]", "weather"},
	} {
		path := filepath.Join(dir, c[0])
		if err := os.WriteFile(path, []byte(c[1]), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Open("script:"+path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := m.(Describer).Describe(t.Context()); err != nil || info.Model != c[2] || info.Ref != "script:"+path {
			t.Errorf("%s: %+v, %v", c[0], info, err)
		}
	}
}
