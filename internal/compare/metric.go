package compare

import (
	"fmt"
	"slices"
)

// The keys of metrics that others are made of.
const (
	exactMatch = "exact_match"
	f1         = "f1"
	judged     = "judge"
	rightCalls = "right_calls"
	tokens     = "tokens"
	seconds    = "seconds"
)

// metrics are all that a Report may have, in their order. k is the number of
// rollouts.
func metrics(k int) []Metric {
	at := func(name string) string { return fmt.Sprintf("%s@%d", name, k) }
	return slices.Concat([]Metric{
		{Key: exactMatch, Name: "exact match", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "the answer is a gold answer, after Search-R1's normalisation; citations are left out"},
		{Key: "sub_em", Name: "sub-EM", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "a gold answer stands in the answer"},
		{Key: f1, Name: "F1", Group: Quality, Unit: Share, Higher: true, Paired: true,
			Help: "words that the answer shares with a gold answer, as SQuAD counts them"},
		{Key: judged, Name: "judge", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "a model finds the answer right"},
		{Key: rightCalls, Name: "right calls", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "the calls are right by BFCL's rules, after the spelling was repaired"},
		{Key: "right_calls_strict", Name: "right calls, strict", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "the same without any repair"},
		{Key: "citation_recall", Name: "citation recall", Group: Quality, Unit: Share, Higher: true, Paired: true,
			Help: "the part of the gold documents that the answer cites"},
		{Key: "citation_precision", Name: "citation precision", Group: Quality, Unit: Share, Higher: true,
			Help: "the part of the cited documents that is gold, of answers that cite any"},
		{Key: "evidence", Name: "evidence found", Group: Quality, Unit: Share, Higher: true,
			Help: "the part of the gold documents that the tools showed to the model"},
		{Key: "answered", Name: "answered", Group: Quality, Unit: Share, Higher: true, Pass: true, Paired: true,
			Help: "the run ended with an answer, or with the calls that were asked for, right or wrong"},
	}, passes(k), []Metric{
		{Key: "avg_at_k", Name: at("avg"), Group: AtK, Unit: Share, Higher: true,
			Help: fmt.Sprintf("the mean of %d rollouts, which is pass@1 where they are right or wrong", k)},
		{Key: "best_at_k", Name: at("best"), Group: AtK, Unit: Share, Higher: true,
			Help: fmt.Sprintf("the best F1 of %d rollouts", k)},

		{Key: "strict_calls", Name: "valid calls, strict", Group: Calling, Unit: Share, Higher: true, Paired: true,
			Help: "the part of a run's calls that is spelled as the format asks and fits the tool's schema"},
		{Key: "valid_calls", Name: "valid calls", Group: Calling, Unit: Share, Higher: true, Paired: true,
			Help: "the same after the spelling was repaired"},
		{Key: "problems", Name: "problems", Group: Calling, Unit: Count, Lower: true, Paired: true,
			Help: "what in a run is not as the format or the tools ask"},
		{Key: "invented", Name: "invented responses", Group: Calling, Unit: Count, Lower: true,
			Help: "tool responses that the model began to write itself"},
		{Key: "calls", Name: "calls", Group: Calling, Unit: Count, Help: "calls in a run"},

		{Key: tokens, Name: "tokens", Group: Cost, Unit: Tokens, Lower: true, Paired: true,
			Help: "what the model generated in a run, in chunks of the stream, about a token each"},
		{Key: "turns", Name: "turns", Group: Cost, Unit: Count, Lower: true, Help: "generations in a run"},
		{Key: "tokens_per_right", Name: "tokens a right answer", Group: Cost, Unit: Tokens, Lower: true,
			Help: "all tokens over all right answers"},
	})
}

// passes are pass@2, pass@4, … below k, and pass@k.
func passes(k int) []Metric {
	var out []Metric
	pass := func(key string, of int) {
		out = append(out, Metric{Key: key, Name: fmt.Sprintf("pass@%d", of), Group: AtK, Unit: Share, Higher: true, of: of,
			Help: fmt.Sprintf("at least one of %d rollouts is right", of)})
	}
	for of := 2; of < k; of *= 2 {
		pass(fmt.Sprintf("pass_at_%d", of), of)
	}
	pass("pass_at_k", k)
	return out
}

// timing are the metrics of Times, in their order.
func timing() []Metric {
	return []Metric{
		{Key: seconds, Name: "wall time", Group: Cost, Unit: Seconds, Lower: true, Help: "of a run, its tools included"},
		{Key: "seconds_per_right", Name: "wall time a right answer", Group: Cost, Unit: Seconds, Lower: true,
			Help: "the time of all runs, one after the other, over all right answers"},
		{Key: "prompt", Name: "prompt tokens", Group: Cost, Unit: Tokens, Lower: true, Help: "of all prompts of a run, as the server counts"},
		{Key: "evaluated", Name: "evaluated tokens", Group: Cost, Unit: Tokens, Lower: true, Help: "of those, computed"},
		{Key: "reused", Name: "reused tokens", Group: Cost, Unit: Tokens, Help: "of those, found in the server's cache"},
		{Key: "generated", Name: "generated tokens", Group: Cost, Unit: Tokens, Lower: true, Help: "as the server counts, with what came past a stop"},
	}
}

// Primaries are the keys of metrics that a comparison can be about.
func Primaries() []string {
	var out []string
	for _, m := range metrics(1) {
		if m.Paired {
			out = append(out, m.Key)
		}
	}
	return out
}

// present are the metrics that have a value somewhere.
func present(all []Metric, has func(key string) bool) []Metric {
	return slices.DeleteFunc(slices.Clone(all), func(m Metric) bool { return !has(m.Key) })
}

// right is the metric whose value says that a rollout is right: the primary one
// if it is one that rollouts pass and that scores what they came to, else exact
// match.
func right(all []Metric, primary string) string {
	for _, m := range all {
		if m.Key == primary && m.Pass && m.Group == Quality {
			return primary
		}
	}
	return exactMatch
}
