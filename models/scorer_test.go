package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// scoringServer is vLLM or SGLang with a tokenizer of one id a byte: the byte
// itself. A spaced one puts a space before each text, which a letter joins
// (1000 more) and nothing else (999). entry is what stands for token i of those
// that a request scores.
func scoringServer(t *testing.T, models string, spaced bool, entry func(i, id int) string) (Scorer, func() map[string]any) {
	var sent map[string]any
	answer := func(w http.ResponseWriter, s string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, s)
	}
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		var entries []string
		list := func(ids any, from int) string {
			for i, id := range ids.([]any)[from:] {
				entries = append(entries, entry(from+i, int(id.(float64))))
			}
			return strings.Join(entries, ",")
		}
		switch r.URL.Path {
		case "/v1/models":
			answer(w, models)
		case "/tokenize":
			answer(w, fmt.Sprintf(`{"tokens":%s}`, jsonOf(t, byteIDs(body["prompt"].(string), spaced, body["add_special_tokens"] == true))))
		case "/v1/completions":
			sent = body
			answer(w, `{"choices":[{"index":0,"text":"x","prompt_logprobs":[`+list(body["prompt"], 0)+`]}]}`)
		case "/generate":
			sent = body
			answer(w, `{"text":"","meta_info":{"input_token_logprobs":[`+list(body["input_ids"], int(body["logprob_start_len"].(float64)))+`]}}`)
		default:
			http.NotFound(w, r)
		}
	})
	m, err := Open("openai:"+url+"#m", Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m.(Scorer), func() map[string]any { return sent }
}

func byteIDs(s string, spaced, special bool) []int {
	ids := []int{}
	if special {
		ids = append(ids, 1)
	}
	for i, b := range []byte(s) {
		id := int(b)
		if i == 0 && spaced {
			if b >= 'a' {
				id += 1000
			} else {
				ids = append(ids, 999)
			}
		}
		ids = append(ids, id)
	}
	return ids
}

// What vLLM and SGLang say of a token; of the first one nothing is known.
func vllmEntry(i, id int) string {
	if i == 0 {
		return "null"
	}
	return fmt.Sprintf(`{"%d":{"logprob":%v,"rank":1,"decoded_token":%q}}`, id, -float64(i)/2, "piece"+strconv.Itoa(id))
}

func sglangEntry(i, id int) string {
	if i == 1 { // the start of what is asked for
		return fmt.Sprintf(`[null,%d,%q]`, id, "piece"+strconv.Itoa(id))
	}
	return fmt.Sprintf(`[%v,%d,%q]`, -float64(i)/2, id, "piece"+strconv.Itoa(id))
}

func TestScoresOfOpenAIServers(t *testing.T) {
	some := []Segment{{Text: "a", Tokens: []int{7}}, {Text: "b", Tokens: []int{8}}}
	for _, c := range []struct {
		name   string
		models string
		spaced bool
		prompt []Segment
		ids    string // all that is sent
	}{
		{"vLLM", vllmModels, false, text("ab"), "[97,98,99,10]"},
		{"vLLM, ids", vllmModels, false, some, "[7,8,99,10]"},
		{"vLLM, a tokenizer that adds spaces", vllmModels, true, text("ab"), "[1097,98,99,10]"},
		{"SGLang", sglangModels, false, some, "[7,8,99,10]"},
		{"SGLang adds special tokens to a text", sglangModels, false, text("b"), "[1,98,99,10]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entry := vllmEntry
			field := "prompt"
			if c.models == sglangModels {
				entry, field = sglangEntry, "input_ids"
			}
			m, sent := scoringServer(t, c.models, c.spaced, entry)
			got, err := m.Score(t.Context(), c.prompt, "c\n")
			if err != nil {
				t.Fatal(err)
			}
			check(t, "ids", jsonOf(t, sent()[field]), c.ids)
			check(t, "scores", fmt.Sprint(got), "[{{99 piece99} -1} {{10 piece10} -1.5}]")
			if got, err := m.Score(t.Context(), c.prompt, ""); got != nil || err != nil {
				t.Errorf("scores of nothing are %v, %v", got, err)
			}
		})
	}
}

// TestScoresThatAreNotThere: an answer that does not tell what was asked is an
// error, and what no JSON number can say is minus infinity.
func TestScoresThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		name, models, entry string
		never               bool
	}{
		{"vLLM's infinity", vllmModels, `{"99":{"logprob":-9999.0,"decoded_token":"c"}}`, true},
		{"another token", vllmModels, `{"98":{"logprob":-1,"decoded_token":"c"}}`, false},
		{"nothing", vllmModels, `null`, false},
		{"no number", vllmModels, `{"99":{"logprob":null}}`, false},
		{"too many", vllmModels, `null,null`, false},
		{"another token of SGLang", sglangModels, `[-1,98,"c"]`, false},
		{"no number of SGLang", sglangModels, `[null,99,"c"]`, false},
		{"another shape of SGLang", sglangModels, `[-1,99]`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := scoringServer(t, c.models, false, func(int, int) string { return c.entry })
			got, err := m.Score(t.Context(), text("ab"), "c")
			if c.never {
				if err != nil || len(got) != 1 || !math.IsInf(got[0].LogProb, -1) {
					t.Errorf("scores are %v, %v", got, err)
				}
				return
			}
			var p *ProtocolError
			if !errors.As(err, &p) {
				t.Errorf("scores are %v, error is %v, want a ProtocolError", got, err)
			}
		})
	}
	m, _ := scoringServer(t, studioModels, false, vllmEntry)
	_, err := m.Score(t.Context(), text("a"), "b")
	unsupported(t, err)
}

// scoringLlama is a llama-server with one id a byte, as above. tell makes what
// it says of a generation, empty for nothing.
func scoringLlama(t *testing.T, spaced bool, tell func(request map[string]any) string) (Scorer, *[]map[string]any) {
	var requests []map[string]any
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		switch r.URL.Path {
		case "/tokenize":
			var tokens []map[string]any
			for _, id := range byteIDs(body["content"].(string), spaced, false) {
				piece := string(rune(id % 1000))
				if id >= 1000 {
					piece = " " + piece
				} else if id == 999 {
					piece = " "
				}
				tokens = append(tokens, map[string]any{"id": id, "piece": piece})
			}
			_, _ = io.WriteString(w, `{"tokens":`+jsonOf(t, tokens)+`}`)
		case "/completion":
			requests = append(requests, body)
			w.Header().Set("Content-Type", "text/event-stream")
			if probs := tell(body); probs != "" {
				_, _ = io.WriteString(w, event(`{"content":"","tokens":[1],"stop":false,"completion_probabilities":[`+probs+`]}`))
			}
			_, _ = io.WriteString(w, llamaEnd("limit", false, 1))
		default:
			_, _ = io.WriteString(w, llamaDialect.asides[r.URL.Path])
		}
	})
	m, err := Open("llamacpp:"+url, Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	return m.(Scorer), &requests
}

// said is the token that a request leaves no other choice than.
func said(request map[string]any) int {
	return int(request["logit_bias"].([]any)[0].([]any)[0].(float64))
}

func TestLlamaScoresOneTokenARequest(t *testing.T) {
	m, requests := scoringLlama(t, false, func(r map[string]any) string {
		return fmt.Sprintf(`{"id":%d,"logprob":-%d,"top_logprobs":[{"id":5,"logprob":-0.1}]}`, said(r), len(jsonOf(t, r["prompt"])))
	})
	got, err := m.Score(t.Context(), []Segment{{Text: "p"}, {Text: "q", Tokens: []int{7}}, {Text: "r"}}, "bc\n")
	if err != nil {
		t.Fatal(err)
	}
	var prompts []string
	for _, r := range *requests {
		prompts = append(prompts, jsonOf(t, r["prompt"]))
		check(t, "tokens", r["n_predict"], any(1.0))
		if _, named := r["id_slot"]; named {
			t.Error("a slot is named")
		}
	}
	check(t, "prompts", strings.Join(prompts, " "), `["p",7,"r"] ["p",7,"r",98] ["p",7,"r",98,99]`)
	check(t, "scores", fmt.Sprint(got), "[{{98 b} -11} {{99 c} -14} {{10 \n} -17}]")
}

// TestLlamaScoresThatAreNotSampled: a token that the server cannot be made to
// say, or of which it says nothing then, is found in longer and longer lists.
func TestLlamaScoresThatAreNotSampled(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(listed float64) string
		want float64 // 1: an error
		asks int
	}{
		{"at once", func(float64) string { return `{"id":98,"logprob":-1}` }, -1, 1},
		{"as the most likely", func(float64) string { return `{"id":97,"logprob":-1,"top_logprobs":[{"id":98,"logprob":-0.5}]}` }, -0.5, 1},
		{"never", func(float64) string { return `{"id":98,"logprob":-3.4028234663852886e+38}` }, math.Inf(-1), 1},
		{"in a list", func(n float64) string {
			if n < 1000 {
				return ""
			}
			return `{"id":97,"logprob":-1,"top_logprobs":[{"id":97,"logprob":-1},{"id":98,"logprob":-2}]}`
		}, -2, 2},
		{"among all", func(n float64) string {
			if n <= 1000 {
				return `{"id":97,"logprob":-1,"top_logprobs":[{"id":97,"logprob":-1}]}`
			}
			return `{"id":97,"logprob":-1,"top_logprobs":[{"id":98,"logprob":-9}]}`
		}, -9, 3},
		{"nowhere", func(float64) string { return `{"id":97,"logprob":-1}` }, 1, 3},
		{"as an older server says it", func(float64) string { return `{"content":"b","probs":[{"tok_str":"b","prob":1}]}` }, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, requests := scoringLlama(t, false, func(r map[string]any) string { return c.tell(r["n_probs"].(float64)) })
			got, err := m.Score(t.Context(), text("p"), "b")
			check(t, "requests", len(*requests), c.asks)
			for i, r := range *requests {
				check(t, "the letter is said instead", said(r) == 'a', i > 0)
			}
			var p *ProtocolError
			if c.want > 0 {
				if !errors.As(err, &p) {
					t.Errorf("scores are %v, error is %v, want a ProtocolError", got, err)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0].LogProb != c.want {
				t.Errorf("scores are %v, %v", got, err)
			}
		})
	}
}

// TestLlamaScoresAfterASpace: a tokenizer that puts a space before each text
// puts none before one that follows another.
func TestLlamaScoresAfterASpace(t *testing.T) {
	tell := func(r map[string]any) string { return fmt.Sprintf(`{"id":%d,"logprob":-1}`, said(r)) }
	m, requests := scoringLlama(t, true, tell)
	for _, c := range []string{"bc", "\nb", " b"} {
		*requests = nil
		got, err := m.Score(t.Context(), text("p"), c)
		if err != nil {
			t.Fatal(err)
		}
		spelled := ""
		for _, s := range got {
			spelled += s.Piece
		}
		check(t, "text", spelled, c)
		check(t, "the prompt of the last", jsonOf(t, (*requests)[1]["prompt"]), fmt.Sprintf(`["p",%d]`, c[0]))
	}
}

func TestLlamaScoresThatCannotBe(t *testing.T) {
	m, requests := scoringLlama(t, false, func(map[string]any) string { return "" })
	for _, c := range [][2]string{{"", "x"}, {"\xe4", "x"}, {"x", "\xe4"}} {
		var p *PromptError
		if got, err := m.Score(t.Context(), text(c[0]), c[1]); !errors.As(err, &p) {
			t.Errorf("score of %q after %q: %v, %v", c[1], c[0], got, err)
		}
	}
	if got, err := m.Score(t.Context(), text("x"), ""); got != nil || err != nil {
		t.Errorf("scores of nothing are %v, %v", got, err)
	}
	check(t, "generations", len(*requests), 0)
	// A tokenizer may leave nothing of a text.
	f := llamaDialect.with("/tokenize", `{"tokens":[]}`).serve(t, nil)
	var p *PromptError
	if got, err := f.open(t, Options{}).(Scorer).Score(t.Context(), text("x"), "y"); !errors.As(err, &p) {
		t.Errorf("score of a text without tokens: %v, %v", got, err)
	}
}

// TestReplyWaitsWhileTheModelLoads, as a generation does.
func TestReplyWaitsWhileTheModelLoads(t *testing.T) {
	var calls atomic.Int64
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if r.URL.Path == "/apply-template" {
			_, _ = io.WriteString(w, `{"prompt":"hi"}`)
			return
		}
		_, _ = io.WriteString(w, llamaDialect.asides[r.URL.Path])
	})
	m, err := Open("llamacpp:"+url, Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	render(t, m, Conversation{Messages: []Message{{Role: RoleUser, Content: "x"}}}, "hi")
}

func TestRepliesThatAreNone(t *testing.T) {
	conversation := Conversation{Messages: []Message{{Role: RoleUser, Content: "the patient is Hieronymus Unwin"}}}
	for _, c := range []struct {
		name  string
		play  http.HandlerFunc
		check func(error) bool
	}{
		{"a page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<p>the patient is Hieronymus Unwin")
		}, func(err error) bool { var e *ProtocolError; return errors.As(err, &e) }},
		{"no JSON", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"prompt":"the patient is Hieronymus Unwin`)
		}, func(err error) bool { var e *ProtocolError; return errors.As(err, &e) }},
		{"cut", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"prompt":`)
		}, func(err error) bool { var e *CutError; return errors.As(err, &e) }},
		{"an error", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "cannot render: the patient is Hieronymus Unwin", http.StatusInternalServerError)
		}, func(err error) bool { var e *ServerError; return errors.As(err, &e) }},
		{"silence", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(err error) bool { var e *StallError; return errors.As(err, &e) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/apply-template" {
					_, _ = io.ReadAll(r.Body)
					c.play(w, r)
					return
				}
				_, _ = io.WriteString(w, llamaDialect.asides[r.URL.Path])
			})
			limit := time.Minute
			if c.name == "silence" {
				limit = 200 * time.Millisecond
			}
			m, err := Open("llamacpp:"+url, Options{Retries: -1, FirstToken: limit})
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.(Renderer).Render(t.Context(), conversation)
			if !c.check(err) || got != "" {
				t.Errorf("rendering is %q, error is %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "Hieronymus") {
				t.Errorf("the error tells it: %v", err)
			}
		})
	}
}
