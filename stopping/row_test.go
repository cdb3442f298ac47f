package stopping

import "testing"

// equivalenceRows are the smallest trials that told a wrong engine from the
// definition. make fuzz prints new ones.
var equivalenceRows = []trial{
	// the end of the text inside a pattern
	{[]Criterion{{Name: "p", Regex: `$\na`}}, "\na"},
	{[]Criterion{{Name: "p", Regex: `$\W`}}, "\n"},
	{[]Criterion{{Name: "p", Regex: `(?m)$\n`}}, "\n"},
	{[]Criterion{{Name: "p", Regex: "(?m)^`"}}, "\n`"},
	{[]Criterion{{Name: "p", Regex: `(?<=$).b`}}, "\nb"},
	{[]Criterion{{Name: "p", Regex: `\b`}}, "a"},
	{[]Criterion{{Name: "p", Regex: `\b`, Captures: Nearest}}, "a"},
	// lookbehinds
	{[]Criterion{{Name: "p", Regex: `(?<=a\S)`}}, "1a"},
	{[]Criterion{{Name: "p", Regex: `(?<=(?<g>a)b)`}}, "ab"},
	{[]Criterion{{Name: "p", Regex: `(?<=(?<g>a))`, StripGroup: "g"}}, "a"},
	{[]Criterion{{Name: "p", Regex: `(?<g>(?<=aa|aa|aa|aa))`}}, "a"},
	{[]Criterion{{Name: "p", Regex: `(?<g>\b)`}}, "a"},
	// what backtracking decides
	{[]Criterion{{Name: "p", Regex: `(?>\X??b)`}}, "ab"},
	{[]Criterion{{Name: "p", Regex: `\R\n`}}, "\r\n"},
	{[]Criterion{{Name: "p", Regex: `(b)\p{Greek}(?i:\1)`}}, "bΣB"},
	{[]Criterion{{Name: "p", Regex: `(?<o>a)(?<-o>)`}}, "a"},
	{[]Criterion{{Name: "p", Regex: `(?<o>)(?<n-o>a)\k<n>`}}, "a"},
	{[]Criterion{{Name: "p", Regex: `[a]{7}`}}, "aa"},
	// reports that would overlap
	{[]Criterion{{Name: "p", Regex: `a*a`, Action: Notify}}, "aa"},
	{[]Criterion{{Name: "p", Regex: `(?())a`, Action: Notify}, {Name: "q", Regex: `>(?>a)>`}}, ">a>"},
	{[]Criterion{{Name: "p", Regex: `1`, Action: Notify}, {Name: "q", Regex: `1`}}, "1"},
	// bytes that are not valid UTF-8
	{[]Criterion{{Name: "p", Regex: `\b`}}, "\xbd"},
	{[]Criterion{{Name: "p", Regex: `\W`}}, "\xbd"},
	{[]Criterion{{Name: "p", Literal: "\ufffd"}}, "\xbd\ufffd"},
	{[]Criterion{{Name: "p", Regex: "\ufffd"}}, "\xbd\ufffd"},
	{[]Criterion{{Name: "p", Regex: `a`}}, "\xe4"},
	// scopes and minimums
	{[]Criterion{{Name: "p", Regex: `a`, Scope: Scope{After: "aab"}}}, "aaaba"},
	{[]Criterion{{Name: "p", Regex: `a(?>a)`, Scope: Scope{Open: "aa", Close: "aa"}}}, "aaa1aa"},
	{[]Criterion{{Name: "p", Regex: `1`, MinBytes: 1}}, "1"},
	// what is held back
	{[]Criterion{{Name: "p", Regex: `a{2}1`, Strip: true, Captures: Nearest}}, "aa1"},
	{[]Criterion{{Name: "p", Regex: `.*]`, Strip: true}, {Name: "q", Regex: `Aa`, Strip: true}}, "aA]"},
	// counts
	{[]Criterion{{Name: "p", Repetition: &Repetition{Min: 1, Max: 4, Count: 2}}}, "</a></a>"},
	{[]Criterion{{Name: "p", Sentences: 2}}, "！a?\n"},
	{[]Criterion{{Name: "p", JSON: true}}, `{"\"}`},
}

func TestEquivalenceRows(t *testing.T) {
	for _, x := range equivalenceRows {
		for i := range x.criteria {
			x.criteria[i].Budget = patience
		}
		if err := x.verify(patience); err != nil {
			t.Errorf("%s // %v", x.row(), err)
		}
	}
}
