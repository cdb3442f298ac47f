package template

import "strings"

const (
	blanks    = " \t\r\n"
	maxIndent = 8 // bytes of white space that begin a turn
)

// parseLines reads a turn whose call is a line with the name and then the
// arguments. The prompt ends in the thinking label, so that the turn begins in
// the middle of a line.
func (f *Format) parseLines(text string) Turn {
	t := Turn{InThink: f.Think.Opened}
	body := text
	if i := firstLine(text, f.Response.Open); f.Response.Open != "" && i >= 0 {
		body = text[:i]
		t.Problems = append(t.Problems, Problem{InventedResponse, i, len(text), "the model wrote a tool's response itself"})
	}
	name, args := f.callLabels(body)
	answer := firstLine(body, f.Answer.After)
	if answer < 0 && name < 0 && args < 0 {
		answer = strings.LastIndex(body, f.Answer.After)
	}
	thought := body
	switch {
	case answer >= 0:
		thought = body[:answer]
		t.Answer, t.Answered = f.lineAnswer(body[answer+len(f.Answer.After):]), true
		if name >= 0 && name < answer {
			t.Problems = append([]Problem{{TextAfterCall, name, answer, "an answer follows the call, which is not made"}}, t.Problems...)
		}
	case name >= 0 || args >= 0:
		start := name
		if name < 0 {
			start = args
		}
		thought = body[:start]
		f.lineCall(&t, body, name, args)
	}
	t.Think = f.thought(thought)
	return t
}

// callLabels finds the last label of the arguments and the last one of the
// name before it; without arguments, the last one of the name. -1 is none.
func (f *Format) callLabels(body string) (name, args int) {
	args = lastLine(body, f.Call.Arguments[0])
	if args < 0 {
		return lastLine(body, f.Call.Name[0]), args
	}
	return lastLine(body[:args], f.Call.Name[0]), args
}

// lineCall reads the call whose labels stand at these offsets.
func (f *Format) lineCall(t *Turn, body string, name, args int) {
	problem := func(kind ProblemKind, start int, message string) {
		p := Problem{kind, start, len(body), message}
		t.Problems = append([]Problem{p}, t.Problems...)
	}
	if args < 0 {
		problem(UnclosedCall, name, "the call has no arguments")
		return
	}
	if name < 0 {
		problem(MissingName, args, "the call does not say which tool")
		return
	}
	tool, _, _ := strings.Cut(strings.TrimSpace(body[name+len(f.Call.Name[0]):args]), "\n")
	if tool = strings.TrimSpace(tool); tool == "" {
		problem(MissingName, name, "the call does not say which tool")
		return
	}
	start := args + len(f.Call.Arguments[0])
	value, size, err := new(jsonReader).read(body[start:])
	switch {
	case err == errNoEnd:
		problem(UnclosedCall, name, "the arguments have no end")
		return
	case err != nil:
		problem(BadJSON, name, err.Error())
		return
	}
	if _, ok := object(value); !ok {
		problem(BadJSON, name, "the arguments are not a JSON object")
		return
	}
	end := start + size
	t.Calls = []Call{{Name: tool, Arguments: value, Start: name, End: end}}
	if after := strings.TrimSpace(body[end:]); after != "" {
		t.Text = after
		problem(TextAfterCall, end, "text after the arguments")
	}
}

// lineAnswer cuts an answer where the model goes on with another label.
func (f *Format) lineAnswer(text string) string {
	for _, label := range []string{f.Think.Open, f.Call.Name[0], f.Call.Arguments[0]} {
		if i := strings.Index(text, "\n"+label); label != "" && i >= 0 {
			text = text[:i]
		}
	}
	return strings.TrimSpace(text)
}

// thought takes the labels out of the thinking part.
func (f *Format) thought(text string) string {
	if label := f.Think.Open; label != "" {
		text = strings.ReplaceAll("\n"+strings.TrimLeft(text, " \n"), "\n"+label, "\n")
	}
	return strings.TrimSpace(text)
}

// firstLine and lastLine give the first and last place of a label at the start
// of a line, or -1. The white space that begins the text does not count: the
// text goes on in a line of the prompt.
func firstLine(text, label string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], label)
		if i < 0 {
			return -1
		}
		if at += i; startsLine(text, at) {
			return at
		}
		at++
	}
}

func lastLine(text, label string) int {
	for end := len(text); ; {
		at := strings.LastIndex(text[:end], label)
		if at < 0 || startsLine(text, at) {
			return at
		}
		end = at + len(label) - 1
	}
}

func startsLine(text string, at int) bool {
	return at == 0 || text[at-1] == '\n' || at <= maxIndent && strings.Trim(text[:at], blanks) == ""
}

// lastMarker gives the last place of a marker, at the start of a line if there
// is such a one.
func lastMarker(text, marker string) int {
	if i := lastLine(text, marker); i >= 0 {
		return i
	}
	return strings.LastIndex(text, marker)
}
