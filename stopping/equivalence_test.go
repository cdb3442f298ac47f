package stopping

import (
	"errors"
	goflag "flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// "make fuzz" sets these; a run is repeated by its seed.
var (
	pairsFlag = goflag.Int("pairs", 0, "(pattern, text) pairs that TestEquivalence compares")
	seedFlag  = goflag.Uint64("seed", 0, "seed of TestEquivalence with -pairs; 0 takes the time")
)

const (
	slicePairs = 24_000 // pairs of a run without -pairs
	sliceSeed  = 1
	batchPairs = 12 // texts for each pattern
)

// engineFloor is the least share of pairs that each engine must get, so that the
// comparison says something about all of them. NFA needs longer texts, see
// TestFullTable.
var engineFloor = map[Engine]float64{DFA: 0.3, Gated: 0.1, Windowed: 0.05, Rescan: 0.003}

// A trial is one set of criteria in one text.
type trial struct {
	criteria []Criterion
	text     string
}

// A mismatch is a difference to the definition.
type mismatch struct {
	trial
	cut string // how the text was cut
	err error
}

// errUndecided is for trials that regexp2 cannot decide, not in time, or not
// without contradicting itself.
var (
	errUndecided = errors.New("undecided")
	errDisputed  = fmt.Errorf("regexp2 contradicts itself: %w", errUndecided)
)

// prepare compiles the criteria twice: for the matcher and for the oracle.
func prepare(list []Criterion) (*Set, []definer, error) {
	var oracles []definer
	for _, c := range list {
		o, err := newDefiner(c)
		if err != nil {
			return nil, nil, errUndecided
		}
		oracles = append(oracles, o)
	}
	set, err := Compile(list...)
	if err != nil && !refusable(oracles) {
		return nil, nil, fmt.Errorf("refused without need: %w", err)
	}
	if err != nil {
		return nil, nil, errUndecided
	}
	return set, oracles, nil
}

// refusable reports whether Compile may refuse a criterion that regexp2 accepts.
func refusable(oracles []definer) bool {
	return slices.ContainsFunc(oracles, func(d definer) bool {
		o, ok := d.(*oracle)
		if !ok {
			return false
		}
		empty, err := o.search.MatchString("")
		group := o.c.StripGroup != "" && !slices.Contains(o.names, o.c.StripGroup)
		return empty || err != nil || group || strings.Contains(o.c.Regex, `\G`) || len(o.c.Regex) > maxPattern || !utf8.ValidString(o.c.Regex+o.c.Literal)
	})
}

// automatic reports whether automata alone check every criterion: they never
// exceed a budget.
func automatic(set *Set) bool {
	return !slices.ContainsFunc(set.Plan(), func(p Plan) bool { return p.Engine != DFA && p.Engine != NFA && p.Engine != Counter })
}

// verify compares all cuts of a text with the definition, word by word, which may
// take so long.
func (x trial) verify(limit time.Duration) error {
	set, oracles, err := prepare(x.criteria)
	if err != nil {
		return err
	}
	exactly(oracles)
	if limit == patience {
		patiently(oracles)
	}
	want := judgeWithin(oracles, x.text, limit)
	if want.undecided {
		return errUndecided
	}
	for name, chunks := range cuts(rand.New(rand.NewPCG(1, 1)), x.text) {
		if err := compare(set, x.criteria, chunks, want); err != nil {
			if _, over := errors.AsType[*BudgetError](err); over && !automatic(set) {
				return errUndecided
			}
			if disputed(oracles, x.text) {
				return errDisputed
			}
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// exactly makes the oracles ask at every start.
func exactly(oracles []definer) {
	for _, d := range oracles {
		if o, ok := d.(*oracle); ok {
			o.exact = true
		}
	}
}

func disputed(oracles []definer, text string) bool {
	return slices.ContainsFunc(oracles, func(d definer) bool {
		o, ok := d.(*oracle)
		return ok && o.contradicts(text)
	})
}

func compare(set *Set, list []Criterion, chunks []string, want verdict) error {
	got, err := stream(set, strips(list), chunks)
	if err != nil {
		return err
	}
	return want.agrees(got)
}

// A census counts what was compared.
type census struct {
	pairs, fired, reports, groups, scoped, sets int
	undecided, overBudget, refused, disputed    int
	patterns                                    int
	engines                                     map[Engine]int // of single patterns
	cuts                                        map[string]int
	example                                     string // of a disputed pair
}

func newCensus() *census { return &census{engines: map[Engine]int{}, cuts: map[string]int{}} }

func (c *census) add(o *census) {
	c.pairs += o.pairs
	c.fired += o.fired
	c.reports += o.reports
	c.groups += o.groups
	c.scoped += o.scoped
	c.sets += o.sets
	c.undecided += o.undecided
	c.overBudget += o.overBudget
	c.refused += o.refused
	c.disputed += o.disputed
	c.patterns += o.patterns
	c.example = max(c.example, o.example)
	for e, n := range o.engines {
		c.engines[e] += n
	}
	for name, n := range o.cuts {
		c.cuts[name] += n
	}
}

func (c *census) String() string {
	s := fmt.Sprintf("%d pairs, %d patterns and sets, %.0f%% fired; %d reports, %d with groups, %d in a scope, %d of several criteria; cuts %v;",
		c.pairs, c.patterns, 100*float64(c.fired)/float64(max(c.pairs, 1)), c.reports, c.groups, c.scoped, c.sets, c.cuts)
	s += fmt.Sprintf(" %d patterns refused, %d pairs undecided, %d over budget, %d where regexp2 contradicts itself; engines", c.refused, c.undecided, c.overBudget, c.disputed)
	for _, e := range slices.Sorted(maps.Keys(c.engines)) {
		s += fmt.Sprintf(" %s %d", e, c.engines[e])
	}
	if c.example != "" {
		s += "; contradiction: " + c.example
	}
	return s
}

// batch compares one set of criteria in several texts.
func batch(r *rand.Rand, n *census) *mismatch {
	list, write := draw(r)
	set, oracles, err := prepare(list)
	if errors.Is(err, errUndecided) {
		n.refused++
		return nil
	} else if err != nil {
		return &mismatch{trial{list, ""}, "whole", err}
	}
	n.patterns++
	for range batchPairs {
		text := write()
		want := judge(oracles, text)
		ways := cuts(r, text)
		cut := pick(r, []string{"bytes", "characters", "inside", "random"})
		for _, name := range []string{"whole", cut} {
			err := checkPair(set, list, ways[name], want, n)
			if err == nil {
				continue
			}
			x := trial{list, text}
			if contested(x, set, ways[name]) {
				n.disputed++
				n.example = x.row()
				break
			}
			return &mismatch{x, name, err}
		}
		if want.undecided {
			n.undecided++
			return nil // the other texts would take as long
		}
		n.count(list, set, want, cut)
	}
	return nil
}

// contested reports whether a mismatch is the library's: asked at every start it
// says what the engine says, or it contradicts itself.
func contested(x trial, set *Set, chunks []string) bool {
	_, oracles, err := prepare(x.criteria)
	if err != nil {
		return false
	}
	exactly(oracles)
	patiently(oracles) // the search came to an end
	want := judgeWithin(oracles, x.text, patience)
	return !want.undecided && compare(set, x.criteria, chunks, want) == nil || disputed(oracles, x.text)
}

// checkPair compares one cut of a text with the definition. Where regexp2 gave
// up, automata must still come to an end.
func checkPair(set *Set, list []Criterion, chunks []string, want verdict, n *census) error {
	if want.undecided && !automatic(set) {
		return nil
	}
	got, err := stream(set, strips(list), chunks)
	if _, over := errors.AsType[*BudgetError](err); over && !automatic(set) {
		n.overBudget++
		return nil
	}
	if err != nil || want.undecided {
		return err
	}
	return want.agrees(got)
}

func (c *census) count(list []Criterion, set *Set, want verdict, cut string) {
	c.pairs++
	c.cuts["whole"]++
	c.cuts[cut]++
	c.reports += len(want.notified)
	if want.stop != nil || len(want.notified) > 0 {
		c.fired++
	}
	if want.stop != nil && len(want.stop.Groups) > 0 {
		c.groups++
	}
	if slices.ContainsFunc(list, func(k Criterion) bool { return k.Scope != Scope{} }) {
		c.scoped++
	}
	if len(list) > 1 {
		c.sets++
	} else {
		c.engines[set.Plan()[0].Engine]++
	}
}

// A campaign runs batches on all cores until enough pairs are compared.
type campaign struct {
	seed   uint64
	target int64
	pairs  atomic.Int64
	next   atomic.Uint64
	failed atomic.Int64

	mu         sync.Mutex
	census     *census
	mismatches map[string]string // what to print, by the smallest form
}

// mismatchLimit ends a campaign: the rest is likely to have the same causes.
const mismatchLimit = 10

func (c *campaign) run() {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(c.work)
	}
	workers.Wait()
}

func (c *campaign) work() {
	mine := newCensus()
	for c.pairs.Load() < c.target && c.failed.Load() < mismatchLimit {
		number := c.next.Add(1)
		before := mine.pairs
		found := batch(rand.New(rand.NewPCG(c.seed, number)), mine)
		c.pairs.Add(int64(mine.pairs - before))
		if found == nil {
			continue
		}
		c.failed.Add(1)
		small := found.minimise()
		c.mu.Lock()
		c.mismatches[small.row()] = fmt.Sprintf("seed %d, batch %d, %s: %v\n%s", c.seed, number, found.cut, found.err, small)
		c.mu.Unlock()
	}
	c.mu.Lock()
	c.census.add(mine)
	c.mu.Unlock()
}

// progress says now and then how far the campaign is, until done is closed.
func (c *campaign) progress(done <-chan struct{}) {
	start := time.Now()
	for {
		select {
		case <-done:
			return
		case <-time.After(5 * time.Second):
		}
		n := c.pairs.Load()
		fmt.Fprintf(os.Stderr, "%9d of %d pairs, %.0f a second, %d mismatches\n", n, c.target, float64(n)/time.Since(start).Seconds(), c.failed.Load())
	}
}

// TestEquivalence compares random patterns in random texts with the definition:
// where they fire, what they match, hold, keep and report, however the text is
// cut. A mismatch is printed as a row for equivalenceRows.
func TestEquivalence(t *testing.T) {
	c := &campaign{seed: sliceSeed, target: slicePairs, census: newCensus(), mismatches: map[string]string{}}
	if testing.Short() {
		c.target /= 4
	}
	done := make(chan struct{})
	if *pairsFlag > 0 {
		c.target, c.seed = int64(*pairsFlag), *seedFlag
		if c.seed == 0 {
			c.seed = uint64(time.Now().UnixNano())
		}
		fmt.Fprintf(os.Stderr, "seed %d\n", c.seed)
		go c.progress(done)
	}
	start := time.Now()
	c.run()
	close(done)
	for _, m := range c.mismatches {
		t.Error(m)
	}
	t.Logf("seed %d, %v: %v", c.seed, time.Since(start).Round(time.Second), c.census)
	if len(c.mismatches) == 0 {
		c.census.informative(t, int(c.target))
	}
}

// informative fails when the pairs say too little.
func (c *census) informative(t *testing.T, target int) {
	share := func(n int) float64 { return float64(n) / float64(c.pairs) }
	if c.pairs < target || share(c.fired) < 0.25 || share(c.fired) > 0.75 {
		t.Errorf("%d pairs, %d fired", c.pairs, c.fired)
	}
	// How many more were undecided or over budget depends on the machine.
	if share(c.disputed) > 0.001 {
		t.Errorf("%d of %d pairs disputed", c.disputed, c.pairs)
	}
	if min(share(c.reports), share(c.scoped), share(c.sets), share(c.groups)) < 0.02 {
		t.Errorf("%d reports, %d with groups, %d in a scope, %d sets in %d pairs", c.reports, c.groups, c.scoped, c.sets, c.pairs)
	}
	for _, cut := range []string{"whole", "bytes", "characters", "inside", "random"} {
		if share(c.cuts[cut]) < 0.2 {
			t.Errorf("%d texts were cut by %s", c.cuts[cut], cut)
		}
	}
	for engine, floor := range engineFloor {
		if share(c.engines[engine]) < floor {
			t.Errorf("engine %s got %d of %d pairs", engine, c.engines[engine], c.pairs)
		}
	}
}

// TestOracleAgreesWithItself: the search that saves the oracle time finds what
// a match at every start finds.
func TestOracleAgreesWithItself(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(15, 16))
	for compared := 0; compared < 500; {
		list, write := draw(r)
		_, oracles, err := prepare(list)
		if err != nil {
			continue
		}
		text := write()
		var found [2]verdict
		for i := range found {
			found[i] = judge(oracles, text)
			exactly(oracles)
		}
		if found[0].undecided || found[1].undecided {
			continue
		}
		compared++
		if fmt.Sprint(found[0].notified) != fmt.Sprint(found[1].notified) || same(found[0].stop, found[1].stop) != nil && found[0].stop != found[1].stop {
			t.Errorf("%s in %q: %v and %v", spellCriteria(list), text, found[0], found[1])
		}
	}
}
