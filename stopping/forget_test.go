package stopping

import "testing"

// A state without a match is reached from one that is thrown away when the next
// character comes; what stays in the table must not change with it.
func TestForgottenStateKeepsItsScope(t *testing.T) {
	set := compile(t, Criterion{Name: "n", Literal: "n", Action: Notify,
		Scope: Scope{Open: "<", Close: ">>"}})
	reports := func(m *Matcher, text string) (ends []int) {
		for i := range len(text) {
			step, err := m.Write(text[i:i+1], 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range step.Notified() {
				ends = append(ends, d.MatchEnd)
			}
		}
		return ends
	}
	d, size := set.automaton, set.automaton.size
	full := func(yes bool) {
		d.size = size
		if yes {
			d.size = maxTable
		}
	}
	m := set.Matcher()
	full(true)
	reports(m, "<")
	full(false) // only the state behind the report has room
	if ends := reports(m, "n"); len(ends) != 1 {
		t.Fatalf("reports at %v", ends)
	}
	full(true)
	if ends := reports(m, ">>nnn"); ends != nil {
		t.Errorf("reports at %v behind the region", ends)
	}
	full(false)
	if ends := reports(set.Matcher(), "<n>>n<nn>>n"); len(ends) != 3 || ends[0] != 2 || ends[1] != 7 || ends[2] != 8 {
		t.Errorf("reports of another text at %v, want 2, 7 and 8", ends)
	}
}
