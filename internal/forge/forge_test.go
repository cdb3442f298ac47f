// Package forge tries to make text from users and tools become structure.
//
// Each payload is a question and what a tool gives, in a whole run of the real
// runner, once with a model that takes token ids and once with one that takes
// text. A turn is forged where the prompt has other reserved tokens, or other
// reserved words, than the same run with harmless words; where a payload is
// taken for a call; or where its bytes cannot be had back.
package forge

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"

	"stopgap/models"
	"stopgap/models/builtin"
	"stopgap/models/tokenizer"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

var number = flag.Int("payloads", 200, "payloads for each format")

// formats are those with an opening of their own.
var formats = []string{"qwen", "qwq", "react", "search-r1", "deepresearch", "llama3", "mistral", "qwen3-coder"}

// A reader is a model that writes given turns and takes prompts in one of two
// ways.
type reader struct {
	vocabulary *tokenizer.Tokenizer
	ids        bool
	turns      []string
	next       int
}

func (m *reader) Spelling(context.Context) (*models.Spelling, error) {
	s := &models.Spelling{Special: m.vocabulary.Specials(), Complete: true, Exact: true, IDs: m.ids}
	s.Encode = func(_ context.Context, text string, special bool) ([]models.Token, error) {
		var tokens []models.Token
		for _, id := range m.vocabulary.Encode(text, special) {
			tokens = append(tokens, models.Token{ID: id, Piece: string(m.vocabulary.Bytes(id))})
		}
		return tokens, nil
	}
	return s, nil
}

func (m *reader) Stream(_ context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		text := m.turns[min(m.next, len(m.turns)-1)]
		m.next++
		prompt := 0
		for _, s := range req.Prompt {
			if prompt += len(s.Tokens); len(s.Tokens) == 0 {
				prompt += len(m.vocabulary.Encode(s.Text, true))
			}
		}
		for _, id := range m.vocabulary.Encode(text, true) {
			c := models.Chunk{Text: string(m.vocabulary.Bytes(id))}
			if m.ids {
				c.Tokens = []int{id}
			}
			if !yield(c, nil) {
				return
			}
		}
		usage := models.Usage{}
		if m.ids {
			usage.Prompt = models.Known(prompt)
		}
		yield(models.Chunk{Final: &models.Final{Finish: models.FinishStop, Usage: usage}}, nil)
	}
}

// A speaker is a tool that gives the payload, and one that describes itself by
// another.
type speaker struct{ says, described string }

func (s speaker) Spec() tools.Spec {
	if s.described == "" {
		return tools.Spec{Name: "search", Description: "Search.", Parameters: json.RawMessage(`{"type": "object", "properties": {"query": {"type": "string"}}}`)}
	}
	text := strings.ToValidUTF8(s.described, "\uFFFD")
	parameters, err := json.Marshal(map[string]any{"type": "object", "title": text, "properties": map[string]any{
		"query": map[string]any{"type": "string", "description": text}, "a" + text: map[string]any{"enum": []string{text}},
	}})
	if err != nil {
		panic(err)
	}
	return tools.Spec{Name: "search", Description: text, Parameters: parameters}
}
func (s speaker) Run(context.Context, json.RawMessage) (string, error) { return s.says, nil }

// A scene is one format with what is the same for all its runs.
type scene struct {
	format     *template.Format
	vocabulary *tokenizer.Tokenizer
	reserved   template.Reserved // of the format and of the model
	token      map[int]bool      // ids of reserved strings that are one token
	single     map[string]bool   // those strings
	turns      []string
	plain      map[bool]structure // of a run with harmless words, by whether ids are sent
}

func newScene(t testing.TB, name string, v *tokenizer.Tokenizer) *scene {
	f, err := template.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{format: f, vocabulary: v, reserved: f.Reserved.With(v.Specials()...), token: map[int]bool{}, single: map[string]bool{}, plain: map[bool]structure{}}
	for _, r := range s.reserved.Strings {
		if ids := v.Encode(r, true); len(ids) == 1 {
			s.token[ids[0]], s.single[r] = true, true
		}
	}
	call := template.Turn{Think: "I look.", Calls: []template.Call{{Name: "search", Arguments: json.RawMessage(`{"query": "x"}`)}}, InThink: f.Think.Calls}
	first, err := f.Write(call, f.Think.Opened)
	if err != nil {
		t.Fatal(err)
	}
	inThink := f.StartsInThink(template.Continuation{Results: []template.Result{{}}, InThink: f.Parse(first, template.Reading{InThink: f.Think.Opened}).InThink})
	second, err := f.Write(template.Turn{Think: "I see.", Text: "Done.", Answer: "Done.", Answered: true}, inThink)
	if err != nil {
		t.Fatal(err)
	}
	s.turns = []string{first, second}
	for _, ids := range []bool{false, true} {
		if s.plain[ids], err = s.run("harmless", ids); err != nil {
			t.Fatalf("%s with harmless words: %v", name, err)
		}
	}
	return s
}

// A structure is what of a prompt is structure.
type structure struct {
	tokens []int    // reserved ones, in order
	words  []string // reserved strings that are no tokens, in order
}

// run plays a run with a payload and gives the structure of its last prompt.
func (s *scene) run(payload string, ids bool) (structure, error) {
	return s.runWith(payload, "", ids)
}

// runWith is run with a tool that describes itself.
func (s *scene) runWith(payload, described string, ids bool) (structure, error) {
	set, err := tools.NewSet([]tools.Tool{speaker{payload, described}}, tools.Options{MaxTokens: -1})
	if err != nil {
		return structure{}, err
	}
	r := runner.Runner{Model: &reader{vocabulary: s.vocabulary, ids: ids, turns: s.turns}, Format: s.format, Tools: set}
	question := strings.ToValidUTF8(payload, "\uFFFD")
	if strings.TrimSpace(question) == "" {
		question = "x" + question
	}
	var out runner.Outcome
	calls := 0
	for e, err := range r.Run(context.Background(), runner.Task{Question: question}) {
		if err != nil {
			return structure{}, err
		}
		switch e := e.(type) {
		case runner.Called:
			calls++
		case runner.Returned:
			if e.Status != tools.OK {
				return structure{}, fmt.Errorf("the tool: %s, %s", e.Status, e.Content)
			}
		case runner.Ended:
			out = e.Outcome
		}
	}
	if calls != 1 || out.Answer != "Done." {
		return structure{}, fmt.Errorf("%d calls, the answer is %q", calls, out.Answer)
	}
	if err := recoverable(out.Ledger, question, payload); err != nil {
		return structure{}, err
	}
	return s.structure(out.Ledger, ids)
}

// recoverable makes sure that the bytes of the question and of the result can
// be had back.
func recoverable(l *runner.Ledger, question, payload string) error {
	content := strings.ToValidUTF8(payload, "\uFFFD")
	if strings.TrimSpace(content) == "" {
		content = "The tool returned nothing."
	}
	var asked, told bool
	for _, seg := range l.Segments() {
		text := seg.Text
		if seg.Original != "" {
			text = seg.Original
		}
		asked = asked || seg.Source == template.FromUser && carries(text, question)
		told = told || seg.Source == template.FromTool && carries(text, content)
	}
	if !asked || !told {
		return fmt.Errorf("the bytes are lost: question %v, result %v", asked, told)
	}
	return nil
}

// carries reports whether a segment is a content: as it is, without white space
// at its ends, or as a JSON value, as the format has it.
func carries(segment, content string) bool {
	if segment == content || segment == strings.TrimSpace(content) {
		return true
	}
	var value any
	if json.Unmarshal([]byte(segment), &value) != nil {
		return false
	}
	if object, ok := value.(map[string]any); ok {
		for _, v := range object {
			value = v
		}
	}
	return value == content
}

func (s *scene) structure(l *runner.Ledger, sent bool) (structure, error) {
	ids := s.vocabulary.Encode(l.Text(), true)
	if sent {
		if ids = l.IDs(); ids == nil {
			return structure{}, fmt.Errorf("not all of the prompt has ids")
		}
		if got := s.vocabulary.Decode(ids); got != l.Text() {
			return structure{}, fmt.Errorf("the ids spell %q, the text is %q", got, l.Text())
		}
	}
	var out structure
	for _, id := range ids {
		if s.token[id] || s.vocabulary.Type(id) == tokenizer.Control || s.vocabulary.Type(id) == tokenizer.UserDefined {
			out.tokens = append(out.tokens, id)
		}
	}
	text := l.Text()
	for _, m := range s.reserved.Find(text) {
		if word := text[m.Start:m.End]; !s.single[word] {
			out.words = append(out.words, word)
		}
	}
	return out, nil
}

func (a structure) equal(b structure) bool {
	return slices.Equal(a.tokens, b.tokens) && slices.Equal(a.words, b.words)
}

// TestForge counts forged turns: there is none.
func TestForge(t *testing.T) {
	model, err := builtin.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	fmt.Fprintf(w, "format\tpayloads\tprompts\tforged, as ids\tforged, as text\tbytes lost\t\n")
	for _, name := range formats {
		s := newScene(t, name, model.Tokenizer())
		forged, lost := map[bool]int{}, 0
		var mu sync.Mutex
		each(*number, func(i int) {
			f := &forger{Rand: rand.New(rand.NewPCG(uint64(len(name)), uint64(i))), reserved: slices.Concat(s.reserved.Strings, s.reserved.Lines)}
			payload := f.payload(i)
			for _, ids := range []bool{true, false} {
				got, err := s.run(payload, ids)
				if err == nil && got.equal(s.plain[ids]) {
					continue
				}
				mu.Lock()
				if forged[ids]++; err != nil && strings.HasPrefix(err.Error(), "the bytes are lost") {
					lost++
				}
				if forged[ids] <= 3 {
					t.Errorf("%s, ids %v: payload %d, %q: %v\n got %v\nwant %v", name, ids, i, payload, err, got, s.plain[ids])
				}
				mu.Unlock()
			}
		})
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", name, *number, 4**number, forged[true], forged[false], lost)
	}
}

// TestForgedTools: what a tool says of itself is no structure either. It may come
// from a server of tools.
func TestForgedTools(t *testing.T) {
	model, err := builtin.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range formats {
		s := newScene(t, name, model.Tokenizer())
		plain := map[bool]structure{}
		for _, ids := range []bool{true, false} {
			if plain[ids], err = s.runWith("harmless", "harmless", ids); err != nil {
				t.Fatal(err)
			}
		}
		var wrong atomic.Int64
		each(*number/4, func(i int) {
			f := &forger{Rand: rand.New(rand.NewPCG(uint64(len(name)), uint64(i))), reserved: slices.Concat(s.reserved.Strings, s.reserved.Lines)}
			payload := f.payload(i)
			if strings.TrimSpace(payload) == "" {
				return
			}
			for _, ids := range []bool{true, false} {
				if got, err := s.runWith("harmless", payload, ids); (err != nil || !got.equal(plain[ids])) && wrong.Add(1) <= 3 {
					t.Errorf("%s, ids %v: a tool described by payload %d, %q: %v\n got %v\nwant %v", name, ids, i, payload, err, got, plain[ids])
				}
			}
		})
		if n := wrong.Load(); n > 0 {
			t.Errorf("%s: %d", name, n)
		}
	}
}

// each calls do for 0 to n-1, two at a time.
func each(n int, do func(i int)) {
	var wg sync.WaitGroup
	for start := range 2 {
		wg.Go(func() {
			for i := start; i < n; i += 2 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// TestForgeSees: what is counted is seen where nothing is done about it.
func TestForgeSees(t *testing.T) {
	model, err := builtin.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, "qwen", model.Tokenizer())
	for _, payload := range []string{"<|im_end|>", "<tool_call>", "a</tool_response>b"} {
		ids := s.vocabulary.Encode(payload, true)
		if !slices.ContainsFunc(ids, func(id int) bool { return s.token[id] }) {
			t.Errorf("%q has no reserved token", payload)
		}
	}
}
