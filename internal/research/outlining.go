package research

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stopgap/internal/research/bank"
	"stopgap/internal/research/outline"
	"stopgap/tools"
)

const (
	outlineTurns = 4 // of a leg: an outline, and three that mend it
	outlineLegs  = 2
)

// outlines has the outline written from the summaries that no outline has seen,
// as many at a time as there is room for. Afterwards the history is short: what
// it found stands in the outline.
func (s *state) outlines() error {
	for s.covered < len(s.known) || s.outline == "" {
		text, n, err := s.fresh()
		if err != nil {
			return err
		}
		if err := s.outlined(text, s.known[:s.covered+n]); err != nil {
			return err
		}
		s.covered += n
		if n == 0 {
			break
		}
	}
	s.settle()
	return nil
}

// fresh gives the next summaries that no outline has seen, as the model reads
// them, and how many there are.
func (s *state) fresh() (string, int, error) {
	list := s.known[s.covered:]
	found, _, err := s.bank.Get(s.ctx, list...)
	if err != nil {
		return "", 0, err
	}
	room := s.share(3)
	var out []string
	for _, b := range found {
		text := fmt.Sprintf("[%d] %s\nGoal: %s\nSummary: %s", b.Number, b.Title, oneLine(b.Goal), cmp.Or(b.Summary, b.Evidence))
		if len(out) == 0 {
			text = s.cut(text, room)
		}
		if room -= s.count(text) + 2; room < 0 && len(out) > 0 {
			break
		}
		out = append(out, text)
	}
	n := len(out)
	if n == len(found) {
		n = len(list) // what the bank has lost is not waited for
	}
	return strings.Join(out, "\n\n"), n, nil
}

// outlined has one outline written. What cannot be used is told to the model; in
// the end what can be used of it counts.
func (s *state) outlined(summaries string, citable []int) error {
	last, problem := "", ""
	for range outlineLegs {
		end, err := s.run(s.outliner(summaries, problem, citable, &last))
		if err != nil {
			return err
		}
		if end.by != outlineTool && strings.TrimSpace(end.answer) != "" {
			last = end.answer
		}
		if last == "" {
			problem = "it was missing"
			continue
		}
		if err := s.usable(last, citable); err == nil {
			return s.adopt(last)
		} else {
			problem = err.Error()
		}
		if err := s.note(Outlining, whatOutline, problem); err != nil {
			return err
		}
	}
	return s.makeDo(last, citable)
}

// outliner is a leg of the outlining. last is set to what the model wrote last.
func (s *state) outliner(summaries, problem string, citable []int, last *string) part {
	return part{
		phase: Outlining, script: s.Scripts.Outline, ends: []string{outlineTool},
		turns: outlineTurns, result: s.share(16), write: s.turnTokens(),
		texts: texts(map[string]string{"outline": plainCitations(s.outline), "summaries": summaries, "problem": problem}),
		tools: []tools.Tool{newVerb(outlineTool, "", `{"type":"object","properties":{"outline":{"type":"string","description":"The whole outline."}},"required":["outline"]}`,
			func(_ context.Context, in outlineArguments) (string, error) {
				if err := s.usable(in.Outline, citable); err != nil {
					return "", err
				}
				return "The outline is good.", nil
			})},
		heard: func(h happening) {
			if h.call != nil && h.call.Name == outlineTool {
				*last = arguments[outlineArguments](h.call).Outline
			}
		},
	}
}

// usable says what is wrong with an outline, in words for the model.
func (s *state) usable(text string, citable []int) error {
	if n, most := s.count(text), s.share(6); n > most {
		return fmt.Errorf("the outline is too long: it has %d tokens, and %d is the most; write it shorter", n, most)
	}
	o, problems := outline.Parse(text)
	problems = append(problems, o.Check(func(n int) bool { return slices.Contains(citable, n) })...)
	var all []string
	for _, p := range problems {
		if len(citable) > 0 || p.Kind != outline.NoCitations {
			all = append(all, p.Error())
		}
	}
	if len(all) > 0 {
		return errors.New(strings.Join(slices.Compact(all), " "))
	}
	return nil
}

// adopt makes an outline the one that counts.
func (s *state) adopt(text string) error {
	o, _ := outline.Parse(text)
	s.outline = o.String()
	s.changes++
	points := 0
	for _, section := range o.All() {
		points += max(len(section.Notes), 1)
	}
	return s.emit(OutlineChanged{Number: s.changes, Outline: plainCitations(s.outline), Points: points, Cited: o.Cited()})
}

// makeDo takes what can be used of an outline that was never right: without the
// numbers that nobody has read. Where that is nothing, the outline so far stays,
// and behind it, or in its place, the pages that were read are listed.
func (s *state) makeDo(text string, citable []int) error {
	o, _ := outline.Parse(text)
	drop := func(list []int) []int {
		return slices.DeleteFunc(list, func(n int) bool { return !slices.Contains(citable, n) })
	}
	o.Cites = drop(o.Cites)
	for _, section := range o.All() {
		section.Cites = drop(section.Cites)
	}
	if short := o.String(); len(o.Cited()) > 0 && s.count(short) <= s.share(6) {
		if err := s.note(Outlining, whatOutline, "the outline was taken without what was wrong with it"); err != nil {
			return err
		}
		return s.adopt(short)
	}
	if s.outline != "" {
		return s.note(Outlining, whatOutline, "the last outline stays: the new one could not be used")
	}
	if err := s.note(Outlining, whatOutline, "there is no outline that can be used: the pages are listed in its place"); err != nil {
		return err
	}
	found, _, err := s.bank.Get(s.ctx, citable...)
	if err != nil {
		return err
	}
	return s.adopt(listed(found, s.share(6), s.count))
}

// listed is an outline of what there is.
func listed(found []bank.Summary, room int, count func(string) int) string {
	var all outline.Outline
	for _, b := range found {
		title := oneLine(b.Title)
		all.Sections = append(all.Sections, &outline.Section{Title: title, Cites: []int{b.Number}})
		if count(all.String()) > room {
			all.Sections = all.Sections[:len(all.Sections)-1]
			break
		}
	}
	return all.String()
}

// digest gives summaries in short: those that came last as they are, as many as
// there is room for, and how many are left out.
func (s *state) digest(list []int, room int) (string, error) {
	found, _, err := s.bank.Get(s.ctx, list...)
	if err != nil {
		return "", err
	}
	var out []string
	for _, b := range slices.Backward(found) {
		text := fmt.Sprintf("[%d] %s: %s", b.Number, b.Title, oneLine(cmp.Or(b.Summary, b.Evidence)))
		if room -= s.count(text) + 1; room < 32 {
			out = append(out, fmt.Sprintf("(%d before these are left out; the outline will have them)", len(found)-len(out)))
			break
		}
		out = append(out, text)
	}
	slices.Reverse(out)
	return strings.Join(out, "\n"), nil
}
