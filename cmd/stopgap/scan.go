package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stopgap/stopping"
)

// The sizes of a scan, in bytes.
const (
	blockSize  = 64 << 10 // of one read
	lookaround = 1 << 10  // text that is kept before, and shown after, a match
	usualChunk = 4        // what a token holds, more or less
)

// An input is a text as it is read: what was read last, and a little before it.
type input struct {
	r     io.Reader
	buf   []byte
	base  int // where buf begins
	taken int // bytes given out by take
	ended bool

	// A place that moves along with what is looked up in the text.
	at, line, column int
}

func newInput(r io.Reader) *input { return &input{r: r, line: 1, column: 1} }

// read waits for more text. A read that does not return, as of a terminal, is
// left behind when ctx ends.
func (in *input) read(ctx context.Context) error {
	in.forget()
	in.buf = slices.Grow(in.buf, blockSize)
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	space := in.buf[len(in.buf) : len(in.buf)+blockSize]
	go func() {
		n, err := in.r.Read(space)
		done <- result{n, err}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-done:
		in.buf = in.buf[:len(in.buf)+r.n]
		if r.err == io.EOF {
			in.ended = true
			return nil
		}
		return r.err
	}
}

// forget drops the text that nobody looks at any more.
func (in *input) forget() {
	if drop := in.taken - lookaround - in.base; drop > 0 {
		in.advance(in.base + drop)
		in.buf = in.buf[:copy(in.buf, in.buf[drop:])]
		in.base += drop
	}
}

// take gives the text that is new, in whole chunks; at the end also the rest.
func (in *input) take(chunk int) string {
	fresh := in.buf[in.taken-in.base:]
	if !in.ended {
		fresh = fresh[:len(fresh)/chunk*chunk]
	}
	in.taken += len(fresh)
	return string(fresh)
}

// total is how many bytes have been read.
func (in *input) total() int { return in.base + len(in.buf) }

// slice gives the text between two bytes, as far as it is in memory.
func (in *input) slice(from, to int) string {
	from, to = max(from, in.base), min(to, in.total())
	if from >= to {
		return ""
	}
	return string(in.buf[from-in.base : to-in.base])
}

// advance moves the place to a byte further on.
func (in *input) advance(to int) {
	if to <= in.at {
		return
	}
	passed := in.buf[in.at-in.base : to-in.base]
	in.at = to
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		in.line += bytes.Count(passed, []byte{'\n'})
		in.column = 1
		passed = passed[i+1:]
	}
	for _, b := range passed {
		if utf8.RuneStart(b) {
			in.column++
		}
	}
}

// A place is where a match ends, for people: its last character.
type place struct{ line, column int } // from 1

// locate finds where a match ends. The ends must come in order.
func (in *input) locate(d *stopping.Decision) place {
	_, size := utf8.DecodeLastRuneInString(in.slice(d.MatchEnd-utf8.UTFMax, d.MatchEnd))
	in.advance(d.MatchEnd - size)
	return place{in.line, in.column}
}

// excerpt gives the text around the end of a match.
func (in *input) excerpt(d *stopping.Decision) excerpt {
	from := max(d.MatchStart, d.MatchEnd-lookaround)
	return excerpt{
		before: in.slice(from-lookaround, from),
		kept:   in.slice(from, d.KeepEnd),
		cut:    in.slice(max(from, d.KeepEnd), d.MatchEnd),
		after:  in.slice(d.MatchEnd, d.MatchEnd+lookaround),
	}
}

// A trial is one criterion, or several together, at work on a text.
type trial struct {
	set     *stopping.Set
	matcher *stopping.Matcher // nil once the text has ended for it
	silent  bool              // it reports nothing but what ends the text

	stop    *stopping.Decision // nil where nothing ended the text
	place   place              // of the stop
	excerpt excerpt            // of the stop
	err     error
	reports int    // matches that were only reported
	first   report // of them

	received, given int // bytes
	held            int // the most that was held back after a chunk
	spent           time.Duration
}

func newTrial(set *stopping.Set) *trial { return &trial{set: set, matcher: set.Matcher()} }

// A report is a match that ended nothing.
type report struct {
	*stopping.Decision
	place place
	match string // or its end, where it is long
}

// A hit is a match that a trial found.
type hit struct {
	trial *trial
	*stopping.Decision
}

// feed gives a trial more text, in chunks of so many tokens each.
func (t *trial) feed(ctx context.Context, text string, chunk, tokens int) []hit {
	began := time.Now()
	hits := t.push(ctx, text, chunk, tokens)
	t.spent += time.Since(began)
	return hits
}

// push is feed without the clock. What is said of each chunk is kept small: it
// is measured with it.
func (t *trial) push(ctx context.Context, text string, chunk, tokens int) (hits []hit) {
	if t.matcher == nil {
		return nil
	}
	given, held, at := t.given-t.received, t.held, 0 // given counts from the start of text
	for i := 0; at < len(text); i++ {
		if i%64 == 0 && ctx.Err() != nil {
			break
		}
		end := min(at+chunk, len(text))
		step, err := t.matcher.Write(text[at:end], tokens)
		at = end
		given += len(step.Emit)
		if list := step.Notified(); list != nil && !t.silent {
			for j := range list {
				hits = append(hits, hit{t, &list[j]})
			}
		}
		if err != nil {
			t.err, t.matcher = err, nil
			break
		}
		if step.Stop != nil {
			hits = append(hits, hit{t, step.Stop})
			t.stop, t.matcher = step.Stop, nil
			break
		}
		held = max(held, at-given)
	}
	t.given, t.held, t.received = t.received+given, held, t.received+at
	return hits
}

// A scan is a few trials over one text.
type scan struct {
	input  *input
	trials []*trial
	chunk  int // bytes
	tokens int // that a chunk counts as
	head   strings.Builder
	report func([]report) error // of matches that ended nothing, by their ends
}

// run reads the text to its end, also when nothing is left to be found in it:
// what stands after a match counts.
func (s *scan) run(ctx context.Context) error {
	for !s.input.ended {
		if err := s.input.read(ctx); err != nil {
			return err
		}
		text := s.input.take(s.chunk)
		s.head.WriteString(text[:min(len(text), max(blockSize-s.head.Len(), 0))])
		var hits []hit
		for _, t := range s.trials {
			if t.stop != nil { // the text after its match was not all there
				end := t.stop.MatchEnd + len(t.excerpt.after)
				t.excerpt.after += s.input.slice(end, t.stop.MatchEnd+lookaround)
			}
			hits = append(hits, t.feed(ctx, text, s.chunk, s.tokens)...)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.found(hits); err != nil {
			return err
		}
	}
	return nil
}

// found takes note of what was found in one block.
func (s *scan) found(hits []hit) error {
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.MatchEnd, b.MatchEnd) })
	var reports []report
	for _, h := range hits {
		t, at := h.trial, s.input.locate(h.Decision)
		if h.Decision == t.stop {
			t.place, t.excerpt = at, s.input.excerpt(h.Decision)
			continue
		}
		r := report{h.Decision, at, s.input.slice(max(h.MatchStart, h.MatchEnd-lookaround), h.MatchEnd)}
		if t.reports++; t.reports == 1 {
			t.first = r
		}
		reports = append(reports, r)
	}
	if len(reports) == 0 {
		return nil
	}
	return s.report(reports)
}

// patience is for how long a short text is tried again and again, so that the
// clock can measure it.
const patience = 10 * time.Millisecond

// cost is the time that a chunk took on average, in nanoseconds; 0 where it is
// not known. What is short is tried again and the best time counts, so that
// neither what is done once nor what else the machine does is measured.
func (s *scan) cost(ctx context.Context, t *trial) float64 {
	if t.received == 0 || t.err != nil {
		return 0
	}
	perByte := float64(t.spent) / float64(t.received)
	if head := s.head.String(); t.received <= len(head) && t.spent < patience {
		text := head[:t.received]
		for spent := time.Duration(0); spent < patience && ctx.Err() == nil; {
			batch := make([]*trial, 1+4096/len(text))
			for i := range batch {
				batch[i] = newTrial(t.set)
			}
			began := time.Now()
			for _, b := range batch {
				b.push(ctx, text, s.chunk, s.tokens)
			}
			took := time.Since(began)
			spent += took
			perByte = min(perByte, float64(took)/float64(len(text)*len(batch)))
		}
	}
	return perByte * float64(min(s.chunk, t.received))
}
