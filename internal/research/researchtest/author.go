// Package researchtest has models for tests of research whose every word is
// known: one that reads its prompts and does a whole run, and the same as a file
// for a real Ollama, which is made of what the first one said.
package researchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stopgap/models"
)

// An Author is what a model writes after a prompt: a function of the prompt
// that is safe for concurrent use. An error breaks the stream off.
type Author func(ctx context.Context, prompt string) (string, error)

// Stream implements models.Model: a word is a chunk. Schemas are taken as a wish.
func (a Author) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		var prompt strings.Builder
		for _, s := range req.Prompt {
			prompt.WriteString(s.Text)
		}
		text, err := a(ctx, prompt.String())
		if err != nil {
			yield(models.Chunk{}, err)
			return
		}
		finish := models.FinishStop
		words := strings.SplitAfter(text, " ")
		if req.MaxTokens > 0 && len(words) > req.MaxTokens {
			words, finish = words[:req.MaxTokens], models.FinishLength
		}
		for _, word := range words {
			if word != "" && !yield(models.Chunk{Text: word}, nil) {
				return
			}
		}
		yield(models.Chunk{Final: &models.Final{Finish: finish}}, nil)
	}
}

// Serve answers as an OpenAI-style server with one model, on loopback, until
// the test ends, and gives the reference that opens it.
func (a Author) Serve(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"researcher","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1/completions", a.complete)
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections() // a request may wait for its client to leave
		s.Close()
	})
	return "openai:" + s.URL + "#researcher"
}

// complete streams one generation.
func (a Author) complete(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Prompt string `json:"prompt"`
		Max    int    `json:"max_tokens"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	finish := models.FinishStop
	req := models.Request{Prompt: []models.Segment{{Text: body.Prompt}}, MaxTokens: body.Max}
	for c, err := range a.Stream(r.Context(), req) {
		switch {
		case err != nil:
			panic(http.ErrAbortHandler)
		case c.Final != nil:
			finish = c.Final.Finish
		default:
			frame, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "text": c.Text, "finish_reason": nil}}}) // strings
			fmt.Fprintf(w, "data: %s\n\n", frame)
		}
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", finish)
}
