package trace

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

var kills = flag.Int("kills", 30, "how often TestKill kills a process")

func TestMain(m *testing.M) {
	if dir := os.Getenv("STOPGAP_TRACE_CHILD"); dir != "" {
		if err := work(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const workTurns = 4 // with a call of each tool

// work is what the process does that TestMain starts: it goes on with a run of
// the folder's journal that was killed, or makes one, and then another. Each
// thing that happens outside of it leaves a line in a file.
func work(dir string) error {
	path := filepath.Join(dir, "runs.trace")
	w, err := Open(path)
	if err != nil {
		return err
	}
	runs, err := ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	model := &worker{dir: dir}
	list := []tools.Tool{appender(dir, "look", false), appender(dir, "change", true)}
	for i := range runs {
		if runs[i].Ended() || runs[i].Header.ID == "" { // a header that was cut off
			continue
		}
		if err := finish(NewDeck(runs).Resume(context.Background(), w, i, Live{Model: model, Tools: list, Version: "test"})); err != nil {
			return fmt.Errorf("run %d of %d: %w", i+1, len(runs), err)
		}
		return w.Close()
	}
	set, err := tools.NewSet(list, tools.Options{})
	if err != nil {
		return err
	}
	text, err := template.Shipped("qwen")
	if err != nil {
		return err
	}
	f, err := template.Compile("qwen", text)
	if err != nil {
		return err
	}
	r := &runner.Runner{Model: model, Format: f, Tools: set}
	about := About{Version: "test", Model: "worker", Format: "qwen", Text: text}
	err = finish(w.Run(context.Background(), about, r, runner.Task{Question: "Which?", Date: "2026-01-02"}))
	return errors.Join(err, w.Close())
}

func finish(run iter.Seq2[runner.Event, error]) error {
	for ev, err := range run {
		if err != nil {
			return err
		}
		if ended, ok := ev.(runner.Ended); ok && ended.Termination != runner.TermAnswered {
			return fmt.Errorf("%+v", ended)
		}
	}
	return nil
}

// note appends a line to a file of a folder.
func note(dir, name, line string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// lines gives those of a file of a folder.
func linesOf(t *testing.T, dir, name string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// appender is a tool that leaves its argument in a file, halfway through.
func appender(dir, name string, effects bool) hand {
	return hand{name: name, effects: effects, run: func(_ context.Context, args json.RawMessage) (string, error) {
		var a struct{ Q string }
		if err := json.Unmarshal(args, &a); err != nil {
			return "", err
		}
		time.Sleep(4 * time.Millisecond)
		err := note(dir, name, a.Q)
		time.Sleep(4 * time.Millisecond)
		return "done: " + a.Q, err
	}}
}

// A worker is a model whose words depend on the prompt alone, as much as those
// of a model with temperature do not: each call has a name of its own.
type worker struct{ dir string }

func (m *worker) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	prompt := ""
	for _, s := range req.Prompt {
		prompt += s.Text
	}
	turn := strings.Count(prompt, "<|im_start|>assistant\n") // with the one that is asked for
	text := "It is so."
	if turn <= workTurns {
		id := fmt.Sprint(rand.Uint64())
		text = "I look.\n" + calls("look", id) + calls("change", id)
	}
	p := &pen{texts: []string{text}, ids: true}
	inner := p.Stream(ctx, req)
	return func(yield func(models.Chunk, error) bool) {
		if err := note(m.dir, "requests", fmt.Sprint(turn)); err != nil {
			panic(err)
		}
		for c, err := range inner {
			time.Sleep(100 * time.Microsecond)
			if !yield(c, err) {
				return
			}
		}
	}
}

// A process is killed at random moments, again and again, until its run has its
// end: no run that had its end is lost, no request is made again but the one
// that was under way, and nothing with side effects happens twice.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.trace")
	var ended []string // runs that had their end
	killed, asked, twice, unknown, revived := 0, 0, 0, 0, 0
	patience := time.Duration(0) // how long a process takes that is let be, the first one
	for round := 0; killed < *kills || revived == 0; round++ {
		before := linesOf(t, dir, "requests")
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "STOPGAP_TRACE_CHILD="+dir)
		var errs strings.Builder
		child.Stderr = &errs
		out, err := child.StdoutPipe()
		if err == nil {
			err = child.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if rand.IntN(10) > 0 { // now and then also while it begins
			_, _ = out.Read(make([]byte, 16))
		}
		began := time.Now()
		if patience > 0 && (killed < *kills || len(ended) == 0 && rand.IntN(2) == 0) {
			time.AfterFunc(time.Duration(rand.Int64N(int64(patience))), func() { _ = child.Process.Kill() })
		}
		err = child.Wait()
		if patience == 0 {
			patience = time.Since(began)
		}
		switch {
		case child.ProcessState.ExitCode() > 0:
			t.Fatalf("round %d: %v\n%s", round, err, errs.String())
		case err != nil:
			killed++
		}
		runs, err := ReadFile(path)
		if bad := (*FormatError)(nil); errors.As(err, &bad) && bad.Line == 1 { // killed in its very first line
			err = os.Remove(path)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatalf("round %d: %v", round, err)
		}
		var now []string
		revived = 0
		for i := range runs {
			if runs[i].Ended() {
				now = append(now, runs[i].Header.ID)
				revived += runs[i].Revived
			}
		}
		if len(now) < len(ended) || strings.Join(now[:len(ended)], " ") != strings.Join(ended, " ") {
			t.Fatalf("round %d: %v had ended, now %v", round, ended, now)
		}
		ended = now
		// A process asks for each turn once, and for no turn that it did not have
		// to ask for: the numbers go up.
		made := linesOf(t, dir, "requests")[len(before):]
		for i := 1; i < len(made); i++ {
			if made[i] <= made[i-1] {
				t.Fatalf("round %d asks for the turns %v", round, made)
			}
		}
		if len(before) > 0 && len(made) > 0 && made[0] < before[len(before)-1] && before[len(before)-1] != fmt.Sprint(workTurns+1) {
			t.Fatalf("round %d asks for turn %s, and turn %s was under way", round, made[0], before[len(before)-1])
		}
		asked += len(made)
	}
	changes := map[string]int{}
	for _, id := range linesOf(t, dir, "change") {
		if changes[id]++; changes[id] > 1 {
			t.Errorf("%s was changed twice", id)
		}
	}
	looks := map[string]int{}
	for _, id := range linesOf(t, dir, "look") {
		if looks[id]++; looks[id] > 1 {
			twice++
		}
	}
	runs, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	deck := NewDeck(runs)
	for i := range runs {
		if !runs[i].Ended() {
			continue
		}
		if found := deck.Verify(i); len(found) > 0 {
			t.Errorf("run %d: %v", i+1, found)
		}
		report, err := deck.Replay(t.Context(), i)
		if err != nil || len(report.Differences) > 0 {
			t.Errorf("run %d: %+v, %v", i+1, report, err)
		}
		tape, err := newTape(&runs[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range tape.results {
			if r.Status == tools.Interrupted {
				unknown++
				if r.Name != "change" {
					t.Errorf("%s was not run again, and has no side effects", r.Name)
				}
			}
		}
	}
	t.Logf("%d kills: %d runs have their end, %d requests, gone on with %d times, %d calls without side effects ran again, %d with them are unknown",
		killed, len(ended), asked, revived, twice, unknown)
}
