package trace

import (
	"context"
	"iter"

	"stopgap/runner"
)

// Run makes a run and writes it down. Where the journal cannot be written the
// run goes on, see Err; only tools with side effects are not run then.
func (w *Writer) Run(ctx context.Context, about About, r *runner.Runner, task runner.Task) iter.Seq2[runner.Event, error] {
	return func(yield func(runner.Event, error) bool) {
		h, err := newHeader(about, r, task)
		if err == nil {
			err = w.begin(h)
		}
		w.fail(err)
		rec := &recorder{sink: w, now: w.now, spellers: &w.spellers}
		rec.run(ctx, r, task)(yield)
	}
}

// fail ends the writing.
func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}
