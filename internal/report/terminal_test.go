package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"stopgap/internal/compare"
	"stopgap/internal/eval/stats"
)

// madeTimes are measured times of a made-up comparison.
func madeTimes(r *compare.Report) *compare.Times {
	t := &compare.Times{Metrics: []compare.Metric{{Key: "seconds", Name: "wall time", Unit: compare.Seconds}}}
	for i, c := range r.Configurations {
		s := compare.Score{Metric: "seconds", Items: 1, Interval: compare.Interval{Interval: stats.Interval{Estimate: float64(i) + 0.5, Low: 0, High: 9}}}
		t.Configurations = append(t.Configurations, compare.ConfigurationTimes{Name: c.Name, Scores: []compare.Score{s}})
	}
	return t
}

func terminalText(t *testing.T, r *compare.Report, times *compare.Times, s Screen) string {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, r, times, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Every line fits, at every width, whatever the names are, and however many
// configurations there are.
func TestTerminalFits(t *testing.T) {
	many := []ability{}
	for i := range 12 {
		a := abilities[i%4]
		a.name = fmt.Sprintf("%s, model-%d-with-a-long-name-of-its-own", a.name, i)
		many = append(many, a)
	}
	for name, r := range map[string]*compare.Report{"four": made(abilities, 20, 2), "twelve": made(many, 5, 1), "hostile": hostileReport()} {
		for width := 60; width <= 200; width++ {
			if name == "twelve" && width%20 != 0 {
				continue
			}
			for n, l := range strings.Split(terminalText(t, r, madeTimes(r), Screen{Width: width}), "\n") {
				if w := runewidth.StringWidth(l); w > width {
					t.Fatalf("%s, %d columns: line %d has %d: %s", name, width, n+1, w, l)
				}
			}
		}
	}
}

func TestTerminalTable(t *testing.T) {
	r := made(abilities[:2], 40, 2)
	text := terminalText(t, r, madeTimes(r), Screen{Width: 100})
	for _, want := range []string{
		`(?m)^2 configurations on capitals.jsonl$`, `(?m)^40 items, 2 rollouts each, scored by exact match$`,
		`(?m)^A  qwen +\d+\.\d  +\d+\.\d to \d+\.\d    ·*─+●─+·*$`, `(?m)^A − B +[+−]?\d+\.\d  +[+−]?\d+\.\d to [+−]?\d+\.\d +[\d.]+  \S`,
		`(?m)^tokens +\d+ +\d+$`, `(?m)^wall time, s +0\.50 +1\.50$`, `(?m)^problem +A +B$`, `(?m)^bad json +\d+ +\d+$`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	coloured := terminalText(t, r, madeTimes(r), Screen{Width: 100, Colour: true})
	if bare := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""); bare != text || coloured == text {
		t.Errorf("with colours it is another text:\n%s", bare)
	}
}

// What there is little of is drawn as far as it goes.
func TestLittle(t *testing.T) {
	alone := made(abilities[:1], 3, 1)
	nothing := &compare.Report{Data: "none.jsonl", Rollouts: 1, Items: []compare.Item{}, Configurations: []compare.Configuration{{Name: "qwen", Scores: []compare.Score{}}}}
	unscored := made(abilities[:2], 3, 1)
	unscored.Primary, unscored.Metrics, unscored.Pairs = "", unscored.Metrics[2:], nil
	unmade := made(abilities[:2], 3, 2)
	for i := range unmade.Items {
		unmade.Items[i].Runs[1] = []*compare.Run{nil, nil}
	}
	unmade.Configurations[1].Scores, unmade.Pairs, unmade.Configurations[1].Problems = nil, nil, nil
	endless := made(abilities[:2], 3, 1)
	endless.Configurations[0].Scores[3].Interval = compare.Interval{Interval: stats.Interval{Estimate: 10, Low: 5}, Unbounded: true}
	tokens := made(abilities[:2], 5, 1)
	tokens.Primary = "tokens"
	named := made(abilities[:2], 5, 1)
	named.Metrics[0].Name = "right calls, strict"
	for name, r := range map[string]*compare.Report{"alone": alone, "nothing": nothing, "unscored": unscored, "unmade": unmade, "endless": endless, "tokens": tokens, "named": named} {
		var b bytes.Buffer
		for _, err := range []error{HTML(&b, r, nil), Markdown(&b, r), CSV(&b, r), JSON(&b, r), Terminal(&b, r, nil, Screen{Width: 60})} {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if text := b.String(); regexp.MustCompile(`NaN|Inf\b|<no value>|ZgotmplZ|%!`).MatchString(text) {
			t.Errorf("%s: %s", name, regexp.MustCompile(`.{0,80}(NaN|Inf\b|<no value>|ZgotmplZ|%!).{0,20}`).FindString(text))
		}
		want := map[string]string{
			"alone": "qwen on capitals.jsonl", "nothing": "qwen on none.jsonl", "unscored": "tokens", "unmade": "not made", "endless": "5.00 or more", "tokens": "scored by tokens", "named": "right calls, strict, %  95 %\n",
		}[name]
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: there is no %q", name, want)
		}
	}
}

// A pair is told apart only by what both tests find.
func TestFindings(t *testing.T) {
	p := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		difference float64
		holm, mc   *float64
		lower      bool
		few        *compare.TooFew
		better     int
		words      string
	}{
		{0.2, p(0.01), p(0.02), false, nil, 0, "A is better"},
		{-0.2, p(0.01), p(0.02), false, nil, 1, "B is better"},
		{0.2, p(0.01), p(0.02), true, nil, 1, "B is better"},
		{0.2, p(0.01), p(0.2), false, nil, -1, "cannot tell: the tests disagree"},
		{0.2, p(0.06), p(0.02), false, nil, -1, "no difference shown"},
		{0.2, p(0.2), p(0.2), false, &compare.TooFew{Needed: 12345}, -1, "cannot tell: about 12\u202f345 items needed"},
		{0, p(1), p(1), false, &compare.TooFew{Detectable: 0.0391}, -1, "no difference of 3.9 points seen"},
		{0, p(1), p(1), false, &compare.TooFew{Detectable: 1}, -1, "cannot tell: too few items"},
		{0.2, nil, nil, false, nil, -1, "no difference shown"},
	} {
		test := compare.Test{
			Metric: "m", Difference: compare.Interval{Interval: stats.Interval{Estimate: c.difference}}, Holm: c.holm, TooFew: c.few, McNemar: compare.McNemar{Holm: c.mc},
		}
		r := &compare.Report{
			Primary: "m", Metrics: []compare.Metric{{Key: "m", Lower: c.lower}}, Pairs: []compare.Pair{{A: 0, B: 1, Tests: []compare.Test{test}}},
		}
		if got := findings(r); len(got) != 1 || got[0].better != c.better || got[0].words() != c.words {
			t.Errorf("%+v: %+v, %q", c, got[0], got[0].words())
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		u    compare.Unit
		want string
	}{
		{0.123456, compare.Share, "12.3"}, {1, compare.Share, "100.0"}, {-0.00001, compare.Share, "0.0"}, {-0.05, compare.Share, "−5.0"},
		{3.14159, compare.Count, "3.14"}, {31.4159, compare.Tokens, "31.4"}, {314.159, compare.Tokens, "314"}, {9999, compare.Tokens, "9999"},
		{1234567, compare.Tokens, "1\u202f234\u202f567"}, {-12345.6, compare.Count, "−12\u202f346"}, {0.004, compare.Seconds, "0.00"},
	} {
		if got := number(c.v, c.u); got != c.want {
			t.Errorf("%v %s is %q, not %q", c.v, c.u, got, c.want)
		}
	}
	if signed(0.05, compare.Share) != "+5.0" || signed(-0.05, compare.Share) != "−5.0" || signed(0.0001, compare.Share) != "0.0" {
		t.Error("signs")
	}
	if probability(0.00099) != "< 0.001" || probability(0.0499) != "0.050" || probability(0.3) != "0.30" {
		t.Error("probabilities")
	}
	if key(0) != "A" || key(25) != "Z" || key(26) != "AA" || key(701) != "ZZ" {
		t.Errorf("keys %s %s", key(26), key(701))
	}
}

// Axes have few round numbers, and go as far as the values.
func TestAxes(t *testing.T) {
	for _, high := range []float64{0, 0.0004, 0.7, 1, 3, 9.99, 10, 17, 99, 100, 101, 2865, 123456, 1e9} {
		s, ticks := axis(&compare.Metric{Unit: compare.Tokens}, high)
		if s.low != 0 || s.high < high || high > 0.001 && s.high > 2*high+1 || len(ticks) < 3 || len(ticks) > 7 {
			t.Errorf("%v: %+v, %d ticks", high, s, len(ticks))
		}
		if ticks[0].At != 0 || ticks[len(ticks)-1].At != 100 || ticks[len(ticks)-1].Fine {
			t.Errorf("%v: %+v", high, ticks)
		}
	}
}

// However near points are, their letters do not hide each other.
func TestBadges(t *testing.T) {
	for _, n := range []int{2, 4, 6, 8} {
		for _, at := range []percent{0, 3, 50, 100} {
			var points []point
			for i := range n {
				p := at + percent(i)/10
				points = append(points, point{X: whisker{At: p}, Y: whisker{At: p}})
			}
			place(points)
			for i, p := range points {
				for _, q := range points[:i] {
					d := math.Hypot(float64(p.X.At-q.X.At)*plotWidth/100+float64(p.DX-q.DX), float64(p.Y.At-q.Y.At)*plotHeight/100+float64(p.DY-q.DY))
					if d < 15 {
						t.Errorf("%d points at %v: two letters are %.0f pixels apart", n, at, d)
					}
				}
			}
		}
	}
}
