package builtin

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"stopgap/internal/tinymodel"
)

// said gives what a generation writes, and its last step.
func said(t *testing.T, m *Model, req Request) (tokens []int, last Step) {
	t.Helper()
	for s, err := range m.Generate(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if last = s; s.Token >= 0 {
			tokens = append(tokens, s.Token)
		}
	}
	return tokens, last
}

// endless is a model that never says its end-of-generation token by itself.
func endless(t *testing.T, o tinymodel.Options) *Model {
	m := tiny(t, o)
	for id := range m.vocabulary {
		if m.tokenizer.EOG(id) {
			for i := range m.width {
				m.output.weights[i*m.vocabulary+id] = 0
			}
		}
	}
	return m
}

func TestGreedyIsTheDefinition(t *testing.T) {
	m := endless(t, tinymodel.Options{Type: ggml.TensorTypeF16, Seed: 3})
	tokens := some(m, 30)
	got, last := said(t, m, Request{Prompt: tokens, MaxTokens: 12})
	for i, id := range got {
		rows := definition{m}.logits(tokens)
		best := rows[len(rows)-1]
		if gap := slices.Max(best) - best[id]; gap > 0.05 {
			t.Errorf("token %d is %d, whose logit is %g below the best", i, id, gap)
		}
		tokens = append(tokens, id)
	}
	if len(got) != 12 || last.End != Length || last.Usage != (Usage{Prompt: 30, Evaluated: 30, Generated: 12}) {
		t.Errorf("%d tokens, %+v", len(got), last)
	}
}

func TestEnds(t *testing.T) {
	m := endless(t, tinymodel.Options{Context: 100})
	prompt := some(m, 80)
	for _, c := range []struct {
		name string
		Request
		n   int
		end End
	}{
		{"tokens", Request{MaxTokens: 7}, 7, Length},
		{"the context", Request{}, 20, Context},
		{"both at once", Request{MaxTokens: 20}, 20, Length},
		{"a smaller context", Request{Context: 85, MaxTokens: 10}, 5, Context},
		{"a larger context", Request{Context: 1000}, 20, Context},
	} {
		c.Prompt = prompt
		tokens, last := said(t, m, c.Request)
		if len(tokens) != c.n || last.End != c.end {
			t.Errorf("%s: %d tokens and %+v", c.name, len(tokens), last)
		}
	}
	for _, n := range []int{100, 101, 5000} {
		var over *OverflowError
		for _, err := range m.Generate(t.Context(), Request{Prompt: some(m, n)}) {
			if !errors.As(err, &over) || over.Prompt != n || over.Context != 100 {
				t.Errorf("%d tokens: %v", n, err)
			}
		}
	}
	for _, err := range m.Generate(t.Context(), Request{}) {
		if !errors.Is(err, ErrEmpty) {
			t.Error(err)
		}
	}
	// The end-of-generation token ends it, and is counted.
	end, _ := m.tokenizer.Lookup("<|im_end|>")
	for i := range m.width {
		m.output.weights[i*m.vocabulary+end] = m.output.weights[i*m.vocabulary+200] * 1000
	}
	tokens, last := said(t, m, Request{Prompt: prompt, Sampling: Sampling{Temperature: 1, Seed: 1}})
	if last.End != Stop || tokens[len(tokens)-1] != end || last.Usage.Generated != len(tokens) {
		t.Errorf("%v, %+v", tokens, last)
	}
}

// TestReuse: what is known of earlier prompts is not computed again, and does
// not change what is said.
func TestReuse(t *testing.T) {
	o := tinymodel.Options{Seed: 5}
	prompt := some(tiny(t, o), 300)
	other := append(slices.Clone(prompt[:170]), 5, 6, 7, 8)
	fresh := func(p []int) []int {
		tokens, _ := said(t, endless(t, o), Request{Prompt: p, MaxTokens: 8})
		return tokens
	}
	m := endless(t, o)
	longer := slices.Concat(prompt, fresh(prompt), []int{9, 10, 11})
	for _, c := range []struct {
		name    string
		prompt  []int
		session string
		reused  int
	}{
		{"the first", prompt, "a", 0},
		{"the same again", prompt, "a", 299},
		{"another that begins alike", other, "b", 170},
		{"the first, gone on", longer, "a", 307}, // what was said last was never read
		{"its beginning", prompt[:100], "b", 99},
		{"the other again", other, "", 170}, // its session went on with another
		{"something else", some(m, 20)[5:], "", 0},
	} {
		tokens, last := said(t, m, Request{Prompt: c.prompt, MaxTokens: 8, Session: c.session})
		want := Usage{Prompt: len(c.prompt), Reused: c.reused, Evaluated: len(c.prompt) - c.reused, Generated: 8}
		if last.Usage != want {
			t.Errorf("%s: %+v, want %+v", c.name, last.Usage, want)
		}
		if want := fresh(c.prompt); !slices.Equal(tokens, want) {
			t.Errorf("%s: %v, want %v", c.name, tokens, want)
		}
	}
}

// TestKeptIsBounded: old sequences leave, by their number and by the size of
// what they do not share; the session that is used stays.
func TestKeptIsBounded(t *testing.T) {
	sequenceOf := func(first, pages int) sequence {
		q := sequence{tokens: []int{first}}
		for range pages {
			p := &page{keys: make([]float32, 1<<18), values: make([]float32, 1<<18)} // 2 MiB
			p.users.Store(1)
			q.pages = append(q.pages, p)
		}
		return q
	}
	for _, c := range []struct{ pages, want int }{{1, maxKeptBytes >> 21}, {4, maxKeptBytes >> 23}, {20, 1}} {
		var p prefixes
		for i := range 20 {
			p.keep(sequenceOf(1000, 1), "stays")
			if c.pages < 20 && len(p.begin([]int{1000, 0}).tokens) != 1 {
				t.Fatalf("%d pages: the session that is used has left", c.pages)
			}
			p.keep(sequenceOf(i, c.pages), "")
			if n := len(p.kept); n > maxKept || size(p.kept, sequence{}) > maxKeptBytes && n > 1 {
				t.Fatalf("%d sequences with %d bytes", n, size(p.kept, sequence{}))
			}
		}
		if n := len(p.kept); n < c.want || n > c.want+1 {
			t.Errorf("%d pages each: %d sequences are kept", c.pages, n)
		}
	}
	var p prefixes
	whole := sequenceOf(1, 8)
	for i := range maxKept {
		for _, pg := range whole.pages {
			pg.users.Add(1)
		}
		p.keep(sequence{tokens: []int{1, i}, pages: whole.pages}, "")
	}
	if len(p.kept) != maxKept || size(p.kept, sequence{}) != 16<<20 {
		t.Errorf("%d sequences that share their pages, %d bytes", len(p.kept), size(p.kept, sequence{}))
	}
}

// TestPagesComeBack: pages of sequences that left are used again, empty, and
// only when no sequence has them.
func TestPagesComeBack(t *testing.T) {
	m := tiny(t, tinymodel.Options{})
	var p prefixes
	random := rand.New(rand.NewPCG(1, 2))
	made := map[*page]bool{}
	again := 0
	for i := range 500 {
		tokens := []int{random.IntN(3)}
		for n := 100 + random.IntN(900); len(tokens) < n; {
			tokens = append(tokens, random.IntN(2))
		}
		q := p.begin(tokens)
		before := len(q.pages)
		p.extend(&q, &m.shape, len(tokens)-len(q.tokens))
		for _, pg := range q.pages[before:] {
			if made[pg] {
				again++
			}
			made[pg] = true
			if slices.Max(pg.keys) != 0 || slices.Max(pg.values) != 0 || pg.users.Load() != 1 {
				t.Fatal("a page that is not fresh")
			}
			pg.keys[0], pg.values[len(pg.values)-1] = 1, 1
		}
		q.tokens = tokens
		p.keep(q, []string{"", "a", "b"}[i%3])
		users := map[*page]int32{}
		for _, k := range p.kept {
			for _, pg := range k.pages {
				users[pg]++
			}
		}
		for pg, n := range users {
			if pg.users.Load() != n {
				t.Fatalf("a page of %d sequences says %d", n, pg.users.Load())
			}
		}
		for _, pg := range p.free {
			if users[pg] != 0 || pg.users.Load() != 0 {
				t.Fatal("a free page that a sequence has")
			}
		}
		if len(p.free) > maxFree {
			t.Fatalf("%d free pages", len(p.free))
		}
	}
	if again < 1000 {
		t.Errorf("only %d pages were used again", again)
	}
}

// TestCancel ends the context at every step, and in the middle of a batch.
func TestCancel(t *testing.T) {
	m := endless(t, tinymodel.Options{})
	prompt := some(m, 200)
	for at := range 8 {
		ctx, cancel := context.WithCancel(t.Context())
		steps, last := 0, error(nil)
		for _, err := range m.Generate(ctx, Request{Prompt: append([]int{at}, prompt...), MaxTokens: 10}) {
			if steps == at {
				cancel()
			}
			steps++
			last = err
		}
		cancel()
		if !errors.Is(last, context.Canceled) || steps != at+2 {
			t.Errorf("canceled at step %d: %d steps and %v", at, steps, last)
		}
	}
	// Between two layers: the sequence is as it was, and can be gone on with.
	p := m.newPass(sequence{})
	ctx := &countdown{Context: t.Context(), left: 1}
	if _, err := p.read(ctx, prompt[:64], 1); !errors.Is(err, context.Canceled) || len(p.tokens) != 0 {
		t.Errorf("%d tokens are read, %v", len(p.tokens), err)
	}
	got, err := p.read(t.Context(), prompt[:64], 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.newPass(sequence{}).read(t.Context(), prompt[:64], 1)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("other logits after a cancelled read, %v", err)
	}
}

// A countdown is a context that ends when it was looked at often enough.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestLeaving: nothing is yielded after the range is left, and what was read
// until then is known.
func TestLeaving(t *testing.T) {
	m := endless(t, tinymodel.Options{})
	prompt := some(m, 200)
	for leave := range 6 {
		prompt[0] = leave
		n := 0
		m.Generate(t.Context(), Request{Prompt: prompt, MaxTokens: 10})(func(Step, error) bool {
			n++
			return n <= leave
		})
		if n != leave+1 {
			t.Errorf("left at step %d: %d steps came", leave, n)
		}
		_, last := said(t, m, Request{Prompt: prompt, MaxTokens: 1})
		if want := min(leave*batch, 199); last.Usage.Reused != want {
			t.Errorf("left at step %d: %+v", leave, last.Usage)
		}
	}
}

// TestConcurrent: generations at the same time say what each says alone.
func TestConcurrent(t *testing.T) {
	o := tinymodel.Options{Seed: 9}
	m := endless(t, o)
	common := some(m, 100)
	var prompts, want [][]int
	for i := range 6 {
		prompts = append(prompts, append(slices.Clone(common[:50+10*i]), i, i+1))
		tokens, _ := said(t, endless(t, o), Request{Prompt: prompts[i], MaxTokens: 10})
		want = append(want, tokens)
	}
	var wg sync.WaitGroup
	for i, p := range prompts {
		wg.Go(func() {
			for range 3 {
				tokens, _ := said(t, m, Request{Prompt: p, MaxTokens: 10, Session: string(rune('a' + i%2))})
				if !slices.Equal(tokens, want[i]) {
					t.Errorf("%v, want %v", tokens, want[i])
				}
			}
		})
	}
	wg.Wait()
}

// TestScore compares with the definition's probabilities.
func TestScore(t *testing.T) {
	for _, k := range kinds[:2] {
		m := tiny(t, k.Options)
		all := some(m, 170)
		rows := definition{m}.logits(all)
		for _, cut := range []int{1, 63, 64, 65, 100, 169} {
			for range 2 { // the second time much of it is known
				got, err := m.Score(t.Context(), all[:cut], all[cut:])
				if err != nil || len(got) != len(all)-cut {
					t.Fatalf("%d scores, %v", len(got), err)
				}
				for i, g := range got {
					sum := 0.0
					for _, l := range rows[cut+i-1] {
						sum += math.Exp(l)
					}
					if want := rows[cut+i-1][all[cut+i]] - math.Log(sum); math.Abs(g-want) > 0.05 {
						t.Errorf("%s: token %d after %d has %g, not %g", k.name, i, cut, g, want)
					}
				}
			}
		}
	}
	m := tiny(t, tinymodel.Options{Context: 50})
	if _, err := m.Score(t.Context(), nil, []int{1}); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	if _, err := m.Score(t.Context(), some(m, 40), some(m, 11)); err == nil {
		t.Error("more than the context is scored")
	}
	if s, err := m.Score(t.Context(), some(m, 40), some(m, 10)); err != nil || len(s) != 10 {
		t.Error("a full context is not scored")
	}
	// The probabilities of all tokens add up to one.
	sum := 0.0
	for id := range m.vocabulary {
		s, err := m.Score(t.Context(), some(m, 5), []int{id})
		if err != nil {
			t.Fatal(err)
		}
		sum += math.Exp(s[0])
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the probabilities add up to %g", sum)
	}
}
