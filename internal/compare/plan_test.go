package compare

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/batch"
)

// A folder is taken for one comparison, and nothing in it changes when it is
// asked for another.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	make := func(change func(*Comparison)) *Comparison {
		c := asking(dir, 1, cities, candidate(t, "a", clerk{script: idle}), candidate(t, "b", clerk{script: idle}))
		if change != nil {
			change(c)
		}
		return c
	}
	want := text(t, compared(t, make(nil)))
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "thesis.txt"), []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	hot := 0.9
	for name, c := range map[string]struct {
		change func(*Comparison)
		says   string
	}{
		"other questions": {func(c *Comparison) { c.Data.Items[1].Answers = []string{"Athens"} }, "another dataset (questions.jsonl, which had other questions)"},
		"another day":     {func(c *Comparison) { c.Date = "2026-01-03" }, "another date: it was 2026-01-02 and is 2026-01-03"},
		"other seeds":     {func(c *Comparison) { c.Seeds = "compare 7" }, `another seed: it was "compare" and is "compare 7"`},
		"another configuration": {func(c *Comparison) {
			s := c.Configurations[1].Servers[0]
			s.Runner.Sampling.Temperature = &hot
			c.Configurations[1].Configuration, _ = batch.NewConfiguration("clerk", s.About.Text, s.Runner, s.Task)
		}, "another configuration: runner.Sampling"},
		"another format of the name": {func(c *Comparison) {
			c.Configurations[1].Configuration["format_sha256"] = json.RawMessage(`"00"`)
		}, "another configuration: format_sha256"},
		"the same twice": {func(c *Comparison) { c.Configurations[1] = c.Configurations[0] }, "a is compared with itself"},
		"the same by another name": {func(c *Comparison) {
			copied := *c.Configurations[0]
			copied.Format = "./a.tmpl"
			c.Configurations[1] = &copied
		}, "a and ./a.tmpl are the same configuration"},
		"a folder of something else": {func(c *Comparison) { c.Dir = other }, "it has other things in it (thesis.txt)"},
		"nothing to compare":         {func(c *Comparison) { c.Configurations = nil }, "damaged"},
	} {
		comparison := make(c.change)
		err := comparison.Open()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		comparison.Close()
	}
	if list, _ := os.ReadDir(other); len(list) != 1 {
		t.Errorf("a folder of something else has now %v", list)
	}
	if got := text(t, report(t, dir)); got != want {
		t.Errorf("the folder has changed:\n%s", got)
	}
	if got := text(t, compared(t, make(nil))); got != want {
		t.Errorf("gone on with:\n%s\nbefore:\n%s", got, want)
	}
}

// A kill while the first plan is written leaves a folder that can be gone on with.
func TestKilledAtOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, runsFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, planNew+"123"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := compared(t, asking(dir, 1, cities, candidate(t, "a", clerk{script: idle}))); len(r.Items) != len(cities) {
		t.Errorf("%+v", r)
	}
}

// Two processes never make the same comparison.
func TestBusy(t *testing.T) {
	dir := t.TempDir()
	first := asking(dir, 1, cities, candidate(t, "a", clerk{script: idle}))
	if err := first.Open(); err != nil {
		t.Fatal(err)
	}
	second := asking(dir, 1, cities, candidate(t, "a", clerk{script: idle}))
	if err := second.Open(); !errors.Is(err, batch.ErrBusy) {
		t.Errorf("a second one: %v", err)
	}
	if r := report(t, dir); len(r.Items) != 0 || r.Configurations[0].Missing != 0 || len(r.Warnings) != 1 {
		t.Errorf("read before it began: %s", text(t, r))
	}
	first.Close()
	compared(t, second)
}

// A file that says what is compared may come from anybody.
func TestDamagedPlan(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, ErrNone) {
		t.Errorf("an empty folder: %v", err)
	}
	compared(t, asking(dir, 1, cities, candidate(t, "a", clerk{script: idle})))
	file := filepath.Join(dir, PlanName)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"cut off":         {"]\n}", ""},
		"another version": {`"version": 1`, `"version": 2`},
		"no JSON":         {"{", "<"},
		"a way out":       {"runs/a@clerk", "runs/../../a"},
		"an own way":      {"runs/a@clerk", "/etc"},
		"no rollouts":     {`"rollouts": 1`, `"rollouts": -1`},
		"another hash":    {`"hash": "`, `"hash": "0`},
		"another dataset": {`"digest": "`, `"digest": "0`},
		"another metric":  {`"seeds"`, `"primary": "beauty", "seeds"`},
	} {
		bad := strings.Replace(string(good), change[0], change[1], 1)
		if bad == string(good) {
			t.Fatalf("%s: nothing was changed in %s", name, good)
		}
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Read(dir); !errors.As(err, new(*FolderError)) {
			t.Errorf("%s: %v %+v", name, err, r)
		}
	}
	if err := os.WriteFile(file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "runs", "a@clerk", "batch.db"), []byte("not a database, whatever it is called"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.As(err, new(*batch.FolderError)) {
		t.Errorf("a damaged ledger: %v", err)
	}
}

// Names are as short as they can be, and folders are never shared.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		members []Member
		want    string
	}{
		{[]Member{{Format: "qwen", Model: "a"}, {Format: "react", Model: "a"}}, "qwen|react"},
		{[]Member{{Format: "qwen", Model: "a"}, {Format: "qwen", Model: "b"}}, "a|b"},
		{[]Member{{Format: "qwen", Model: "a"}, {Format: "react", Model: "a"}, {Format: "qwen", Model: "b"}}, "qwen, a|react, a|qwen, b"},
		{[]Member{{Format: "qwen2.5", Model: "a"}, {Format: "./mine/qwen2.5.tmpl", Model: "a"}, {Format: "x/own.tmpl", Model: "a"}}, "qwen2.5|./mine/qwen2.5.tmpl|own"},
	} {
		folders := map[string]bool{}
		for _, m := range c.members {
			folders[folderOf(m.Format, m.Model)] = true
		}
		if got := strings.Join(names(c.members), "|"); got != c.want || len(folders) != len(c.members) {
			t.Errorf("%s, want %s; %v", got, c.want, folders)
		}
	}
	for _, c := range [][3]string{
		{"qwen", "stopgap", "runs/qwen@stopgap"},
		{"../../Etc/PASSWD", "qwen3:8b", "runs/passwd@qwen3_8b~"},
		{`C:\x\..\own.tmpl`, strings.Repeat("字", 50), "runs/"},
		{"..", "..", "runs/@~"},
	} {
		got := folderOf(c[0], c[1])
		p := Plan{Rollouts: 1, Members: []Member{{Folder: got}}}
		if err := p.check(); err != nil || !strings.HasPrefix(got, c[2]) || len(got) > 100 {
			t.Errorf("%q, %q: %s: %v", c[0], c[1], got, err)
		}
	}
}
