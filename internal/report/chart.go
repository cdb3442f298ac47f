package report

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"stopgap/internal/compare"
)

// Positions in charts are shares of the drawing's width or height, in percent:
// so a chart fits any screen, and its text keeps its size.

// A percent is a place in a chart, as SVG writes it.
type percent float64

func (p percent) String() string {
	return strconv.FormatFloat(math.Round(float64(p)*100)/100, 'f', -1, 64) + "%"
}

// A scale maps values to places from 0 to 100 %.
type scale struct{ low, high float64 }

func (s scale) at(v float64) percent {
	if s.high == s.low {
		return 50
	}
	return percent(100 * min(1, max(0, (v-s.low)/(s.high-s.low))))
}

// A tick is a labelled place of an axis. Fine ones are left out on narrow
// screens.
type tick struct {
	At    percent
	Label string
	Fine  bool
}

// round gives a scale from low to high or a little further, with four to six
// ticks at round numbers.
func round(low, high float64, show func(float64) string) (scale, []tick) {
	if high <= low {
		high = low + 1
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, f := range []float64{1, 2, 2.5, 5, 10} {
		if (high-low)/(step*f) <= 5 {
			step *= f
			break
		}
	}
	s := scale{math.Floor(low/step) * step, math.Ceil(high/step) * step}
	var ticks []tick
	n := int(math.Round((s.high - s.low) / step))
	for i := range n + 1 {
		v := s.low + float64(i)*step
		ticks = append(ticks, tick{s.at(v), show(v), i%2 == 1 && i < n})
	}
	return s, ticks
}

// axis is the scale of a metric: shares have all of 0 to 100 %.
func axis(m *compare.Metric, highest float64) (scale, []tick) {
	if m.Unit == compare.Share {
		s := scale{0, 1}
		return s, []tick{{0, "0", false}, {25, "25", true}, {50, "50", false}, {75, "75", true}, {100, "100 %", false}}
	}
	return round(0, highest, func(v float64) string { return thousands(strconv.FormatFloat(v, 'f', -1, 64)) })
}

// A whisker is an estimate and its interval on one axis.
type whisker struct{ Low, At, High percent }

func (s scale) whisker(in compare.Interval) whisker {
	w := whisker{s.at(in.Low), s.at(in.Estimate), s.at(in.High)}
	if in.Unbounded {
		w.High = 100
	}
	return w
}

// A point is a configuration in the scatter chart. Its badge stands DX and DY
// pixels from it, where no other badge is.
type point struct {
	Number int // of the configuration
	Key    string
	X, Y   whisker // Y from the top
	DX, DY int
}

// The size that badges are placed for, in pixels: that of a narrow screen, so
// that they stand apart on a wide one too.
const (
	plotWidth, plotHeight = 320.0, 260.0
	badge                 = 24.0
)

// place gives each point's badge a place of its own beside the point.
func place(points []point) {
	type spot struct{ x, y float64 }
	var taken []spot
	for _, p := range points {
		taken = append(taken, spot{float64(p.X.At) / 100 * plotWidth, float64(p.Y.At) / 100 * plotHeight})
	}
	for i := range points {
		at := taken[i]
		best, room := spot{}, -math.MaxFloat64
		for ring := 1.0; ring <= 9; ring++ {
			for turn := range 8 {
				angle := math.Pi/4 + float64(turn)*math.Pi/4
				d := spot{math.Round(20 * ring * math.Cos(angle)), math.Round(-20 * ring * math.Sin(angle))}
				x, y := at.x+d.x, at.y+d.y
				free := math.MaxFloat64
				for j, t := range taken {
					if j != i {
						free = min(free, math.Hypot(t.x-x, t.y-y))
					}
				}
				if y < 10 || y > plotHeight-10 || x < 10 || x > plotWidth-10 {
					free -= 1000
				}
				if min(free, badge) > room {
					best, room = d, min(free, badge)
				}
			}
		}
		points[i].DX, points[i].DY = int(best.x), int(best.y)
		taken = append(taken, spot{at.x + best.x, at.y + best.y})
	}
}

// scatter gives a point for each configuration that has both scores. Tokens go
// to the right, the primary metric goes up.
func scatter(r *compare.Report, x, y *compare.Metric) (points []point, xs, ys []tick, words string) {
	var across, up scale
	highest := map[string]float64{}
	for i := range r.Configurations {
		for _, m := range []*compare.Metric{x, y} {
			if s := r.Configurations[i].Score(m.Key); s != nil {
				highest[m.Key] = max(highest[m.Key], s.Estimate, s.High)
			}
		}
	}
	across, xs = axis(x, highest[x.Key])
	up, ys = axis(y, highest[y.Key])
	for i := range ys {
		ys[i].At = 100 - ys[i].At
	}
	words = fmt.Sprintf("%s against %s.", y.Name, x.Name)
	for i := range r.Configurations {
		c := &r.Configurations[i]
		sx, sy := c.Score(x.Key), c.Score(y.Key)
		if sx == nil || sy == nil {
			continue
		}
		h := up.whisker(sy.Interval)
		points = append(points, point{Number: i, Key: key(i), X: across.whisker(sx.Interval), Y: whisker{100 - h.Low, 100 - h.At, 100 - h.High}})
		words += fmt.Sprintf(" %s: %s%s with %s.", line(c.Name), number(sy.Estimate, y.Unit), sign(y.Unit), number(sx.Estimate, x.Unit))
	}
	place(points)
	return points, xs, ys, words
}

// A slice is a part of a stacked bar.
type slice struct {
	Colour      int
	From, Width percent
	Words       string
}

type intervals struct {
	Ticks []tick
	Rows  []intervalRow
}

type intervalRow struct {
	Head            head
	At              whisker
	Estimate, Range string
	Scored          bool
}

type scatterChart struct {
	X, Y   string
	Points []scatterPoint
	Across []tick
	Up     []tick
	Words  string
}

type scatterPoint struct {
	point
	Colour int
	Head   head
}

type problemChart struct {
	Rows   []problemRow
	Kinds  []kind
	Header []head
}

type problemRow struct {
	Head   head
	Slices []slice
	Total  int
	Each   string // of a run
}

type kind struct {
	Colour int
	Name   string
	Counts []int
}

func newIntervals(r *compare.Report, m *compare.Metric, heads []head) intervals {
	highest := 0.0
	for i := range r.Configurations {
		if s := r.Configurations[i].Score(m.Key); s != nil {
			highest = max(highest, s.Estimate, s.High)
		}
	}
	across, ticks := axis(m, highest)
	out := intervals{Ticks: ticks}
	for i := range r.Configurations {
		row := intervalRow{Head: heads[i]}
		if s := r.Configurations[i].Score(m.Key); s != nil {
			row.Scored, row.At = true, across.whisker(s.Interval)
			row.Estimate, row.Range = number(s.Estimate, m.Unit)+sign(m.Unit), bounds(s.Interval, m.Unit, number)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// newScatter draws the primary metric over what it costs, where both are there.
func newScatter(r *compare.Report, m *compare.Metric, heads []head) *scatterChart {
	tokens := r.Metric("tokens")
	if tokens == nil || tokens.Key == m.Key {
		return nil
	}
	c := &scatterChart{X: "tokens generated in a run", Y: titled(m)}
	points, across, up, words := scatter(r, tokens, m)
	for _, p := range points {
		c.Points = append(c.Points, scatterPoint{p, p.Number % colours, heads[p.Number]})
	}
	c.Across, c.Up, c.Words = across, up, words
	return c
}

// problems gives, for each kind of problem that there is, how many each
// configuration has, in the order of the report.
func problems(r *compare.Report) iter.Seq2[string, []int] {
	var kinds []string
	counts := map[string][]int{}
	for i, c := range r.Configurations {
		for _, t := range c.Problems {
			if counts[t.Kind] == nil {
				kinds = append(kinds, t.Kind)
				counts[t.Kind] = make([]int, len(r.Configurations))
			}
			counts[t.Kind][i] = t.N
		}
	}
	return func(yield func(string, []int) bool) {
		for _, k := range kinds {
			if !yield(words(k), counts[k]) {
				return
			}
		}
	}
}

func newProblems(r *compare.Report, heads []head) *problemChart {
	c := &problemChart{Header: heads}
	totals := make([]int, len(heads))
	for name, counts := range problems(r) {
		c.Kinds = append(c.Kinds, kind{len(c.Kinds) % problemColours, name, counts})
		for i, n := range counts {
			totals[i] += n
		}
	}
	most := slices.Max(append(totals, 0))
	if most == 0 {
		return nil
	}
	for i, conf := range r.Configurations {
		row := problemRow{Head: heads[i], Slices: c.stack(i, most), Total: totals[i]}
		if conf.Done > 0 {
			row.Each = number(float64(row.Total)/float64(conf.Done), compare.Count) + " a run"
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// stack lays the problems of a configuration end to end; whole is what the full
// width stands for.
func (c *problemChart) stack(n, whole int) []slice {
	var out []slice
	at, s := 0, scale{0, float64(whole)}
	for _, k := range c.Kinds {
		if k.Counts[n] == 0 {
			continue
		}
		out = append(out, slice{k.Colour, s.at(float64(at)), s.at(float64(k.Counts[n])), fmt.Sprintf("%s: %d", k.Name, k.Counts[n])})
		at += k.Counts[n]
	}
	return out
}
