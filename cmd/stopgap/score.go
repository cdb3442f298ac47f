package main

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"stopgap/models"
)

// A scoredText is one text of render --score: how likely the model is to write
// it after the prompt.
type scoredText struct {
	Text string `json:"text"`
	// LogProb is the natural logarithm of the probability of the whole text,
	// null for a text that the model never writes.
	LogProb     *float64      `json:"logprob"`
	Probability float64       `json:"probability"`
	Tokens      []scoredToken `json:"tokens"`
}

type scoredToken struct {
	ID      int      `json:"id"`
	Piece   string   `json:"piece"`
	LogProb *float64 `json:"logprob"`
}

// scorer connects to the model and gives what knows its probabilities.
func (a *app) scorer(k *kit) (models.Scorer, error) {
	if sc, ok := k.runner.Model.(models.Scorer); ok {
		return sc, nil
	}
	return nil, &usageError{
		fmt.Errorf("the server of %s does not tell the probability of a text", masked(k.ref)),
		"llama-server, vLLM, SGLang and the built-in model do: use --model llamacpp:URL, openai:URL#MODEL or builtin",
	}
}

// printScores asks how likely each text is after the prompt.
func (a *app) printScores(ctx context.Context, k *kit, prompt []models.Segment, texts []string, asJSON bool) error {
	sc, err := a.scorer(k)
	if err != nil {
		return err
	}
	var all []scoredText
	for _, text := range texts {
		tokens, err := sc.Score(ctx, prompt, text)
		if err != nil {
			return err
		}
		all = append(all, newScoredText(text, tokens))
	}
	if asJSON {
		return a.printJSON(all)
	}
	for _, s := range all {
		if err := a.printScore(s, len(all) == 1); err != nil {
			return err
		}
	}
	return nil
}

func newScoredText(text string, tokens []models.Scored) scoredText {
	s := scoredText{Text: text, Tokens: []scoredToken{}}
	sum := 0.0
	for _, t := range tokens {
		sum += t.LogProb
		s.Tokens = append(s.Tokens, scoredToken{ID: t.ID, Piece: t.Piece, LogProb: finite(t.LogProb)})
	}
	s.LogProb, s.Probability = finite(sum), math.Exp(sum)
	return s
}

// finite gives a number that JSON has: there is no minus infinity.
func finite(f float64) *float64 {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return &f
}

// printScore prints one line a text, and with tokens one line each.
func (a *app) printScore(s scoredText, tokens bool) error {
	if _, err := fmt.Fprintf(a.stdout, "%s\t%s\t%d %s\t%s\n", logWords(s.LogProb), percent(s.Probability),
		len(s.Tokens), plural(len(s.Tokens), "token"), strconv.Quote(s.Text)); err != nil {
		return err
	}
	for _, t := range s.Tokens {
		if !tokens {
			break
		}
		if _, err := fmt.Fprintf(a.stdout, "  %s\t%d\t%s\n", logWords(t.LogProb), t.ID, strconv.Quote(t.Piece)); err != nil {
			return err
		}
	}
	return nil
}

func logWords(logprob *float64) string {
	if logprob == nil {
		return "-inf"
	}
	return strconv.FormatFloat(*logprob, 'f', 4, 64)
}

// percent shows a probability with three digits that matter.
func percent(p float64) string { return strconv.FormatFloat(100*p, 'g', 3, 64) + "%" }
