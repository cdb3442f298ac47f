package endtoend

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/internal/research/cite"
	"stopgap/internal/research/researchtest"
	"stopgap/internal/sample"
)

const matter = "Who made the great works of Vastorel and its neighbours?"

// theWorks is a research in the sample documents: three sections, twelve pages,
// one of which is read without a goal.
func theWorks(t *testing.T) *researchtest.Researcher {
	t.Helper()
	page := func(id, goal, evidence, summary string) researchtest.Page {
		return researchtest.Page{URL: id + ".md", Goal: goal, Evidence: evidence, Summary: summary}
	}
	documents, err := fs.ReadDir(sample.Documents(), ".")
	if err != nil || len(documents) < 150 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	return &researchtest.Researcher{
		Sections: []researchtest.Section{
			{Title: "Bridges and towers", Queries: []string{"Kesper Bridge designed", "Thistle Tower Vastorel"}, Pages: []researchtest.Page{
				page("kesper-bridge", "the designer of Kesper Bridge", "Kesper Bridge was designed by Ottla Brunec.", "The bridge is Ottla Brunec's design."),
				page("ottla-brunec", "where Ottla Brunec came from", "She was born in Marzipel.", "Marzipel is where she was born."),
				page("thistle-tower", "", "Its clock was made by Casimir Plenk.", "Plenk made the clock of that tower."),
				page("tilda-brunec", "which tower Tilda Brunec drew", "Tilda Brunec designed the Thistle Tower.", "Ottla's daughter drew it."),
			}},
			{Title: "Rails", Queries: []string{"Plateau Railway built"}, Pages: []researchtest.Page{
				page("plateau-railway", "the builder of those rails", "It was built by Nadira Quell.", "Nadira Quell laid 380 kilometres."),
				page("nadira-quell", "what she had learned and where", "She studied at the Corrow School.", "Quell went to school in the city."),
				page("hollow-viaduct", "who planned its arches", "It was designed by Pell Ostrander.", "Forty-two arches are by Ostrander."),
				page("line-nine", "who supplies trams", "Its trams are built by Tramwright.", "Tramwright supplies Line Nine."),
			}},
			{Title: "Looking up", Queries: []string{"Halden Observatory telescope"}, Pages: []researchtest.Page{
				page("halden-observatory", "its best instrument", "Its largest telescope is the Lantern.", "Nothing there is larger than the Lantern."),
				page("lantern", "whose mirror that is", "Its mirror was ground by Ilse Marrow.", "Marrow ground it."),
				page("ilse-marrow", "what workshop she had", "Her workshop was a herring shed.", "It happened among herrings."),
				page("comet-voss", "what they found with it", "Comet Voss was discovered with the Lantern.", "A comet was the reward."),
			}},
		},
		Answer: "Ottla and Tilda Brunec, Nadira Quell, Ilse Marrow and others.",
	}
}

// A researching is the command "stopgap research" in a folder of its own.
type researching struct {
	t    *testing.T
	bin  string
	home string
	args []string
	env  []string
	// wake is called when the server no longer answers; nil where that cannot be.
	wake func()
}

// asks is how all of them are called. The report stands in the folder.
func asks(t *testing.T, bin, ref string, env ...string) *researching {
	return &researching{t: t, bin: bin, home: t.TempDir(), env: env, args: []string{
		"research", matter, "--corpus", "sample", "--model", ref, "--date", "2026-01-02", "--out", "report.md",
		"--context", "32768", "--first-token-timeout", "60s", "--json",
	}}
}

// An event of the command, as far as these tests look at it.
type researchEvent struct {
	Event, Phase, Name, Text, Answer, Status, Error string
	Replayed, Partial                               bool
	Sections, Summaries, Citations, Unsupported     int
	Notes, Number                                   int
	Cited                                           []int
}

// errKilled says that the process did not end by itself.
var errKilled = errors.New("killed")

// start starts the command. What it tells goes to told.
func (r *researching) start(told io.Writer) (*exec.Cmd, *bufio.Reader) {
	r.t.Helper()
	cmd := exec.Command(r.bin, r.args...)
	cmd.Dir = r.home
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home}, r.env...)
	cmd.Stderr = told
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// once runs the command, and kills it when an event asks for that.
func (r *researching) once(kill func(researchEvent) bool) ([]researchEvent, error) {
	r.t.Helper()
	var told bytes.Buffer
	cmd, lines := r.start(&told)
	var events []researchEvent
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var ev researchEvent
		if err := json.Unmarshal(line, &ev); err != nil {
			r.t.Fatalf("%v: %s", err, line)
		}
		events = append(events, ev)
		if kill != nil && kill(ev) {
			_ = cmd.Process.Kill() // it has ended otherwise
			_, _ = io.Copy(io.Discard, lines)
			_ = cmd.Wait() // killed
			return events, errKilled
		}
	}
	if err := cmd.Wait(); err != nil {
		return events, errors.New(told.String())
	}
	return events, nil
}

// whole runs the command to its end, and again where the server had stopped
// answering.
func (r *researching) whole() []researchEvent {
	r.t.Helper()
	for tries := 0; ; tries++ {
		events, err := r.once(nil)
		switch {
		case err == nil:
			return events
		case tries == mostRenewals || r.wake == nil || !strings.Contains(err.Error(), "no first token"):
			r.t.Fatal(err)
		}
		r.t.Log("the model stopped answering: its runner is killed")
		r.wake()
	}
}

// report is what the command has written, both times.
func (r *researching) report() string {
	r.t.Helper()
	var b strings.Builder
	for _, name := range []string{"report.md", "report.html"} {
		text, err := os.ReadFile(filepath.Join(r.home, name))
		if err != nil {
			r.t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}

// TestResearchOnOllama: a whole research in the sample documents on a real
// Ollama, whose model says what was rehearsed; then the same, killed in each
// phase, gives the same report byte for byte.
func TestResearchOnOllama(t *testing.T) {
	bin := command(t)
	works := theWorks(t)
	var rehearsal researchtest.Rehearsal
	rehearsed := asks(t, bin, rehearsal.Watch(works.Author()).Serve(t))
	checkResearch(t, works, rehearsed.whole())

	script, err := rehearsal.Script()
	if err != nil {
		t.Fatal(err)
	}
	a, err := automaton.Compile(script)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "researcher.gguf")
	if err := a.WriteFile(file, automaton.Options{Narrow: true}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d turns, %d tokens", len(script.Turns), a.Size())
	s := ollamatest.Start(t)
	s.Create(t, "researcher", file, nil)
	wake := func() { signalRunner(t, s, syscall.SIGKILL) }

	one := asks(t, bin, "ollama:researcher", "OLLAMA_HOST="+s.URL)
	one.wake = wake
	checkResearch(t, works, one.whole())

	killed := asks(t, bin, "ollama:researcher", "OLLAMA_HOST="+s.URL)
	killed.wake = wake
	for _, when := range moments {
		events, err := killed.once(when.reached())
		if !errors.Is(err, errKilled) {
			if err == nil || !strings.Contains(err.Error(), "no first token") {
				t.Fatalf("%s: %d events, %v", when.name, len(events), err)
			}
			wake()
		}
		if _, err := os.Stat(filepath.Join(killed.home, "report.md")); err == nil {
			t.Errorf("%s: there is a report", when.name)
		}
	}
	checkResearch(t, works, killed.whole())
	if killed.report() != one.report() {
		t.Errorf("the reports differ:\n%s\n\n%s", killed.report(), one.report())
	}
}

// A moment is when a research is killed: at an event in a phase that is not
// played back from its journal.
type moment struct {
	name, phase, event string
	count              int // of the event, from 1
}

var moments = []moment{
	{"in the first turn", "plan", "text", 3},
	{"while a page is read", "plan", "called", 2},
	{"after some pages", "plan", "summary_stored", 2},
	{"in an outline", "outline", "text", 5},
	{"in the second outline", "outline", "text", 2},
	{"before the writer's first turn", "write", "phase_began", 1},
	{"in a section", "write", "text", 12},
	{"after a section", "write", "section_written", 1},
	{"in the answer", "answer", "text", 2},
}

func (m moment) reached() func(researchEvent) bool {
	phase, replayed, seen := "", false, 0
	return func(ev researchEvent) bool {
		if ev.Event == "phase_began" {
			phase, replayed = ev.Phase, ev.Replayed
		}
		if !replayed && phase == m.phase && ev.Event == m.event {
			seen++
		}
		return seen == m.count
	}
}

// A holder keeps a model from answering one request, until its client leaves.
type holder struct {
	mu   sync.Mutex
	kind researchtest.Kind // of the request; empty for none
	skip int               // requests of the kind before it
	held chan struct{}     // it waits
}

func (h *holder) watch(a researchtest.Author) researchtest.Author {
	return func(ctx context.Context, prompt string) (string, error) {
		h.mu.Lock()
		mine := h.kind == researchtest.KindOf(prompt)
		if mine && h.skip > 0 {
			h.skip--
			mine = false
		}
		if mine {
			h.kind = ""
		}
		h.mu.Unlock()
		if mine {
			h.held <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}
		return a(ctx, prompt)
	}
}

// hold holds the next request of a kind, but for some.
func (h *holder) hold(kind researchtest.Kind, skip int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kind, h.skip = kind, skip
}

// Ctrl-C in each phase writes a report that says that it is not whole, and the
// research that goes on gives the same as one that was never interrupted.
func TestResearchInterrupted(t *testing.T) {
	bin := command(t)
	one := asks(t, bin, theWorks(t).Author().Serve(t))
	checkResearch(t, theWorks(t), one.whole())

	h := &holder{held: make(chan struct{})}
	works := theWorks(t)
	r := asks(t, bin, h.watch(works.Author()).Serve(t))
	for _, c := range []struct {
		kind     researchtest.Kind
		skip     int
		sections int // that the report has by then
	}{
		{researchtest.Plan, 2, 0}, {researchtest.Read, 1, 0}, {researchtest.Outline, 0, 0}, {researchtest.Plan, 3, 0},
		{researchtest.Outline, 0, 0}, {researchtest.Write, 0, 0}, {researchtest.Write, 3, 1}, {researchtest.Answer, 0, 3},
	} {
		h.hold(c.kind, c.skip)
		var told bytes.Buffer
		cmd, lines := r.start(&told)
		ended := make(chan string, 1)
		go func() {
			last := ""
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					ended <- last
					return
				}
				last = line
			}
		}()
		select {
		case <-h.held:
		case last := <-ended:
			t.Fatalf("%s: it ended before: %s%s", c.kind, last, told.String())
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		var end researchEvent
		if last := <-ended; json.Unmarshal([]byte(last), &end) != nil || end.Event != "research_ended" || !end.Partial {
			t.Errorf("%s: the last event is %s", c.kind, last)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(told.String(), "goes on from there") {
			t.Errorf("%s: %v\n%s", c.kind, cmd.ProcessState, told.String())
		}
		text := r.report()
		if !strings.Contains(text, "did not come to its end") || strings.Count(text, "\n## ") < c.sections || text == one.report() {
			t.Errorf("%s: the report is\n%s", c.kind, text)
		}
	}
	checkResearch(t, works, r.whole())
	if r.report() != one.report() {
		t.Errorf("the reports differ:\n%s\n\n%s", r.report(), one.report())
	}
}

// checkResearch asserts what a whole research is.
func checkResearch(t *testing.T, works *researchtest.Researcher, events []researchEvent) {
	t.Helper()
	var phases []string
	outlines, cited, supported := 0, 0, 0
	for _, ev := range events {
		switch ev.Event {
		case "phase_ended":
			phases = append(phases, ev.Phase)
		case "outline_changed":
			outlines++
		case "section_written":
			cited += len(ev.Cited)
		case "citation_checked":
			if ev.Status == string(cite.Supported) {
				supported++
			}
		case "noted":
			t.Errorf("the log says: %s", ev.Text)
		}
	}
	if want := []string{"outline", "plan", "write", "answer"}; !slices.Equal(phases, want) {
		t.Errorf("the phases %q, want %q", phases, want)
	}
	if outlines < 2 || cited < 10 || supported != cited {
		t.Errorf("%d outlines, %d citations, %d supported", outlines, cited, supported)
	}
	end := events[len(events)-1]
	if end.Event != "research_ended" || end.Partial || end.Answer != works.Answer || end.Sections != 3 || end.Summaries != 12 ||
		end.Citations != 12 || end.Unsupported != 0 || end.Notes != 0 {
		t.Errorf("it ended so: %+v", end)
	}
}
