package compare

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"stopgap/internal/batch"
	"stopgap/internal/eval/judge"
)

// A reading is a folder as it was read: what both the Report and the Times are
// made of.
type reading struct {
	dir     string
	plan    *Plan
	items   []batch.Item
	results [][][]*batch.Result // by configuration, item and rollout
	facts   [][][]*facts        // the same; nil where there is no journal
	damaged [][][]error         // why
	// verdicts are those of the judge; nil for none.
	verdicts *judge.Store
}

// Read makes the Report of a folder. It may be read while the comparison is
// made. The folder of a batch is read as one configuration. The error is a
// *FolderError, with ErrNone in it where there is nothing of either, or a
// *batch.FolderError.
func Read(dir string) (*Report, error) {
	rd, err := read(dir)
	if err != nil {
		return nil, err
	}
	rd.readJournals()
	if rd.plan.Judge != "" {
		if rd.verdicts, err = judge.OpenStore(filepath.Join(dir, judge.StoreName)); err != nil {
			return nil, &FolderError{dir, pathless(err)}
		}
		defer rd.verdicts.Close()
	}
	return rd.report(), nil
}

// read reads the ledgers of a folder.
func read(dir string) (*reading, error) {
	plan, err := ReadPlan(dir)
	if errors.Is(err, ErrNone) {
		plan, err = alone(dir)
	}
	if err != nil {
		return nil, err
	}
	rd := &reading{dir: dir, plan: plan}
	all := make([]*batch.Contents, len(plan.Members))
	for i, m := range plan.Members {
		c, err := batch.ReadFolder(filepath.Join(dir, filepath.FromSlash(m.Folder)))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c = &batch.Contents{} // not begun
		case err != nil:
			return nil, err
		case c.Configuration != nil && (c.Configuration.Hash() != m.Hash || digest(c.Items) != plan.Digest):
			return nil, &FolderError{dir, fmt.Errorf("%s has another batch", m.Folder)}
		}
		if rd.items == nil {
			rd.items = c.Items
		}
		all[i] = c
	}
	if plan.First > 0 && plan.First < len(rd.items) {
		rd.items = rd.items[:plan.First]
	}
	rd.take(all)
	return rd, nil
}

// take puts the results in their places.
func (rd *reading) take(all []*batch.Contents) {
	place := make(map[string]int, len(rd.items))
	for i := range rd.items {
		place[rd.items[i].ID] = i
	}
	for _, c := range all {
		byItem := make([][]*batch.Result, len(rd.items))
		for i := range byItem {
			byItem[i] = make([]*batch.Result, rd.plan.Rollouts)
		}
		for i := range c.Results {
			r := &c.Results[i]
			if at, ok := place[r.Item]; ok && r.Rollout >= 1 && r.Rollout <= rd.plan.Rollouts {
				byItem[at][r.Rollout-1] = r
			}
		}
		rd.results = append(rd.results, byItem)
	}
}

// readJournals reads the journals of all rollouts, several at once.
func (rd *reading) readJournals() {
	type job struct{ c, i, k int }
	jobs := make(chan job)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range jobs {
				file, err := rd.journal(j.c, rd.results[j.c][j.i][j.k])
				if err == nil {
					rd.facts[j.c][j.i][j.k], err = readFacts(filepath.Join(rd.dir, filepath.FromSlash(file)))
				}
				rd.damaged[j.c][j.i][j.k] = err
			}
		})
	}
	for c := range rd.results {
		rd.facts = append(rd.facts, make([][]*facts, len(rd.items)))
		rd.damaged = append(rd.damaged, make([][]error, len(rd.items)))
		for i := range rd.items {
			rd.facts[c][i] = make([]*facts, rd.plan.Rollouts)
			rd.damaged[c][i] = make([]error, rd.plan.Rollouts)
		}
	}
	for c := range rd.results {
		for i := range rd.items {
			for k, r := range rd.results[c][i] {
				if r != nil {
					jobs <- job{c, i, k}
				}
			}
		}
	}
	close(jobs)
	wg.Wait()
}

// journal is where the journal of a result is, below the comparison's folder.
func (rd *reading) journal(c int, r *batch.Result) (string, error) {
	if !fs.ValidPath(r.Journal) || slices.Contains([]byte(r.Journal), '\\') {
		return "", errors.New("the ledger names no journal below its folder")
	}
	return path.Join(rd.plan.Members[c].Folder, r.Journal), nil
}
