package models

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/models/builtin"
)

const tellsAll = `{
	"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.add_bos_token": true, "tokenizer.ggml.bos_token_id": 3,
	"tokenizer.ggml.tokens": ["a", "b", "ab", "<|im_end|>", "<tool_call>"], "tokenizer.ggml.token_type": [1, 1, 1, 3, 4],
	"tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.eos_token_id": 3
}`

func TestOllamaSpelling(t *testing.T) {
	s, err := telling(t, tellsAll).(Speller).Spelling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Special, []string{"<|im_end|>", "<tool_call>"}) || !s.Complete || s.IDs || s.Exact {
		t.Errorf("%+v", s)
	}
	tokens, err := s.Encode(t.Context(), "ab<tool_call>", true)
	if err != nil || !slices.Equal(tokens, []Token{{2, "ab"}, {4, "<tool_call>"}}) {
		t.Errorf("%v, %v", tokens, err)
	}
	// Of a kind of tokenizer that is not read the special tokens are known.
	s, err = telling(t, strings.Replace(tellsAll, `"gpt2"`, `"rwkv"`, 1)).(Speller).Spelling(t.Context())
	if err != nil || s.Encode != nil || len(s.Special) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	// Of a model that runs elsewhere nothing is.
	s, err = telling(t, `{"general.architecture": "elsewhere"}`).(Speller).Spelling(t.Context())
	if err != nil || s.Encode != nil || s.Special != nil || s.Complete {
		t.Errorf("%+v, %v", s, err)
	}
}

// A server that cannot be asked gives its error.
func TestSpellingNeedsAServer(t *testing.T) {
	url := httpServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"model 'm' not found"}`)
	})
	m, err := Open("ollama:m", Options{OllamaHost: url, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.(Speller).Spelling(t.Context())
	var missing *NotFoundError
	if !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
}

// llamaTokenizer answers /tokenize with a token for each character, and for the
// special ones that are asked for.
func llamaTokenizer(t *testing.T, template string, special ...string) Speller {
	t.Helper()
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Content string `json:"content"`
			Special bool   `json:"parse_special"`
		}
		var answer any
		switch _ = json.NewDecoder(r.Body).Decode(&in); r.URL.Path {
		case "/props":
			answer = map[string]any{"default_generation_settings": map[string]any{"n_ctx": 64}, "total_slots": 1, "chat_template": template, "eos_token": "<|end|>"}
		case "/tokenize":
			tokens := []map[string]any{}
			for text := in.Content; text != ""; {
				_, size := utf8.DecodeRuneInString(text)
				piece := text[:size]
				for _, s := range special {
					if in.Special && strings.HasPrefix(text, s) {
						piece = s
					}
				}
				tokens, text = append(tokens, map[string]any{"id": len(piece), "piece": piece}), text[len(piece):]
			}
			answer = map[string]any{"tokens": tokens}
		default:
			answer = map[string]any{"data": []any{}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	m, err := Open("llamacpp:"+url, Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m.(Speller)
}

// llama-server's special tokens are those of the template that are one token.
func TestLlamaSpelling(t *testing.T) {
	m := llamaTokenizer(t, "<|im_start|>{{ <role> }}[INST] <tool_call> <|im_start|>[not]", "<|im_start|>", "<tool_call>", "[INST]", "<|end|>")
	s, err := m.Spelling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"<tool_call>", "<|end|>", "<|im_start|>", "[INST]"}; !slices.Equal(s.Special, want) || s.Complete || !s.IDs || !s.Exact {
		t.Errorf("%+v", s)
	}
	tokens, err := s.Encode(t.Context(), "é<|end|>", false)
	if err != nil || len(tokens) != 8 || tokens[0].Piece != "é" {
		t.Errorf("%v, %v", tokens, err)
	}
	if _, err = s.Encode(t.Context(), "\xff", false); err == nil {
		t.Error("bytes that are not text were sent")
	}
}

func TestBuiltinSpelling(t *testing.T) {
	m, err := Open("builtin", Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.(Speller).Spelling(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	model, err := builtin.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if !s.IDs || !s.Exact || !s.Complete || !slices.Equal(s.Special, model.Tokenizer().Specials()) || !slices.Contains(s.Special, "<|im_end|>") {
		t.Errorf("%+v", s)
	}
	plain, _ := s.Encode(t.Context(), "<|im_end|>", false)
	special, _ := s.Encode(t.Context(), "<|im_end|>", true)
	if len(special) != 1 || len(plain) < 2 || special[0].Piece != "<|im_end|>" {
		t.Errorf("%v, %v", plain, special)
	}
}
