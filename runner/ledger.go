package runner

import (
	"slices"
	"strings"

	"stopgap/models"
	"stopgap/template"
)

// A Segment is a piece of the prompt and who wrote it.
type Segment struct {
	Source template.Source `json:"source"`
	// Text is what the server reads.
	Text string `json:"text"`
	// Original is the text as it was before reserved strings in it were
	// escaped; empty where it equals Text.
	Original string `json:"original,omitempty"`
	// Tokens are the ids of Text. What the model wrote has those that the server
	// itself streamed, with those of what it hid before; all else has them where
	// prompts are sent as ids. A token that spans two segments of one appending
	// stands with the first.
	Tokens []int `json:"tokens,omitempty"`
	// Turn is the turn of its run that the segment is part of: what the model
	// wrote, and words that were put into its mouth. Zero for all else.
	Turn int `json:"turn,omitempty"`

	spelled bool // the ids of this segment and those beside it spell their texts together
}

// A Ledger is the prompt as a list of segments. It only grows, so that every
// prompt begins with the last one and exactly what was generated after it.
//
// What the model generated stays as it is, also where it spells a reserved
// string: those are the model's own words, and changed bytes would fit neither
// the server's cache nor what the user has read. A server that takes ids gets
// the tokens that were generated. One that takes text reads a spelled control
// token as the token.
type Ledger struct {
	segments []Segment
	tokens   int // as counted, see Runner.CountTokens
	last     tail
	spelling *models.Spelling // that the ids are of, or the count
	bytes    int
	inThink  bool // the prompt ends inside the thinking part
	open     bool // the prompt ends in the middle of what the model wrote
	results  int  // of tools, so far
	format   *template.Format
	messages []models.Message // the same as messages, for a chat endpoint
}

// clone gives a ledger that grows apart from l. A nil ledger is an empty one.
func (l *Ledger) clone() *Ledger {
	if l == nil {
		return &Ledger{}
	}
	c := *l
	c.segments = l.Segments() // without room: the first append copies
	c.messages = slices.Clip(l.messages)
	return &c
}

// Segments returns the segments in order. The caller must not change them.
func (l *Ledger) Segments() []Segment { return l.segments[:len(l.segments):len(l.segments)] }

// Text returns the whole prompt.
func (l *Ledger) Text() string {
	var b strings.Builder
	b.Grow(l.bytes)
	for _, s := range l.segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Tokens returns how long the prompt is, by the counter of the run.
func (l *Ledger) Tokens() int { return l.tokens }

// IDs returns the prompt as token ids, nil where not all of it has them.
func (l *Ledger) IDs() []int {
	ids := make([]int, 0, l.tokens)
	for _, s := range l.prompt() {
		if len(s.Tokens) == 0 {
			return nil
		}
		ids = append(ids, s.Tokens...)
	}
	return ids
}

// prompt returns the segments as a model takes them. Those that were spelled
// together go together: their tokens may span them.
func (l *Ledger) prompt() []models.Segment {
	out := make([]models.Segment, 0, len(l.segments))
	joined := false
	for _, s := range l.segments {
		if n := len(out); s.spelled && joined {
			last := &out[n-1]
			last.Text += s.Text
			last.Tokens = append(last.Tokens[:len(last.Tokens):len(last.Tokens)], s.Tokens...)
		} else {
			out = append(out, models.Segment{Text: s.Text, Tokens: s.Tokens})
		}
		joined = s.spelled
	}
	return out
}

// A tail is the end of a prompt that is sent as text, after its last special
// token: what is appended may become one token with it.
type tail struct {
	text   string
	tokens int
}

// add appends segments, and only this function does.
func (l *Ledger) add(s *state, segments ...Segment) {
	for _, seg := range segments {
		if seg.Text == "" {
			continue
		}
		switch {
		case len(seg.Tokens) > 0 || seg.spelled:
			l.tokens += len(seg.Tokens)
		case s.CountTokens == nil && s.speller.counts():
			l.lengthen(seg.Text, s)
		default:
			l.tokens += s.count(seg.Text)
		}
		l.bytes += len(seg.Text)
		l.segments = append(l.segments, seg)
	}
}

// lengthen counts a text that is appended to a prompt of text. Special tokens
// part a text before anything else does, so that nothing before the last one
// changes any more.
func (l *Ledger) lengthen(text string, s *state) {
	l.tokens -= l.last.tokens
	l.last.text += text
	end := 0
	for _, m := range s.speller.special.Find(l.last.text) {
		if m.Start >= end { // not inside of another
			end = m.End
		}
	}
	l.tokens += s.countSpecial(l.last.text[:end])
	l.last.text = l.last.text[end:]
	l.last.tokens = s.countSpecial(l.last.text)
	l.tokens += l.last.tokens
}

// secure turns rendered parts into segments in which untrusted text cannot be
// read as structure: reserved strings in it are escaped, and where its first
// or last bytes would form one with the text beside it, a mark parts them.
func (l *Ledger) secure(parts []template.Part, reserved template.Reserved) []Segment {
	out, width := make([]Segment, 0, len(parts)), seamWidth(reserved)
	for i, p := range parts {
		s := Segment{Source: p.Source, Text: p.Text}
		if p.Source.Untrusted() {
			s.Text = template.Escape(p.Text, reserved)
			before := l.tail(out, width)
			if seam(before, s.Text, reserved) {
				s.Text = string(template.Mark) + s.Text
			}
			if i+1 < len(parts) && seam(before+s.Text, parts[i+1].Text, reserved) {
				s.Text += string(template.Mark)
			}
			if s.Text != p.Text {
				s.Original = p.Text
			}
		}
		out = append(out, s)
	}
	return out
}

// seam reports whether a reserved string begins in a and ends in b.
func seam(a, b string, reserved template.Reserved) bool {
	width := seamWidth(reserved)
	a = a[max(0, len(a)-width):]
	for _, m := range reserved.Find(a + b[:min(len(b), width)]) {
		if m.Start < len(a) && m.End > len(a) {
			return true
		}
	}
	return false
}

// seamWidth is how many bytes on either side of a seam are looked at: no
// reserved string is longer.
func seamWidth(reserved template.Reserved) int {
	width := 0
	for _, list := range [][]string{reserved.Strings, reserved.Lines} {
		for _, s := range list {
			width = max(width, len(s))
		}
	}
	return width
}

// tail returns the last bytes before the next segment, so many or more.
func (l *Ledger) tail(pending []Segment, width int) string {
	tail := ""
	for _, list := range [][]Segment{pending, l.segments} {
		for i := len(list) - 1; i >= 0 && len(tail) < width; i-- {
			tail = list[i].Text + tail
		}
	}
	return tail
}

// A draft collects the chunks of one generation.
type draft struct {
	text   strings.Builder
	chunks []models.Chunk
	// pending are the ids of tokens whose text the server hid or held back.
	// They belong to the text that follows.
	pending []int
	ids     int  // how many came
	counted int  // how many of them are in the sums already
	unnamed bool // some text came without ids
}

func (d *draft) add(text string, ids []int) {
	d.ids += len(ids)
	d.pending = append(d.pending, ids...)
	if text == "" {
		return
	}
	c := models.Chunk{Text: text}
	if len(ids) > 0 {
		c.Tokens = d.pending
	} else {
		d.unnamed = true
	}
	d.pending = nil
	d.text.WriteString(text)
	d.chunks = append(d.chunks, c)
}

// generated counts the tokens where every one of them came with its id.
func (d *draft) generated() models.Count {
	if d.unnamed || d.ids == 0 {
		return models.Count{}
	}
	return models.Known(d.ids - d.counted)
}

// segments returns the first keep bytes of the generation. Ids are kept as far
// as they spell whole chunks of it; what a halt cut inside a chunk, and what
// came without ids, is text. A hidden token at the end is not kept: the
// template writes its own.
func (d *draft) segments(turn, keep int) []Segment {
	var out []Segment
	push := func(text string, tokens []int) {
		if n := len(out); n > 0 && (len(out[n-1].Tokens) == 0) == (len(tokens) == 0) {
			out[n-1].Text += text
			out[n-1].Tokens = append(out[n-1].Tokens, tokens...)
			return
		}
		out = append(out, Segment{Source: template.FromModel, Turn: turn, Text: text, Tokens: append([]int(nil), tokens...)})
	}
	for _, c := range d.chunks {
		if keep <= 0 {
			break
		}
		if len(c.Text) > keep {
			push(c.Text[:keep], nil)
			break
		}
		push(c.Text, c.Tokens)
		keep -= len(c.Text)
	}
	return out
}
