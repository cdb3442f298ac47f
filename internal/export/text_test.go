package export

import "testing"

// A line that JSON does not carry is left out, and takes nothing from another
// one.
func TestNotText(t *testing.T) {
	_, r := qwen(t, true, "One.", "Tw\xffo.", "Three.")
	j := newJournal(t)
	j.ask(r, "Why?", false)
	before := j.ledger
	j.ask(r, "And?", true)
	j.ledger = before
	j.ask(r, "Or?", true)
	runs := j.runs()
	lines, counts := exported(t, runs, Options{To: Text})
	if len(lines) != 1 || lines[0].loss() != "One.Three." || counts.NotText != 1 {
		t.Errorf("%+v, %+v", lines, counts)
	}
	lines, counts = exported(t, runs, Options{To: Messages})
	if len(lines) != 1 || lines[0].Messages[2].Weight != nil || counts.NotText != 1 {
		t.Errorf("%+v, %+v", lines, counts)
	}
}
