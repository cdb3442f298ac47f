package builtin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how a token is drawn. The zero value takes the likeliest.
type Sampling struct {
	Temperature float64 // zero: the likeliest token, whatever the rest says
	TopK        int     // draw among so many; zero among all
	TopP        float64 // draw among the likeliest that reach this probability; zero or one among all
	MinP        float64 // draw among those with this share of the likeliest's probability
	// The penalties count tokens among the last penalized, the prompt's too:
	// PresencePenalty is taken off a logit, RepeatPenalty divides one above
	// zero and multiplies one below. Zero and, for the second, one are none.
	PresencePenalty float64
	RepeatPenalty   float64
	Seed            uint64
}

// penalized is how many tokens the penalties look back, llama.cpp's default.
const penalized = 64

// A sampler draws the tokens of one generation.
type sampler struct {
	Sampling
	random     *rand.Rand
	candidates []candidate
}

type candidate struct {
	id    int
	logit float64 // and its probability, once there are some
}

func newSampler(s Sampling) *sampler {
	return &sampler{Sampling: s, random: rand.New(rand.NewPCG(s.Seed, s.Seed^0x9E3779B9))}
}

// sample draws from logits, after what was said before. The order is that of
// llama.cpp: penalties, top-k, top-p, min-p, temperature. It gives -1 where a
// logit is no number.
func (s *sampler) sample(logits []float32, before []int) int {
	s.penalize(logits, before[max(0, len(before)-penalized):])
	if s.Temperature <= 0 {
		return likeliest(logits)
	}
	s.candidates = s.candidates[:0]
	for id, l := range logits {
		if l != l {
			return -1
		}
		s.candidates = append(s.candidates, candidate{id, float64(l)})
	}
	slices.SortFunc(s.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
	})
	c := s.candidates
	if s.TopK > 0 {
		c = c[:min(len(c), s.TopK)]
	}
	if s.TopP > 0 && s.TopP < 1 {
		p, sum := softmax(c, 1), 0.0
		for i := range c {
			if sum += p[i]; sum >= s.TopP {
				c = c[:i+1]
				break
			}
		}
	}
	if least := c[0].logit + math.Log(s.MinP); s.MinP > 0 {
		for i := range c {
			if c[i].logit < least {
				c = c[:i]
				break
			}
		}
	}
	r := s.random.Float64()
	for i, p := range softmax(c, s.Temperature) {
		if r -= p; r < 0 {
			return c[i].id
		}
	}
	return c[0].id
}

// penalize lowers the logits of tokens that were there already.
func (s *sampler) penalize(logits []float32, before []int) {
	if s.PresencePenalty == 0 && (s.RepeatPenalty == 0 || s.RepeatPenalty == 1) {
		return
	}
	seen := map[int]bool{}
	for _, id := range before {
		if seen[id] {
			continue
		}
		seen[id] = true
		if repeat := float32(s.RepeatPenalty); repeat != 0 && logits[id] > 0 {
			logits[id] /= repeat
		} else if repeat != 0 {
			logits[id] *= repeat
		}
		logits[id] -= float32(s.PresencePenalty)
	}
}

// likeliest gives the first of the largest logits, -1 where one is no number.
func likeliest(logits []float32) int {
	best := 0
	for id, l := range logits {
		if l != l {
			return -1
		}
		if l > logits[best] {
			best = id
		}
	}
	return best
}

// softmax gives the probabilities of candidates, the likeliest of which comes
// first.
func softmax(c []candidate, temperature float64) []float64 {
	p, sum := make([]float64, len(c)), 0.0
	for i := range c {
		p[i] = math.Exp((c[i].logit - c[0].logit) / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
