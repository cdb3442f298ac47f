package batch

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"stopgap/internal/trace"
	"stopgap/runner"
)

// ResultsName is the file with all results, a line each.
const ResultsName = "results.jsonl"

// Results calls f for each result that the ledger has of a configuration, in
// the order of the dataset and of the rollouts. f must not ask the ledger.
func (b *Batch) Results(f func(Result) error) error {
	return b.Ledger.results(b.Configuration.Hash(), f)
}

// A Record is a line of ResultsName: a question with what came of a rollout.
type Record struct {
	Question  string   `json:"question"`
	Answers   []string `json:"answers,omitempty"`   // gold ones
	Documents []string `json:"documents,omitempty"` // that they come from
	Result
	// Score says whether the calls are right, where the item has functions and
	// they can be judged.
	Score *CallScore `json:"score,omitempty"`
}

// WriteResults writes ResultsName anew, of what is on the ledger.
func (b *Batch) WriteResults() error {
	items := b.items()
	return b.replace(ResultsName, func(w io.Writer) error {
		return b.Results(func(r Result) error {
			it := items[r.Item]
			rec := Record{Question: it.Question, Answers: it.Answers, Documents: it.Documents, Result: r}
			if s, ok := it.Score(&r); ok {
				rec.Score = &s
			}
			return writeLine(w, rec)
		})
	})
}

// items are the questions by their ids.
func (b *Batch) items() map[string]*Item {
	out := make(map[string]*Item, len(b.Data.Items))
	for i := range b.Data.Items {
		out[b.Data.Items[i].ID] = &b.Data.Items[i]
	}
	return out
}

// replace writes a file of the folder, whole or not at all.
func (b *Batch) replace(name string, write func(io.Writer) error) error {
	path := filepath.Join(b.Dir, name)
	f, err := os.CreateTemp(b.Dir, name+".*")
	if err != nil {
		return &FolderError{b.Dir, bare(err)}
	}
	out := bufio.NewWriterSize(f, 1<<16)
	err = write(out)
	if err == nil {
		err = out.Flush()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is not whole
		return &FolderError{b.Dir, bare(err)}
	}
	return nil
}

// writeLine writes JSON on a line, tags as they are.
func writeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// errNoRun says that a journal has no run with an end.
var errNoRun = errors.New("its journal has no run that ended")

// lastRun gives the run that a result is of.
func (b *Batch) lastRun(r Result) (*trace.Run, error) {
	runs, err := trace.ReadFile(filepath.Join(b.Dir, filepath.FromSlash(r.Journal)))
	if err != nil {
		return nil, err
	}
	i := trace.Last(runs)
	if i < 0 || !runs[i].Ended() {
		return nil, errNoRun
	}
	return &runs[i], nil
}

// eventsOf gives the events of a recorded run.
func eventsOf(run *trace.Run) ([]runner.Event, error) {
	var out []runner.Event
	for _, rec := range run.Records {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return nil, err
		}
		if ev != nil {
			out = append(out, ev)
		}
	}
	return out, nil
}
