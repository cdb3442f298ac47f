package endtoend

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"stopgap/internal/batch"
	comparison "stopgap/internal/compare" // compare is a function here
)

var update = flag.Bool("update", false, "TestComparison writes its table into docs/compare.md, where it asks all questions")

const (
	// compareVariable says how many questions TestComparison asks; make test has
	// all of them asked.
	compareVariable = "STOPGAP_COMPARE"
	allQuestions    = 200
	fewQuestions    = 6
	// mostTime is what a comparison of all questions may take of a processor: ten
	// minutes of two cores that do nothing else.
	mostTime = 20 * time.Minute
)

// A comparing is the command that TestComparison runs: four formats on the
// built-in model, two rollouts each, so hot that it makes mistakes.
type comparing struct {
	bin, home string
	questions int
}

func (c comparing) command(dir string) *exec.Cmd {
	data := filepath.Join(root, compareFolder)
	cmd := exec.Command(c.bin, "compare", "--formats", "qwen,qwq,react,search-r1", "--model", "builtin",
		"--data", filepath.Join(data, "questions.jsonl"), "--corpus", filepath.Join(data, "corpus.jsonl"), "--index", filepath.Join(c.home, "index"),
		"--rollouts", "2", "--first", strconv.Itoa(c.questions), "--temperature", "1.5", "--top-p", "1", "--min-p", "0",
		"--date", "2026-01-02", "--out", dir, "--config", "")
	cmd.Env = bare()
	unplug(cmd)
	return cmd
}

// done is how many rollouts are on the ledgers of a comparison.
func (c comparing) done(t *testing.T, dir string) int {
	t.Helper()
	p, err := comparison.ReadPlan(dir)
	if err != nil {
		return 0 // it has not begun
	}
	n := 0
	for _, m := range p.Members {
		had, err := batch.ReadFolder(filepath.Join(dir, m.Folder))
		if err == nil {
			n += len(had.Results)
		}
	}
	return n
}

// killed runs the command and kills it when so many rollouts are done.
func (c comparing) killed(t *testing.T, dir string, after int) {
	t.Helper()
	cmd := c.command(dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			t.Fatalf("it ended before it was killed: %v\n%s", err, out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if c.done(t, dir) >= after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil {
				t.Fatal("it ended before it was killed")
			}
			return
		}
	}
}

// Four formats on the built-in model, with no network: a comparison that is
// killed twice and gone on with gives the files of one that nobody killed, byte
// for byte, and what it prints is what the documentation shows.
func TestComparison(t *testing.T) {
	c := comparing{bin: command(t), home: t.TempDir(), questions: fewQuestions}
	if v := os.Getenv(compareVariable); v != "" {
		var err error
		if c.questions, err = strconv.Atoi(v); err != nil || c.questions < 1 || c.questions > allQuestions {
			t.Fatalf("%s=%s: it takes a number up to %d", compareVariable, v, allQuestions)
		}
	}
	rollouts := c.questions * 4 * 2
	whole, killed := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "killed")
	began, cmd := time.Now(), c.command(whole)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failure(err))
	}
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%d rollouts in %s, of which %s on a core: %.1f a second of it", rollouts, time.Since(began).Round(time.Second), took.Round(time.Second), float64(rollouts)/took.Seconds())
	if c.questions == allQuestions && took > mostTime {
		t.Errorf("it took %s on a core, more than %s", took, mostTime)
	}

	c.killed(t, killed, rollouts/3)
	c.killed(t, killed, rollouts*2/3)
	before := c.done(t, killed)
	if before < rollouts*2/3 || before >= rollouts {
		t.Fatalf("killed with %d of %d rollouts done", before, rollouts)
	}
	again, err := c.command(killed).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, failure(err))
	}
	for _, name := range []string{"report.html", "report.md", "report.csv", "report.json"} {
		sameFiles(t, filepath.Join(whole, name), filepath.Join(killed, name))
	}
	if table(string(out)) != table(string(again)) {
		t.Errorf("killed and gone on with it prints\n%s\nnever killed\n%s", again, out)
	}
	r, err := comparison.Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, conf := range r.Configurations {
		s := conf.Score("exact_match")
		if conf.Missing > 0 || conf.Failed > 0 || s == nil || s.Items != c.questions {
			t.Errorf("%s: %d missing, %d failed, %+v", conf.Name, conf.Missing, conf.Failed, s)
		}
	}
	documented(t, table(string(out)), c.questions == allQuestions)
}

// failure is what a command that failed wrote on standard error.
func failure(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return string(e.Stderr)
	}
	return ""
}

func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		at := 0
		for at < min(len(x), len(y)) && x[at] == y[at] {
			at++
		}
		around := func(text []byte) []byte { return text[max(0, min(at-100, len(text))):min(at+200, len(text))] }
		t.Errorf("%s and %s differ at byte %d:\n…%s…\n…%s…", a, b, at, around(x), around(y))
	}
	if len(x) < 1000 {
		t.Errorf("%s has %d bytes", a, len(x))
	}
}

// table is what a report prints, without the times.
func table(out string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		if !strings.Contains(part, "\nwall time, s ") {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// shown is the block of docs/compare.md that shows the table, with the model
// that gave it.
var shown = regexp.MustCompile("(?s)<!-- The model is ([0-9a-f]{12})\\.[^>]*-->\n\n```text\n(.*?)```\n")

// documented makes sure that the documentation shows the table, or with -update
// makes it show it. Numbers may be off a little where the model is the same: on
// another processor sums are made in another order, and a hot model then says
// something else here and there. Without all questions it only looks whether the
// page has a table.
func documented(t *testing.T, got string, all bool) {
	t.Helper()
	page := filepath.Join(root, "docs/compare.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(builtinFile)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(model)
	digest := hex.EncodeToString(sum[:6])
	at := shown.FindSubmatchIndex(text)
	if at == nil {
		t.Fatal("docs/compare.md shows no table")
	}
	if !all {
		return
	}
	had, want := string(text[at[2]:at[3]]), string(text[at[4]:at[5]])
	switch {
	case *update:
		var b bytes.Buffer
		b.Write(text[:at[2]])
		b.WriteString(digest)
		b.Write(text[at[3]:at[4]])
		b.WriteString(got)
		b.Write(text[at[5]:])
		if err := os.WriteFile(page, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	case got == want:
	case had != digest:
		t.Errorf("docs/compare.md shows the table of another model; renew it: %s=%d go test ./internal/endtoend -run 'TestComparison$' -timeout 60m -args -update\nit prints\n%s", compareVariable, allQuestions, got)
	default:
		t.Logf("not what docs/compare.md shows, byte for byte:\n%s", got)
		alike(t, want, got)
	}
}

// alike compares the scores of two tables: of exact match, with three points to
// spare.
func alike(t *testing.T, want, got string) {
	t.Helper()
	const spare = 3.0
	rows := regexp.MustCompile(`(?m)^[A-D]  (\S+) +([0-9.]+) `)
	a, b := rows.FindAllStringSubmatch(want, -1), rows.FindAllStringSubmatch(got, -1)
	if len(a) != 4 || len(b) != 4 {
		t.Fatalf("no table:\n%s\n%s", want, got)
	}
	for i := range a {
		x, _ := strconv.ParseFloat(a[i][2], 64) // digits and points
		y, _ := strconv.ParseFloat(b[i][2], 64)
		if a[i][1] != b[i][1] || math.Abs(x-y) > spare {
			t.Errorf("docs/compare.md shows %s with %v, and it is %v", a[i][1], x, y)
		}
	}
}
