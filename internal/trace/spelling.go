package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"

	"stopgap/models"
)

// A spelling is a models.Spelling on paper.
type spelling struct {
	Special  []string `json:"special,omitempty"`
	Complete bool     `json:"complete,omitempty"`
	Encodes  bool     `json:"encodes,omitempty"` // it has Encode
	IDs      bool     `json:"ids,omitempty"`
	Exact    bool     `json:"exact,omitempty"`
	Error    *failure `json:"error,omitempty"`
	Done     bool     `json:"done,omitempty"` // as in stream
}

// encodings are texts whose tokens the run asked for.
type encodings struct {
	Texts []encoding `json:"texts"`
}

// An encoding is what became of one text. The text itself stands in the prompt
// or in a result.
type encoding struct {
	SHA256  string `json:"sha256"` // of the text, the first half, in hex
	Special bool   `json:"special,omitempty"`
	IDs     []int  `json:"ids,omitempty"`
	// Lengths cut the text into the pieces of the tokens, in bytes; where the
	// pieces are not the text, they are Pieces.
	Lengths []int    `json:"lengths,omitempty"`
	Pieces  [][]byte `json:"pieces,omitempty"`
	Error   *failure `json:"error,omitempty"`
}

// A textKey names a text and how it is encoded.
type textKey struct {
	sum     string
	special bool
}

func keyOf(text string, special bool) textKey {
	sum := sha256.Sum256([]byte(text))
	return textKey{hex.EncodeToString(sum[:16]), special}
}

func newEncoding(key textKey, text string, tokens []models.Token, err error) encoding {
	e := encoding{SHA256: key.sum, Special: key.special, Error: newFailure(err)}
	var joined strings.Builder
	for _, t := range tokens {
		joined.WriteString(t.Piece)
		e.IDs, e.Lengths, e.Pieces = append(e.IDs, t.ID), append(e.Lengths, len(t.Piece)), append(e.Pieces, []byte(t.Piece))
	}
	if joined.String() == text {
		e.Pieces = nil
	} else {
		e.Lengths = nil
	}
	return e
}

func (e *encoding) tokens(text string) ([]models.Token, error) {
	if e.Error != nil {
		return nil, e.Error.err()
	}
	out := make([]models.Token, len(e.IDs))
	for i, id := range e.IDs {
		out[i].ID = id
		switch {
		case i < len(e.Pieces):
			out[i].Piece = string(e.Pieces[i])
		case i < len(e.Lengths) && e.Lengths[i] >= 0 && e.Lengths[i] <= len(text):
			out[i].Piece, text = text[:e.Lengths[i]], text[e.Lengths[i]:]
		}
	}
	return out, nil
}

// A speller is a models.Spelling whose encodings come from a tape where it has
// them, and from a model elsewhere. The conversation keeps the pointer to it: a
// ledger goes on with the tokens of the Spelling that it began with.
type speller struct {
	models.Spelling

	mu   sync.Mutex
	tape map[textKey][]encoding
	live *models.Spelling // nil for none
	note func(encoding)   // told of what came from live, each text once; nil for nobody
	told map[textKey]bool
}

// newSpeller listens to a model's Spelling.
func newSpeller(live *models.Spelling) *speller {
	s := &speller{Spelling: *live, live: live, told: map[textKey]bool{}}
	if live.Encode != nil {
		s.Encode = s.encode
	}
	return s
}

// played gives the Spelling of a tape.
func (sp *spelling) played() *speller {
	s := &speller{told: map[textKey]bool{}}
	s.Special, s.Complete, s.IDs, s.Exact = sp.Special, sp.Complete, sp.IDs, sp.Exact
	if sp.Encodes {
		s.Encode = s.encode
	}
	return s
}

// use makes it answer for another run.
func (s *speller) use(tape map[textKey][]encoding, live *models.Spelling, note func(encoding)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tape, s.live, s.note = maps.Clone(tape), live, note
	clear(s.told)
}

func (s *speller) encode(ctx context.Context, text string, special bool) ([]models.Token, error) {
	key := keyOf(text, special)
	s.mu.Lock()
	kept, live := s.tape[key], s.live
	if len(kept) > 1 { // an error first, and then its tokens
		s.tape[key] = kept[1:]
	}
	s.mu.Unlock()
	if len(kept) > 0 {
		return kept[0].tokens(text)
	}
	if live == nil || live.Encode == nil {
		return nil, errOver
	}
	tokens, err := live.Encode(ctx, text, special)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.note != nil && !s.told[key] {
		s.told[key] = err == nil
		s.note(newEncoding(key, text, tokens, err))
	}
	return tokens, err
}

type recordedSpelling struct{ recording }

// Spelling implements models.Speller.
func (r recordedSpelling) Spelling(ctx context.Context) (*models.Spelling, error) {
	inner, err := r.inner.(models.Speller).Spelling(ctx)
	if err != nil {
		_ = r.sink.append(kindSpelling, spelling{Error: newFailure(err), Done: ctx.Err() != nil})
		return nil, err
	}
	_ = r.sink.append(kindSpelling, spelling{
		Special: inner.Special, Complete: inner.Complete, Encodes: inner.Encode != nil, IDs: inner.IDs, Exact: inner.Exact,
	})
	s := r.spellers.of(inner)
	s.use(nil, inner, r.encoded)
	return &s.Spelling, nil
}

// spellers are those of a conversation.
type spellers []*speller

// of gives the speller that listens to a Spelling, or that gave it out.
func (list *spellers) of(live *models.Spelling) *speller {
	for _, s := range *list {
		if s.live == live || &s.Spelling == live {
			return s
		}
	}
	*list = append(*list, newSpeller(live))
	return (*list)[len(*list)-1]
}

// encoded keeps an encoding for the next record.
func (rec *recorder) encoded(e encoding) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.texts = append(rec.texts, e)
}

// tellTexts writes the encodings and the counts down that came up since the last
// time.
func (rec *recorder) tellTexts() {
	rec.mu.Lock()
	texts, counted := rec.texts, rec.counted
	rec.texts, rec.counted = nil, nil
	rec.mu.Unlock()
	if len(texts) > 0 {
		_ = rec.sink.append(kindEncodings, encodings{texts})
	}
	if len(counted) > 0 {
		_ = rec.sink.append(kindCounts, counts{counted})
	}
}

type playedSpelling struct{ *player }

// Spelling implements models.Speller.
func (p playedSpelling) Spelling(ctx context.Context) (*models.Spelling, error) {
	var live *models.Spelling
	if m, ok := p.live.(models.Speller); ok {
		var err error
		if live, err = m.Spelling(ctx); err != nil || p.foreign || len(p.spellings) == 0 {
			return live, err
		}
	}
	if len(p.spellings) == 0 {
		return nil, errOver
	}
	kept := p.spellings[0]
	if kept.Error != nil && live == nil {
		p.done(kept.Done)
		return nil, kept.Error.err()
	}
	s := p.spells(kept)
	s.use(p.encodings, live, nil)
	return &s.Spelling, nil
}

// A deckSpeller is the speller of all runs with the same spelling.
type deckSpeller struct {
	spelling
	*speller
}

// speller gives the one of the deck's spellers for a spelling.
func (d *Deck) speller(sp spelling) *speller {
	for _, s := range d.spellers {
		if slices.Equal(s.spelling.Special, sp.Special) && s.Encodes == sp.Encodes && s.spelling.IDs == sp.IDs {
			return s.speller
		}
	}
	d.spellers = append(d.spellers, deckSpeller{sp, sp.played()})
	return d.spellers[len(d.spellers)-1].speller
}
