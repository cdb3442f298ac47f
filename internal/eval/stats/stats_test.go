package stats

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"testing"
)

// references is testdata/goldens.json: what SciPy and statsmodels say.
type references struct {
	McNemar []struct {
		OnlyA     int `json:"only_a"`
		OnlyB     int `json:"only_b"`
		Exact     [2]float64
		Chi2      [2]float64
		Corrected [2]float64
	}
	Holm     []struct{ P, Adjusted []float64 }
	Rollouts []struct {
		Scores          []float64
		K               int
		Best, Avg, Pass float64
	}
	Bootstrap []struct {
		Values    []float64
		Mean      float64
		Low, High [2]float64 // where the bound of 10 000 draws lies, but for four standard errors of its rank
		Scipy     []float64
	}
	Paired []struct {
		A, B         []float64
		Difference   float64
		Low, High, P [2]float64
	}
	Power []struct {
		Differing, Difference float64
		Needed                int
	}
	Wilson []struct {
		K, N   int
		Bounds [2]float64
	}
}

func goldens(t *testing.T) (r references) {
	t.Helper()
	b, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{
		"McNemar": len(r.McNemar), "Holm": len(r.Holm), "rollouts": len(r.Rollouts),
		"bootstrap": len(r.Bootstrap), "paired": len(r.Paired), "power": len(r.Power), "Wilson": len(r.Wilson),
	} {
		if n < 50 {
			t.Fatalf("only %d tables of %s", n, name)
		}
	}
	return r
}

// near allows for the rounding of sums in another order.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1e-3, math.Abs(b)) }

func within(x float64, r [2]float64) bool { return x >= r[0]-1e-9 && x <= r[1]+1e-9 }

func TestMcNemarIsStatsmodels(t *testing.T) {
	for _, g := range goldens(t).McNemar {
		for name, pair := range map[string]struct {
			got  Test
			want [2]float64
		}{
			"exact":     {McNemar(g.OnlyA, g.OnlyB), g.Exact},
			"chi2":      {McNemarChi2(g.OnlyA, g.OnlyB, false), g.Chi2},
			"corrected": {McNemarChi2(g.OnlyA, g.OnlyB, true), g.Corrected},
		} {
			if !near(pair.got.Statistic, pair.want[0]) || !near(pair.got.P, pair.want[1]) {
				t.Errorf("%s of %d and %d is %v, want %v", name, g.OnlyA, g.OnlyB, pair.got, pair.want)
			}
		}
	}
	if got := McNemar(0, 0); got.P != 1 {
		t.Errorf("no item differs: %v", got)
	}
	if got := McNemarChi2(0, 0, true); got != (Test{0, 1}) {
		t.Errorf("no item differs: %v", got)
	}
}

func TestWilsonIsStatsmodels(t *testing.T) {
	for _, g := range goldens(t).Wilson {
		got := Wilson(float64(g.K), g.N)
		if math.Abs(got.Low-g.Bounds[0]) > 1e-9 || math.Abs(got.High-g.Bounds[1]) > 1e-9 || got.Estimate != float64(g.K)/float64(g.N) {
			t.Errorf("Wilson(%d, %d) = %v, want %v", g.K, g.N, got, g.Bounds)
		}
	}
	if got := Wilson(0, 0); !math.IsNaN(got.Estimate) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestHolmIsStatsmodels(t *testing.T) {
	for _, g := range goldens(t).Holm {
		got := Holm(g.P)
		for i := range got {
			if !near(got[i], g.Adjusted[i]) {
				t.Errorf("Holm(%v) = %v, want %v", g.P, got, g.Adjusted)
				break
			}
		}
	}
}

func TestRatesOfRollouts(t *testing.T) {
	for _, g := range goldens(t).Rollouts {
		hits := 0
		for _, s := range g.Scores {
			if s >= 0.5 {
				hits++
			}
		}
		best, avg, pass := BestAtK(g.Scores, g.K), AvgAtK(g.Scores, g.K), PassAtK(len(g.Scores), hits, g.K)
		if !near(best, g.Best) || !near(avg, g.Avg) || !near(pass, g.Pass) {
			t.Errorf("%v at %d: best %v, avg %v, pass %v; want %v, %v, %v", g.Scores, g.K, best, avg, pass, g.Best, g.Avg, g.Pass)
		}
	}
	for _, v := range []float64{PassAtK(2, 1, 3), AvgAtK([]float64{1}, 2), BestAtK(nil, 1), PassAtK(1, 1, 0)} {
		if !math.IsNaN(v) {
			t.Errorf("too few rollouts give %v", v)
		}
	}
}

// The bounds lie where those of 10 000 draws from the exact distribution lie,
// but for four standard errors of their rank.
func TestMeanIsThePercentileBootstrap(t *testing.T) {
	for i, g := range goldens(t).Bootstrap {
		got := Mean(g.Values, Resampling{Seed: uint64(i)})
		if !near(got.Estimate, g.Mean) || !within(got.Low, g.Low) || !within(got.High, g.High) {
			t.Errorf("%v: %v, want %v, %v, %v", g.Values, got, g.Mean, g.Low, g.High)
		}
		if g.Scipy != nil && (!within(g.Scipy[0], g.Low) || !within(g.Scipy[1], g.High)) {
			t.Errorf("%v: SciPy's own bounds %v are not %v, %v", g.Values, g.Scipy, g.Low, g.High)
		}
		if again := Mean(g.Values, Resampling{Seed: uint64(i)}); again != got {
			t.Errorf("the same seed gives %v and %v", got, again)
		}
	}
	if got := Mean(nil, Resampling{}); !math.IsNaN(got.Estimate) {
		t.Errorf("no values give %v", got)
	}
	if got := Mean([]float64{1, 1, 1}, Resampling{}); got != (Interval{1, 1, 1}) {
		t.Errorf("equal values give %v", got)
	}
}

func TestPairedBootstrap(t *testing.T) {
	for i, g := range goldens(t).Paired {
		got := Paired(g.A, g.B, Resampling{Seed: uint64(i)})
		if !near(got.Estimate, g.Difference) || !within(got.Low, g.Low) || !within(got.High, g.High) || !within(got.P, g.P) {
			t.Errorf("%v and %v: %v, want %v, %v, %v, p %v", g.A, g.B, got, g.Difference, g.Low, g.High, g.P)
		}
	}
	if got := Paired([]float64{1, 0}, []float64{1, 0}, Resampling{}); got.P != 1 || got.Interval != (Interval{}) {
		t.Errorf("no difference gives %v", got)
	}
}

func TestItemsNeeded(t *testing.T) {
	for _, g := range goldens(t).Power {
		if got := ItemsNeeded(g.Differing, g.Difference); got != g.Needed {
			t.Errorf("ItemsNeeded(%v, %v) = %d, want %d", g.Differing, g.Difference, got, g.Needed)
		}
		at := Detectable(g.Needed, g.Differing)
		if at > g.Difference || ItemsNeeded(g.Differing, at) > g.Needed || ItemsNeeded(g.Differing, at*(1-1e-9)) <= g.Needed {
			t.Errorf("Detectable(%d, %v) = %v", g.Needed, g.Differing, at)
		}
	}
	// Where the configurations never differed so far, a difference is one of items
	// that begin to: 7.8 of them, at this power.
	for n, want := range map[int]float64{3: 1, 4: 1, 20: 0.348, 200: 0.0385} {
		if got := Detectable(n, 0); math.Abs(got-want) > 0.02*want {
			t.Errorf("Detectable(%d, 0) = %v, want about %v", n, got, want)
		}
	}
	for _, c := range []struct {
		a, b, items int
		few         bool
	}{
		{30, 5, 200, false}, // found
		{8, 5, 40, true},    // a difference of 7 points among 40 items
		{0, 0, 40, true},    // they never differ
		{0, 0, 0, true},
		{520, 480, 100000, true},
	} {
		if needed, few := TooFew(c.a, c.b, c.items); few != c.few || few == (needed <= c.items) {
			t.Errorf("TooFew(%d, %d, %d) = %d, %v", c.a, c.b, c.items, needed, few)
		}
	}
}

// The power that ItemsNeeded promises is there: of many comparisons with a true
// difference, four of five are found, but for four standard errors and what the
// exact test is more careful than the approximation.
func TestPowerIsWhatIsPromised(t *testing.T) {
	const differing, difference = 0.3, 0.15
	n := ItemsNeeded(differing, difference)
	power := 0.0
	for d := 0; d <= n; d++ { // items that differ
		p := math.Exp(lchoose(n, d) + float64(d)*math.Log(differing) + float64(n-d)*math.Log(1-differing))
		share := (1 + difference/differing) / 2
		for a := 0; a <= d; a++ {
			if McNemar(a, d-a).P < 0.05 {
				power += p * math.Exp(lchoose(d, a)+float64(a)*math.Log(share)+float64(d-a)*math.Log(1-share))
			}
		}
	}
	if power < 0.74 || power > 0.84 {
		t.Errorf("with %d items the power is %.3f", n, power)
	}
}

// The committed goldens are what the script writes.
func TestGoldensAreTheScripts(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import scipy, statsmodels").Run()
	}
	if err != nil {
		t.Skip("there is no python3 with scipy and statsmodels: the goldens are compared, but not made again")
	}
	out, err := exec.Command(python, "testdata/goldens.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, want) {
		t.Error("testdata/goldens.py writes something else: python3 goldens.py > goldens.json, and read the difference")
	}
}
