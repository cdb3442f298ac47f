package conformance

import (
	"strings"

	"stopgap/models"
	"stopgap/runner"
)

// chunks: where the model's text is cut on its way changes nothing.
func (s *stage) chunks() {
	lines := []line{
		{turn: s.calling(s.one()), change: func(text string) string { return text + "\n" + s.Response.Open + more }},
		{turn: s.pondering()}, {turn: s.calling(s.other())}, {turn: s.answering(answer)},
	}
	whole := s.perform(scene{lines: lines, chunk: 1 << 20})
	for _, size := range []int{1, 7} {
		cut := s.perform(scene{lines: lines, chunk: size})
		got, want := settled(cut.events), settled(whole.events)
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				s.find("stops", "in chunks of %d bytes the run gives %s, as a whole %s", size, got[i], want[i])
				return
			}
		}
		if len(got) != len(want) {
			s.find("stops", "in chunks of %d bytes the run gives %d events, as a whole %d", size, len(got), len(want))
		}
	}
}

// settled are the events without what chunks and clocks may change: how many
// there were, what was read past a stop, how long it took.
func settled(events []runner.Event) []string {
	var out []string
	var last runner.Text
	flush := func() {
		if last.Text != "" {
			out = append(out, marshal(last))
		}
		last = runner.Text{}
	}
	for _, ev := range events {
		switch e := ev.(type) {
		case runner.Text:
			if e.Turn != last.Turn || e.Span != last.Span {
				flush()
			}
			e.Text = last.Text + e.Text
			last = e
			continue
		case runner.Waiting:
			continue
		case runner.Stopped:
			e.Halt, e.Pieces, e.Discarded, e.Usage, e.Timings = 0, 0, 0, models.Usage{}, models.Timings{}
			ev = e
		case runner.Returned:
			e.Duration = 0
			ev = e
		case runner.Ended:
			e.Duration, e.Pieces, e.Discarded, e.Usage = 0, 0, 0, models.Usage{}
			ev = e
		}
		flush()
		out = append(out, marshal(ev))
	}
	flush()
	return out
}

func marshal(ev runner.Event) string {
	b, err := runner.MarshalEvent(ev)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}
