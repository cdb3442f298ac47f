package runner_test

import (
	"errors"
	"testing"

	"stopgap/models"
	"stopgap/runner"
)

// TestConstrainedStreamsThatWereCut cuts each request under a schema at every
// chunk. A name is asked for again, and arguments of which nothing was seen; a
// value that has its end needs no more; everywhere else the cut is the error.
// What goes on is the run that was never cut.
func TestConstrainedStreamsThatWereCut(t *testing.T) {
	texts := []string{"Look. <tool_call>", `"search"`, `{"query": "月 }"}`, ""}
	args := texts[2]
	uncut, whole, err := trial(t, constrained(t, "qwen", script(texts...)), runner.Task{})
	if err != nil || whole.Calls != 1 {
		t.Fatalf("%v, %+v", err, whole)
	}
	for at := 1; at <= 2; at++ {
		for n := 0; n <= len(texts[at])+2; n += 3 {
			n := min(n, len(texts[at]))
			m := script(texts...)
			play, cuts := m.play, 0
			m.play = func(i int, req models.Request) reply {
				r := play(i-cuts, req)
				if i == at+1 {
					r = reply{text: r.text[:n], err: &models.CutError{Bytes: n}}
					if at == 1 && n < len(texts[at]) || at == 2 && n == 0 {
						cuts = 1 // it is asked again
					}
				}
				return r
			}
			events, out, err := trial(t, constrained(t, "qwen", m), runner.Task{})
			if at == 2 && n > 0 && n < len(args) {
				if cut := (*models.CutError)(nil); !errors.As(err, &cut) || out.Termination != runner.TermServerError || out.Resumed != 0 || out.Calls != 0 {
					t.Errorf("cut after %q: %v, %+v", args[:n], err, out)
				}
				continue
			}
			if err != nil || out.Answer != whole.Answer || out.Resumed != 1 || out.Requests != whole.Requests+cuts || out.Ledger.Text() != whole.Ledger.Text() {
				t.Errorf("request %d cut after %d bytes: %v, %+v\n%s\nwant\n%s", at+1, n, err, out, out.Ledger.Text(), whole.Ledger.Text())
			}
			if resumed := of[runner.Resumed](events); len(resumed) != 1 || resumed[0].Bytes < len(texts[0]) || len(of[runner.Called](events)) != len(of[runner.Called](uncut)) {
				t.Errorf("request %d cut after %d bytes: %+v", at+1, n, resumed)
			}
			m.growing(t)
		}
	}
}

// A cut is gone on with as often as Limits.Resumes says.
func TestConstrainedStreamsThatAreCutAgainAndAgain(t *testing.T) {
	m := script("Look. <tool_call>")
	m.play = func(i int, _ models.Request) reply {
		if i == 1 {
			return wrote("Look. <tool_call>")
		}
		return reply{text: `"sea`, err: &models.CutError{Bytes: 4}}
	}
	_, out, err := trial(t, constrained(t, "qwen", m), runner.Task{})
	if cut := (*models.CutError)(nil); !errors.As(err, &cut) || out.Resumed != 2 || out.Requests != 4 {
		t.Errorf("%v, %+v", err, out)
	}
}
