package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"stopgap/internal/config"
	"stopgap/stopping"
)

// A declared criterion is one that a flag or a file gives.
type declared struct {
	stopping.Criterion
	where string // file and line; empty for a flag
}

// declaredCriteria are the stop criteria of the settings: the literal ones, the
// expressions, then those of the file. Each has been compiled, all together too.
func (s *settings) declaredCriteria() ([]declared, error) {
	var out []declared
	for _, text := range s.stops {
		out = append(out, declared{Criterion: stopping.Criterion{Name: "--stop " + text, Literal: text, Strip: true}})
	}
	for _, pattern := range s.stopRegex {
		out = append(out, declared{Criterion: stopping.Criterion{Name: "--stop-regex " + pattern, Regex: pattern}})
	}
	if s.stopFile != "" {
		listed, err := readCriteria(s.stopFile)
		if err != nil {
			return nil, err
		}
		out = append(out, listed...)
	}
	for i, d := range out {
		if _, err := stopping.Compile(d.Criterion); err != nil {
			return nil, d.located(err, i)
		}
	}
	if _, err := stopping.Compile(plainCriteria(out)...); err != nil { // two of one name
		return nil, err
	}
	return out, nil
}

func plainCriteria(list []declared) []stopping.Criterion {
	var out []stopping.Criterion
	for _, d := range list {
		out = append(out, d.Criterion)
	}
	return out
}

// goField is a field of a criterion as package stopping names it.
var goField = regexp.MustCompile(`\b(Name|Literal|Regex|Repetition|JSON|Sentences|Tokens|Bytes|Strip|StripGroup|Action|` +
	`MinTokens|MinBytes|Scope|Open|Close|Outside|StartsInside|After|Captures|Budget|Min|Max|Count)\b`)

// located tells where a refused criterion stands, and calls the fields what
// they are called there.
func (d *declared) located(err error, place int) error {
	e, ok := errors.AsType[*stopping.CompileError](err)
	if !ok || d.where == "" {
		return err
	}
	asKeys := func(s string) string {
		return goField.ReplaceAllStringFunc(s, func(field string) string {
			key := strings.ReplaceAll(field, "JSON", "Json")
			return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(key, "${1}_${2}"))
		})
	}
	refused := *e
	if d.Name == "" {
		refused.Criterion = fmt.Sprintf("#%d", place+1)
	}
	refused.Field, refused.Problem, refused.Hint = asKeys(e.Field), asKeys(e.Problem), asKeys(e.Hint)
	return fmt.Errorf("%s: %w", d.where, &refused)
}

// readCriteria reads a YAML file that lists criteria.
func readCriteria(path string) ([]declared, error) {
	var known []string
	criterionKeys(new(stopping.Criterion)).VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	items, err := config.ReadList(path, known)
	if err != nil {
		return nil, &usageError{asFileError(path, err), criteriaHint(err)}
	}
	if len(items) == 0 {
		return nil, &usageError{&config.Error{Path: path, Reason: "there is no criterion in it"}, criteriaHint(nil)}
	}
	out := make([]declared, len(items))
	for i, item := range items {
		if err := item.Set(criterionKeys(&out[i].Criterion)); err != nil {
			return nil, &usageError{err, criteriaHint(err)}
		}
		out[i].where = fmt.Sprintf("%s:%d", item.Path, item.Line)
	}
	return out, nil
}

// asFileError says it when a file is not there, or may not be read.
func asFileError(path string, err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return &config.Error{Path: path, Reason: failed.Err.Error()}
	}
	return err
}

func criteriaHint(err error) string {
	if e, ok := errors.AsType[*config.Error](err); ok && e.Near != "" {
		return fmt.Sprintf("did you mean %q?", e.Near)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "--stops takes a YAML file; one criterion alone goes with --stop or --stop-regex"
	}
	return `"stopgap stop --help" tells what the file holds`
}

// criterionKeys are the keys of a criterion in a file. They read what flags
// read, so that a wrong value gives the same error, and the help lists them.
func criterionKeys(c *stopping.Criterion) *pflag.FlagSet {
	f := pflag.NewFlagSet("criterion", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&c.Name, "name", "", "tells it apart")
	f.StringVar(&c.Literal, "literal", "", "fires at this text")
	f.StringVar(&c.Regex, "regex", "", "fires where this matches")
	f.Var(keys{"repetition", func() *pflag.FlagSet { return repetitionKeys(c) }}, "repetition",
		"fires when min to max bytes stand count times in a row")
	f.BoolVar(&c.JSON, "json", false, "fires at the end of the first JSON object or array")
	f.Var(count{&c.Sentences, 1}, "sentences", "fires after so many sentences")
	f.Var(count{&c.Tokens, 1}, "tokens", "fires after so many tokens")
	f.Var(count{&c.Bytes, 1}, "bytes", "fires after so many bytes")
	f.BoolVar(&c.Strip, "strip", false, "cuts the match off")
	f.StringVar(&c.StripGroup, "strip_group", "", "cuts it off from this named group on")
	f.Var(choice{(*string)(&c.Action), []string{string(stopping.Halt), string(stopping.Call), string(stopping.Finish), string(stopping.Notify)}},
		"action", "the turn ends (halt, call), the run ends (finish), or it is told and goes on (notify)")
	f.Var(count{&c.MinTokens, 0}, "min_tokens", "fires after so many tokens at the earliest")
	f.Var(count{&c.MinBytes, 0}, "min_bytes", "fires after so many bytes at the earliest")
	f.Var(keys{"scope", func() *pflag.FlagSet { return scopeKeys(&c.Scope) }}, "scope",
		"open, close: matches start between these tags (outside: true, not between them; starts_inside: true, the prompt has opened them); after: or behind this")
	f.Var(choice{(*string)(&c.Captures), []string{string(stopping.Leftmost), string(stopping.Nearest)}},
		"captures", "which start a match has where there are several")
	f.Var(span{&c.Budget}, "budget", "the longest that one check of the expression may take")
	return f
}

func repetitionKeys(c *stopping.Criterion) *pflag.FlagSet {
	if c.Repetition == nil {
		c.Repetition = &stopping.Repetition{}
	}
	f := pflag.NewFlagSet("repetition", pflag.ContinueOnError)
	f.Var(count{&c.Repetition.Min, 1}, "min", "")
	f.Var(count{&c.Repetition.Max, 1}, "max", "")
	f.Var(count{&c.Repetition.Count, 2}, "count", "")
	return f
}

func scopeKeys(s *stopping.Scope) *pflag.FlagSet {
	f := pflag.NewFlagSet("scope", pflag.ContinueOnError)
	f.StringVar(&s.Open, "open", s.Open, "")
	f.StringVar(&s.Close, "close", s.Close, "")
	f.BoolVar(&s.Outside, "outside", s.Outside, "")
	f.BoolVar(&s.StartsInside, "starts_inside", s.StartsInside, "")
	f.StringVar(&s.After, "after", s.After, "")
	return f
}

// criterionWords say what a criterion does.
func criterionWords(c *stopping.Criterion) string {
	var fires string
	switch r := c.Repetition; {
	case c.Literal != "":
		fires = fmt.Sprintf("fires at the text %q", c.Literal)
	case c.Regex != "":
		fires = "fires where " + oneLine(c.Regex) + " matches"
		if c.Captures == stopping.Nearest {
			fires += ", which begins as late as it can"
		}
	case r != nil:
		fires = fmt.Sprintf("fires when %d to %d bytes stand %d times in a row", max(r.Min, 1), cmp.Or(r.Max, max(256, r.Min)), r.Count)
	case c.JSON:
		fires = "fires at the end of the first JSON object or array"
	default:
		for _, n := range []struct {
			n    int
			unit string
		}{{c.Sentences, "sentence"}, {c.Tokens, "token"}, {c.Bytes, "byte"}} {
			if n.n > 0 {
				fires = fmt.Sprintf("fires after %d %s", n.n, plural(n.n, n.unit))
			}
		}
	}
	return strings.Join(append([]string{fires}, conditionWords(c)...), "; ")
}

// conditionWords say when a criterion may fire, and what happens then.
func conditionWords(c *stopping.Criterion) []string {
	var out []string
	if s := c.Scope; s.Open != "" {
		words := "only between"
		if s.Outside {
			words = "not between"
		}
		words = fmt.Sprintf("%s %s and %s", words, oneLine(s.Open), oneLine(s.Close))
		if s.StartsInside {
			words += ", which has begun before the text"
		}
		out = append(out, words)
	}
	if c.Scope.After != "" {
		out = append(out, "only after "+oneLine(c.Scope.After))
	}
	if c.MinTokens > 0 {
		out = append(out, fmt.Sprintf("not before %d %s", c.MinTokens, plural(c.MinTokens, "token")))
	}
	if c.MinBytes > 0 {
		out = append(out, fmt.Sprintf("not before %d %s", c.MinBytes, plural(c.MinBytes, "byte")))
	}
	match := "the match is kept"
	switch {
	case c.Strip:
		match = "the match is cut off"
	case c.StripGroup != "":
		match = "the match is cut off from group " + oneLine(c.StripGroup) + " on"
	}
	action := map[stopping.Action]string{
		stopping.Call: "the turn ends in a tool call", stopping.Finish: "the run ends", stopping.Notify: "the text goes on",
	}[c.Action]
	return append(out, match+", "+cmp.Or(action, "the turn ends"))
}
