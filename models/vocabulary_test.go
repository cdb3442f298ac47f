package models

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"

	"stopgap/models/tokenizer"
)

// telling is an Ollama whose model has this model_info, which it tells whole
// only where it is asked for everything.
func telling(t *testing.T, info string) VocabularyTeller {
	t.Helper()
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Verbose bool }
		_ = json.NewDecoder(r.Body).Decode(&body)
		if r.URL.Path != "/api/show" || !body.Verbose {
			info = `{"tokenizer.ggml.model":"gpt2","tokenizer.ggml.tokens":null}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model_info":`+info+`}`)
	})
	m, err := Open("ollama:m", Options{OllamaHost: url, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m.(VocabularyTeller)
}

func TestOllamaTellsItsVocabulary(t *testing.T) {
	tok, err := telling(t, `{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.add_bos_token": false,
		"tokenizer.ggml.tokens": ["a", "b", "ab", "<|im_end|>"], "tokenizer.ggml.token_type": [1, 1, 1, 3],
		"tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 3
	}`).Vocabulary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode("aab<|im_end|>", true); !slices.Equal(ids, []int{0, 2, 3}) || !tok.EOG(3) {
		t.Errorf("%v", ids)
	}

	_, err = telling(t, `{"tokenizer.ggml.model": "llama"}`).Vocabulary(t.Context())
	var unsupported *tokenizer.UnsupportedError
	var broken *tokenizer.FormatError
	if !errors.As(err, &unsupported) && !errors.As(err, &broken) {
		t.Errorf("SentencePiece: %v", err)
	}
	_, err = telling(t, `{}`).Vocabulary(t.Context())
	var protocol *ProtocolError
	if !errors.As(err, &protocol) {
		t.Errorf("nothing told: %v", err)
	}
}

func TestBuiltinTellsItsVocabulary(t *testing.T) {
	m, err := Open("builtin", Options{})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := m.(VocabularyTeller).Vocabulary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.(Tokenizer).Tokenize(t.Context(), "a<|im_end|> 中")
	if err != nil {
		t.Fatal(err)
	}
	got := tok.Encode("a<|im_end|> 中", true)
	if !slices.EqualFunc(got, want, func(id int, t Token) bool { return id == t.ID }) {
		t.Errorf("%v, want %v", got, want)
	}
}
