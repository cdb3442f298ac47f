package stats

import (
	"math"
	"testing"
)

func TestRatio(t *testing.T) {
	o := Resampling{Seed: 3}
	above := []float64{3, 1, 4, 1, 5, 9, 2, 6}
	ones := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	// Over ones it is the mean, with the same resamples.
	if got, want := Ratio(above, ones, o), Mean(above, o); math.Abs(got.Estimate-want.Estimate)+math.Abs(got.Low-want.Low)+math.Abs(got.High-want.High) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	// It does not depend on the scale of what is below, and inverts what is above.
	if got, want := Ratio(above, []float64{2, 2, 2, 2, 2, 2, 2, 2}, o), Ratio(above, ones, o); got.Estimate != want.Estimate/2 || got.High != want.High/2 {
		t.Errorf("%v, want half of %v", got, want)
	}
	// One of eight is right: a third of the resamples have none, (7/8)^8.
	if got := Ratio(ones, []float64{0, 0, 0, 1, 0, 0, 0, 0}, o); got.Estimate != 8 || !math.IsInf(got.High, 1) || got.Low < 1 || got.Low > 4 {
		t.Errorf("one right answer: %v", got)
	}
	// All of them hold when nearly all are right: the bound is finite.
	if got := Ratio(ones, []float64{1, 1, 1, 0, 1, 1, 1, 1}, o); math.IsInf(got.High, 1) || got.Low != 1 || got.High < 8.0/7 {
		t.Errorf("one wrong answer: %v", got)
	}
	if got := Ratio(ones, make([]float64, 8), o); !math.IsNaN(got.Estimate) || !math.IsNaN(got.High) {
		t.Errorf("no right answer: %v", got)
	}
	if got := Ratio(nil, nil, o); !math.IsNaN(got.Estimate) {
		t.Errorf("no items: %v", got)
	}
}
