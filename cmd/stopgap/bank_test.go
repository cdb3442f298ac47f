package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/internal/research/bank"
)

// madeBank is a bank with three summaries.
func madeBank(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bank.db")
	b, err := bank.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, s := range []struct {
		bank.Summary
		page string
	}{
		{bank.Summary{Source: "notes/lantern.md", Title: "The\tLantern", Goal: "How tall it is", Rational: "The first line.", Evidence: "The tower is 41 m tall.", Summary: "41 m.", Tokens: 12, Question: "How tall is the tower?", Call: "a"},
			"# The Lantern\n\nThe tower is 41 m tall.\n"},
		{bank.Summary{Source: "https://a.example", Title: "Keeper\x1b[2J", Goal: "Who kept it", Evidence: "Ilse kept it.\nFor 99 years.", Summary: "Ilse.", Tokens: 7, Question: "Who kept it?", Call: "b"}, "Ilse kept it."},
		{bank.Summary{Source: "notes/tale.md", Goal: "What is told", Summary: "Tales.", Question: "Who kept it?", Call: "c"}, ""},
	} {
		if _, err := b.Add(t.Context(), s.Summary, s.page); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// called runs the command.
func called(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(append([]string{"--config", ""}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestBankShow(t *testing.T) {
	path := madeBank(t)
	for _, word := range []string{"show", "list"} {
		code, out, errs := called(t, "bank", word, path)
		if want := "1\tThe Lantern\tnotes/lantern.md\t12\tHow tall it is\n2\tKeeper␛[2J\thttps://a.example\t7\tWho kept it\n3\t\tnotes/tale.md\t0\tWhat is told\n"; code != 0 || out != want || errs != "" {
			t.Errorf("%s: %d %q\n%s\nwant\n%s", word, code, errs, out, want)
		}
	}
	code, out, _ := called(t, "bank", "show", path, "1", "2")
	for _, part := range []string{"1  The Lantern\n", "question  How tall is the tower?\n", "page      39 bytes\n", "verdict   Evidence stands in the page, word for word\n", "\nevidence\nThe tower is 41 m tall.\n",
		"2  Keeper␛[2J\n", `verdict   Only 50 % of the evidence stands in the page; not found: "For 99 years"`} {
		if code != 0 || !strings.Contains(out, part) {
			t.Errorf("%d, no %q in\n%s", code, part, out)
		}
	}
	if code, out, _ := called(t, "bank", "show", path, "1", "--page"); code != 0 || out != "# The Lantern\n\nThe tower is 41 m tall.\n" {
		t.Errorf("%d, the page is %q", code, out)
	}
	code, out, _ = called(t, "bank", "show", path, "--json")
	var rows []bankRow
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var row bankRow
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if code != 0 || len(rows) != 3 || rows[0].Verdict != "ok" || rows[1].Verdict != "evidence not in the page" || rows[2].Verdict != "no evidence" || rows[1].Title != "Keeper\x1b[2J" || rows[0].PageBytes != 39 {
		t.Errorf("%d: %+v", code, rows)
	}
}

func TestBankErrors(t *testing.T) {
	path := madeBank(t)
	foreign := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(foreign, []byte("milk, bread"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "takes the file of a bank"},
		{"none.db", "cannot use bank none.db: no such file or directory"},
		{foreign, "the file is no bank"},
		{path + " 4", "has no summary 4\nhint: it has 1 to 3\n"},
		{path + " x", `"x" is no number of a summary`},
		{path + " --page", "--page prints the page of one summary"},
		{path + " 1 --page --json", "use one of them"},
		{path + " 3 --page", "the page of summary 3 is not kept"},
	} {
		code, out, errs := called(t, append([]string{"bank", "show"}, strings.Fields(c.args)...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) || out != "" || !strings.Contains(errs, "hint: ") {
			t.Errorf("%s: %d %q\n%s", c.args, code, out, errs)
		}
	}
	code, out, _ := called(t, "__complete", "bank", "show", path, "")
	if code != 0 || !strings.HasPrefix(out, "1\tThe Lantern\n2\t") {
		t.Errorf("completion: %d\n%s", code, out)
	}
}
