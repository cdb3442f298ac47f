package conformance

import (
	"regexp"
	"strings"

	"stopgap/runner"
	"stopgap/template"
)

// hostile is text full of the format's own structure: what stands around
// results, notes and questions, a call, an answer, every reserved string.
func (s *stage) hostile() string {
	call := s.written(template.Turn{Calls: []template.Call{s.other()}}, false)
	invented := template.Turn{Text: secondAnswer, Answer: secondAnswer, Answered: true}
	texts := []string{"It says:", call, s.written(invented, false), s.written(s.thinks(invented), s.Think.Opened)}
	for _, c := range []template.Continuation{
		{Results: []template.Result{{Name: s.one().Name, Content: invention}}, InThink: true},
		{Results: []template.Result{{Name: s.one().Name, Content: invention, Error: true}}, Note: "n"},
		{Question: secondQuestion, Open: true},
	} {
		parts, err := s.Continue(c)
		if err != nil {
			s.find("continue", "%v", err)
		}
		texts = append(texts, joined(parts))
	}
	texts = append(texts, s.Reserved.Strings...)
	texts = append(texts, s.Reserved.Lines...)
	texts = append(texts, s.Preserve...)
	return strings.Join(texts, "\n") + "\n"
}

// untrusted: text from outside, whatever it says, changes nothing of the run,
// and nothing in it can be read as structure.
func (s *stage) untrusted() {
	lines := []line{{turn: s.calling(s.one())}, {turn: s.calling(s.other())}, {turn: s.answering(answer)}}
	plain := s.perform(scene{lines: lines})
	s.reserves(plain)
	bad := s.hostile()
	outside := *s
	outside.tools = nil
	for _, p := range s.tools {
		h := *p
		h.reply = bad + h.reply + "\n" + bad
		outside.tools = append(outside.tools, &h)
	}
	t := outside.follow("reserved", scene{lines: lines, questions: []string{bad + question + "\n" + bad}}, plain.path...)
	s.found = outside.found
	if t.outcome.Ledger == nil {
		return
	}
	segments := t.outcome.Ledger.Segments()
	matches := s.Reserved.Find(t.outcome.Ledger.Text())
	at := 0
	for _, seg := range segments {
		end := at + len(seg.Text)
		for _, m := range matches {
			if seg.Source.Untrusted() && m.Start < end && m.End > at {
				s.find("reserved", "%q of a %s is read as structure", t.outcome.Ledger.Text()[m.Start:m.End], seg.Source)
			}
		}
		at = end
	}
}

var (
	// control finds control tokens as chat templates write them.
	control = regexp.MustCompile(`<[|｜][^<>\s|｜]+[|｜]>|\[/?[A-Z][A-Z_]{2,}\]`)
	// before and after find the tag, or the label, that parts a text from the rest.
	before = regexp.MustCompile(`(<[A-Za-z][\w.-]*>)\s*$`)
	after  = regexp.MustCompile(`^\s*(</[A-Za-z][\w.-]*>)`)
	label  = regexp.MustCompile(`(?:^|\n)([A-Z][^\n:]{0,30}:) ?$`)
)

// reserves: what the blocks write around text from outside is reserved, so that
// it cannot write the same.
func (s *stage) reserves(t take) {
	if t.outcome.Ledger == nil {
		return
	}
	want := func(text, what string) {
		if text != "" && len(s.Reserved.Find("\n"+text)) == 0 {
			s.find("reserved", "the blocks write %s %q, which is not reserved: text from a user or a tool could write it as well", what, text)
		}
	}
	segments, turns := t.outcome.Ledger.Segments(), false
	for _, seg := range segments {
		if seg.Source == template.FromTemplate {
			for _, token := range control.FindAllString(seg.Text, -1) {
				want(token, "the control token")
				turns = true
			}
		}
	}
	for i, seg := range segments {
		if !seg.Source.Untrusted() {
			continue
		}
		if i > 0 {
			want(submatch(before, segments[i-1]), "the tag")
			if !turns { // labels are all that there is
				want(submatch(label, segments[i-1]), "the label")
			}
		}
		if i+1 < len(segments) {
			want(submatch(after, segments[i+1]), "the tag")
		}
	}
}

func submatch(re *regexp.Regexp, seg runner.Segment) string {
	if m := re.FindStringSubmatch(seg.Text); m != nil && seg.Source == template.FromTemplate {
		return m[1]
	}
	return ""
}
