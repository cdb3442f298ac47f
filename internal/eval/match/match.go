// Package match scores an answer against gold answers by its words.
//
// The definitions are those of the scripts that everybody quotes: exact match
// and sub-EM of Search-R1 (verl/utils/reward_score/qa_em.py, qa_em_format.py),
// which are SQuAD's, and F1 of SQuAD 2.0 (evaluate-v2.0.py). It knows nothing of
// runs and never judges meaning.
package match

import (
	"strings"

	"stopgap/internal/eval/pystr"
)

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" // Python's string.punctuation

// Normalise lowers a text, deletes ASCII punctuation, puts a space in the place
// of each article (a, an, the) and squeezes white space.
func Normalise(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && strings.ContainsRune(punctuation, r) {
			return -1
		}
		return r
	}, pystr.Lower(s))
	return strings.Join(pystr.Fields(withoutArticles(s)), " ")
}

// withoutArticles is re.sub(r"\b(a|an|the)\b", " ", s). A word ends where Python
// says so, which is at a combining mark too.
func withoutArticles(s string) string {
	var b strings.Builder
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return !pystr.IsWord(r) })
		if end < 0 {
			end = len(s)
		}
		switch word := s[:end]; word {
		case "a", "an", "the":
			b.WriteByte(' ')
		default:
			b.WriteString(word)
		}
		s = s[end:]
		rest := strings.TrimLeftFunc(s, func(r rune) bool { return !pystr.IsWord(r) })
		b.WriteString(s[:len(s)-len(rest)])
		s = rest
	}
	return b.String()
}

// Exact reports whether the answer is one of the gold answers.
func Exact(answer string, gold []string) bool {
	answer = Normalise(answer)
	for _, g := range gold {
		if Normalise(g) == answer {
			return true
		}
	}
	return false
}

// Contains reports whether one of the gold answers stands in the answer
// (sub-EM). One that is nothing but articles and punctuation stands in every
// answer, as in the reference.
func Contains(answer string, gold []string) bool {
	answer = Normalise(answer)
	for _, g := range gold {
		if strings.Contains(answer, Normalise(g)) {
			return true
		}
	}
	return false
}

// F1 is the harmonic mean of the precision and the recall of the answer's words,
// for the gold answer that it is best for. Where an answer or a gold answer has
// no words, both must have none. Gold answers without words do not count beside
// others.
func F1(answer string, gold []string) float64 {
	words, best, compared := strings.Fields(Normalise(answer)), 0.0, false
	for _, g := range gold {
		if want := strings.Fields(Normalise(g)); len(want) > 0 {
			best, compared = max(best, overlap(words, want)), true
		}
	}
	if !compared && len(words) == 0 {
		return 1
	}
	return best
}

// overlap is F1 for one gold answer that has words.
func overlap(words, want []string) float64 {
	left := map[string]int{}
	for _, w := range want {
		left[w]++
	}
	same := 0
	for _, w := range words {
		if left[w] > 0 {
			left[w]--
			same++
		}
	}
	if same == 0 {
		return 0
	}
	precision, recall := float64(same)/float64(len(words)), float64(same)/float64(len(want))
	return 2 * precision * recall / (precision + recall)
}

// Answer gives what the last pair of answer tags of a generated text holds.
// Search-R1's script reads prompt and answer together and so leaves out a single
// pair, the prompt's example; text here is what the model wrote alone.
func Answer(text string) (answer string, ok bool) {
	const open, closing = "<answer>", "</answer>"
	for {
		_, rest, found := strings.Cut(text, open)
		inner, after, closed := strings.Cut(rest, closing)
		if !found || !closed {
			return answer, ok
		}
		answer, ok, text = pystr.Strip(inner), true, after
	}
}
