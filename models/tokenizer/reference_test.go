package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	ollama "github.com/ollama/ollama/tokenizer"
)

// module gives the folder of a module of go.mod, with the test data of it.
func module(t testing.TB, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
		return dir
	}
	t.Skipf("the module %s is not there: \"make tokenizers\" gets it", path)
	return ""
}

func read(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// llama3 is Llama 3's tokenizer.json.
func llama3JSON(t testing.TB) []byte {
	return read(t, module(t, "github.com/daulet/tokenizers"), "test/data/Meta-Llama-3-8B-Instruct.json")
}

// cohereJSON is a tokenizer.json with NFC and GPT-2's expression.
func cohereJSON(t testing.TB) []byte {
	return read(t, module(t, "github.com/daulet/tokenizers"), "test/data/cohere-tokenizer.json")
}

// llama32 is Llama 3.2's vocabulary as metadata of a GGUF file, with two of its
// special tokens.
func llama32(t testing.TB) map[string]any {
	t.Helper()
	dir := filepath.Join(module(t, "github.com/ollama/ollama"), "tokenizer/testdata/llama3.2")
	var ids map[string]int
	if err := json.Unmarshal(read(t, dir, "encoder.json"), &ids); err != nil {
		t.Fatal(err)
	}
	tokens := make([]string, len(ids))
	types := make([]int32, len(ids))
	for token, id := range ids {
		tokens[id], types[id] = token, int32(Normal)
	}
	var merges []string
	for line := range strings.Lines(string(read(t, dir, "vocab.bpe"))) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#version") {
			merges = append(merges, line)
		}
	}
	for _, special := range []string{"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"} {
		tokens, types = append(tokens, special), append(types, int32(Control))
	}
	return map[string]any{
		prefix + "model": "gpt2", prefix + "pre": "llama-bpe", prefix + "tokens": tokens, prefix + "token_type": types,
		prefix + "merges": merges, prefix + "bos_token_id": 128000.0, prefix + "eos_token_id": 128001.0,
	}
}

// alphabet is what the random texts are made of: words, scripts, spaces of all
// kinds, digits of all kinds, contractions, emoji and special tokens. All of it
// is older than the oldest Unicode tables that are compared.
var alphabet = []string{
	" ", " ", " ", "  ", "    ", "\n", "\n\n", "\r\n", "\t", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2000", "\u2003", "\u2009",
	"\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u180e", "\u200b", "\u200d", "\ufeff", "\u00ad", "\x01", "\x1f", "\x7f",
	"a", "b", "Z", "the", " the", "Word", "word", "WORD", "camelCase", "snake_case", "http://", "www.", ".com", "def", "return", "func main() {",
	"é", "e\u0301", "ñ", "ß", "İ", "ı", "ſ", "K", "ﬁ", "œuvre", "Ångström", "naïve", "Füße", "Ёлка", "привет", " мир", "Ωμέγα", "ὀξύς", "עברית", "العربية",
	"हिन्दी", "ไทย", "ខ្មែរ", "한글", "조선", "ひらがな", "カタカナ", "漢字", "中文", "你好，世界。", "「引用」", "一二三", "龥", "ࠀ", "𠀀", "𝒳", "𐐀",
	"0", "1", "12", "123", "1234", "2024-12-31", "3.14", "1,000", "٣٤", "१२", "１２３", "²", "½", "Ⅷ", "①", "৪",
	"'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'LL", "'d", "'ſ", "’s", "'x", "''",
	"!", "?!", "...", "…", ",", ";", ":", "(", ")", "[]", "{}", "<", ">", "|", "_", "-", "--", "—", "/", "\\", "\"", "`", "$", "€", "+", "=", "^", "~", "#", "@", "&", "*", "%", "§", "°", "→", "∑",
	"😀", "🦙", "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "❤️", "🏴‍☠️", "1️⃣",
	"<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<BOS_TOKEN>", "<fim_prefix>", "<|", "|>", "<|eot", "<tool_call>",
}

// texts are the texts that references are compared on.
func texts() []string {
	list := []string{
		"", " ", "\n", "Hello, world!", "  leading and trailing  ", "tabs\tand\t\ttabs", "a\n\n\nb", "x \n y", " \r\n \r\n",
		strings.Repeat(" ", 100), strings.Repeat("\n", 40) + "x", strings.Repeat("a", 300), strings.Repeat("中", 70), strings.Repeat("1", 50),
		"package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hi\") // 😀\n}\n",
		"<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nWhy?<|eot_id|>",
		"I'm sure we'll say it's THEY'RE don't, 'tis o'clock", "1 22 333 4444 55555 666666 1234567890", "日本語のテキストと English と 123",
	}
	source := rand.NewPCG(2024, 7)
	pick := func(n int) int { return int(source.Uint64() % uint64(n)) } // the same with every version of Go
	for range 3200 {
		var b strings.Builder
		for range 1 + pick(24) {
			b.WriteString(alphabet[pick(len(alphabet))])
		}
		list = append(list, b.String())
	}
	return list
}

// sum stands for the ids of one text.
func sum(ids []int) string {
	h := sha256.Sum256(fmt.Append(nil, ids))
	return hex.EncodeToString(h[:4])
}

// A reference is a vocabulary that Hugging Face's library was asked about.
type reference struct {
	name string
	open func(t testing.TB) (*Tokenizer, []byte) // the tokenizer, and a tokenizer.json for the library
}

var references = []reference{
	{"llama-3", func(t testing.TB) (*Tokenizer, []byte) {
		data := llama3JSON(t)
		return fromJSON(t, data), data
	}},
	{"llama-3.2", func(t testing.TB) (*Tokenizer, []byte) {
		info := llama32(t)
		data := asJSON(info, split(llama3), byteLevel(false))
		data["model"].(object)["ignore_merges"] = true
		return from(t, info), marshal(t, data)
	}},
	{"cohere", func(t testing.TB) (*Tokenizer, []byte) {
		data := cohereJSON(t)
		return fromJSON(t, data), data
	}},
	{"starcoder", func(t testing.TB) (*Tokenizer, []byte) {
		info := vocabularyInfo(t, "starcoder")
		return from(t, info), marshal(t, asJSON(info, object{"type": "Digits", "individual_digits": true}, byteLevel(true)))
	}},
	{"deepseek-llm", func(t testing.TB) (*Tokenizer, []byte) {
		info := vocabularyInfo(t, "deepseek-llm")
		data := asJSON(info, split("[\r\n]"), split(casedLetters), split(marks), split(`\s+$`), split(cjk),
			object{"type": "Digits", "individual_digits": false}, byteLevel(false))
		for _, added := range data["added_tokens"].([]object) {
			added["special"] = true // those that are not, the library finds even in plain text
		}
		return from(t, info), marshal(t, data)
	}},
}

// vocabularyInfo is the metadata of one of llama.cpp's vocabularies.
func vocabularyInfo(t testing.TB, name string) map[string]any {
	t.Helper()
	openVocabulary(t, name) // or skip
	info, err := readMetadata(bytes.NewReader(read(t, vocabularies, "ggml-vocab-"+name+".gguf")))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Every id is that of Hugging Face's library, whose answers testdata has sums of.
func TestReferences(t *testing.T) {
	all := texts()
	if len(all) < 3000 {
		t.Fatalf("%d texts", len(all))
	}
	for _, ref := range references {
		t.Run(ref.name, func(t *testing.T) {
			tok, _ := ref.open(t)
			want := strings.Fields(string(read(t, "testdata", ref.name+".sums")))
			if len(want) != 2*len(all) {
				t.Fatalf("%d sums for %d texts: write them with -tags hftokenizers -update", len(want), len(all))
			}
			wrong := 0
			for i, text := range all {
				for j, special := range []bool{true, false} {
					ids := tok.Encode(text, special)
					if got := sum(ids); got != want[2*i+j] {
						if wrong++; wrong <= 10 {
							t.Errorf("%q, %v: %v is not what the library says", text, special, ids)
						}
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d differ", wrong, 2*len(all))
			}
		})
	}
}

// Ollama's own tokenizer agrees, with two exceptions, which are left out: its
// expressions take no white space outside of ASCII for white space, and in a
// run of one character it merges any of the pairs that were learned at the same
// time, not the leftmost.
func TestOllamasTokenizer(t *testing.T) {
	info := llama32(t)
	m := metadata(info)
	vocabulary := &ollama.Vocabulary{Values: m.texts("tokens"), Merges: m.texts("merges"), Types: info[prefix+"token_type"].([]int32)}
	theirs := ollama.NewBytePairEncoding(vocabulary, llama3)
	tok := from(t, info)
	for _, text := range texts() {
		text = withoutRuns(strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) && !strings.ContainsRune(" \t\n\f\r", r) {
				return ' '
			}
			return r
		}, text))
		want, err := theirs.Encode(text, false)
		if err != nil {
			t.Fatal(err)
		}
		got := tok.Encode(text, true)
		if !slices.EqualFunc(got, want, func(a int, b int32) bool { return a == int(b) }) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// withoutRuns leaves two of each run of one character.
func withoutRuns(text string) string {
	var out []rune
	for _, r := range text {
		if n := len(out); n < 2 || out[n-1] != r || out[n-2] != r {
			out = append(out, r)
		}
	}
	return string(out)
}

// What llama.cpp tells the names apart by has expressions that are known in
// tokenizer.json files too.
func TestKnownExpressions(t *testing.T) {
	for name, pre := range preTokenizers {
		for _, step := range pre.steps {
			if same, ok := known(step); !ok || same != step {
				t.Errorf("%s: %s is known as %s", name, step, same)
			}
		}
	}
	for _, text := range texts()[:400] {
		for name, pre := range preTokenizers {
			var b strings.Builder
			newSplitterOnce(name, pre).pieces(text, func(piece string) {
				if piece == "" {
					t.Errorf("%s: %q has an empty piece", name, text)
				}
				b.WriteString(piece)
			})
			if b.String() != text {
				t.Errorf("%s: the pieces of %q are %q", name, text, b.String())
			}
		}
	}
	if _, ok := known(`(a+)+$`); ok {
		t.Error("any expression is known")
	}
}

// The page for people has the names of all pre-tokenizers.
func TestDocumentedNames(t *testing.T) {
	page := string(read(t, "../../docs/tokenizers.md"))
	_, rest, _ := strings.Cut(page, "these names are known:\n\n```\n")
	names, _, _ := strings.Cut(rest, "```")
	if got, want := strings.Fields(names), slices.Sorted(maps.Keys(preTokenizers)); !slices.Equal(got, want) {
		t.Errorf("the page has\n%s, there are\n%s", got, want)
	}
}

var splitters = make(map[string]splitter)

func newSplitterOnce(name string, pre preTokenizer) splitter {
	if _, ok := splitters[name]; !ok {
		splitters[name] = newSplitter(pre.steps)
	}
	return splitters[name]
}
