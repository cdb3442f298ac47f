package models

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"stopgap/internal/automaton"
	"stopgap/internal/tinymodel"
	"stopgap/models/builtin"
	"stopgap/models/tokenizer"
)

// scriptedFile is the built-in engine on a model file that says these turns.
func scriptedFile(t *testing.T, opts Options, turns ...automaton.Turn) Model {
	t.Helper()
	m, err := Open("builtin:"+automatonFile(t, turns...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// randomFile is the built-in engine on random weights.
func randomFile(t *testing.T, o tinymodel.Options) Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	o.Type = ggml.TensorTypeF16
	if err := tinymodel.Write(path, "The Lantern is a telescope, and the comet comes back every 61 years.", o); err != nil {
		t.Fatal(err)
	}
	m, err := Open("builtin:"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBuiltinStream(t *testing.T) {
	m := scriptedFile(t, Options{}, automaton.Turn{After: userPrompt[len(userPrompt)-10:], Text: "<think>\nhm</think>Forty metres, <tool_call>deep."})
	whole := "<think>\nhm</think>Forty metres, <tool_call>deep."
	var ids []int
	t.Run("user-defined tokens show, the end does not", func(t *testing.T) {
		got := complete(t, m, Request{Prompt: text(userPrompt)})
		check(t, "text", got.text, whole)
		check(t, "finish", got.final.Finish, FinishStop)
		if len(got.tokens)+1 != got.final.Usage.Generated.N || len(got.tokens) < 5 {
			t.Errorf("%d ids, %+v", len(got.tokens), got.final.Usage)
		}
		for _, c := range got.chunks {
			if c.Final == nil && c.Progress == nil && (len(c.Tokens) != 1 || c.Usage == nil || c.Text == "") {
				t.Errorf("chunk %+v", c)
			}
		}
		if p := got.progress; len(p) < 1 || p[0].Phase != Reading || p[0].Total != got.final.Usage.Prompt.N {
			t.Errorf("progress %+v", p)
		}
		ids = got.tokens
	})
	t.Run("the end shows where it is preserved", func(t *testing.T) {
		got := complete(t, m, Request{Prompt: text(userPrompt), Preserve: []string{"<|im_end|>"}})
		check(t, "text", got.text, whole+"<|im_end|>")
		check(t, "ids", len(got.tokens), len(ids)+1)
	})
	t.Run("a limit", func(t *testing.T) {
		got := complete(t, m, Request{Prompt: text(userPrompt), MaxTokens: 3})
		check(t, "finish", got.final.Finish, FinishLength)
		if !slices.Equal(got.tokens, ids[:3]) {
			t.Errorf("ids %v of %v", got.tokens, ids)
		}
	})
	t.Run("ids in the prompt", func(t *testing.T) {
		prompt := append(text(userPrompt), Segment{Text: "not what the ids spell", Tokens: ids[:4]})
		got := complete(t, m, Request{Prompt: prompt})
		if !slices.Equal(got.tokens, ids[4:]) {
			t.Errorf("ids %v of %v", got.tokens, ids)
		}
		for _, id := range []int{-1, 1 << 20, math.MaxInt} {
			got := listen(t, t.Context(), m, Request{Prompt: []Segment{{Tokens: []int{id}}}})
			var p *PromptError
			if !errors.As(got.err, &p) {
				t.Errorf("id %d: %v", id, got.err)
			}
		}
	})
	t.Run("stop strings", func(t *testing.T) {
		for _, c := range []struct {
			stop   []string
			max    int
			text   string
			finish Finish
		}{
			{[]string{"metres"}, 0, "<think>\nhm</think>Forty ", FinishStop},
			{[]string{"ty met"}, 0, "<think>\nhm</think>For", FinishStop}, // over two tokens
			{[]string{"never", "</think>"}, 0, "<think>\nhm", FinishStop},
			{[]string{"deep", "ty"}, 0, "<think>\nhm</think>For", FinishStop},
			{[]string{"<tool_call>deep. And"}, 0, whole, FinishStop}, // held back, then given
			{[]string{"\nhm</think>Forty yards"}, 4, "<think>\nhm</think>Forty", FinishLength},
			{[]string{""}, 0, whole, FinishStop},
		} {
			got := complete(t, m, Request{Prompt: text(userPrompt), Stop: c.stop, MaxTokens: c.max})
			check(t, strings.Join(c.stop, "|"), got.text, c.text)
			check(t, strings.Join(c.stop, "|"), got.final.Finish, c.finish)
			if got.tokens != nil {
				t.Errorf("ids with a stop string: %v", got.tokens)
			}
		}
	})
	t.Run("a schema", func(t *testing.T) {
		got := listen(t, t.Context(), m, Request{Prompt: text(userPrompt), Schema: []byte(`{"type": "object"}`)})
		var u *UnsupportedError
		if !errors.As(got.err, &u) || u.Server != "builtin" {
			t.Errorf("error is %v", got.err)
		}
		got = listen(t, t.Context(), m, Request{Prompt: text(userPrompt), Schema: []byte(`[]`)})
		var s *SchemaError
		if !errors.As(got.err, &s) {
			t.Errorf("error is %v", got.err)
		}
	})
	t.Run("bytes that are no text", func(t *testing.T) {
		prompt := "\xff\xfe " + userPrompt
		tokens, err := m.(Tokenizer).Tokenize(t.Context(), prompt)
		if err != nil {
			t.Fatal(err)
		}
		spelled := ""
		for _, tok := range tokens {
			spelled += tok.Piece
		}
		check(t, "pieces", spelled, prompt)
		check(t, "text", complete(t, m, Request{Prompt: text(prompt)}).text, whole)
	})
}

// TestBuiltinHidesControlTokens in the middle of a text, and keeps their ids.
func TestBuiltinHidesControlTokens(t *testing.T) {
	m := randomFile(t, tinymodel.Options{}).(*builtinModel)
	model, err := m.load()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := model.Tokenizer().Lookup("<|im_start|>")
	for _, preserve := range [][]string{nil, {"<|im_start|>"}} {
		var got []Chunk
		s := &builtinStream{
			req: Request{Preserve: preserve}, tokenizer: model.Tokenizer(),
			yield: func(c Chunk, _ error) bool { got = append(got, c); return true },
		}
		s.step(builtin.Step{Token: id})
		if len(got) != 1 || got[0].Text != strings.Join(preserve, "") || !slices.Equal(got[0].Tokens, []int{id}) {
			t.Errorf("preserved %q: %+v", preserve, got)
		}
	}
}

func TestBuiltinPrompt(t *testing.T) {
	words, err := tokenizer.FromMetadata(map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2",
		"tokenizer.ggml.tokens":     []string{"<s>", "a", "b", "ab", "</s>"},
		"tokenizer.ggml.token_type": []int32{3, 1, 1, 1, 3}, "tokenizer.ggml.merges": []string{"a b"},
		"tokenizer.ggml.bos_token_id": uint32(0), "tokenizer.ggml.eos_token_id": uint32(4), "tokenizer.ggml.add_bos_token": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prompt []Segment
		want   []int
	}{
		{[]Segment{{Text: "a"}, {Text: "b"}}, []int{0, 3}}, // joined
		{[]Segment{{Text: "a", Tokens: []int{1}}, {Text: "b"}}, []int{0, 1, 2}},
		{[]Segment{{Text: "<s>a"}}, []int{0, 1}}, // not twice
		{[]Segment{{Tokens: []int{0, 2}}}, []int{0, 2}},
		{[]Segment{{Tokens: []int{2}}, {Text: "</s>"}}, []int{0, 2, 4}},
		{[]Segment{{Text: ""}, {Text: "b"}}, []int{0, 2}},
	} {
		got, err := builtinPrompt(c.prompt, words)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, %v, want %v", c.prompt, got, err, c.want)
		}
	}
}

func TestBuiltinContext(t *testing.T) {
	turn := automaton.Turn{After: ".", Text: "one two three", Finish: automaton.FinishLength}
	m := scriptedFile(t, Options{ContextSize: 20}, turn)
	got := complete(t, m, Request{Prompt: text("Count.")})
	check(t, "finish", got.final.Finish, FinishContext)
	check(t, "tokens", got.final.Usage.Prompt.N+got.final.Usage.Generated.N, 20)
	var over *OverflowError
	if got := listen(t, t.Context(), m, Request{Prompt: text(strings.Repeat("Count.", 20))}); !errors.As(got.err, &over) || over.Context != Known(20) || over.PromptTokens.N < 100 {
		t.Errorf("error is %v", got.err)
	}
	info, err := m.(Describer).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "context", info.Context, Known(20))
	check(t, "trained", info.Trained, Known(32768))
}

// TestBuiltinSessions: what is known of a prompt is kept between two turns, of
// two sessions that take turns too.
func TestBuiltinSessions(t *testing.T) {
	report, err := MeasurePrefix(t.Context(), randomFile(t, tinymodel.Options{Context: 8192}))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "verdict", report.Verdict, PrefixKept)
	check(t, "exact", report.Exact, true)
	for _, turn := range report.Turns {
		if turn.Turn > 1 && turn.Usage.Evaluated.N > turn.Added.N {
			t.Errorf("%+v", turn)
		}
	}
}

func TestBuiltinScore(t *testing.T) {
	m := randomFile(t, tinymodel.Options{})
	score := func(prompt, s string) []Scored {
		t.Helper()
		out, err := m.(Scorer).Score(t.Context(), text(prompt), s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := score(userPrompt, "The telescope.<|im_end|>")
	prompt, spelled := userPrompt, ""
	for _, s := range got { // each alone, after all before it
		one := score(prompt+spelled, s.Piece)
		if len(one) != 1 || math.Abs(one[0].LogProb-s.LogProb) > 1e-9 {
			t.Errorf("%q has %g in the text and %+v alone", s.Piece, s.LogProb, one)
		}
		spelled += s.Piece
	}
	check(t, "pieces", spelled, "The telescope.<|im_end|>")
	check(t, "scores of nothing", len(score("a", "")), 0)
	var p *PromptError
	if _, err := m.(Scorer).Score(t.Context(), nil, "a"); !errors.As(err, &p) {
		t.Errorf("error is %v", err)
	}
	// What is said at temperature zero is the likeliest.
	said := complete(t, m, Request{Prompt: text(userPrompt), MaxTokens: 1})
	best := score(userPrompt, said.text)[0].LogProb
	for _, other := range []string{"a", "e", " ", "T", "<think>"} {
		if l := score(userPrompt, other)[0].LogProb; l > best {
			t.Errorf("%q has %g, and what was said %g", other, l, best)
		}
	}
}

func TestBuiltinSampling(t *testing.T) {
	warm, one, seed, any := 0.7, 1, 5, -1
	got := Sampling{}.builtin()
	check(t, "temperature", got.Temperature, 0.0)
	got = Sampling{Temperature: &warm, TopK: &one, Seed: &seed}.builtin()
	check(t, "options", got, builtin.Sampling{Temperature: 0.7, TopK: 1, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1, Seed: 5})
	if (Sampling{Seed: &any}).builtin().Seed == (Sampling{}).builtin().Seed {
		t.Error("two seeds that are not named are the same")
	}
	m := randomFile(t, tinymodel.Options{})
	first := complete(t, m, Request{Prompt: text("a"), MaxTokens: 20, Sampling: Sampling{Temperature: &warm, Seed: &seed}}).text
	check(t, "text of the same seed", complete(t, m, Request{Prompt: text("a"), MaxTokens: 20, Sampling: Sampling{Temperature: &warm, Seed: &seed}}).text, first)
}

// TestBuiltinIsInside: the model that comes along, by its name alone.
func TestBuiltinIsInside(t *testing.T) {
	m, err := Open("builtin", Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := m.(Describer).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check(t, "reference", info.Ref, "builtin")
	if !strings.HasPrefix(info.Server, "builtin qwen3 ") || info.Context.N < 1024 || info.Model == "" {
		t.Errorf("info %+v", info)
	}
	listed, err := m.(Lister).List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].Size < 1<<20 {
		t.Errorf("%+v, %v", listed, err)
	}
	if got := complete(t, m, Request{Prompt: text(userPrompt), MaxTokens: 5}); got.text == "" {
		t.Errorf("it says nothing: %+v", got)
	}
}

func TestBuiltinFilesThatAreNone(t *testing.T) {
	if _, err := Open("builtin:"+filepath.Join(t.TempDir(), "none.gguf"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	_, err := Open("builtin:builtin.go", Options{})
	var f *builtin.FileError
	if !errors.As(err, &f) || f.Path != "builtin.go" {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := randomFile(t, tinymodel.Options{})
	if _, err := m.(Scorer).Score(ctx, text("a"), "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}
