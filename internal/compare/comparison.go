package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stopgap/internal/batch"
)

// A Comparison is a dataset and the configurations that answer it. It is made
// one configuration after the other.
type Comparison struct {
	Dir            string
	Data           *batch.Dataset
	Configurations []*Candidate // the first is the baseline
	First          int          // how many questions are asked; zero means all
	Rollouts       int          // of each question, in each configuration
	Parallel       int          // rollouts at once
	RetryFailed    bool
	Date           string // that the prompts tell
	Seeds          string // what seeds follow from
	Primary        string // a key of Primaries; empty leaves it to the data
	Patience       time.Duration
	JudgedBy       string // the judge's name; empty for the one whose verdicts the folder has, if any

	plan    *Plan
	ledgers []*batch.Ledger
}

// A Candidate is a configuration that is compared.
type Candidate struct {
	Format        string // as it was named
	Model         string // what tells the model from others
	Configuration batch.Configuration
	Servers       []*batch.Server
}

// Began is the first event of a comparison.
type Began struct {
	Dir            string   `json:"dir"`
	Configurations []string `json:"configurations"`
	Items          int      `json:"items"`
	Each           int      `json:"rollouts_each"` // of an item, in a configuration
	Rollouts       int      `json:"rollouts"`      // in all
	Done           int      `json:"done,omitempty"`
	Failed         int      `json:"failed,omitempty"` // of those
}

// Turned says that the comparison turns to a configuration; the events of its
// batch follow.
type Turned struct {
	Configuration string `json:"configuration"`
	Place         int    `json:"place"` // from 1
	Of            int    `json:"of"`
}

// Ended is the last event.
type Ended struct {
	Done     int           `json:"done"`
	Failed   int           `json:"failed,omitempty"` // of those
	Missing  int           `json:"missing,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

func (Began) Kind() string  { return "comparison_began" }
func (Turned) Kind() string { return "configuration_began" }
func (Ended) Kind() string  { return "comparison_ended" }

// A TwiceError says that two of the configurations are the same.
type TwiceError struct{ A, B string }

func (e *TwiceError) Error() string {
	if e.A == e.B {
		return fmt.Sprintf("%s is compared with itself", e.A)
	}
	return fmt.Sprintf("%s and %s are the same configuration", e.A, e.B)
}

// Open takes the folder for this process and makes sure that its comparison, if
// there is one, is this one or less of it. Nothing is asked yet. The errors are
// *TwiceError, *FolderError with a *ChangedError in it, and *batch.FolderError.
func (c *Comparison) Open() error {
	p, err := c.planned()
	if err != nil {
		return err
	}
	for i, m := range p.Members {
		l, err := c.openLedger(m, c.Configurations[i].Configuration)
		if err != nil {
			c.Close()
			return err
		}
		c.ledgers = append(c.ledgers, l)
	}
	if err := p.write(c.Dir); err != nil {
		c.Close()
		return &FolderError{c.Dir, err}
	}
	c.plan = p
	return nil
}

// Check tells, without touching the folder, what Open would say of the plan.
func (c *Comparison) Check() error {
	_, err := c.planned()
	return err
}

// planned is the plan, which must be more of the one that the folder has.
func (c *Comparison) planned() (*Plan, error) {
	p, err := c.newPlan()
	if err != nil {
		return nil, err
	}
	before, err := readPlan(c.Dir)
	switch {
	case errors.Is(err, ErrNone):
		err = vacant(c.Dir)
	case err == nil:
		err = p.follows(before)
		p.Judge = cmp.Or(p.Judge, before.Judge)
	}
	if err != nil {
		return nil, &FolderError{c.Dir, err}
	}
	return p, nil
}

// Close lets others work in the folder.
func (c *Comparison) Close() {
	for _, l := range c.ledgers {
		_ = l.Close() // all that is on it has been written
	}
	c.ledgers = nil
}

// newPlan says what is compared.
func (c *Comparison) newPlan() (*Plan, error) {
	p := &Plan{
		Version: planVersion, Data: filepath.Base(c.Data.Path), Digest: digest(c.Data.Items), Shape: string(c.Data.Shape),
		First: c.First, Rollouts: max(c.Rollouts, 1), Date: c.Date, Seeds: c.Seeds, Primary: c.Primary, Judge: c.JudgedBy,
	}
	seen := map[string]string{}
	for _, cand := range c.Configurations {
		m := Member{cand.Format, cand.Model, folderOf(cand.Format, cand.Model), cand.Configuration.Hash()}
		p.Members = append(p.Members, m)
		// The name that a file gives a format is no difference.
		text := string(cand.Configuration["model"]) + string(cand.Configuration["format_sha256"])
		if other, ok := seen[text]; ok {
			return nil, &TwiceError{other, cand.Format}
		}
		seen[text] = cand.Format
	}
	return p, p.check()
}

// vacant makes sure that a folder without a comparison has nothing else either.
func vacant(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return pathless(err)
	}
	for _, e := range list { // but for what a comparison leaves that was killed at once
		if e.Name() != runsFolder && !strings.HasPrefix(e.Name(), planNew) {
			return fmt.Errorf("it has other things in it (%s), and %w", e.Name(), ErrNone)
		}
	}
	return nil
}

// openLedger opens the batch of a configuration, which must be what it was.
func (c *Comparison) openLedger(m Member, conf batch.Configuration) (*batch.Ledger, error) {
	dir := filepath.Join(c.Dir, filepath.FromSlash(m.Folder))
	l, err := batch.OpenLedger(dir)
	if err != nil {
		return nil, err
	}
	had, err := batch.ReadFolder(dir)
	if err == nil && had.Configuration != nil {
		if changes := conf.Changes(had.Configuration); len(changes) > 0 {
			err = &batch.FolderError{Dir: dir, Err: &batch.ChangedError{What: "configuration", Changes: changes}}
		}
	}
	if err != nil {
		_ = l.Close() // nothing was written
		return nil, err
	}
	return l, nil
}

// Names tell the configurations apart, as short as that goes.
func (c *Comparison) Names() []string {
	var members []Member
	for _, cand := range c.Configurations {
		members = append(members, Member{Format: cand.Format, Model: cand.Model})
	}
	return names(members)
}

// Run makes what the folder does not have yet. It yields Began first and Ended
// last, and between them a Turned for each configuration with the events of its
// batch behind it. Errors are those of batch.Batch.Run, behind Ended; the
// configurations that follow are not begun then.
func (c *Comparison) Run(ctx context.Context) iter.Seq2[batch.Event, error] {
	return func(yield func(batch.Event, error) bool) {
		start := time.Now()
		began, err := c.began()
		if err != nil {
			yield(nil, err)
			return
		}
		if !yield(began, nil) {
			return
		}
		var failed error
		for i := range c.Configurations {
			if !yield(Turned{began.Configurations[i], i + 1, len(c.Configurations)}, nil) {
				return
			}
			for ev, err := range c.batch(i).Run(ctx) {
				if err != nil {
					failed = err
				} else if !yield(ev, nil) {
					return
				}
			}
			if failed != nil {
				break
			}
		}
		now, err := c.began()
		failed = errors.Join(failed, err)
		if !yield(Ended{Done: now.Done, Failed: now.Failed, Missing: now.Rollouts - now.Done, Duration: time.Since(start)}, nil) {
			return
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

// batch is that of a configuration.
func (c *Comparison) batch(i int) *batch.Batch {
	cand := c.Configurations[i]
	return &batch.Batch{
		Dir: c.folder(i), Ledger: c.ledgers[i], Data: c.Data, Configuration: cand.Configuration, Servers: cand.Servers,
		First: c.First, Rollouts: c.plan.Rollouts, Parallel: c.Parallel, RetryFailed: c.RetryFailed, Seeds: c.Seeds, Patience: c.Patience,
	}
}

func (c *Comparison) folder(i int) string {
	return filepath.Join(c.Dir, filepath.FromSlash(c.plan.Members[i].Folder))
}

// began tells how far the folder is.
func (c *Comparison) began() (Began, error) {
	items := c.Data.Items
	if c.First > 0 && c.First < len(items) {
		items = items[:c.First]
	}
	b := Began{Dir: c.Dir, Configurations: names(c.plan.Members), Items: len(items), Each: c.plan.Rollouts}
	b.Rollouts = len(c.Configurations) * b.Items * b.Each
	asked := map[string]bool{}
	for i := range items {
		asked[items[i].ID] = true
	}
	for i := range c.Configurations {
		had, err := batch.ReadFolder(c.folder(i))
		if err != nil {
			return b, err
		}
		for _, r := range had.Results {
			if asked[r.Item] && r.Rollout <= b.Each {
				b.Done++
				if r.Failed() {
					b.Failed++
				}
			}
		}
	}
	return b, nil
}

// names tells configurations apart, as short as that goes.
func names(members []Member) []string {
	formats, models, bases := map[string]bool{}, map[string]bool{}, map[string]map[string]bool{}
	for _, m := range members {
		formats[m.Format], models[m.Model] = true, true
		if bases[base(m.Format)] == nil {
			bases[base(m.Format)] = map[string]bool{}
		}
		bases[base(m.Format)][m.Format] = true
	}
	var out []string
	for _, m := range members {
		name := base(m.Format)
		if len(bases[name]) > 1 {
			name = m.Format
		}
		switch {
		case len(models) == 1:
		case len(formats) == 1:
			name = m.Model
		default:
			name += ", " + m.Model
		}
		out = append(out, name)
	}
	return out
}
