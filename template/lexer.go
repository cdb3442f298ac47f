package template

import (
	"slices"
	"strings"
)

// A SpanKind says what a piece of generated text is, for display.
type SpanKind string

const (
	SpanText   SpanKind = "text"   // outside the thinking part; the answer, where the format has no marker
	SpanThink  SpanKind = "think"  // the thinking part
	SpanCall   SpanKind = "call"   // inside a call
	SpanAnswer SpanKind = "answer" // after the format's answer marker or between its answer tags
	SpanTag    SpanKind = "tag"    // a tag, label or marker of the format
)

// A Span is a piece of generated text of one kind. It is never empty.
type Span struct {
	Kind SpanKind
	Text string
}

// A Lexer divides the text of one turn into spans while it arrives. Together
// the spans are the text, byte for byte, and where it was cut into chunks only
// changes where a span of one kind is cut. It sees tags and not JSON, so it can
// take for a call what Parse takes for text; it is for display.
type Lexer struct {
	f     *Format
	tags  []string // all that are looked for
	opens []string // those that begin a call
	ends  []string // those that end one
	kind  SpanKind // of the text that comes
	outer SpanKind // where the call stands, while kind is SpanCall
	held  string   // the beginning of what may become a tag
	// fresh says that no text was visible yet, so that a bare call may begin.
	fresh bool
	spans []Span
	from  int // where the last of spans begins in what is written now
	// written counts the bytes given out, blank says that they are all white
	// space, and newline that the last one ends a line.
	written        int
	blank, newline bool
}

// Lexer starts to read a turn; inThink is as for Parse.
func (f *Format) Lexer(inThink bool) *Lexer {
	l := &Lexer{f: f, kind: SpanText, fresh: true, blank: true}
	if inThink {
		l.kind = SpanThink
	}
	c := f.Call
	l.opens, l.ends = union(nil, []string{c.Open}), union(nil, []string{c.Close})
	labels := []string{c.Between}
	switch c.Kind {
	case LineCalls:
		labels = []string{c.Name[0], c.Arguments[0]}
	case XMLCalls: // models leave the tag around it out
		l.opens = union(l.opens, c.Name)
	case TagCalls:
		for _, t := range c.Tags {
			if t.Empty {
				labels = append(labels, t.open(), t.close())
				continue
			}
			l.opens, l.ends = append(l.opens, t.open()), append(l.ends, t.close())
		}
	}
	l.tags = union(nil, slices.Concat([]string{
		f.Think.Open, f.Think.Close, f.Response.Open, f.Response.Close, f.Answer.After, f.Answer.Open, f.Answer.Close,
	}, l.opens, l.ends, labels))
	return l
}

// Write reads a piece of the text and gives the spans that are certain now. It
// holds back only what may become a tag.
func (l *Lexer) Write(text string) []Span {
	l.spans = nil
	buf := l.held + text
	l.held = ""
	done := 0
	for i := 0; i < len(buf); i++ {
		tag, partial := l.tagAt(buf[:i], buf[i:], done)
		if partial {
			l.emit(l.kind, buf, done, i)
			l.held = buf[i:]
			return l.spans
		}
		if tag == "" {
			if l.bareCall(buf[i]) {
				l.emit(l.kind, buf, done, i)
				l.kind, l.outer, done = SpanCall, l.kind, i
			}
			continue
		}
		l.emit(l.kind, buf, done, i)
		span := SpanTag
		kind, ok := l.after(tag)
		if !ok {
			span = l.kind // a mention
		}
		l.emit(span, buf, i, i+len(tag))
		l.kind, l.fresh = kind, tag == l.f.Think.Close
		i += len(tag) - 1
		done = i + 1
	}
	l.emit(l.kind, buf, done, len(buf))
	return l.spans
}

// Inside says what the text is that comes, and whether something is held that
// may be the beginning of a tag.
func (l *Lexer) Inside() (kind SpanKind, held bool) { return l.kind, l.held != "" }

// Close ends the turn and gives back what was held.
func (l *Lexer) Close() []Span {
	l.spans = nil
	l.emit(l.kind, l.held, 0, len(l.held))
	l.held = ""
	return l.spans
}

// bareCall reports whether a call without a tag begins at a byte that is in no
// tag. Where it ends is not seen: all of the turn belongs to it.
func (l *Lexer) bareCall(c byte) bool {
	if !l.fresh || l.kind != SpanText {
		return false
	}
	l.fresh = strings.IndexByte(blanks, c) >= 0
	return l.f.Call.Bare && c == '{' || l.f.Call.Kind == PythonCalls && c == '['
}

// emit gives out buf[from:to], which follows what was given out of buf before.
func (l *Lexer) emit(kind SpanKind, buf string, from, to int) {
	text := buf[from:to]
	if text == "" {
		return
	}
	l.written += len(text)
	l.blank = l.blank && l.written <= maxIndent && strings.Trim(text, blanks) == ""
	l.newline = text[len(text)-1] == '\n'
	if n := len(l.spans); n > 0 && l.spans[n-1].Kind == kind {
		l.spans[n-1].Text = buf[l.from:to]
		return
	}
	l.from = from
	l.spans = append(l.spans, Span{kind, text})
}

// tagAt gives the tag that rest begins with, the shortest if there are several,
// or says that rest may become one. Of before, the bytes from done on are not
// given out yet.
func (l *Lexer) tagAt(before, rest string, done int) (tag string, partial bool) {
	lines := l.f.Call.Kind == LineCalls
	for _, t := range l.tags {
		if t[0] != rest[0] || (lines || t == l.f.Answer.After) && !l.startsLine(before[done:]) {
			continue
		}
		switch {
		case strings.HasPrefix(rest, t):
			if tag == "" || len(t) < len(tag) {
				tag = t
			}
		case strings.HasPrefix(t, rest):
			partial = true
		}
	}
	return tag, partial && tag == ""
}

// startsLine is startsLine of the whole text, of which pending is the end.
func (l *Lexer) startsLine(pending string) bool {
	if pending == "" {
		return l.written == 0 || l.newline || l.blank
	}
	return pending[len(pending)-1] == '\n' ||
		l.blank && l.written+len(pending) <= maxIndent && strings.Trim(pending, blanks) == ""
}

// after gives the kind of the text after a tag, and false if the tag says
// nothing where it stands.
func (l *Lexer) after(tag string) (SpanKind, bool) {
	if l.f.Call.Kind == LineCalls {
		return l.afterLabel(tag), true
	}
	switch {
	case tag == l.f.Response.Open || tag == l.f.Response.Close:
		return l.kind, l.kind != SpanThink
	case tag == l.f.Think.Open:
		if l.kind == SpanText {
			return SpanThink, true
		}
	case tag == l.f.Think.Close:
		if l.kind != SpanAnswer {
			return SpanText, true
		}
	case slices.Contains(l.opens, tag):
		if l.kind == SpanCall && tag != l.f.Call.Open { // <function= in <tool_call>
			return l.kind, false
		}
		if l.kind != SpanCall {
			l.outer = l.kind
		}
		return SpanCall, true
	case slices.Contains(l.ends, tag):
		if l.kind == SpanCall {
			return l.outer, true
		}
	case tag == l.f.Call.Between:
		return l.kind, l.kind == SpanCall
	case tag == l.f.Answer.After || tag == l.f.Answer.Open:
		if l.kind == SpanText {
			return SpanAnswer, true
		}
	case tag == l.f.Answer.Close:
		if l.kind == SpanAnswer {
			return SpanText, true
		}
	default: // a call that is a tag alone
		return l.kind, l.kind != SpanCall
	}
	return l.kind, false
}

func (l *Lexer) afterLabel(label string) SpanKind {
	switch label {
	case l.f.Think.Open:
		return SpanThink
	case l.f.Answer.After:
		return SpanAnswer
	case l.f.Response.Open:
		return SpanText
	}
	return SpanCall
}
