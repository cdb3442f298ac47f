package report

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"stopgap/internal/compare"
	"stopgap/internal/eval/stats"
	"stopgap/runner"
	"stopgap/template"
)

// ability is how a made-up configuration does.
type ability struct {
	name, model string
	right       float64
	tokens      int
	problems    float64
}

var abilities = []ability{
	{"qwen", "tiny-qwen3", 0.71, 180, 0.2}, {"search-r1", "tiny-qwen3", 0.58, 145, 0.5}, {"react", "tiny-qwen3", 0.44, 260, 1.4}, {"deepresearch", "tiny-qwen3", 0.66, 310, 0.3},
}

var kinds = []template.ProblemKind{
	template.UnclosedCall, template.BadJSON, template.MissingName, template.UnknownTool, template.BadArguments, template.CallInThink, template.InventedResponse,
}

// made is a comparison that never was: items and rollouts as wanted, results
// drawn by a fixed seed, intervals and tests computed as compare computes them.
func made(list []ability, items, rollouts int) *compare.Report {
	rng := rand.New(rand.NewPCG(8, 1))
	r := &compare.Report{
		Data: "capitals.jsonl", Shape: "NQ", Date: "2026-11-20", Rollouts: rollouts, Seeds: "8", Primary: "exact_match",
		Bootstrap: compare.Bootstrap{Seed: 1, Draws: 1000, Level: 0.95},
		Metrics: []compare.Metric{
			{Key: "exact_match", Name: "exact match", Group: compare.Quality, Unit: compare.Share, Higher: true, Pass: true, Paired: true, Help: "the answer is a gold answer"},
			{Key: "answered", Name: "answered", Group: compare.Quality, Unit: compare.Share, Higher: true, Pass: true, Paired: true, Help: "the run ended with an answer, right or wrong"},
			{Key: "problems", Name: "problems", Group: compare.Calling, Unit: compare.Count, Lower: true, Help: "what in a run is not as it should be"},
			{Key: "tokens", Name: "tokens", Group: compare.Cost, Unit: compare.Tokens, Lower: true, Paired: true, Help: "what the model generated in a run"},
		},
	}
	for i := range items {
		r.Items = append(r.Items, compare.Item{
			ID: fmt.Sprintf("q%d", i+1), Question: fmt.Sprintf("Which city is the capital of the country that number %d of the list of rivers flows through?", i+1),
			Answers: []string{fmt.Sprintf("City %d", i+1)},
		})
	}
	for n, a := range list {
		c := compare.Configuration{Name: a.name, Format: a.name, Model: a.model, Folder: a.name, Hash: strings.Repeat(fmt.Sprint(n), 8), Done: items * rollouts}
		problems := make([]int, len(kinds))
		for i := range r.Items {
			hard := 0.6 * (rand.New(rand.NewPCG(uint64(i), 5)).Float64() - 0.5)
			var runs []*compare.Run
			for k := range rollouts {
				run := madeRun(rng, a, n, i, k, hard)
				for j := range problems {
					problems[j] += run.Problems[j].N
				}
				runs = append(runs, run)
			}
			r.Items[i].Runs = append(r.Items[i].Runs, runs)
		}
		c.Terminations = []compare.Tally{{Kind: "answered", N: c.Done}}
		for j, k := range kinds {
			c.Problems = append(c.Problems, compare.Tally{Kind: string(k), N: problems[j]})
		}
		for _, m := range r.Metrics {
			c.Scores = append(c.Scores, madeScore(r, n, m.Key))
		}
		r.Configurations = append(r.Configurations, c)
	}
	madePairs(r)
	return r
}

func madeRun(rng *rand.Rand, a ability, n, i, k int, hard float64) *compare.Run {
	run := &compare.Run{
		Rollout: k + 1, Seed: rng.IntN(1 << 30), Termination: runner.TermAnswered, Turns: 1 + rng.IntN(4), Tokens: a.tokens/2 + rng.IntN(a.tokens),
		Answer: fmt.Sprintf("City %d", i+1), Scores: map[string]float64{"exact_match": 1, "answered": 1}, Journal: fmt.Sprintf("%s/journals/q%d-%d.trace", a.name, i+1, k+1),
	}
	run.Calls = run.Turns - 1
	if rng.Float64() > a.right+hard {
		run.Answer, run.Scores["exact_match"] = fmt.Sprintf("Town %d", rng.IntN(90)), 0
	}
	total := 0.0
	for j, kind := range kinds {
		t := compare.Tally{Kind: string(kind)}
		if rng.Float64() < a.problems/float64(2+j) {
			t.N, total = 1, total+1
		}
		run.Problems = append(run.Problems, t)
	}
	run.Scores["problems"], run.Scores["tokens"] = total, float64(run.Tokens)
	return run
}

func values(r *compare.Report, n int, key string) []float64 {
	var out []float64
	for _, it := range r.Items {
		sum := 0.0
		for _, run := range it.Runs[n] {
			sum += run.Scores[key]
		}
		out = append(out, sum/float64(len(it.Runs[n])))
	}
	return out
}

func madeScore(r *compare.Report, n int, key string) compare.Score {
	s := compare.Score{Metric: key, Items: len(r.Items), Interval: compare.Interval{Interval: stats.Mean(values(r, n, key), stats.Resampling{Draws: 1000})}}
	for _, v := range values(r, n, key) {
		s.Values = append(s.Values, &v)
	}
	return s
}

func madePairs(r *compare.Report) {
	var ps, mcs []float64
	for a := range r.Configurations {
		for b := a + 1; b < len(r.Configurations); b++ {
			p := compare.Pair{A: a, B: b}
			va, vb := values(r, a, "exact_match"), values(r, b, "exact_match")
			c := stats.Paired(va, vb, stats.Resampling{Draws: 1000})
			for i := range va {
				if va[i] > vb[i] {
					p.AheadA = append(p.AheadA, i)
				} else if va[i] < vb[i] {
					p.AheadB = append(p.AheadB, i)
				}
				r.Items[i].Differs = r.Items[i].Differs || va[i] != vb[i]
			}
			m := stats.McNemar(len(p.AheadA), len(p.AheadB))
			t := compare.Test{Metric: "exact_match", Items: len(va), Difference: compare.Interval{Interval: c.Interval}, P: c.P, McNemar: compare.McNemar{B: len(p.AheadA), C: len(p.AheadB), P: m.P}}
			if needed, few := stats.TooFew(len(p.AheadA), len(p.AheadB), len(va)); few && c.P > 0.05 {
				t.TooFew = &compare.TooFew{Needed: needed, Detectable: 0.1}
			}
			p.Tests = append(p.Tests, t)
			ps, mcs = append(ps, c.P), append(mcs, m.P)
			r.Pairs = append(r.Pairs, p)
		}
	}
	ps, mcs = stats.Holm(ps), stats.Holm(mcs)
	for i := range r.Pairs {
		r.Pairs[i].Tests[0].Holm, r.Pairs[i].Tests[0].McNemar.Holm = &ps[i], &mcs[i]
	}
}

// madeRuns are the segments of a made-up run.
func madeRuns(run *compare.Run) ([]compare.Segment, error) {
	return []compare.Segment{
		{Source: template.FromTemplate, Text: "<|im_start|>system\n" + strings.Repeat("You answer questions with the tools that there are. Each call stands between tags, as JSON.\n", 12) + "<|im_end|>\n<|im_start|>user\n"},
		{Source: template.FromUser, Text: "Which city is the capital of the country that the river flows through?"},
		{Source: template.FromTemplate, Text: "<|im_end|>\n<|im_start|>assistant\n"},
		{Source: template.FromModel, Text: "<think>\nI have to look that up first.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"query\": \"rivers and capitals\"}}\n</tool_call>"},
		{Source: template.FromTemplate, Text: "<|im_end|>\n<|im_start|>user\n<tool_response>\n"},
		{Source: template.FromTool, Text: fmt.Sprintf("1. Rivers of the north\nThe river number %d rises in the hills and flows through the capital.\n\n2. Capitals\n…", run.Seed%50)},
		{Source: template.FromTemplate, Text: "\n</tool_response>"},
		{Source: template.FromRunner, Text: "No more tools can be called. Answer now."},
		{Source: template.FromTemplate, Text: "<|im_end|>\n<|im_start|>assistant\n"},
		{Source: template.FromModel, Text: "<answer>" + run.Answer + "</answer>"},
	}, nil
}
