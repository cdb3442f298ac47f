package template

import (
	"fmt"
	"slices"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// A Stop is a stop criterion of a format. Exactly one of Literal and Regex is
// set.
type Stop struct {
	// Name is unique in the format.
	Name    string `yaml:"name"`
	Literal string `yaml:"literal"`
	// Regex is in regexp2's syntax; "." matches a newline unless (?-s) turns
	// it off, "^" and "$" are the ends of the generated text unless (?m).
	Regex string `yaml:"regex"`
	// Strip removes the match from the turn's text. StripGroup removes it only
	// from the start of this named group on; at most one of the two is set.
	Strip      bool   `yaml:"strip"`
	StripGroup string `yaml:"strip_group"`
	// Means is what the stop says of the turn.
	Means Meaning `yaml:"means"`
	// OutsideThink limits the criterion to text outside the thinking part.
	OutsideThink bool `yaml:"outside_think"`
	// After limits the criterion to matches that start after the first
	// occurrence of this marker.
	After string `yaml:"after"`
	// SingleCall limits the criterion to runs that take one call a turn.
	SingleCall bool `yaml:"single_call"`
}

// A Meaning is what a stop says of the turn.
type Meaning string

const (
	MeansCall     Meaning = "call"     // the turn ends in a tool call
	MeansAnswer   Meaning = "answer"   // the turn ends in the answer
	MeansEnd      Meaning = "end"      // the model ended its turn
	MeansInvented Meaning = "invented" // the model began to write the tool's response itself
)

// check returns the key that is wrong and what is wrong with it, both empty
// for a sound stop.
func (s Stop) check(h *Head) (key, msg string) {
	switch {
	case s.Name == "":
		return "name", "the stop has no name"
	case s.Literal == "" && s.Regex == "":
		return "", fmt.Sprintf("stop %q has neither a literal nor a regex", s.Name)
	case s.Literal != "" && s.Regex != "":
		return "regex", fmt.Sprintf("stop %q has both a literal and a regex", s.Name)
	case s.Strip && s.StripGroup != "":
		return "strip_group", fmt.Sprintf("stop %q has both strip and strip_group", s.Name)
	case s.StripGroup != "" && s.Regex == "":
		return "strip_group", fmt.Sprintf("stop %q has a strip_group and no regex", s.Name)
	case !slices.Contains([]Meaning{MeansCall, MeansAnswer, MeansEnd, MeansInvented}, s.Means):
		return "means", fmt.Sprintf("stop %q must mean call, answer, end or invented", s.Name)
	case s.OutsideThink && h.Think.Open == "":
		return "outside_think", fmt.Sprintf("stop %q is outside of think, but the format has no thinking part", s.Name)
	case s.OutsideThink && s.After != "":
		return "after", fmt.Sprintf("stop %q has both outside_think and after", s.Name)
	case s.SingleCall && s.Means != MeansCall:
		return "single_call", fmt.Sprintf("stop %q is for single calls but does not mean call", s.Name)
	}
	if s.Regex != "" {
		return s.checkRegex()
	}
	return "", ""
}

func (s Stop) checkRegex() (key, msg string) {
	re, err := regexp2.Compile(s.Regex, regexp2.Singleline)
	if err != nil {
		return "regex", fmt.Sprintf("stop %q: %.200v", s.Name, err)
	}
	re.MatchTimeout = time.Second
	switch empty, err := re.MatchString(""); {
	case err != nil:
		return "regex", fmt.Sprintf("stop %q takes too long on the empty text", s.Name)
	case empty:
		return "regex", fmt.Sprintf("stop %q matches the empty text", s.Name)
	}
	if s.StripGroup != "" && re.GroupNumberFromName(s.StripGroup) < 0 {
		return "strip_group", fmt.Sprintf("stop %q: the regex has no group %q", s.Name, s.StripGroup)
	}
	return "", ""
}
