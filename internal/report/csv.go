package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"stopgap/internal/compare"
)

// CSV writes a row for each rollout, with a header: what it was asked, what came
// of it, and each metric and each kind of problem in a column of its own. A
// rollout that was not made has no row; a cell without a value is empty.
//
// A text that begins with a character that makes a formula of it in a
// spreadsheet (= + - @, a tab, a carriage return), or with an apostrophe, has an
// apostrophe in front: taking one off the front of each gives the texts back.
// Bytes that are not UTF-8 and NUL, which readers of CSV refuse, are replaced.
func CSV(w io.Writer, r *compare.Report) error {
	out := csv.NewWriter(w)
	metrics, kinds := measured(r)
	heads := []string{"configuration", "format", "model", "item", "rollout", "seed", "question", "gold", "answer", "termination", "error"}
	for _, m := range metrics {
		heads = append(heads, plainText(m))
	}
	for _, k := range kinds {
		heads = append(heads, plainText("problem_"+k))
	}
	if err := out.Write(append(heads, "journal")); err != nil {
		return err
	}
	for c := range r.Configurations {
		for i := range r.Items {
			if c >= len(r.Items[i].Runs) {
				continue
			}
			for _, run := range r.Items[i].Runs[c] {
				if run == nil {
					continue
				}
				if err := out.Write(row(&r.Configurations[c], &r.Items[i], run, metrics, kinds)); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// counted are the numbers of a run that are a metric only where compare makes
// one of them.
var counted = map[string]func(*compare.Run) int{
	"turns":    func(run *compare.Run) int { return run.Turns },
	"calls":    func(run *compare.Run) int { return run.Calls },
	"invented": func(run *compare.Run) int { return run.Invented },
	"tokens":   func(run *compare.Run) int { return run.Tokens },
}

// measured are the metrics that runs have, in the report's order, with the
// numbers that every run has, and the kinds of problems.
func measured(r *compare.Report) (metrics, kinds []string) {
	has := map[string]bool{}
	for _, it := range r.Items {
		for _, runs := range it.Runs {
			for _, run := range runs {
				if run == nil {
					continue
				}
				for k := range run.Scores {
					has[k] = true
				}
			}
		}
	}
	for _, m := range r.Metrics {
		if has[m.Key] {
			metrics = append(metrics, m.Key)
		}
	}
	for _, k := range []string{"turns", "calls", "invented", "tokens"} {
		if !slices.Contains(metrics, k) {
			metrics = append(metrics, k)
		}
	}
	for _, c := range r.Configurations {
		for _, t := range c.Problems {
			if !slices.Contains(kinds, t.Kind) {
				kinds = append(kinds, t.Kind)
			}
		}
	}
	return metrics, kinds
}

// row gives the cells of a rollout.
func row(c *compare.Configuration, it *compare.Item, run *compare.Run, metrics, kinds []string) []string {
	gold := ""
	if len(it.Answers) > 0 {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(it.Answers) // strings
		gold = strings.TrimSuffix(b.String(), "\n")
	}
	cells := []string{
		plainText(c.Name), plainText(c.Format), plainText(c.Model), plainText(it.ID), strconv.Itoa(run.Rollout), strconv.Itoa(run.Seed),
		plainText(it.Question), plainText(gold), plainText(scored(run)), plainText(string(run.Termination)), plainText(run.Error),
	}
	for _, key := range metrics {
		v, ok := run.Scores[key]
		switch {
		case ok:
			cells = append(cells, strconv.FormatFloat(v, 'g', -1, 64))
		case counted[key] != nil:
			cells = append(cells, strconv.Itoa(counted[key](run)))
		default:
			cells = append(cells, "")
		}
	}
	for _, k := range kinds {
		cells = append(cells, strconv.Itoa(tally(run.Problems, k)))
	}
	return append(cells, plainText(run.Journal))
}

// plainText is a text that a spreadsheet takes as one.
func plainText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "␀")
	if s != "" && strings.ContainsRune("=+-@\t\r'", rune(s[0])) {
		return "'" + s
	}
	return s
}
