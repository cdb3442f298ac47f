package trace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stopgap/runner"
	"stopgap/tools"
)

// A run that counted its tokens by a function of its caller's is played with
// what that gave, and gone on with only where it is there again.
func TestOwnCounter(t *testing.T) {
	asked := 0
	odd := func(text string) int { asked++; return 5000 + len(text)%3 }
	m := &pen{texts: []string{calls("search", "be"), calls("search", "be"), "So.", "Yes."}}
	r := &runner.Runner{Model: m, Format: format(t, "qwen"), Tools: set(t, tools.Options{}, echo("search")), CountTokens: odd, Context: 40_000}
	forced := 0
	runs := record(t, t.Context(), r, func(ev runner.Event) {
		if nudged, ok := ev.(runner.Nudged); ok && nudged.Forced {
			forced++
		}
	}, "Where are the eels?", "And the bees?")
	if forced == 0 || asked == 0 || !runs[0].Header.Counts {
		t.Fatalf("the counter had no part in it: %d, %d", forced, asked)
	}
	without := runs[0]
	without.Header.Counts = false
	if report, err := NewDeck([]Run{without}).Replay(t.Context(), 0); err != nil || len(report.Differences) == 0 {
		t.Errorf("%+v, %v: the run is the same without its counter", report, err)
	}
	asked = 0
	replays(t, runs)
	if asked > 0 {
		t.Errorf("the function was called %d times", asked)
	}
	for i := range runs {
		if found := NewDeck(runs).Verify(i); len(found) > 0 {
			t.Errorf("%v", found)
		}
	}

	killed := runs[0]
	for n, rec := range killed.Records {
		if rec.Kind == kindStream {
			killed.Records = killed.Records[:n+1]
			break
		}
	}
	m.texts, m.asked = []string{"Or so."}, 0
	live := Live{Model: m, Tools: []tools.Tool{echo("search")}}
	goOn := func() (out runner.Outcome, err error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "more.trace"))
		if err != nil {
			t.Fatal(err)
		}
		w := &Writer{file: unsynced{f}, now: time.Now}
		for ev, fault := range NewDeck([]Run{killed}).Resume(t.Context(), w, 0, live) {
			if fault != nil {
				return out, fault
			}
			if ended, ok := ev.(runner.Ended); ok {
				out = ended.Outcome
			}
		}
		return out, nil
	}
	if _, err := goOn(); !errors.Is(err, ErrCounter) {
		t.Errorf("%v", err)
	}
	if _, _, err := NewDeck(runs).Fork(t.Context(), 0, Fork{}, live); !errors.Is(err, ErrCounter) {
		t.Errorf("%v", err)
	}
	live.CountTokens = odd
	if out, err := goOn(); err != nil || out.Answer != "Or so." || asked == 0 {
		t.Errorf("%+v, %v, asked %d times", out, err, asked)
	}
}
