package models

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func llamaFake(t *testing.T, frames ...string) *fake {
	if frames == nil {
		frames = llamaDialect.frames("x")
	}
	return llamaDialect.serve(t, llamaDialect.says(frames...))
}

// with gives a dialect other answers to what is asked besides.
func (d dialect) with(path, answer string) dialect {
	asides := map[string]string{}
	for k, v := range d.asides {
		asides[k] = v
	}
	asides[path] = answer
	d.asides = asides
	return d
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "\n")
}

func TestLlamaRequest(t *testing.T) {
	f := llamaFake(t)
	m := f.open(t, Options{})
	complete(t, m, Request{Prompt: text("p")})
	got := f.last(t)
	check(t, "n_predict", got["n_predict"], any(-1.0))
	check(t, "cache_prompt", got["cache_prompt"], any(true))
	check(t, "stream", got["stream"], any(true))
	check(t, "prompt", got["prompt"], any("p"))
	for _, absent := range []string{"stop", "preserved_tokens", "id_slot", "grammar", "json_schema"} {
		if v, ok := got[absent]; ok {
			t.Errorf("the request has %s: %v", absent, v)
		}
	}
	complete(t, m, Request{Prompt: text("p"), MaxTokens: 3, Stop: []string{"s"}, Preserve: []string{"<x>"}})
	got = f.last(t)
	check(t, "n_predict", got["n_predict"], any(3.0))
	check(t, "stop", jsonOf(t, got["stop"]), `["s"]`)
	check(t, "preserved_tokens", jsonOf(t, got["preserved_tokens"]), `["<x>"]`)
}

// TestLlamaEchoOfThePrompt: the last event repeats it; it is not asked for,
// and where it comes all the same it is longer than 64 KiB.
func TestLlamaEchoOfThePrompt(t *testing.T) {
	f := llamaFake(t, llamaDialect.text("x"), strings.Replace(llamaDialect.end, "{", `{"prompt":`+quote(strings.Repeat("p ", 1<<20))+",", 1))
	complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	if fields := jsonOf(t, f.last(t)["response_fields"]); strings.Contains(fields, "prompt\"") {
		t.Errorf("response_fields are %s", fields)
	}
}

func TestLlamaPings(t *testing.T) {
	f := llamaFake(t, ": ping\n\n", llamaDialect.text("a"), ":\n\n", llamaDialect.text("b"), ": ping\n\n", llamaDialect.end)
	check(t, "text", complete(t, f.open(t, Options{}), Request{Prompt: text("p")}).text, "ab")
}

// TestLlamaNeverNamesTheConversation: with that header a closed connection
// does not free the slot.
func TestLlamaNeverNamesTheConversation(t *testing.T) {
	f := llamaFake(t)
	complete(t, f.open(t, Options{}), Request{Prompt: text("p"), Session: "s"})
	for name := range f.headers[0] {
		if strings.Contains(strings.ToLower(name), "conversation") {
			t.Errorf("header %s was sent", name)
		}
	}
}

func TestLlamaPrompts(t *testing.T) {
	plain := llamaFacts{bos: -1, vocab: 100}
	withBOS := llamaFacts{bos: 1, bosText: "<s>", vocab: 100}
	for _, c := range []struct {
		name   string
		prompt []Segment
		facts  llamaFacts
		want   string // JSON
	}{
		{"texts are joined", []Segment{{Text: "a"}, {Text: "b"}}, plain, `"ab"`},
		{"ids", []Segment{{Text: "a", Tokens: []int{5, 6}}}, plain, `[5,6]`},
		{"text and ids", []Segment{{Text: "a"}, {Text: "b"}, {Text: "c", Tokens: []int{5}}, {Text: "d"}, {Text: "e"}}, plain, `["ab",5,"de"]`},
		{"empty segments", []Segment{{Text: ""}, {Text: "a"}, {}}, plain, `"a"`},
		{"the server adds BOS before text", text("a"), withBOS, `"a"`},
		{"BOS is not doubled", text("<s>a"), withBOS, `"a"`},
		{"BOS is not doubled in a mixed prompt", []Segment{{Text: "<s>a"}, {Text: "b", Tokens: []int{5}}}, withBOS, `["a",5]`},
		{"ids get the BOS that the server does not add", []Segment{{Text: "a", Tokens: []int{5}}}, withBOS, `[1,5]`},
		{"ids with BOS", []Segment{{Text: "<s>a", Tokens: []int{1, 5}}}, withBOS, `[1,5]`},
		{"nothing but BOS", text("<s>"), withBOS, `""`},
		{"a tokenizer that adds spaces gets no mixed prompt", []Segment{{Text: "a"}, {Text: "b", Tokens: []int{5}}, {Text: "c"}}, llamaFacts{bos: -1, spaced: true}, `"abc"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := llamaPrompt(c.prompt, c.facts)
			if err != nil {
				t.Fatal(err)
			}
			check(t, "prompt", jsonOf(t, got), c.want)
		})
	}
	for name, prompt := range map[string][]Segment{
		"an id beyond the vocabulary": {{Text: "a", Tokens: []int{100}}},
		"a negative id":               {{Text: "a", Tokens: []int{-1}}},
		"no UTF-8":                    text("\xe4"),
		"nothing":                     {{}},
	} {
		var p *PromptError
		if got, err := llamaPrompt(prompt, plain); !errors.As(err, &p) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// Bytes that are no UTF-8 may be sent as ids.
	if _, err := llamaPrompt([]Segment{{Text: "\xe4", Tokens: []int{5}}}, plain); err != nil {
		t.Error(err)
	}
}

func TestLlamaLearnsWhatComesBeforeAText(t *testing.T) {
	for answer, want := range map[string]string{
		`{"tokens":[{"id":9,"piece":"a"}]}`:                          "-1 \"\" false",
		`{"tokens":[{"id":1,"piece":"<s>"},{"id":9,"piece":" a"}]}`:  "1 \"<s>\" true",
		`{"tokens":[{"id":1,"piece":"<s>"},{"id":9,"piece":"a"}]}`:   "1 \"<s>\" false",
		`{"tokens":[{"id":9,"piece":" a"}]}`:                         "-1 \"\" true",
		`{"tokens":[{"id":29871,"piece":" "},{"id":9,"piece":"a"}]}`: "-1 \"\" true",
	} {
		f := llamaDialect.with("/tokenize", answer).serve(t, nil)
		facts, err := f.open(t, Options{}).(*llama).facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, answer, fmt.Sprintf("%d %q %v", facts.bos, facts.bosText, facts.spaced), want)
	}
}

// llamaPart is an event as llama-server sends it.
func llamaPart(content string, id, predicted int) string {
	return event(fmt.Sprintf(`{"index":0,"content":%s,"tokens":[%d],"stop":false,"tokens_predicted":%d,"tokens_evaluated":7}`, quote(content), id, predicted))
}

func llamaEnd(stopType string, truncated bool, predicted int) string {
	return event(fmt.Sprintf(`{"index":0,"content":"","tokens":[],"stop":true,"stop_type":%q,"truncated":%v,"tokens_predicted":%d,`+
		`"tokens_evaluated":10,"tokens_cached":99,"timings":{"cache_n":8,"prompt_n":2,"prompt_ms":1.5,"predicted_ms":2}}`, stopType, truncated, predicted))
}

func TestLlamaIDs(t *testing.T) {
	f := llamaFake(t,
		event(`{"content":"","tokens":[0],"stop":false,"tokens_predicted":0,"prompt_progress":{"total":7,"cache":0,"processed":7}}`),
		llamaPart("a", 11, 1),
		llamaPart("", 12, 2),  // hidden
		llamaPart("中", 15, 5), // two tokens had no event
		llamaPart("", 99, 6),  // the end of generation
		llamaEnd("eos", false, 6),
	)
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	var said []string
	for _, c := range got.chunks {
		if c.Progress == nil && c.Final == nil {
			said = append(said, fmt.Sprintf("%s%v", c.Text, c.Tokens))
		}
	}
	check(t, "chunks", strings.Join(said, " "), "a[11] [12] 中[]")
	check(t, "progress", got.progress[0], Progress{Phase: Reading, Done: 7, Total: 7})
	check(t, "tokens that count as received", got.final.Usage.Generated, Known(6))

	f = llamaFake(t, llamaPart("a", 11, 1), llamaPart("", 12, 2), llamaEnd("limit", false, 2))
	got = complete(t, f.open(t, Options{}), Request{Prompt: text("p")})
	check(t, "ids when a limit ends it", fmt.Sprint(got.tokens), "[11 12]")
}

func TestLlamaStopStringsTakeTheIDs(t *testing.T) {
	f := llamaFake(t, llamaPart("a", 11, 1), llamaPart("b", 12, 2), llamaEnd("word", false, 3))
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p"), Stop: []string{"c"}})
	check(t, "text", got.text, "ab")
	check(t, "ids", len(got.tokens), 0)
}

func TestLlamaEndings(t *testing.T) {
	for _, c := range []struct {
		stopType  string
		truncated bool
		want      Finish
	}{
		{"eos", false, FinishStop}, {"word", false, FinishStop}, {"limit", false, FinishLength},
		{"limit", true, FinishContext}, {"none", false, ""}, {"", false, ""}, {"surprise", false, ""},
	} {
		f := llamaFake(t, llamaPart("a", 11, 1), llamaEnd(c.stopType, c.truncated, 1))
		got := listen(t, t.Context(), f.open(t, Options{}), Request{Prompt: text("p")})
		if c.want == "" {
			if got.err == nil {
				t.Errorf("%q: a finish was invented: %v", c.stopType, got.final)
			}
			continue
		}
		check(t, c.stopType, got.final.Finish, c.want)
	}
}

// TestLlamaCountsHits: tokens_cached is not one.
func TestLlamaCountsHits(t *testing.T) {
	f := llamaFake(t, llamaPart("a", 11, 1), llamaEnd("limit", false, 1))
	got := complete(t, f.open(t, Options{}), Request{Prompt: text("p")}).final
	check(t, "usage", got.Usage, Usage{Prompt: Known(10), Evaluated: Known(2), Reused: Known(8), Generated: Known(1)})
	check(t, "prompt time", got.Timings.Prompt, 1500*time.Microsecond)
}

func TestLlamaWaitsWhileTheModelLoads(t *testing.T) {
	var calls atomic.Int64
	real := llamaFake(t)
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
			return
		}
		real.ServeHTTP(w, r)
	})
	m, err := Open("llamacpp:"+front, Options{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	got := complete(t, m, Request{Prompt: text("p")})
	check(t, "text", got.text, "x")
	check(t, "progress", fmt.Sprint(got.progress), "[{loading 0 0} {loading 0 0}]")
}

func TestLlamaThatNeverLoads(t *testing.T) {
	front := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
	})
	m, err := Open("llamacpp:"+front, Options{LoadWait: time.Millisecond, FirstToken: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got := listen(t, t.Context(), m, Request{Prompt: text("p")})
	var l *LoadingError
	if !errors.As(got.err, &l) {
		t.Errorf("error is %v, want a LoadingError", got.err)
	}
	for range m.Stream(t.Context(), Request{Prompt: text("p")}) {
		break
	}
}

func TestLlamaTokens(t *testing.T) {
	f := llamaDialect.with("/tokenize", `{"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[228,184]}]}`).serve(t, nil)
	tokens, err := f.open(t, Options{}).(Tokenizer).Tokenize(t.Context(), "a中")
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) != 2 || tokens[0] != (Token{1, "a"}) || tokens[1] != (Token{2, "\xe4\xb8"}) {
		t.Errorf("tokens are %v", tokens)
	}
	for _, piece := range []string{`[300]`, `{}`, `[-1]`, `5`} {
		f := llamaDialect.with("/tokenize", `{"tokens":[{"id":1,"piece":`+piece+`}]}`).serve(t, nil)
		var p *ProtocolError
		if tokens, err := f.open(t, Options{}).(Tokenizer).Tokenize(t.Context(), "a"); !errors.As(err, &p) {
			t.Errorf("piece %s: %v, %v", piece, tokens, err)
		}
	}
}

func TestLlamaKey(t *testing.T) {
	f := llamaFake(t)
	complete(t, f.open(t, Options{APIKey: "k"}), Request{Prompt: text("p")})
	check(t, "header", f.headers[0].Get("Authorization"), "Bearer k")
}

func TestSlotsAreNamedOnlyWhereTheyWereGiven(t *testing.T) {
	for _, c := range []struct {
		slots  int
		choice SlotChoice
		named  bool
	}{
		{1, SlotsAuto, false}, {2, SlotsAuto, true}, {3, SlotsAuto, true},
		{4, SlotsAuto, false}, // the default
		{4, SlotsPinned, true}, {2, SlotsFree, false}, {8, SlotsAuto, true},
	} {
		d := llamaDialect.with("/props", fmt.Sprintf(`{"default_generation_settings":{"n_ctx":2048},"total_slots":%d}`, c.slots))
		f := d.serve(t, d.says(d.frames("x")...))
		m := f.open(t, Options{Slots: c.choice})
		complete(t, m, Request{Prompt: text("p"), Session: "s"})
		_, named := f.last(t)["id_slot"]
		check(t, fmt.Sprintf("slots %d, choice %d", c.slots, c.choice), named, c.named)
		complete(t, m, Request{Prompt: text("p")})
		if _, named := f.last(t)["id_slot"]; named {
			t.Error("a request without a session names a slot")
		}
	}
}

func TestSlotsOfSessions(t *testing.T) {
	var s slots
	take := func(session string) int {
		p := s.acquire(session, 2, false)
		s.release(p)
		if p.session == "" {
			return -1
		}
		return p.slot
	}
	check(t, "a", take("a"), 0)
	check(t, "b", take("b"), 1)
	check(t, "a again", take("a"), 0)
	check(t, "c takes the slot of b, which was quiet the longest", take("c"), 1)
	check(t, "b takes the slot of a", take("b"), 0)
	busy := []pinned{s.acquire("b", 2, false), s.acquire("c", 2, false)}
	check(t, "d, while all are at work", take("d"), -1)
	check(t, "c, while it is at work", take("c"), 1)
	for _, p := range busy {
		s.release(p)
	}
	check(t, "d", take("d") >= 0, true)
}

func TestSlotsThatLoseTheCacheAreNoLongerNamed(t *testing.T) {
	f := llamaFake(t, llamaPart("a", 11, 1), strings.Replace(llamaEnd("limit", false, 1), `"cache_n":8`, `"cache_n":0`, 1))
	m := f.open(t, Options{})
	for i, named := range []bool{true, true, false} {
		complete(t, m, Request{Prompt: text("p"), Session: "s"})
		_, got := f.last(t)["id_slot"]
		check(t, fmt.Sprintf("turn %d names a slot", i+1), got, named)
	}
}

func TestTokenizeErrorsHoldNoSecrets(t *testing.T) {
	const secret = "the quick brown fox jumps over the lazy dog"
	url := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		http.Error(w, strings.Repeat("x", messageLimit-60)+" "+r.Header.Get("Authorization")+" "+string(body), http.StatusBadRequest)
	})
	key := "sk-" + strings.Repeat("key", 30) // longer than what is left of the message
	m, err := Open("llamacpp:"+url, Options{APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.(Tokenizer).Tokenize(t.Context(), secret)
	if err == nil || strings.Contains(err.Error(), "brown") || strings.Contains(err.Error(), "keykey") {
		t.Errorf("error is %v", err)
	}
}
