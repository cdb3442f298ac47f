package endtoend

import (
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/internal/sample"
	"stopgap/internal/tinymodel"
	"stopgap/models"
	"stopgap/models/builtin"
	"stopgap/template"
	"stopgap/tools"
)

// builtinFile is the embedded model.
const builtinFile = root + "/models/builtin/model.gguf"

func embedded(t testing.TB) *builtin.Model {
	t.Helper()
	m, err := builtin.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The whole job with the built-in engine, which counts what it reads: each turn
// costs the tokens that were appended and nothing else.
func TestWholeRunOnBuiltin(t *testing.T) {
	for _, sys := range systems(t) {
		t.Run(sys.format.Name, func(t *testing.T) {
			m, err := models.Open("builtin:"+modelFile(t, sys.turns, automaton.Options{}), models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := newRunner(t, sys.format.Name, textual{m}, documents(t))
			r.Session = "one"
			stops := check(t, sys, r)
			for i, stop := range stops[1:] {
				u, before := stop.Usage, stops[i].Usage
				appended := u.Prompt.N - before.Prompt.N - before.Generated.N
				if !u.Evaluated.Known || u.Evaluated.N > appended+5 || u.Evaluated.N+u.Reused.N != u.Prompt.N {
					t.Errorf("turn %d: %+v, %d tokens were appended", i+2, u, appended)
				}
			}
		})
	}
}

// learned are the formats that the embedded model was trained on.
var learned = []string{"qwen", "qwq", "react", "search-r1"}

// builtinPrompts are n prompts of 50 to 800 tokens as runs send them: openings
// with a question about the sample documents, the same with a call and what it
// finds, and a fifth of them cut off anywhere.
func builtinPrompts(t testing.TB, m *builtin.Model, n int) []string {
	t.Helper()
	set := sampleTools(t)
	var offered []template.Tool
	for _, s := range set.Specs() {
		offered = append(offered, template.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	questions := sample.Questions()
	r := rand.New(rand.NewPCG(1, 2))
	var prompts []string
	for i := 0; len(prompts) < n; i++ {
		if i > 20*n {
			t.Fatalf("only %d prompts of 50 to 800 tokens", len(prompts))
		}
		f, err := template.Load(learned[i%len(learned)])
		if err != nil {
			t.Fatal(err)
		}
		question := questions[r.IntN(len(questions))].Question
		text := opening(t, f, question, offered[:1+r.IntN(len(offered))])
		if i%3 > 0 {
			text += searched(t, f, set, question)
		}
		ids := m.Tokenizer().Encode(text, true)
		if i%5 == 0 {
			text = strings.ToValidUTF8(m.Tokenizer().Decode(ids[:min(len(ids), 50+r.IntN(750))]), "")
			ids = m.Tokenizer().Encode(text, true)
		}
		if len(ids) >= 50 && len(ids) <= 800 {
			prompts = append(prompts, text)
		}
	}
	return prompts
}

func opening(t testing.TB, f *template.Format, question string, offered []template.Tool) string {
	t.Helper()
	parts, err := f.Open(template.Opening{Question: question, Tools: offered, Date: "2026-01-02"})
	if err != nil {
		t.Fatal(err)
	}
	return joined(parts)
}

// searched is a turn that searches for the question, and what it finds.
func searched(t testing.TB, f *template.Format, set *tools.Set, question string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]any{"query": question})
	if err != nil {
		t.Fatal(err)
	}
	written, err := f.Write(template.Turn{Calls: []template.Call{{Name: "search", Arguments: arguments}}}, f.Think.Opened)
	if err != nil {
		t.Fatal(err)
	}
	results := set.Session().Run(context.Background(), []tools.Call{{Name: "search", Arguments: arguments}})
	parts, err := f.Continue(template.Continuation{Results: []template.Result{{Name: "search", ID: "call00001", Content: results[0].Content}}})
	if err != nil {
		t.Fatal(err)
	}
	return written + joined(parts)
}

func joined(parts []template.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

const (
	compared = 48           // tokens that each prompt is continued by
	ended    = "<|im_end|>" // stands for every end-of-generation token
	nearTie  = 0.02         // how far the logits of two candidates may be apart where a server takes the other one
)

// A writer continues a prompt greedily by at most compared tokens. The texts are
// those of the tokens, the end-of-generation token included.
type writer func(t *testing.T, prompt string) (tokens []string)

// sameTokens asserts that a server writes what the engine writes.
func sameTokens(t *testing.T, m *builtin.Model, n int, server writer) {
	t.Helper()
	others, total := 0, 0
	for i, prompt := range builtinPrompts(t, m, n) {
		ids := m.Tokenizer().Encode(prompt, true)
		var ours []int
		for s, err := range m.Generate(t.Context(), builtin.Request{Prompt: ids, MaxTokens: compared}) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Token >= 0 {
				ours = append(ours, s.Token)
			}
		}
		theirs := server(t, prompt)
		total += len(ours)
		dropped := 0 // so many of ours the server never shows
		for there := 0; there < len(theirs) && there+dropped < len(ours); there++ {
			same := func(j int) bool {
				return j < len(ours) && theirs[there] == asJSON(t, string(m.Tokenizer().Bytes(ours[j])))
			}
			j := there + dropped
			if same(j) || theirs[there] == ended && ends(m, ours[j:]) {
				continue
			}
			if n := unfinished(m, ours[j:]); n > 0 && same(j+n) {
				dropped += n
				continue
			}
			others++
			gap := tie(t, m, append(ids, ours[:j]...), ours[j], theirs[there])
			t.Logf("prompt %d (%d tokens), token %d: %q here, %q there, whose logit is %.4f lower", i, len(ids), j, m.Tokenizer().Bytes(ours[j]), theirs[there], gap)
			if gap > nearTie {
				t.Errorf("prompt %d: another token, and no near-tie:\n%s", i, prompt)
			}
			break
		}
		if len(theirs) == 0 {
			t.Errorf("prompt %d: the server writes nothing", i)
		}
	}
	t.Logf("%d of %d prompts go on with another token; %d tokens", others, n, total)
	if others > max(1, n/50) {
		t.Errorf("%d of %d prompts go on with another token", others, n)
	}
}

// ends reports whether tokens are an end, with nothing before it but bytes that
// never became a character.
func ends(m *builtin.Model, ids []int) bool {
	last := len(ids) - 1
	return m.Tokenizer().EOG(ids[last]) && unfinished(m, ids) == last
}

// unfinished counts the tokens at the beginning that are bytes of characters
// which never came to their end: Ollama drops those.
func unfinished(m *builtin.Model, ids []int) int {
	n := 0
	for n < len(ids) && !m.Tokenizer().EOG(ids[n]) && !strings.ContainsFunc(m.Tokenizer().Decode(ids[:n+1]), func(r rune) bool { return r != utf8.RuneError }) {
		n++
	}
	return n
}

// tie is how much lower the engine's logit of the other token is.
func tie(t *testing.T, m *builtin.Model, prompt []int, chosen int, other string) float64 {
	t.Helper()
	id, ok := m.Tokenizer().Lookup(other)
	if !ok {
		t.Fatalf("no token is spelled %q", other)
	}
	var logprobs [2]float64
	for i, id := range []int{chosen, id} {
		s, err := m.Score(t.Context(), prompt, []int{id})
		if err != nil {
			t.Fatal(err)
		}
		logprobs[i] = s[0]
	}
	return logprobs[0] - logprobs[1]
}

// asJSON is a text as it comes out of JSON, where what is no UTF-8 is replaced.
func asJSON(t *testing.T, s string) (out string) {
	t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// prompted is the number of prompts to compare.
func prompted() int {
	if ollamatest.Required() {
		return 100
	}
	return 10 // make test compares the rest
}

// Same file, same prompt: the tokens of the real Ollama, which also counts the
// prompt's tokens.
func TestBuiltinWritesWhatOllamaWrites(t *testing.T) {
	s, m := ollamatest.Shared(t), embedded(t)
	s.Create(t, "inside", builtinFile, nil)
	options := map[string]any{"temperature": 0, "num_predict": compared, "num_ctx": 4096}
	counted := 0
	sameTokens(t, m, prompted(), func(t *testing.T, prompt string) (tokens []string) {
		var last api.GenerateResponse
		text := ""
		err := s.Client.Generate(t.Context(), &api.GenerateRequest{
			Model: "inside", Prompt: prompt, Raw: true, Options: options, Logprobs: true, Think: &api.ThinkValue{Value: false},
		}, func(r api.GenerateResponse) error {
			for _, l := range r.Logprobs {
				tokens = append(tokens, l.Token)
			}
			text += r.Response
			last = r
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(m.Tokenizer().Encode(prompt, true)); last.PromptEvalCount == n {
			counted++
		} else if last.PromptEvalCount != 0 { // zero: Ollama does not say
			t.Errorf("Ollama counts %d tokens, the tokenizer %d, in:\n%s", last.PromptEvalCount, n, prompt)
		}
		if last.DoneReason == "stop" {
			tokens = append(tokens, ended)
		}
		return tokens
	})
	if counted < prompted()*4/5 {
		t.Errorf("Ollama counted the tokens of only %d of %d prompts", counted, prompted())
	}
}

// Ollama tells the ids of a prompt that it renders itself.
func TestBuiltinReadsWhatOllamaReads(t *testing.T) {
	s, m := ollamatest.Shared(t), embedded(t)
	s.Create(t, "inside", builtinFile, nil)
	for i, prompt := range builtinPrompts(t, m, prompted()) {
		var got []int
		text := prompt
		err := s.Client.Generate(t.Context(), &api.GenerateRequest{
			Model: "inside", Prompt: prompt, Template: "{{ .Prompt }}", Think: &api.ThinkValue{Value: false},
			Options: map[string]any{"temperature": 0, "num_predict": 1, "num_ctx": 4096},
		}, func(r api.GenerateResponse) error {
			text += r.Response
			got = append(got, r.Context...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := m.Tokenizer().Encode(text, true); !slices.Equal(got, want) {
			t.Errorf("prompt %d: Ollama reads\n%v, the tokenizer\n%v", i, got, want)
		}
	}
}

// The same on llama-server, which tells ids.
func TestBuiltinWritesWhatLlamaServerWrites(t *testing.T) {
	url := ollamatest.LlamaServer(t, builtinFile, "-c", "4096", "-np", "1")
	server, err := models.Open("llamacpp:"+url, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, zero := embedded(t), 0.0
	sameTokens(t, m, prompted(), func(t *testing.T, prompt string) (tokens []string) {
		read, err := server.(models.Tokenizer).Tokenize(t.Context(), prompt)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int
		for _, tok := range read {
			ids = append(ids, tok.ID)
		}
		if want := m.Tokenizer().Encode(prompt, true); !slices.Equal(ids, want) {
			t.Errorf("llama-server reads\n%v, the tokenizer\n%v", ids, want)
		}
		for c, err := range server.Stream(t.Context(), models.Request{
			Prompt: []models.Segment{{Text: prompt}}, MaxTokens: compared, Sampling: models.Sampling{Temperature: &zero}, Preserve: []string{ended, "<|endoftext|>"},
		}) {
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range c.Tokens {
				tokens = append(tokens, asJSON(t, string(m.Tokenizer().Bytes(id))))
			}
		}
		return tokens
	})
}

// Both architectures and all types of weights, at random: the probabilities of
// the likeliest tokens are those that Ollama gives them. Random weights make
// much of a last bit, so the limits are wide; what is read wrongly is far
// outside of them.
func TestBuiltinProbabilitiesAreOllamas(t *testing.T) {
	s := ollamatest.Shared(t)
	var text strings.Builder
	for _, q := range sample.Questions() {
		text.WriteString(q.Question + "\n")
	}
	for name, c := range map[string]struct {
		tinymodel.Options
		limit float64
	}{
		"qwen3-f16": {tinymodel.Options{Type: ggml.TensorTypeF16}, 0.05},
		"qwen3-f32": {tinymodel.Options{Type: ggml.TensorTypeF32, Output: true}, 0.05},
		"qwen3-q80": {tinymodel.Options{Type: ggml.TensorTypeQ8_0}, 0.5},
		"qwen2-f16": {tinymodel.Options{Type: ggml.TensorTypeF16, Architecture: "qwen2", Head: 16, Output: true}, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tiny.gguf")
			if err := tinymodel.Write(path, text.String(), c.Options); err != nil {
				t.Fatal(err)
			}
			m, err := builtin.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			s.Create(t, "random-"+name, path, nil)
			prompt := text.String()[:500]
			var top []api.TokenLogprob
			err = s.Client.Generate(t.Context(), &api.GenerateRequest{
				Model: "random-" + name, Prompt: prompt, Raw: true, Logprobs: true, TopLogprobs: 10, Think: &api.ThinkValue{Value: false},
				Options: map[string]any{"temperature": 0, "num_predict": 1, "num_ctx": 2048},
			}, func(r api.GenerateResponse) error {
				for _, l := range r.Logprobs {
					top = l.TopLogprobs
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			seen, worst := 0, 0.0
			for _, token := range top {
				id, ok := m.Tokenizer().Lookup(token.Token)
				if !ok {
					continue // a part of a character
				}
				got, err := m.Score(t.Context(), m.Tokenizer().Encode(prompt, true), []int{id})
				if err != nil {
					t.Fatal(err)
				}
				seen, worst = seen+1, max(worst, math.Abs(got[0]-token.Logprob))
			}
			t.Logf("%d tokens, the worst difference is %.4f", seen, worst)
			if seen < 4 || worst > c.limit {
				t.Errorf("%d tokens, the worst difference is %.4f", seen, worst)
			}
		})
	}
}
