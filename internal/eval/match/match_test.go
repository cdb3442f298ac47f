package match

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"unicode"

	"stopgap/internal/eval/pystr"
)

// A golden is one line of testdata/goldens.jsonl: a pair and its scores, or a
// text and the answer in it.
type golden struct {
	Answer    string
	Gold      []string
	Normal    string
	Exact     int
	Contains  int
	F1        float64
	F1Squad1  float64 `json:"f1_squad1"`
	Text      *string
	Extracted *string
}

func goldens(t *testing.T) []golden {
	t.Helper()
	f, err := os.Open("testdata/goldens.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []golden
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var g golden
		if err := json.Unmarshal(sc.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// The scores are those of Search-R1 and SQuAD, to the last bit.
func TestScoresAreTheReferences(t *testing.T) {
	pairs, answers, seen := 0, 0, map[string]int{}
	number := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	for i, g := range goldens(t) {
		if g.Text != nil {
			answers++
			got, ok := Answer(*g.Text)
			if ok != (g.Extracted != nil) || ok && got != *g.Extracted {
				t.Errorf("line %d: Answer(%q) = %q, %v", i+1, *g.Text, got, ok)
			}
			continue
		}
		pairs++
		if got := Normalise(g.Answer); got != g.Normal {
			t.Errorf("line %d: Normalise(%q) = %q, want %q", i+1, g.Answer, got, g.Normal)
		}
		if got := number(Exact(g.Answer, g.Gold)); got != g.Exact {
			t.Errorf("line %d: Exact(%q, %q) = %d", i+1, g.Answer, g.Gold, got)
		}
		if got := number(Contains(g.Answer, g.Gold)); got != g.Contains {
			t.Errorf("line %d: Contains(%q, %q) = %d", i+1, g.Answer, g.Gold, got)
		}
		if got := F1(g.Answer, g.Gold); got != g.F1 {
			t.Errorf("line %d: F1(%q, %q) = %v, want %v", i+1, g.Answer, g.Gold, got, g.F1)
		}
		// SQuAD 1.1 differs only where there are no words to compare.
		if g.F1 != g.F1Squad1 && g.Normal != "" {
			t.Errorf("line %d: SQuAD 1.1 has %v", i+1, g.F1Squad1)
		}
		seen[fmt.Sprint(g.Exact, g.Contains, g.F1 > 0, g.F1 < 1)]++
	}
	if pairs < 1000 || answers < 100 || len(seen) < 5 {
		t.Errorf("%d pairs, %d texts and %v prove little", pairs, answers, seen)
	}
}

// The committed goldens are what the script writes.
func TestGoldensAreTheScripts(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3: the goldens are compared, but not made again")
	}
	out, err := exec.Command(python, "testdata/goldens.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/goldens.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, want) {
		t.Error("testdata/goldens.py writes something else: python3 goldens.py > goldens.jsonl, and read the difference")
	}
}

// Lower cases, white space and words are Python's for every character.
func TestCharactersArePythons(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to compare with")
	}
	script := `import re, sys, unicodedata
for i in range(0x110000):
    c = chr(i)
    if 0xd800 <= i < 0xe000 or unicodedata.category(c) == "Cn": continue
    print(i, c.lower().encode().hex(), int(c.isspace()), int(bool(re.match(r"\w", c))))`
	out, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(out) {
		var r rune
		var lower string
		var space, word int
		if _, err := fmt.Sscan(string(line), &r, &lower, &space, &word); err != nil {
			t.Fatal(err)
		}
		if !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C) {
			continue // newer than Go's tables
		}
		n++
		if got := fmt.Sprintf("%x", pystr.Lower(string(r))); got != lower {
			t.Errorf("%U: the lower case is %s, in Python %s", r, got, lower)
		}
		if pystr.IsSpace(r) != (space == 1) || pystr.IsWord(r) != (word == 1) {
			t.Errorf("%U: space %v, word %v; in Python %d, %d", r, pystr.IsSpace(r), pystr.IsWord(r), space, word)
		}
	}
	if n < 100000 {
		t.Errorf("only %d characters were compared", n)
	}
}
