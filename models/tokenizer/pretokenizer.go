package tokenizer

import (
	"math"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2"
)

// The expressions that split text into pieces, as they stand in the models'
// own tokenizer.json, under the names by which llama.cpp groups them
// (src/llama-vocab.cpp).
const (
	gpt2    = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	llama3  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen35  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	gpt4o   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	tekken  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	seed    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	bailing = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
	bloom   = ` ?[^(\s|.,!?…。，、।۔،)]+`

	digit       = `\p{N}`
	digits      = `\p{N}+`
	threeDigits = `[0-9][0-9][0-9]`
	upToThree   = `\p{N}{1,3}`
	newline     = `[\r\n]`
	cjk         = `[一-龥ࠀ-一가-퟿]+`
	kana        = `[一-龥぀-ゟ゠-ヿ]+`
	deepseek3   = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	marks       = `\s?[!-/:-~！-／：-～‘-‟　-。]+`
	// The letters of scripts with two cases, as code points: some have twins that
	// look the same.
	casedLetters = "\\s?" +
		"[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377" +
		"\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5" +
		"\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d" +
		"\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4" +
		"\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d" +
		"\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4" +
		"\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06" +
		"\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2" +
		"\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
	// The space at the end of a line. The lookbehind changes no match, but keeps
	// a long run of spaces elsewhere from being tried at each of its places.
	spaceAtEnd = `(?<!\s)\s+\z`
)

// punctuation is Hugging Face's Punctuation, one character at a time: ASCII's
// and Unicode's.
const punctuation = `[\p{P}$+<=>^` + "`" + `|~]`

// A preTokenizer is what tokenizer.ggml.pre stands for.
type preTokenizer struct {
	steps []string // each splits what the last one left
	// What llama.cpp takes from the name alone.
	ignoreMerges, addBOS bool
}

// preTokenizers are the known kinds by their names in GGUF files.
var preTokenizers = byName(map[string]preTokenizer{
	"default": {steps: []string{`[\p{P}$+<=>^|~]+`, gpt2, digits, threeDigits}},
	"falcon":  {steps: []string{punctuation + "+", gpt2, threeDigits}},
	"gpt-2 phi-2 mpt olmo jais exaone4 trillion granite-docling gigachat a.x-4.0 mellum jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe": {steps: []string{gpt2}},
	"starcoder refact command-r smollm codeshell exaone minerva-7b":     {steps: []string{digit, gpt2}},
	"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2": {steps: []string{llama3}, ignoreMerges: true, addBOS: true},
	"dbrx smaug-bpe glm4 chatglm-bpe":                                   {steps: []string{llama3}},
	"qwen2 deepseek-r1-qwen kormo megrez stablelm2 hunyuan grok-2":      {steps: []string{qwen2}},
	"qwen35":                              {steps: []string{qwen35}},
	"gpt-4o llama4 minimax-m2":            {steps: []string{gpt4o}},
	"tekken":                              {steps: []string{tekken}, ignoreMerges: true, addBOS: true},
	"seed-coder":                          {steps: []string{seed}},
	"bailingmoe bailingmoe2 llada-moe":    {steps: []string{bailing}},
	"bloom poro-chat gpt3-finnish":        {steps: []string{bloom}},
	"viking":                              {steps: []string{bloom, digit}},
	"deepseek-llm":                        {steps: []string{newline, casedLetters, marks, spaceAtEnd, cjk, digits}},
	"deepseek-coder":                      {steps: []string{newline, `\s?\p{L}+`, `\s?\p{P}+`, cjk, digit}},
	"deepseek-v3 hunyuan-dense joyai-llm": {steps: []string{upToThree, kana, deepseek3}},
})

// byName gives each of the names in a key the value of its own.
func byName(groups map[string]preTokenizer) map[string]preTokenizer {
	all := make(map[string]preTokenizer)
	for names, p := range groups {
		for name := range strings.FieldsSeq(names) {
			all[name] = p
		}
	}
	return all
}

// variants are other spellings of known expressions in tokenizer.json files.
var variants = map[string]string{
	`\s+$`:                     spaceAtEnd,
	` ?[^(\s|[.,!?…。，、।۔،])]+`: bloom,
}

// escaped spells the ends of lines, which some files have as characters.
var escaped = strings.NewReplacer("\r", `\r`, "\n", `\n`)

// known gives the form in which an expression of a tokenizer.json is run here,
// and false for one that no known model has. Oniguruma, which Hugging Face's
// library runs, reads some expressions otherwise than regexp2, and an unknown
// one may take exponential time, so nothing else is run.
func known(expression string) (string, bool) {
	expression = escaped.Replace(expression)
	if same, ok := variants[expression]; ok {
		return same, true
	}
	for _, p := range preTokenizers {
		if slices.Contains(p.steps, expression) {
			return expression, true
		}
	}
	return "", false
}

// A splitter cuts a text into the pieces in which merges stay.
type splitter []*regexp2.Regexp

// newSplitter compiles the steps. The matches take time linear in the text, so
// that they run without a limit on time and stack, and give no error.
func newSplitter(steps []string) splitter {
	s := make(splitter, len(steps))
	for i, expression := range steps {
		// Without options \s is Unicode's; regexp2.RE2 would make it ASCII's.
		s[i] = regexp2.MustCompile(expression, regexp2.OptionMaxBacktrackingStackSize(-1))
		s[i].MatchTimeout = math.MaxInt64
	}
	return s
}

// pieces yields the pieces of a text, in order; together they are the text.
// Each step cuts out what its expression matches, and the next one works on
// what matched and on what lies between.
func (s splitter) pieces(text string, yield func(string)) {
	if text == "" {
		return
	}
	if len(s) == 0 {
		yield(text)
		return
	}
	found, err := s[0].FindAllStringIndex(text, -1)
	if err != nil {
		panic("tokenizer: " + err.Error()) // there is neither a timeout nor a limit
	}
	from := 0
	for _, m := range found {
		s[1:].pieces(text[from:m[0]], yield)
		s[1:].pieces(text[m[0]:m[1]], yield)
		from = m[1]
	}
	s[1:].pieces(text[from:], yield)
}
