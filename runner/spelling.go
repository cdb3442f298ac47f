package runner

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/template"
)

// errSpelling says that a text has no ids that spell it and are no structure.
var errSpelling = errors.New("no ids spell this text")

// A run is a stretch of joined text that is encoded in one go.
type run struct {
	from, to int
	special  bool  // special tokens are recognised
	cuts     []int // inside it, where the text is cut, so that no token forms
}

// spell gives the segments of one appending their ids. A token that spans two
// segments stands with the first.
func (s *state) spell(segments []Segment) error {
	if !s.speller.sendsIDs() {
		return nil
	}
	var joined strings.Builder
	ends := make([]int, len(segments))
	for i, seg := range segments {
		joined.WriteString(seg.Text)
		ends[i] = joined.Len()
		segments[i].Tokens, segments[i].spelled = nil, true
	}
	text := joined.String()
	runs, err := s.runs(segments, text)
	if err != nil {
		return err
	}
	at := 0 // the segment that the next token belongs to
	for _, r := range runs {
		offset := r.from
		tokens, err := s.encodeRun(text, r)
		if err != nil {
			return err
		}
		for _, t := range tokens {
			for ends[at] <= offset {
				at++
			}
			segments[at].Tokens = append(segments[at].Tokens, t.ID)
			offset += len(t.Piece)
		}
	}
	return nil
}

// runs cuts a text that is to be appended into what is encoded in one go. The
// template's own special tokens stand alone; all between them is plain text,
// whoever wrote it, and is cut into tokens as the whole text would be.
func (s *state) runs(segments []Segment, text string) ([]run, error) {
	var out []run
	plain := func(from, to int) {
		if n := len(out); n > 0 && !out[n-1].special && out[n-1].to == from {
			out[n-1].to = to
		} else if from < to {
			out = append(out, run{from: from, to: to})
		}
	}
	offset := 0
	for _, seg := range segments {
		end := offset + len(seg.Text)
		if seg.Source.Untrusted() {
			plain(offset, end)
			offset = end
			continue
		}
		for _, m := range append(s.speller.tokens.Find(seg.Text), template.Match{Start: len(seg.Text), End: len(seg.Text)}) {
			from, to := end-len(seg.Text)+m.Start, end-len(seg.Text)+m.End
			if from < offset { // inside of another
				continue
			}
			other, err := s.special(text[offset:from])
			if err != nil {
				return nil, err
			}
			if other { // a token that nobody told us of
				out = append(out, run{from: offset, to: from, special: true})
			} else {
				plain(offset, from)
			}
			if from < to {
				out = append(out, run{from: from, to: to, special: true})
			}
			offset = to
		}
	}
	for i := range out {
		if r := &out[i]; !r.special {
			r.cuts = s.speller.cuts(text[r.from:r.to])
		}
	}
	return out, nil
}

// cuts are the places inside special tokens that a plain text spells.
func (sp *speller) cuts(text string) []int {
	var out []int
	for _, m := range sp.tokens.Find(text) {
		if _, size := utf8.DecodeRuneInString(text[m.Start:]); m.Start+size < m.End { // else it cannot be cut
			out = append(out, m.Start+size)
		}
	}
	return out
}

// special reports whether a text of the template holds special tokens that are
// not in the list, as far as the server can tell.
func (s *state) special(text string) (bool, error) {
	if text == "" || s.speller.Complete {
		return false, nil
	}
	if known, ok := s.speller.known[text]; ok {
		return known, nil
	}
	as, err := s.speller.Encode(s.ctx, text, true)
	if err != nil {
		return false, err
	}
	out, err := s.speller.Encode(s.ctx, text, false)
	if err != nil {
		return false, err
	}
	differs := len(as) != len(out)
	for i := 0; !differs && i < len(as); i++ {
		differs = as[i].ID != out[i].ID
	}
	s.speller.known[text] = differs
	return differs, nil
}

// marker is how models spell tokens that are structure. One that a server
// recognises in plain text although nobody told of it is cut like the others.
var marker = regexp.MustCompile(`^(<[^<>\s]+>|\[[/A-Z_]+\])$`)

// encodeRun gives the tokens of a run and makes sure of them: they spell the
// text, and no special token is among those of plain text.
func (s *state) encodeRun(text string, r run) ([]models.Token, error) {
	if r.special {
		tokens, err := s.speller.Encode(s.ctx, text[r.from:r.to], true)
		return tokens, s.spells(tokens, text[r.from:r.to], err)
	}
	var out []models.Token
	for at, i := r.from, 0; at < r.to; i++ {
		to := r.to
		if i < len(r.cuts) {
			to = r.from + r.cuts[i]
		}
		tokens, err := s.encodePlain(text[at:to])
		if err != nil {
			return nil, err
		}
		out, at = append(out, tokens...), to
	}
	return out, nil
}

// encodePlain gives the tokens of text that is no structure.
func (s *state) encodePlain(text string) ([]models.Token, error) {
	tokens, err := s.speller.Encode(s.ctx, text, false)
	if err := s.spells(tokens, text, err); err != nil {
		return nil, err
	}
	offset := 0
	for i, t := range tokens {
		if !s.speller.ids[t.ID] && !marker.MatchString(t.Piece) {
			offset += len(t.Piece)
			continue
		}
		_, size := utf8.DecodeRuneInString(t.Piece)
		if size == len(t.Piece) { // it cannot be cut, and one character is no structure
			return nil, errSpelling
		}
		head, err := s.encodePlain(text[offset : offset+size])
		if err != nil {
			return nil, err
		}
		tail, err := s.encodePlain(text[offset+size:])
		return append(append(tokens[:i:i], head...), tail...), err
	}
	return tokens, nil
}

// spells makes sure that tokens spell a text.
func (s *state) spells(tokens []models.Token, text string, err error) error {
	if err != nil {
		return err
	}
	rest := text
	for _, t := range tokens {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, t.Piece); !ok || t.Piece == "" {
			return errSpelling
		}
	}
	if rest != "" {
		return errSpelling
	}
	return nil
}
