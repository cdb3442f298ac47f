package automaton

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"
	"github.com/ollama/ollama/tokenizer"
)

const (
	chatML   = "<|im_start|>assistant\n"
	response = "\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
)

var twoTurns = Script{Turns: []Turn{
	{After: chatML, Text: "<think>\nI look it up.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": [\"capital of France\"]}}\n</tool_call>"},
	{After: response, Text: "<think>\nI have it.\n</think>\n\nThe capital of France is Paris. 首都是巴黎。"},
}}

func compile(t *testing.T, s Script) *Automaton {
	t.Helper()
	a, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// walk follows the automaton from a token, for at most limit tokens.
func (a *Automaton) walk(from, limit int) string {
	var text strings.Builder
	for id := a.next[from]; id != a.end && limit > 0; id = a.next[id] {
		text.WriteString(a.tokens[id].text)
		limit--
	}
	return text.String()
}

// encode reads a prompt with the vocabulary of a written file, by the
// tokenizer of Ollama's own engine.
func encode(t *testing.T, path, prompt string) []int32 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := ggml.Decode(f, -1)
	if err != nil {
		t.Fatal(err)
	}
	kv := m.KV()
	bpe := tokenizer.NewBytePairEncoding(&tokenizer.Vocabulary{
		Values: kv.Strings("tokenizer.ggml.tokens"),
		Types:  kv.Ints("tokenizer.ggml.token_type"),
		Merges: kv.Strings("tokenizer.ggml.merges"),
	})
	ids, err := bpe.Encode(prompt, false)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestPromptLeadsIntoItsTurn(t *testing.T) {
	a := compile(t, twoTurns)
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := a.WriteFile(path, Options{}); err != nil {
		t.Fatal(err)
	}
	opening := "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n" + chatML
	for _, c := range []struct{ name, prompt, want string }{
		{"the first turn", opening, twoTurns.Turns[0].Text},
		{"the second turn", opening + twoTurns.Turns[0].Text + "<|im_end|>\n<|im_start|>user\n<tool_response>\nParis" + response, twoTurns.Turns[1].Text},
		{"no turn", "What is the capital of France?\n", Lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			ids := encode(t, path, c.prompt)
			if got := a.walk(int(ids[len(ids)-1]), 1000); got != c.want {
				t.Errorf("the model would write %q, want %q", got, c.want)
			}
		})
	}
}

func TestVocabularyHasNoDuplicates(t *testing.T) {
	a := compile(t, twoTurns)
	seen := map[string]bool{}
	for _, text := range a.metadata(1024, Options{}.withDefaults())["tokenizer.ggml.tokens"].([]string) {
		if seen[text] {
			t.Errorf("%q is there twice", text)
		}
		seen[text] = true
	}
	if n := a.Size(); n < 256 || n > 350 {
		t.Errorf("%d tokens for two short turns", n)
	}
}

func TestLengthRepeatsTheText(t *testing.T) {
	a := compile(t, Script{Turns: []Turn{{After: "x:", Text: "on and on", Finish: FinishLength}}})
	from := slices.IndexFunc(a.tokens, func(k token) bool { return k.text == "x:" })
	// Three tokens a round.
	if got, want := a.walk(from, 7), "on and onon and onon"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadScripts(t *testing.T) {
	for _, c := range []struct {
		name, want string
		turns      []Turn
	}{
		{"none", "no turns", nil},
		{"no beginning", "turn 1 does not say what it begins after", []Turn{{Text: "a"}}},
		{"same beginning", "turns 1 and 2 begin after the same text", []Turn{{After: "x", Text: "a b"}, {After: "x", Text: "c d"}}},
		{"after the end", "begins after the token that ends", []Turn{{After: "<|im_end|>", Text: "a b"}}},
		{"control token", "control token <|im_end|>", []Turn{{After: "x", Text: "a <|im_end|> b"}}},
		{"finish", `finish is "done"`, []Turn{{After: "x", Text: "a b", Finish: "done"}}},
		{"nothing to repeat", "no text to repeat", []Turn{{After: "x", Finish: FinishLength}}},
		{"said before", "all of turn 2 is said elsewhere", []Turn{{After: "x", Text: "yes"}, {After: "y", Text: "yes"}}},
		{"too long", "a file holds 4096", []Turn{{After: "x", Text: numbers(5000)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile(Script{Turns: c.turns})
			if !errors.Is(err, ErrScript) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadScript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.yaml")
	yaml := "turns:\n  - after: \"<|im_start|>assistant\\n\"\n    text: |-\n      one\n      two\n    finish: length\n    chunk: 3\n    delay: 10ms\n"
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadScript(path)
	want := Turn{After: chatML, Text: "one\ntwo", Finish: FinishLength}
	if err != nil || len(s.Turns) != 1 || s.Turns[0] != want {
		t.Errorf("got %+v, %v; want %+v", s, err, want)
	}
	for name, bad := range map[string]string{
		"a misspelt field": "turns:\n  - afer: x\n",
		"a fault":          "turns:\n  - after: x\n    text: y\n    error: cut\n",
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadScript(path); !errors.Is(err, ErrScript) {
			t.Errorf("%s: got %v, want ErrScript", name, err)
		}
	}
}
