package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"stopgap/internal/research"
	"stopgap/runner"
)

// told are the events of a small research whose pages are hostile.
var told = []research.Event{
	research.Began{Question: "Who built\nthe bridges?", Given: 1},
	research.PhaseBegan{Phase: research.Planning, Leg: 1},
	research.Ran{Event: runner.Called{Name: "search", Arguments: []byte(`{"query":["bridges"]}`)}},
	research.Searched{Queries: []string{"bridges"}},
	research.PageRead{URL: "gone.md", Goal: "who", Error: "there is no such page"},
	research.PageRead{URL: "kesper-bridge.md", Title: "Kesper Bridge", Goal: "who", Characters: 90},
	research.SummaryStored{ID: 2, URL: "kesper-bridge.md", Title: "Kesper\x1b[31m Bridge", Goal: "who", Summary: "Ottla Brunec built it.", Tokens: 9},
	research.OutlineChanged{Number: 1, Outline: "## Bridges\n- Who built them [2]\n## Towers\n- Clocks [2]\n", Points: 2, Cited: []int{2}},
	research.Moved{Phase: research.Planning, Turn: 4, Turns: 40, Pages: 1, Prompt: 900, Context: 32768, Generated: 77},
	research.PhaseEnded{Phase: research.Planning, Reason: "terminate", Turns: 4, Calls: 4},
	research.PhaseBegan{Phase: research.Writing, Leg: 2},
	research.Retrieved{IDs: []int{2}, Goal: "Bridges"},
	research.SectionWritten{Number: 1, Title: "Bridges", Cited: []int{2}},
	research.Noted{Phase: research.Writing, Text: "a section cites 9, which is no summary"},
}

func TestResearchLines(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &output{w: &out}, stderr: &out, lookup: func(string) (string, bool) { return "", false }}
	v := a.newResearchView(&settings{color: "auto"}, false)
	for _, ev := range told {
		if err := v.Event(ev); err != nil {
			t.Fatal(err)
		}
	}
	v.Close()
	want := `research: Who built the bridges? (the bank has 1 summary)
searched: bridges
not read: gone.md: there is no such page
[2] Kesper␛[31m Bridge: Ottla Brunec built it.
outline 1: 2 points, 1 summary cited
planning done: terminate · 4 turns, 4 calls · <1ms
section 1: Bridges (1 cited)
note (writing): a section cites 9, which is no summary
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	v = a.newResearchView(&settings{color: "auto", quiet: true}, false)
	for _, ev := range told {
		if err := v.Event(ev); err != nil || out.Len() > 0 {
			t.Errorf("%v, %q", err, out.String())
		}
	}
}

// What was done before the process is told in one line.
func TestResearchGoesOn(t *testing.T) {
	var out bytes.Buffer
	v := &researchLines{Writer: &out, screen: screen{width: func() int { return plain }}}
	for _, ev := range told {
		switch e := ev.(type) {
		case research.Began:
			e.Resumed = true
			ev = e
		case research.PhaseBegan:
			e.Replayed = e.Phase == research.Planning
			ev = e
		}
		if err := v.Event(ev); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 5 || lines[1] != "goes on: 2 summaries, 1 outline and 0 sections are there" || !strings.HasPrefix(lines[2], "section 1") {
		t.Errorf("%q", lines)
	}
}

// A board keeps to the width and the height that there are.
func TestResearchBoard(t *testing.T) {
	for _, width := range []int{plain, 20, 80} {
		var out bytes.Buffer
		b := newResearchBoard(&out, screen{cursor: true, width: func() int { return width }})
		for _, ev := range told {
			if err := b.Event(ev); err != nil {
				t.Fatal(err)
			}
		}
		b.mu.Lock()
		b.draw()
		lines := b.lines()
		b.mu.Unlock()
		b.Close()
		b.Close()
		for i, want := range []string{"planning · turn 4 of 40 · 1 page · 1 section · prompt 900 of 32768 tokens · 77 written · ", "  reading 1 summary for Bridges", "outline 1", "✓ ## Bridges", "✓ - Who built them [2]", "  ## Towers", "  - Clocks [2]"} {
			if !strings.HasPrefix(strings.Replace(lines[i], "writing", "planning", 1), want) {
				t.Errorf("line %d is %q, want %q", i+1, lines[i], want)
			}
		}
		if text := out.String(); strings.Contains(text, "\x1b[3") || !strings.HasSuffix(text, "\x1b[J") {
			t.Errorf("width %d: %q", width, text)
		}
		if width != plain {
			for _, line := range strings.Split(out.String(), "\n") {
				line = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\r", "").Replace(line)
				if cells(line) > width && !strings.Contains(line, "\x1b[") {
					t.Errorf("%d columns in a terminal of %d: %q", cells(line), width, line)
				}
			}
		}
	}
}

// An outline longer than the terminal is shown where the writer is.
func TestResearchBoardIsLow(t *testing.T) {
	var out bytes.Buffer
	b := newResearchBoard(&out, screen{cursor: true, width: func() int { return 80 }})
	defer b.Close()
	long := ""
	for i := range 60 {
		long += fmt.Sprintf("## Section %d\n", i+1)
	}
	events := []research.Event{research.PhaseBegan{Phase: research.Writing}, research.OutlineChanged{Number: 3, Outline: long}}
	for i := range 30 {
		events = append(events, research.SectionWritten{Number: i + 1, Title: "x"})
	}
	for _, ev := range events {
		if err := b.Event(ev); err != nil {
			t.Fatal(err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines()
	if len(lines) > 23 || !strings.Contains(strings.Join(lines, "\n"), "\n  ## Section 31\n") {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}
