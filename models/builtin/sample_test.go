package builtin

import (
	"math"
	"testing"
)

// shares draws many times and gives how often each token came.
func shares(t *testing.T, s Sampling, logits []float32, before ...int) []float64 {
	t.Helper()
	const draws = 20000
	out := make([]float64, len(logits))
	sampler := newSampler(s)
	for range draws {
		id := sampler.sample(append([]float32(nil), logits...), before)
		if id < 0 {
			t.Fatal("no token")
		}
		out[id] += 1. / draws
	}
	return out
}

// logs are the logits of probabilities.
func logs(p ...float64) []float32 {
	out := make([]float32, len(p))
	for i, v := range p {
		out[i] = float32(math.Log(v) + 3)
	}
	return out
}

func TestSampling(t *testing.T) {
	logits := logs(0.1, 0.4, 0.15, 0.3, 0.05)
	for _, c := range []struct {
		name   string
		s      Sampling
		before []int
		want   []float64
	}{
		{"the likeliest", Sampling{TopK: 3, MinP: 0.2, Seed: 1}, nil, []float64{0, 1, 0, 0, 0}},
		{"all", Sampling{Temperature: 1}, nil, []float64{0.1, 0.4, 0.15, 0.3, 0.05}},
		{"colder", Sampling{Temperature: 0.5}, nil, []float64{0.01 / .285, 0.16 / .285, 0.0225 / .285, 0.09 / .285, 0.0025 / .285}},
		{"top-k", Sampling{Temperature: 1, TopK: 2}, nil, []float64{0, 0.4 / 0.7, 0, 0.3 / 0.7, 0}},
		{"top-k of more than there are", Sampling{Temperature: 1, TopK: 50}, nil, []float64{0.1, 0.4, 0.15, 0.3, 0.05}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.75}, nil, []float64{0, 0.4 / 0.85, 0.15 / 0.85, 0.3 / 0.85, 0}},
		{"top-p of nothing", Sampling{Temperature: 1, TopP: 1e-9}, nil, []float64{0, 1, 0, 0, 0}},
		{"min-p", Sampling{Temperature: 1, MinP: 0.3}, nil, []float64{0, 0.4 / 0.85, 0.15 / 0.85, 0.3 / 0.85, 0}},
		// top-p counts what top-k left, and the temperature comes after both
		{"all of them", Sampling{Temperature: 2, TopK: 3, TopP: 0.8}, nil, []float64{0, math.Sqrt(0.4) / (math.Sqrt(0.4) + math.Sqrt(0.3)), 0, math.Sqrt(0.3) / (math.Sqrt(0.4) + math.Sqrt(0.3)), 0}},
		{"presence", Sampling{Temperature: 1, PresencePenalty: math.Ln2}, []int{1, 1, 3}, []float64{0.1 / .65, 0.2 / .65, 0.15 / .65, 0.15 / .65, 0.05 / .65}},
		{"presence, the likeliest", Sampling{PresencePenalty: 5}, []int{1, 3}, []float64{0, 0, 1, 0, 0}},
		{"no repetition penalty", Sampling{Temperature: 1, RepeatPenalty: 1}, []int{1}, []float64{0.1, 0.4, 0.15, 0.3, 0.05}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shares(t, c.s, logits, c.before...)
			for i := range got {
				if math.Abs(got[i]-c.want[i]) > 0.015 {
					t.Errorf("token %d has the share %.3f, not %.3f: %.3f", i, got[i], c.want[i], got)
				}
			}
		})
	}
}

// TestRepeatPenalty: a logit above zero is divided, one below is multiplied, of
// the last tokens only, and of each once.
func TestRepeatPenalty(t *testing.T) {
	logits := []float32{4, -4, 4, 4}
	before := []int{2} // too far back
	for range penalized {
		before = append(before, 0, 1)
	}
	newSampler(Sampling{RepeatPenalty: 2}).penalize(logits, before[len(before)-penalized:])
	for i, want := range []float32{2, -8, 4, 4} {
		if logits[i] != want {
			t.Errorf("logits are %g", logits)
		}
	}
	if got := newSampler(Sampling{RepeatPenalty: 2}).sample([]float32{4, -4, 3, 2}, before); got != 2 {
		t.Errorf("token %d", got)
	}
}

func TestSeeds(t *testing.T) {
	draw := func(seed uint64) (ids [32]int) {
		s := newSampler(Sampling{Temperature: 1, Seed: seed})
		for i := range ids {
			ids[i] = s.sample(logs(0.2, 0.2, 0.2, 0.2, 0.2), nil)
		}
		return ids
	}
	first := draw(5)
	if again, other := draw(5), draw(6); again != first || other == first {
		t.Errorf("a seed gives %v, then %v, and another one %v", first, again, other)
	}
}

// TestBadLogits: what is no number is told, and infinity is survived.
func TestBadLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, temperature := range []float64{0, 1} {
		for _, logits := range [][]float32{{nan, 1}, {1, nan}, {1, nan, 3}} {
			if got := newSampler(Sampling{Temperature: temperature}).sample(logits, nil); got != -1 {
				t.Errorf("token %d of %g at %g", got, logits, temperature)
			}
		}
		if got := newSampler(Sampling{Temperature: temperature, TopP: 0.5, MinP: 0.1}).sample([]float32{1, inf, -inf}, nil); got != 1 {
			t.Errorf("token %d at %g", got, temperature)
		}
	}
}
