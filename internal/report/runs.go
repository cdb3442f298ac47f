package report

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"stopgap/internal/compare"
	"stopgap/template"
)

// Longest is how many bytes of a text a page has, at most. It is good for Runs
// to leave out what is more.
const Longest = 8 << 10

// What a page takes of the runs, in bytes.
const (
	budget    = 12 << 20 // of all texts, as far as that goes
	shortest  = 512      // a text, where there are too many
	overgrown = 4 * budget
)

// sources are who wrote a segment, in the order of their numbers.
var sources = []template.Source{template.FromTemplate, template.FromUser, template.FromTool, template.FromModel, template.FromRunner}

// The data of a page, for its script. Texts are numbers in Texts: what several
// runs say stands there once.
type data struct {
	Configurations []dataConfiguration `json:"configurations"`
	Rollouts       int                 `json:"rollouts"`
	Sources        []template.Source   `json:"sources"`
	Marks          map[verdict]string  `json:"marks"`
	Texts          []any               `json:"texts"`
	Items          []dataItem          `json:"items"`
}

type dataConfiguration struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

type dataItem struct {
	ID       string       `json:"id"`
	Question int          `json:"question"`
	Gold     []int        `json:"gold"`
	Runs     [][]*dataRun `json:"runs"`
}

type dataRun struct {
	Verdict  verdict  `json:"verdict"`
	Score    *float64 `json:"score"`  // by what items differ in
	Answer   int      `json:"answer"` // -1 for none
	Facts    string   `json:"facts"`
	Judged   string   `json:"judged,omitempty"` // what the judge says of it
	Error    *string  `json:"error,omitempty"`
	Note     string   `json:"note,omitempty"` // about the segments
	Segments [][2]int `json:"segments"`       // each a source and a text
}

// A cut text has something left out in its middle.
type cut struct {
	head, tail string
	left       int // bytes of the text that was there
}

// value is the text as the page's script reads it.
func (c cut) value() any {
	if c.left == 0 {
		return c.head
	}
	return []any{c.head, c.left, c.tail}
}

func (c cut) size() int { return len(c.head) + len(c.tail) }

// shorten leaves out what is in the middle of more than most bytes.
func (c cut) shorten(most int) cut {
	if c.size() <= most {
		return c
	}
	whole := c.head + c.tail
	from, to := 2*most/3, len(whole)-most/3
	if c.left > 0 { // what is gone already has to lie between
		from, to = min(from, len(c.head)), max(to, len(c.head))
	}
	for from > 0 && !utf8.RuneStart(whole[from]) {
		from--
	}
	for to < len(whole) && !utf8.RuneStart(whole[to]) {
		to++
	}
	return cut{whole[:from], whole[to:], c.left + to - from}
}

// texts is a table of texts, each once.
type texts struct {
	list  []cut
	place map[[sha256.Size]byte]int
	most  int // bytes of each
	size  int // bytes of all
}

func newTexts() *texts { return &texts{place: map[[sha256.Size]byte]int{}, most: Longest} }

// add gives the place of a text, of which some may be left out already.
func (t *texts) add(c cut) int {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s%s", len(c.head), c.left, c.head, c.tail))
	if i, ok := t.place[sum]; ok {
		return i
	}
	c = cut{visible(c.head), visible(c.tail), c.left}.shorten(t.most)
	t.list = append(t.list, c)
	t.place[sum] = len(t.list) - 1
	t.size += c.size()
	for t.size > overgrown && t.tighten() {
	}
	return len(t.list) - 1
}

// tighten makes all texts shorter, and tells whether that is still possible.
func (t *texts) tighten() bool {
	if t.most <= shortest {
		return false
	}
	t.most /= 2
	t.size = 0
	for i := range t.list {
		t.list[i] = t.list[i].shorten(t.most)
		t.size += t.list[i].size()
	}
	return true
}

// newData gathers what the page's script works with.
func newData(r *compare.Report, read Runs) *data {
	d := &data{Rollouts: r.Rollouts, Sources: sources, Marks: signs, Items: []dataItem{}}
	for i, c := range r.Configurations {
		d.Configurations = append(d.Configurations, dataConfiguration{key(i), line(c.Name)})
	}
	t, by, of := newTexts(), ruling(r), cmp.Or(primary(r), ruling(r))
	for i := range r.Items {
		d.Items = append(d.Items, t.item(&r.Items[i], by, of, readAll(&r.Items[i], read)))
	}
	for t.size > budget && t.tighten() {
	}
	t.fit(r, d)
	for _, c := range t.list {
		d.Texts = append(d.Texts, c.value())
	}
	return d
}

// A reading is what a run's journal gave.
type reading struct {
	segments []compare.Segment
	err      error
}

// readAll reads the runs of an item, several at once.
func readAll(it *compare.Item, read Runs) map[*compare.Run]reading {
	out := map[*compare.Run]reading{}
	if read == nil {
		return out
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, runs := range it.Runs {
		for _, run := range runs {
			if run == nil {
				continue
			}
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				segments, err := read(run)
				mu.Lock()
				defer mu.Unlock()
				out[run] = reading{segments, err}
			})
		}
	}
	all.Wait()
	return out
}

// item gives the data of an item: runs are right or wrong by one metric, and
// differ in another.
func (t *texts) item(it *compare.Item, by, of *compare.Metric, readings map[*compare.Run]reading) dataItem {
	out := dataItem{ID: visible(it.ID), Question: t.add(cut{head: it.Question}), Gold: []int{}, Runs: [][]*dataRun{}}
	for _, a := range it.Answers {
		out.Gold = append(out.Gold, t.add(cut{head: a}))
	}
	for _, runs := range it.Runs {
		row := make([]*dataRun, len(runs))
		for i, run := range runs {
			if run != nil {
				row[i] = t.run(run, by, of, readings[run])
			}
		}
		out.Runs = append(out.Runs, row)
	}
	return out
}

// run gives the data of a run.
func (t *texts) run(run *compare.Run, by, of *compare.Metric, from reading) *dataRun {
	out := &dataRun{Verdict: judge(by, run), Answer: -1, Facts: facts(run), Judged: visible(run.Verdict), Segments: [][2]int{}}
	if of != nil {
		if s, ok := run.Scores[of.Key]; ok {
			out.Score = &s
		}
	}
	if a := scored(run); a != "" {
		out.Answer = t.add(cut{head: a})
	}
	if run.Error != "" {
		words := visible(run.Error)
		out.Error = &words
	}
	switch {
	case from.err != nil:
		out.Note = "The journal " + visible(run.Journal) + " cannot be shown: " + visible(from.err.Error())
	case run.Damaged != "":
		out.Note = "The journal " + visible(run.Journal) + " is damaged: " + visible(run.Damaged)
	}
	for _, s := range from.segments {
		if s.Text == "" && s.Cut == 0 {
			continue
		}
		at := min(max(s.At, 0), len(s.Text))
		if s.Cut == 0 {
			at = len(s.Text)
		}
		out.Segments = append(out.Segments, [2]int{max(0, slices.Index(sources, s.Source)), t.add(cut{s.Text[:at], s.Text[at:], s.Cut})})
	}
	return out
}

// facts are a run's in a line.
func facts(run *compare.Run) string {
	list := []string{words(string(run.Termination)), plural(run.Turns, "turn"), plural(run.Calls, "call"), plural(run.Tokens, "token")}
	for _, p := range run.Problems {
		if p.N > 0 {
			list = append(list, fmt.Sprintf("%d × %s", p.N, words(p.Kind)))
		}
	}
	if run.Invented > 0 {
		list = append(list, plural(run.Invented, "invented response"))
	}
	return strings.Join(append(list, fmt.Sprintf("seed %d", run.Seed)), " · ")
}

// fit leaves out the segments of items where all texts are too much, beginning
// with the last of those on which nothing differs.
func (t *texts) fit(r *compare.Report, d *data) {
	if t.size <= budget {
		return
	}
	kept := newTexts()
	kept.most = t.most
	order := make([]int, 0, len(d.Items))
	for _, differs := range []bool{true, false} {
		for i := range r.Items {
			if r.Items[i].Differs == differs {
				order = append(order, i)
			}
		}
	}
	for _, i := range order {
		t.move(kept, &r.Items[i], &d.Items[i], kept.size < budget)
	}
	*t = *kept
}

// move takes the texts of an item over into another table, those of its
// segments only where they are wanted.
func (t *texts) move(to *texts, it *compare.Item, d *dataItem, wanted bool) {
	again := func(i int) int { return to.add(t.list[i]) }
	d.Question = again(d.Question)
	for i, g := range d.Gold {
		d.Gold[i] = again(g)
	}
	for c, runs := range d.Runs {
		for k, run := range runs {
			if run == nil {
				continue
			}
			if run.Answer >= 0 {
				run.Answer = again(run.Answer)
			}
			if !wanted && len(run.Segments) > 0 {
				run.Segments = [][2]int{}
				run.Note = "Left out to keep this file small. \"stopgap trace show " + visible(it.Runs[c][k].Journal) + "\" shows it."
			}
			for i := range run.Segments {
				run.Segments[i][1] = again(run.Segments[i][1])
			}
		}
	}
}
