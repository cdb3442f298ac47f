package stopping

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// callPatterns are what people stop models with: the criteria of the formats,
// and common variants.
var callPatterns = []string{
	qwq, `</tool_call>`, `<tool_call>(?<call>.*?)</tool_call>`, `<tool_call>\s*(?<json>\{.*?\})\s*</tool_call>`, `<answer>(.*?)</answer>`, `</answer>`,
	`\nObservation:`, `\nObservation:\s*$`, `(?m)^Observation:`, `(?m)^Observation:?\s*$`, `(?<=\n)Question:`, `(?:\nObservation|\nQuestion)\s*:`, `(?i)final answer\s*[:：]\s*(?<a>[^\n]+)\n`,
	`Action: *(?<tool>\w+)\nAction Input: *(?<args>\{.*?\})\n`, `Action:\s*(?<tool>[^\n]*?)\s*\n+Action Input:\s*(?<args>.*?)\nObservation:`, `\nThought:.*\n`, `(?-s)\nFinal Answer:.+\n`,
	`<\|im_end\|>|<\|endoftext\|>`, `<\|(?:im_(?:start|end)|endoftext)\|>`, `</?(?:s|eos)>`, `\[TOOL_CALLS\]\s*\[.*?\]`, `<function=(?<f>\w+)>(?<body>.*?)</function>`, `<(?<tag>\w+)>.*?</\k<tag>>`, `<(\w+)>[^<]*</\1>`,
	"```\n", "```(?<lang>\\w*)\n(?<code>.*?)\n```", "(?m)^```\\s*$", "(?<!`)```(?!`)", `(?m)^#{1,6} .*$\n`, `(?m)^\s*[-*] .+\n(?!\s*[-*])`, `(?m)^def \w+\(.*?\):\n(?:    .*\n)+\n`,
	`\n{3,}`, `\n\s*\n`, `(\S{3,})\s+\1\s+\1`, `(.{4,20}?)\1{3}`, `(?<line>[^\n]{3,})\n(?:.*\n)?\k<line>\n`, `[。！？]`, `[。！？][”」]?\s*\n`, `\p{Han}{6,}[，。]`, `(?<![\p{L}])END(?![\p{L}])`, `\bDONE\b`, `\b(?:therefore|thus)\b.*?\.`,
	`"name"\s*:\s*"(?<n>[^"\\]*(?:\\.[^"\\]*)*)"`, `(?<!\\)"\s*\}`, `\{(?:[^{}]|(?<o>\{)|(?<-o>\}))*(?(o)(?!))\}`, `\{[^{}]*\}`, `(?>\{[^{}]*\})\n`, `"(?:[^"\\]|\\.)*"\s*[,}]`, `\$\d+(?:\.\d{2})?\b\s`, `https?://[^\s"<>]+[\s"<>]`,
	`<think>.*?</think>\s*\S`, `(?<=</think>)\s*<tool_call>`, `(?<!<think>.*)</think>`, `^\s*(?:yes|no)\b`, `(?i)^\s*(?:sure|of course)[,!.]`, `(?=.*</tool_call>).*\n`, `(?:\w+\s)+\.\n`, `(?:[a-z]+ )+and`, `[\p{Emoji}-[0-9#*]]{2}`, `\X{3}。`,
	`Answer: \d+`, `Answer: \d+(?<g>\D)`, `\\boxed\{(?<a>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}`, `(?x) < answer > (?<a> .*? ) </ answer >  # the end`, `\Q<|eot|>\E`, `(?i)</TOOL_CALL>`, `(?i)stop.ſ?`, `(?:\r\n|\n|\r)Human:`, `(?m)^(?:Human|Assistant):$\n`,
}

// fragments are what transcripts are made of.
var fragments = []string{
	"<tool_call>", "</tool_call>", "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"height of K2\"}}\n</tool_call>", "{\"action\": \"search\", \"action_input\": {\"query\": \"\\\"K2\\\" {m}\"}}",
	"</tool_call>\nNow I", "<tool_response>\n8611 m\n</tool_response>", "<think>", "</think>", "\n\n", "\n", " ", "<answer>8611 m</answer>", "<answer>", "</answer>", "The <tool_call> tag opens a call. ",
	"Thought: I look it up.\n", "Action: search\nAction Input: {\"q\": \"K2\"}\n", "Action: search\n", "\nObservation:", "\nObservation: 8611\n", "Observ", "ation:", "\nQuestion: next?", "Final Answer: 8611 m\n", "final answer： 高度\n", "\nThought: done\n",
	"<|im_end|>", "<|im_start|>", "<|endoftext|>", "</s>", "<s>", "[TOOL_CALLS] [{\"name\": \"f\"}]", "<function=f>{\"a\": 1}</function>", "<b>x</b>", "<b>x</i>", "```", "```python\nprint(1)\n```\n", "```\n", "def f(x):\n    return x\n\n", "# Title\n", "- item\n- item\ntext\n",
	"乔戈里峰的高度是八千六百一十一米。", "你好，", "四个汉字，", "我需要搜索一下。", "真的吗？", "好的！”\n", "🙂🙂", "👩‍👩‍👧", "🇩🇪", "e\u0301", "END", "BEND", "DONE", "therefore it follows. ", "yes", "No, ", "Sure, ", "apples and pears and ", "again again again ",
	"same line\n", "same line\n", "$12.50 ", "Answer: 42 m", "Answer: 4", "\\boxed{x^{2}}", "https://example.org/a?b=c ", "\"quoted \\\" text\"", "{", "}", "[", "]", "\"", "\\", "\r\n", "Human:", "\nHuman:\n", "\xff", "\xe4\xbd", "\u2028", "STOP", "ſtop", "\u212a2",
}

// transcript is a text as models write them, now and then with a slip.
func transcript(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) + 1 {
		f := pick(r, fragments)
		switch r.IntN(8) {
		case 0:
			f = f[:r.IntN(len(f)+1)]
		case 1:
			f = foldSome(r, f)
		}
		b.WriteString(f)
	}
	return b.String()
}

// bulky makes patterns that need many states, or the room that a pattern may
// take.
func bulky(r *rand.Rand) grown {
	word := func() string {
		b := make([]byte, r.IntN(6)+2)
		for i := range b {
			b[i] = "abc1 <"[r.IntN(6)]
		}
		return string(b)
	}
	switch r.IntN(10) {
	case 0, 1: // a list of words, up to 8 KiB
		words := []string{word()}
		for size := r.IntN(maxPattern); size > 8; {
			words = append(words, word())
			size -= len(words[len(words)-1]) + 1
		}
		return fixed(strings.Join(words, "|"), words...)
	case 2:
		long := strings.Repeat(word(), r.IntN(40)+20)
		return fixed(long, long)
	case 3:
		n := r.IntN(1000)
		return fixed(fmt.Sprintf("a{0,%d}b", n), strings.Repeat("a", r.IntN(n+2))+"b", "b", "aab")
	case 4:
		n := r.IntN(14)
		return fixed(fmt.Sprintf("[ab]*a[ab]{%d}1", n), strings.Repeat("ab", n)+"1", strings.Repeat("b", n)+"a1")
	case 5:
		n := r.IntN(60)
		return fixed(fmt.Sprintf("a.{%d,%d}b", n/2, n), "a"+strings.Repeat("b", n/2+1)+"b", "a1b")
	case 6:
		return fixed(`(?:[^<]|<(?!/a>)){0,1000}</a>`, "a<b</a>", "</a>")
	case 7:
		return fixed(fmt.Sprintf(`(?:a|b|ab){%d,20}1`, r.IntN(9)), strings.Repeat("ab", 9)+"1", "ab1")
	case 8:
		return fixed(`(\w{1,50}\s){2,8}\.`, "aa b 1 .", "ab ab .")
	default:
		n := r.IntN(12) + 1
		return fixed(fmt.Sprintf("(?:a?){%d}a{%d}", n, n), strings.Repeat("a", n), strings.Repeat("a", 2*n))
	}
}

// maxPattern is the size of the largest pattern that Compile takes.
const maxPattern = 8 << 10

// text is a text that the pattern may match: samples of it, whole, cut off and
// with slips, between noise.
func (n grown) text(r *rand.Rand, noise []string, most int) string {
	var b strings.Builder
	parts := r.IntN(4) + 1
	for range parts {
		sample := n.sample(newSampler(r))
		switch r.IntN(9) {
		case 0, 1:
			sample = pick(r, noise) + pick(r, noise)
		case 2:
			sample = sample[:r.IntN(len(sample)+1)]
		case 3:
			sample = foldSome(r, sample)
		case 4, 5:
			at := r.IntN(len(sample) + 1)
			to := at + r.IntN(min(3, len(sample)-at+1))
			sample = sample[:at] + pick(r, noise) + sample[to:]
		}
		b.WriteString(sample)
		if r.IntN(3) == 0 {
			b.WriteString(pick(r, noise))
		}
	}
	text := b.String()
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return text
}

// noises is a small alphabet of its own for each pattern, so that its pieces
// meet often.
func noises(r *rand.Rand, source string) []string {
	out := []string{pick(r, pieces), pick(r, pieces), pick(r, pieces)}
	for range 3 {
		at := r.IntN(len(source) + 1)
		if c, size := utf8.DecodeRuneInString(source[at:]); size > 0 && c != utf8.RuneError {
			out = append(out, string(c))
		}
	}
	return out
}
