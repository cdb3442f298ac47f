package stopping

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxPeriod bounds the work that a repetition takes for each byte.
const maxPeriod = 4096

// maxLiteral bounds the work that a literal or a tag takes for each character: in
// "aaaa" a match may begin at every one of them.
const maxLiteral = 8 << 10

// validate refuses criteria that contradict themselves or each other.
func validate(c *Criterion, place int, seen map[string]bool) error {
	refuse := func(field, problem, hint string) error {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("#%d", place+1)
		}
		return &CompileError{Criterion: name, Field: field, Position: -1, Problem: problem, Hint: hint}
	}
	if c.Name == "" {
		return refuse("Name", "it is empty", "give every criterion a name, decisions are told apart by it")
	}
	if seen[c.Name] {
		return refuse("Name", "two criteria have this name", "give every criterion a name of its own")
	}
	seen[c.Name] = true
	switch kinds := kinds(c); len(kinds) {
	case 0:
		return refuse("Literal", "nothing says when to stop", "set one of Literal, Regex, Repetition, JSON, Sentences, Tokens, Bytes")
	case 1:
	default:
		return refuse(kinds[1], "it is set together with "+kinds[0], "make two criteria of it")
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"Sentences", int64(c.Sentences)}, {"Tokens", int64(c.Tokens)}, {"Bytes", int64(c.Bytes)},
		{"MinTokens", int64(c.MinTokens)}, {"MinBytes", int64(c.MinBytes)}, {"Budget", int64(c.Budget)},
	} {
		if n.value < 0 {
			return refuse(n.field, "it is negative", "use zero for no limit")
		}
	}
	if !slices.Contains([]Action{"", Halt, Call, Finish, Notify}, c.Action) {
		return refuse("Action", fmt.Sprintf("unknown action %q", c.Action), "use halt, call, finish or notify")
	}
	if !slices.Contains([]Captures{"", Leftmost, Nearest}, c.Captures) {
		return refuse("Captures", fmt.Sprintf("unknown choice %q", c.Captures), "use leftmost or nearest")
	}
	if len(c.Literal) > maxLiteral {
		return refuse("Literal", fmt.Sprintf("it is larger than %d bytes", maxLiteral), "take the end of it")
	}
	if !utf8.ValidString(c.Literal) {
		return refuse("Literal", "it is not valid UTF-8", "text is compared at whole characters")
	}
	if field, problem, hint := checkStrip(c); problem != "" {
		return refuse(field, problem, hint)
	}
	if problem, hint := checkRepetition(c.Repetition); problem != "" {
		return refuse("Repetition", problem, hint)
	}
	if problem, hint := checkScope(&c.Scope); problem != "" {
		return refuse("Scope", problem, hint)
	}
	return nil
}

func kinds(c *Criterion) []string {
	var out []string
	for _, k := range []struct {
		field string
		set   bool
	}{
		{"Literal", c.Literal != ""}, {"Regex", c.Regex != ""}, {"Repetition", c.Repetition != nil},
		{"JSON", c.JSON}, {"Sentences", c.Sentences != 0}, {"Tokens", c.Tokens != 0}, {"Bytes", c.Bytes != 0},
	} {
		if k.set {
			out = append(out, k.field)
		}
	}
	return out
}

func checkStrip(c *Criterion) (field, problem, hint string) {
	switch {
	case c.StripGroup != "" && c.Regex == "":
		return "StripGroup", "only a regex has groups", "use Strip to remove the whole match"
	case c.StripGroup != "" && c.Strip:
		return "StripGroup", "Strip already removes the whole match", "set only one of them"
	case !c.strips():
		return "", "", ""
	case c.Action == Notify:
		return "Strip", "a match that is only reported stays in the text", "set Action to halt, or do not strip"
	case c.Sentences != 0 || c.Tokens != 0 || c.Bytes != 0:
		return "Strip", "a count has no text of its own to remove", "do not strip"
	}
	return "", "", ""
}

func checkRepetition(r *Repetition) (problem, hint string) {
	switch {
	case r == nil:
	case r.Min < 0 || r.Max < 0:
		return "a size is negative", "Min and Max are bytes, zero means 1 and 256"
	case r.Max > maxPeriod || r.Min > maxPeriod:
		return fmt.Sprintf("a pattern has at most %d bytes", maxPeriod), "every size is tried at every byte"
	case r.Max != 0 && r.Max < r.Min:
		return "Max is smaller than Min", "exchange them"
	case r.Count < 2:
		return "Count is less than 2", "a pattern that stands once is no repetition"
	case r.Count > math.MaxInt/maxPeriod:
		return "Count is larger than any text", "leave the criterion out"
	}
	return "", ""
}

func checkScope(s *Scope) (problem, hint string) {
	switch {
	case (s.Open == "") != (s.Close == ""):
		return "only one of Open and Close is set", "a region has two tags; use After for a single marker"
	case s.Open == "" && s.StartsInside:
		return "StartsInside without Open and Close", "set the tags"
	case s.Open == "" && s.Outside:
		return "Outside without Open and Close", "set the tags"
	case max(len(s.Open), len(s.Close), len(s.After)) > maxLiteral:
		return fmt.Sprintf("a tag is larger than %d bytes", maxLiteral), "take the end of it"
	case !utf8.ValidString(s.Open + s.Close + s.After):
		return "a tag is not valid UTF-8", "text is compared at whole characters"
	}
	return "", ""
}

// checkStripGroup refuses a group that the pattern does not have.
func (p *pattern) checkStripGroup(c *Criterion) *CompileError {
	if c.StripGroup == "" || slices.Contains(p.groups, c.StripGroup) {
		return nil
	}
	hint := "name it in the pattern as (?<" + c.StripGroup + ">…)"
	if len(p.groups) > 0 {
		hint = "the pattern has " + strings.Join(p.groups, ", ")
	}
	return &CompileError{Criterion: c.Name, Field: "StripGroup", Position: -1,
		Problem: fmt.Sprintf("no group is named %q", c.StripGroup), Hint: hint}
}
