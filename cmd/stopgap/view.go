package main

import (
	"fmt"
	"io"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A viewer shows the events of runs. Event gives the error of standard output.
type viewer interface {
	Event(runner.Event) error
	Close()
}

// A view shows runs to people: the answer on out, everything else on err.
// Where the answer may be read as it comes, the text of a turn is written at
// once; otherwise it waits until it is clear whether it is the answer.
type view struct {
	out, err io.Writer
	screen   screen
	terminal bool // out is a terminal
	live     bool // the text is written as it comes
	quiet    bool // nothing but the answer
	spinner  *spinner

	block  block
	text   strings.Builder // text of this turn outside the thinking part
	answer strings.Builder // text of this turn after the answer marker
}

func (a *app) newView(s *settings) *view {
	v := &view{out: a.stdout, err: a.stderr, screen: a.screen(a.stderr, s.color), quiet: s.quiet}
	v.terminal = isTerminal(a.stdout)
	v.live = v.terminal && isTerminal(a.stderr) && !s.quiet
	if !s.quiet {
		v.spinner = newSpinner(a.stderr, v.screen)
	}
	return v
}

// Close takes the spinner away.
func (v *view) Close() { v.spinner.Close() }

// Event shows one event.
func (v *view) Event(ev runner.Event) error {
	switch ev := ev.(type) {
	case runner.Started:
		v.text.Reset()
		v.answer.Reset()
		v.spinner.show("waiting for the model")
	case runner.Waiting:
		v.spinner.show(waitingWords(ev))
	case runner.Text:
		return v.write(ev)
	case runner.Resumed:
		v.line(v.screen.paint(yellow, v.screen.fit("· "+printable(ev.Error)+"; going on from there", 0)))
		v.spinner.show("waiting for the model")
	case runner.Stopped:
		return v.endBlock()
	case runner.Called:
		v.aside()
		v.line(v.screen.paint(cyan, v.screen.fit("→ "+callWords(ev.Name, ev.Arguments), 0)))
		if len(ev.Repairs) > 0 {
			v.line(v.screen.paint(dim, v.screen.fit("    repaired: "+repairWords(ev.Repairs), 0)))
		}
		v.spinner.show("running " + printable(ev.Name))
	case runner.Returned:
		v.returned(ev)
		v.spinner.show("waiting for the model")
	case runner.Nudged:
		if ev.Reason != runner.ThinkLimit { // the turn goes on
			v.aside()
		}
		v.line(v.screen.paint(yellow, v.screen.fit("· "+nudgeWords(ev), 0)))
		v.spinner.show("waiting for the model")
	case runner.Answered:
		return v.answered(ev)
	case runner.Ended:
		v.aside()
		err := v.endBlock()
		v.summary(ev.Outcome)
		return err
	}
	return nil
}

// repairWords lists what it took to read a call.
func repairWords(repairs []template.Repair) string {
	words := make([]string, len(repairs))
	for i, r := range repairs {
		words[i] = strings.ReplaceAll(string(r), "_", " ")
	}
	return strings.Join(words, ", ")
}

func waitingWords(ev runner.Waiting) string {
	words := map[models.Phase]string{
		models.Loading: "loading the model", models.Reading: "reading the prompt",
		models.Generating: "writing", models.Retrying: "no answer yet, trying again",
	}[ev.Phase]
	if words == "" {
		words = printable(string(ev.Phase))
	}
	if ev.Total > 0 {
		words += fmt.Sprintf(" %d%%", 100*min(ev.Done, ev.Total)/ev.Total)
	}
	return words
}

// write shows generated text, by its kind.
func (v *view) write(ev runner.Text) error {
	switch ev.Span {
	case template.SpanThink:
		if !v.quiet {
			v.spinner.hide()
			_, err := io.WriteString(v.err, v.screen.paint(dim, v.block.add(ev.Span, printable(ev.Text))))
			_ = err // standard error has nowhere to report to
		}
		return nil
	case template.SpanText:
		v.text.WriteString(ev.Text)
	case template.SpanAnswer:
		v.answer.WriteString(ev.Text)
	case template.SpanCall: // shown when it runs
		return v.busy("writing a call")
	default: // tags
		return nil
	}
	if !v.live {
		return nil
	}
	v.spinner.hide()
	_, err := io.WriteString(v.out, v.block.add(ev.Span, printable(ev.Text)))
	return err
}

// busy shows a label below what has been written.
func (v *view) busy(label string) error {
	if v.spinner == nil {
		return nil
	}
	var err error
	if v.block.started {
		err = v.endBlock()
	}
	v.spinner.show(label)
	return err
}

// endBlock ends the line that is being written.
func (v *view) endBlock() error {
	v.spinner.hide()
	return v.endOn(v.out, v.err)
}

func (v *view) endOn(out, err io.Writer) error {
	kind, text := v.block.end()
	if text == "" {
		return nil
	}
	w := out
	if kind == template.SpanThink {
		w = err
	}
	_, fault := io.WriteString(w, text)
	return fault
}

// aside writes the text of a turn that turned out not to be the answer.
func (v *view) aside() {
	text := strings.TrimSpace(v.text.String() + v.answer.String())
	v.text.Reset()
	v.answer.Reset()
	if text != "" && !v.live && !v.quiet {
		v.line(printable(text))
	}
}

// line writes one line, or several, beside the answer.
func (v *view) line(s string) {
	if v.quiet {
		return
	}
	v.spinner.hide()
	_ = v.endOn(v.out, v.err)
	fmt.Fprintln(v.err, s)
}

// shownLines is how many lines of a tool's response are shown.
const shownLines = 4

// returned shows a tool's response, shortened.
func (v *view) returned(ev runner.Returned) {
	lines := filledLines(ev.Content)
	head := fmt.Sprintf("← %s: %d %s", printable(ev.Name), len(lines), plural(len(lines), "line"))
	colour := green
	if ev.Status != tools.OK {
		head += ", " + strings.ReplaceAll(string(ev.Status), "_", " ")
		colour = red
	}
	if ev.Name == "" { // a problem in the place of a call; the lines say which
		v.aside()
		head = "← this is not a call"
	}
	if ev.Cut > 0 {
		head += fmt.Sprintf(", %d tokens left out", ev.Cut)
	}
	v.line(v.screen.paint(colour, v.screen.fit(head, 0)))
	for i, l := range lines {
		if i == shownLines {
			v.line(v.screen.paint(dim, v.screen.fit(fmt.Sprintf("    … %d more", len(lines)-i), 0)))
			return
		}
		v.line(v.screen.paint(dim, v.screen.fit("    "+l, 0)))
	}
}

// filledLines gives the lines that have something on them.
func filledLines(text string) []string {
	var out []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		if line = strings.TrimRight(line, " \t\n"); line != "" {
			out = append(out, strings.ReplaceAll(printable(line), "\t", "  "))
		}
	}
	return out
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// nudgeWords says what the runner told the model.
func nudgeWords(ev runner.Nudged) string {
	reason := strings.ReplaceAll(printable(ev.Reason), "_", " ")
	if ev.Reason == runner.ThinkLimit {
		return "the thinking was closed: its limit is reached"
	}
	if ev.Forced {
		return "asked for a final answer: " + reason
	}
	return "asked to go on: " + reason
}

// answered writes the answer, unless it stands there already.
func (v *view) answered(ev runner.Answered) error {
	shown := v.text.String()
	if v.answer.Len() > 0 {
		shown = v.answer.String()
		if !v.live && !v.quiet && strings.TrimSpace(v.text.String()) != "" {
			v.line(printable(strings.TrimSpace(v.text.String())))
		}
	}
	v.text.Reset()
	v.answer.Reset()
	if v.live && strings.HasSuffix(strings.TrimSpace(shown), ev.Answer) {
		return v.endBlock()
	}
	if err := v.endBlock(); err != nil {
		return err
	}
	answer := ev.Answer
	if v.terminal {
		answer = printable(answer)
	}
	_, err := fmt.Fprintln(v.out, answer)
	return err
}

// A block keeps white space off the start and the end of what is written, and
// kinds of text on lines of their own.
type block struct {
	kind    template.SpanKind
	started bool   // something of this kind has been written
	space   string // held back until more text comes
}

// add gives what is to be written now for a piece of text.
func (b *block) add(kind template.SpanKind, text string) string {
	before := ""
	if b.started && kind != b.kind {
		before, b.started, b.space = "\n", false, ""
	}
	b.kind = kind
	if !b.started {
		text = strings.TrimLeft(text, " \t\n")
	}
	if text == "" {
		return before
	}
	text = b.space + text
	b.started, b.space = true, ""
	body := strings.TrimRight(text, " \t\n")
	if body == "" {
		b.space = text
		return before
	}
	b.space = text[len(body):]
	return before + body
}

// end gives what ends the line, and the kind of text that it ends.
func (b *block) end() (template.SpanKind, string) {
	kind, text := b.kind, ""
	if b.started {
		text = "\n"
	}
	*b = block{}
	return kind, text
}
