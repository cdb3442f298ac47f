package runner

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
	"stopgap/tools"
)

// A generation is one turn on its way: what the model writes between two
// continuations of the prompt. It takes one request, or several where a call is
// written under a schema, a call or the stream was cut, or the thinking was
// closed.
type generation struct {
	*state
	began   bool // the turn began inside the thinking part
	lexer   *template.Lexer
	kept    strings.Builder    // the turn's text
	stop    *stopping.Decision // what ended the last request
	finish  *models.Final      // what ended it, where no criterion did
	longer  bool               // a call that the limit cut has been gone on with
	written int                // calls that were written under a schema
	allowed int                // tokens that the turn may have
	think   thinking
	event   Stopped
}

// generate lets the model write until a criterion fires or the server ends,
// appends what is kept to the ledger and parses it. Whatever ends it, all that
// was received and is not cut by a stop is in the events and in the ledger.
func (s *state) generate() (template.Turn, error) {
	if s.Format.Opening == template.OpenChat {
		return s.converse()
	}
	allowed, err := s.turnTokens()
	if err != nil { // no room for another turn
		return template.Turn{}, err
	}
	s.turn++
	g := &generation{state: s, began: s.ledger.inThink, lexer: s.Format.Lexer(s.ledger.inThink), allowed: allowed}
	g.event = Stopped{Turn: s.turn, Means: template.MeansEnd, Usage: noUsage}
	err = g.write()
	if closing := g.spans(g.lexer.Close()); err == nil {
		err = closing
	}
	turn := g.read()
	s.total(g)
	s.ledger.inThink, s.ledger.open = turn.InThink, g.opened() || g.stop == nil && (g.finish == nil || s.truncated)
	if err == nil {
		err = s.emit(g.stopped(turn))
	}
	return turn, err
}

// write goes from request to request until the turn is over.
func (g *generation) write() error {
	over, err := g.choose()
	for err == nil && !over {
		if err = g.stretch(); err != nil {
			break
		}
		switch {
		case g.opened() && g.forced == "": // a call that is not made need not be written
			err = g.constrained("", g.frame.Opened)
			over = g.complete()
		case g.think.over:
			err = g.closeThought()
		case g.splitCall():
			g.longer, g.allowed = true, g.allowed+g.spent()
		default:
			over = true
		}
	}
	return err
}

// A stretch is one stream on its way through the matcher. The criteria see the
// whole turn, and fire only where the stretch has written.
type stretch struct {
	*generation
	matcher *stopping.Matcher
	fed     int // bytes of the turn that are older than the stretch
	shown   int // bytes of the turn that are in the events
	skip    int // how many of them the matcher has not given back yet
	torn    int // bytes at the end that never became a character
	stop    *stopping.Decision
	matched time.Time // when stop fired
	receipt
}

// stretch lets the model write freely until a stop, the server's end or an
// error.
func (g *generation) stretch() error {
	req, err := g.request(nil)
	if err != nil {
		return err
	}
	fed := g.kept.Len()
	set, err := g.set(g.began, fed)
	if err != nil {
		return err
	}
	st := &stretch{generation: g, matcher: set.Matcher(), fed: fed, shown: fed, skip: fed}
	if fed > 0 {
		err = st.watch(g.kept.String(), g.spent())
	}
	if err == nil {
		err = st.stream(req)
	}
	if err == nil && st.stop != nil {
		st.event.Halt = time.Since(st.matched)
	}
	if closing := st.flush(); err == nil {
		err = closing
	}
	if kept := st.keep(); err == nil {
		err = kept
	}
	return err
}

// take reads a chunk and says whether more is wanted.
func (st *stretch) take(chunk models.Chunk) (more bool, err error) {
	if chunk.Text == "" {
		return true, nil
	}
	tokens := max(1, len(chunk.Tokens))
	err = st.watch(chunk.Text, tokens)
	return st.stop == nil && !st.overthinks(tokens), err
}

// watch passes text through the matcher and yields what comes out.
func (st *stretch) watch(text string, tokens int) error {
	step, err := st.matcher.Write(text, tokens)
	if st.stop = step.Stop; st.stop != nil {
		st.matched = time.Now()
	}
	if shown := st.show(step.Emit); err == nil {
		err = shown
	}
	for _, d := range step.Notified() {
		if err == nil {
			err = st.emit(Noticed{Turn: st.turn, Criterion: d.Criterion.Name, MatchStart: d.MatchStart, MatchEnd: d.MatchEnd})
		}
	}
	return err
}

// show yields what the matcher gives out, without what was given out before.
func (st *stretch) show(text string) error {
	old := min(st.skip, len(text))
	st.skip -= old
	st.shown += len(text) - old
	return st.spans(st.lexer.Write(text[old:]))
}

// flush gives out what the matcher still holds. The beginning of a character at
// the end of the stream is dropped: no prompt can carry it.
func (st *stretch) flush() error {
	if st.stop != nil {
		return nil
	}
	held := st.matcher.Close().Emit
	st.torn = torn(held)
	return st.show(held[:len(held)-st.torn])
}

// keep appends what stays of the stretch to the turn and to the ledger.
func (st *stretch) keep() error {
	g, n := st.generation, st.draft.text.Len()-st.torn
	if st.stop != nil {
		n = max(0, st.stop.KeepEnd-st.fed)
	}
	g.kept.WriteString(st.draft.text.String()[:n])
	g.finish, g.stop = st.final, st.stop
	g.account(&st.receipt)
	return g.append(st.draft.segments(g.turn, n)...)
}

// put writes words into the turn that the model did not generate there: the
// format's, or its own choice of a name.
func (g *generation) put(text string, from template.Source) error {
	g.kept.WriteString(text)
	if err := g.append(Segment{Source: from, Turn: g.turn, Text: text}); err != nil {
		return err
	}
	return g.spans(g.lexer.Write(text))
}

func (g *generation) spans(spans []template.Span) error {
	for _, sp := range spans {
		if err := g.emit(Text{Turn: g.turn, Span: sp.Kind, Text: sp.Text}); err != nil {
			return err
		}
	}
	return nil
}

// splitCall reports whether the length limit cut the turn in the middle of a
// call, which is then gone on with, once.
func (g *generation) splitCall() bool {
	if g.longer || g.forced != "" || g.finish == nil || g.finish.Finish != models.FinishLength {
		return false
	}
	t := g.Format.Parse(g.kept.String(), g.reading())
	n := len(t.Problems)
	return n > 0 && t.Problems[n-1].Kind == template.UnclosedCall && t.Problems[n-1].End == g.kept.Len()
}

// reading is what the parser knows of this turn.
func (g *generation) reading() template.Reading {
	// The end-of-generation token alone does not say that a call is whole.
	ended := g.stop != nil && g.means[g.stop.Criterion.Name] == template.MeansCall
	cut := g.finish != nil && g.finish.Finish != models.FinishStop
	return template.Reading{InThink: g.began, Tools: g.described(), Strict: g.Strict, Ended: ended, Cut: cut}
}

// read parses what is kept. What a stop says of the turn comes on top: it may
// have cut off what the parser would have seen.
func (g *generation) read() template.Turn {
	text := g.kept.String()
	t := g.Format.Parse(text, g.reading())
	if d := g.stop; d != nil {
		invented := g.means[d.Criterion.Name] == template.MeansInvented
		switch {
		case g.finishes():
			if t.Calls = nil; !t.Answered {
				t.Answer, t.Answered = cmp.Or(t.Text, t.Think), true
			}
		case invented && len(t.Calls) == 0 && g.forced == "":
			p := template.Problem{Kind: template.InventedResponse, Start: len(text), End: len(text)}
			t.Problems = slices.DeleteFunc(t.Problems, func(p template.Problem) bool { return p.Kind == template.NoCallNoAnswer })
			t.Answered, t.Problems = false, append(t.Problems, p) // it is why there is neither
		}
	}
	g.judge(&t)
	t.Answered = t.Answered && t.Answer != ""
	return t
}

// finishes reports whether a criterion of the caller has ended the run.
func (g *generation) finishes() bool {
	return g.stop != nil && g.stop.Criterion.Action == stopping.Finish
}

// judge adds the problems that only the tools' schemas tell.
func (s *state) judge(t *template.Turn) {
	for _, c := range t.Calls {
		if status, words := s.offered.Check(tools.Call{Name: c.Name, Arguments: c.Arguments}); status == tools.BadArguments {
			t.Problems = append(t.Problems, template.Problem{Kind: template.BadArguments, Start: c.Start, End: c.End, Message: words})
		}
	}
	slices.SortStableFunc(t.Problems, func(a, b template.Problem) int { return a.Start - b.Start })
}

// stopped is the event that ends this generation.
func (g *generation) stopped(t template.Turn) Stopped {
	ev := g.event
	ev.KeepEnd, ev.Problems = g.kept.Len(), t.Problems
	if g.finish != nil {
		ev.Finish, ev.Timings = g.finish.Finish, g.finish.Timings
	}
	if d := g.stop; d != nil {
		ev.Criterion, ev.Means = d.Criterion.Name, g.means[d.Criterion.Name]
		ev.MatchStart, ev.MatchEnd = d.MatchStart, d.MatchEnd
	}
	return ev
}
