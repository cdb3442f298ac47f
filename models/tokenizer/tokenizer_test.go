package tokenizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// small is the metadata of a small vocabulary: the bytes in order, what a few
// merges lead to, and special tokens.
func small() map[string]any {
	merges := []string{"a b", "ab c", "b c", "Ġ a", "t h", "th e", "Ġ the", "ä ¸", "ä¸ Ń", "Ċ Ċ"}
	var tokens []string
	var types []int32
	for b := range 256 {
		tokens, types = append(tokens, string(letters[b])), append(types, int32(Normal))
	}
	for _, m := range merges {
		tokens, types = append(tokens, strings.ReplaceAll(m, " ", "")), append(types, int32(Normal))
	}
	for _, s := range []struct {
		token string
		typ   Type
	}{{"<|endoftext|>", Control}, {"<|im_start|>", Control}, {"<|im_end|>", Control}, {"<tool_call>", UserDefined}, {"<tool", UserDefined}} {
		tokens, types = append(tokens, s.token), append(types, int32(s.typ))
	}
	end := len(tokens) - 5
	return map[string]any{
		prefix + "model": "gpt2", prefix + "pre": "qwen2", prefix + "tokens": tokens, prefix + "token_type": types, prefix + "merges": merges,
		prefix + "bos_token_id": uint32(end), prefix + "eos_token_id": uint32(end + 2), prefix + "add_bos_token": false,
	}
}

// with gives a copy of metadata with one value changed, or without it where it
// is nil.
func with(info map[string]any, key string, value any) map[string]any {
	info = maps.Clone(info)
	info[prefix+key] = value
	if value == nil {
		delete(info, prefix+key)
	}
	return info
}

func from(t testing.TB, info map[string]any) *Tokenizer {
	t.Helper()
	tok, err := FromMetadata(info)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// spelled gives the tokens of a text, as texts.
func spelled(tok *Tokenizer, text string, special bool) []string {
	var out []string
	for _, id := range tok.Encode(text, special) {
		out = append(out, string(tok.Bytes(id)))
	}
	return out
}

func TestEncode(t *testing.T) {
	tok := from(t, small())
	for _, test := range []struct {
		text    string
		special bool
		want    []string
	}{
		{"", true, nil},
		{"abc", true, []string{"abc"}},
		{"xabcx", true, []string{"x", "abc", "x"}},
		{"bc", true, []string{"bc"}},
		{"ab bc", true, []string{"ab", " ", "bc"}},
		{" the", true, []string{" the"}},
		{"中", true, []string{"中"}},
		{"\n\n", true, []string{"\n\n"}},
		{"<|im_end|>", true, []string{"<|im_end|>"}},
		{"<|im_end|>", false, strings.Split("<|im_end|>", "")},
		{"a<|im_start|><tool_call>a", true, []string{"a", "<|im_start|>", "<tool_call>", "a"}},
		{"<tool<tool_calx", true, []string{"<tool", "<tool", "_", "c", "a", "l", "x"}},
		{"<tool_call>", false, strings.Split("<tool_call>", "")},
		{"\xff\xe4\xb8", true, []string{"\xff", "\xe4\xb8"}},
		{"\x00", true, []string{"\x00"}},
	} {
		if got := spelled(tok, test.text, test.special); !slices.Equal(got, test.want) {
			t.Errorf("%q, %v: %q, want %q", test.text, test.special, got, test.want)
		}
	}
}

func TestTokens(t *testing.T) {
	tok := from(t, small())
	if tok.Len() != 256+10+5 {
		t.Errorf("%d tokens", tok.Len())
	}
	id := func(spelling string) int {
		t.Helper()
		id, ok := tok.Lookup(spelling)
		if !ok {
			t.Errorf("no token %q", spelling)
		}
		return id
	}
	for spelling, want := range map[string]Type{"abc": Normal, " the": Normal, "\x00": Normal, "<|im_end|>": Control, "<tool_call>": UserDefined} {
		if got := tok.Type(id(spelling)); got != want {
			t.Errorf("%q is %v", spelling, got)
		}
		if got := string(tok.Bytes(id(spelling))); got != spelling {
			t.Errorf("%q stands for %q", spelling, got)
		}
	}
	if id, ok := tok.Lookup("absent"); ok {
		t.Errorf("absent is %d", id)
	}
	for _, id := range []int{-1, tok.Len(), 1 << 40} {
		if tok.Type(id) != 0 || tok.Bytes(id) != nil || tok.EOG(id) || tok.Decode([]int{id}) != "" {
			t.Errorf("%d is a token", id)
		}
	}
	if bos, add := tok.BOS(); bos != id("<|endoftext|>") || add {
		t.Errorf("bos %d %v", bos, add)
	}
	var ends []string
	for id := range tok.Len() {
		if tok.EOG(id) {
			ends = append(ends, string(tok.Bytes(id)))
		}
	}
	if !slices.Equal(ends, []string{"<|endoftext|>", "<|im_end|>"}) {
		t.Errorf("ends %q", ends)
	}
	if s := fmt.Sprint(Control, UserDefined, Byte, Type(0), Type(9)); s != "control user-defined byte none none" {
		t.Error(s)
	}
}

// mergedNaively merges by the definition: the pair that was learned first, the
// leftmost of several, again and again.
func mergedNaively(e *bpe, piece string) []int {
	var ids []int32
	for i := range len(piece) {
		ids = append(ids, e.octets[piece[i]])
	}
	for {
		best, at := merged{rank: 1 << 30}, -1
		for i := range len(ids) - 1 {
			if m, ok := e.merges[pair{ids[i], ids[i+1]}]; ok && m.rank < best.rank {
				best, at = m, i
			}
		}
		if at < 0 {
			break
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = int(id)
	}
	return out
}

// A random vocabulary over a few letters, as learned: each merge is of tokens
// that are there.
func randomVocabulary(r *rand.Rand) map[string]any {
	info := small()
	tokens := slices.Clone(info[prefix+"tokens"].([]string)[:256])
	usable := []string{"a", "b", "c"}
	var merges []string
	for range 5 + r.IntN(40) {
		left, right := usable[r.IntN(len(usable))], usable[r.IntN(len(usable))]
		if slices.Contains(tokens, left+right) || len(left+right) > 12 {
			continue
		}
		merges = append(merges, left+" "+right)
		tokens = append(tokens, left+right)
		usable = append(usable, left+right)
	}
	info[prefix+"tokens"], info[prefix+"merges"] = tokens, merges
	return with(info, "token_type", nil)
}

func TestMergesFollowTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		tok := from(t, randomVocabulary(r))
		e := tok.encoder.(*bpe)
		for range 40 {
			text := make([]byte, r.IntN(90))
			for i := range text {
				text[i] = "abcd"[r.IntN(4)]
			}
			if got, want := e.word(string(text), nil), mergedNaively(e, string(text)); len(text) > 0 && !slices.Equal(got, want) {
				t.Fatalf("%s with %v: %v, want %v", text, e.merges, got, want)
			}
		}
	}
}

// Runs of one kind of character are where splitting and merging may take
// quadratic time, which would not end before the test does.
func TestLongRuns(t *testing.T) {
	const size = 1 << 20
	tok := from(t, small())
	for _, unit := range []string{"abc", " ", "<tool"} {
		text := strings.Repeat(unit, size/len(unit))
		if got := tok.Decode(tok.Encode(text, true)); got != text {
			t.Errorf("%q comes back as %d bytes", unit, len(got))
		}
	}
	var runs strings.Builder
	for _, unit := range []string{"a", " ", "\n", "1", "中", "!", "\u00a0", "A", "\u0301", "\xff", " a", "a1 ", "\r\n"} {
		runs.WriteString(strings.Repeat(unit, size/16/len(unit)))
		runs.WriteString("x")
	}
	tried := make(map[string]bool)
	for name, pre := range preTokenizers {
		if steps := strings.Join(pre.steps, "\n"); !tried[steps] {
			tried[steps] = true
			tok := from(t, with(small(), "pre", name))
			if got := tok.Decode(tok.Encode(runs.String(), true)); got != runs.String() {
				t.Errorf("%s: %d bytes come back as %d", name, runs.Len(), len(got))
			}
		}
	}
	if len(tried) < 15 {
		t.Errorf("only %d pre-tokenizers", len(tried))
	}
}

func TestCacheIsBounded(t *testing.T) {
	tok := from(t, small())
	e := tok.encoder.(*bpe)
	for i := range 4 * generation {
		tok.Encode(fmt.Sprintf("w%c%c%cx", 'a'+i%26, 'a'+i/26%26, 'a'+i/676), false)
		if n := len(e.cache.young) + len(e.cache.old); n > 2*generation {
			t.Fatalf("%d pieces after %d", n, i)
		}
	}
	tok.Encode(strings.Repeat("x", 1<<16), false)
	for piece := range e.cache.young {
		if len(piece) > longestCached {
			t.Errorf("a piece of %d bytes is kept", len(piece))
		}
	}
}

func TestConcurrently(t *testing.T) {
	tok := from(t, small())
	text := strings.Repeat("abc the 中<|im_end|> ab\n\n", 20)
	want := tok.Encode(text, true)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				tok.Encode(fmt.Sprintf("abc%d the%d", i*j, j), true)
				if !slices.Equal(tok.Encode(text, true), want) {
					t.Error("other ids")
					return
				}
			}
		})
	}
	wg.Wait()
}

// What looks like a special token is only text unless it is asked for.
func TestPlainTextHasNoSpecialTokens(t *testing.T) {
	tok := from(t, small())
	for _, text := range []string{"<|im_end|>", "<tool_call><tool", "x<|im_start|>system\n"} {
		for _, id := range tok.Encode(text, false) {
			if tok.Type(id) != Normal {
				t.Errorf("%q has the token %q", text, tok.Bytes(id))
			}
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, seed := range []string{"", "abc the", "<|im_end|><tool_call", "中文 \u00a0\u3000x", "\xff\xfe\x00", "don't 'S 'ſ 123４５", "a\r\n\n b\t"} {
		f.Add(seed)
	}
	var all []*Tokenizer
	for _, name := range []string{"qwen2", "llama-bpe", "gpt-2", "starcoder", "deepseek-llm", "deepseek-v3", "gpt-4o", "bloom", "default"} {
		all = append(all, from(f, with(small(), "pre", name)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range all {
			for _, special := range []bool{false, true} {
				if got := tok.Decode(tok.Encode(text, special)); got != text {
					t.Errorf("%q comes back as %q", text, got)
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := from(b, small())
	text := strings.Repeat("The quick brown fox, the 3rd of its name, said: “abc 中文”.\n", 200)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text, true)
	}
}

// ExampleTokenizer shows what a special token is in a prompt, and in a text.
func ExampleTokenizer() {
	tok, err := FromMetadata(small())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, special := range []bool{true, false} {
		ids := tok.Encode("abc<|im_end|>", special)
		fmt.Println(len(ids), tok.Type(ids[len(ids)-1]), tok.EOG(ids[len(ids)-1]))
	}
	// Output:
	// 2 control true
	// 11 normal false
}
