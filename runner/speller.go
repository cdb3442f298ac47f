package runner

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/template"
)

// A speller turns text that is appended to the ledger into what the server
// reads.
//
// Where the server takes ids, text from others is spelled out, so that it stays
// as it is and is no structure: special tokens are recognised in the template's
// own text alone. What is structure without being a token of its own (tags that
// the model does not know, labels at the start of a line) is escaped, there and
// on servers that take text.
type speller struct {
	*models.Spelling
	all      template.Reserved // all reserved strings
	tokens   template.Reserved // those that are one token each, where ids are sent
	ids      map[int]bool      // of tokens
	text     template.Reserved // those that are escaped
	special  template.Reserved // the model's special tokens
	doubtful bool              // what the server tells of tokens does not spell the text
	known    map[string]bool   // text of the template, by whether it holds tokens that are not in tokens
}

// newSpeller learns how the model of the run spells its tokens.
func (s *state) newSpeller() (*speller, error) {
	sp := &speller{all: s.Format.Reserved.With(s.Reserved...), ids: map[int]bool{}, known: map[string]bool{}}
	sp.text = sp.all
	m, ok := s.Model.(models.Speller)
	if !ok {
		return sp, nil
	}
	var err error
	if sp.Spelling, err = m.Spelling(s.ctx); err != nil {
		return nil, err
	}
	sp.all, sp.special = sp.all.With(outer(sp.Special, slices.Concat(sp.all.Strings, sp.all.Lines))...), template.Reserved{Strings: sp.Special}
	if sp.text = sp.all; s.Format.Opening == template.OpenChat || !sp.sendsIDs() {
		return sp, nil
	}
	var escaped []string
	for _, r := range sp.text.Strings {
		tokens, err := sp.Encode(s.ctx, r, true)
		if err != nil {
			return nil, err
		}
		if len(tokens) == 1 && tokens[0].Piece == r {
			sp.tokens.Strings, sp.ids[tokens[0].ID] = append(sp.tokens.Strings, r), true
		} else {
			escaped = append(escaped, r)
		}
	}
	sp.text.Strings = escaped
	return sp, nil
}

// outer leaves out the tokens that hold a string of the format: where that is
// escaped they cannot come out of text from others.
func outer(special, format []string) []string {
	return slices.DeleteFunc(slices.Clone(special), func(s string) bool {
		return slices.ContainsFunc(format, func(f string) bool { return f != "" && s != f && strings.Contains(s, f) })
	})
}

// sendsIDs reports whether prompts of the run are ids.
func (sp *speller) sendsIDs() bool { return sp.Spelling != nil && sp.IDs && sp.Encode != nil }

// counts reports whether tokens are counted by the model's own vocabulary.
func (sp *speller) counts() bool { return sp.Spelling != nil && sp.Encode != nil && !sp.doubtful }

// append adds to the ledger what the model wrote, and words that are put into
// its mouth.
func (s *state) append(segments ...Segment) error {
	for i := range segments {
		seg := &segments[i]
		if len(seg.Tokens) > 0 || !s.speller.sendsIDs() || !utf8.ValidString(seg.Text) {
			continue
		}
		tokens, err := s.speller.Encode(s.ctx, seg.Text, true)
		if err = s.spells(tokens, seg.Text, err); err != nil && !errors.Is(err, errSpelling) {
			return err
		}
		for _, t := range tokens {
			if err == nil {
				seg.Tokens = append(seg.Tokens, t.ID)
			}
		}
	}
	s.ledger.add(s, segments...)
	return nil
}

// appendParts adds what the template wrote, with the text of others in it.
func (s *state) appendParts(parts []template.Part) error {
	segments := s.ledger.secure(parts, s.speller.text)
	err := s.spell(segments)
	if errors.Is(err, errSpelling) { // it goes as text, where more has to be escaped
		s.speller.doubtful = true
		segments, err = s.ledger.secure(parts, s.speller.all), nil
	}
	if err != nil {
		return err
	}
	s.ledger.add(s, segments...)
	return nil
}

// respell makes a ledger that another model's tokens stand in one of this
// model's.
func (s *state) respell() error {
	old := s.ledger.segments
	s.ledger.segments, s.ledger.tokens, s.ledger.bytes, s.ledger.last = nil, 0, 0, tail{}
	for len(old) > 0 {
		n := 0
		var parts []template.Part
		for ; n < len(old) && old[n].Turn == 0; n++ {
			parts = append(parts, template.Part{Source: old[n].Source, Text: cmp.Or(old[n].Original, old[n].Text)})
		}
		if err := s.appendParts(parts); err != nil {
			return err
		}
		for old = old[n:]; len(old) > 0 && old[0].Turn != 0; old = old[1:] {
			own := old[0]
			own.Tokens = nil
			if err := s.append(own); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare makes sure that the server has read the whole prompt.
func (s *state) compare(read models.Count) error {
	if !read.Known || !s.speller.counts() || s.Format.Opening == template.OpenChat { // there the server adds the most
		return nil
	}
	least := s.ledger.tokens
	if !s.speller.Exact {
		least -= least/50 + 16
	}
	if read.N < least {
		return &TruncatedError{Server: s.server(), Sent: s.ledger.tokens, Read: read.N}
	}
	return nil
}
