package template

import (
	"regexp"
	"slices"
	"strings"
)

const (
	blanks    = " \t\r\n"
	maxIndent = 8 // bytes of white space that begin a turn
)

// A lineParser reads a turn whose calls are a line with the name and then the
// arguments. The prompt may end in the thinking label, so that the turn begins
// in the middle of a line.
type lineParser struct {
	reader
	turn Turn
	body string // the turn, up to a response that the model invented
}

func (f *Format) parseLines(text string, r Reading) Turn {
	p := &lineParser{reader: reader{Format: f, Reading: r}, body: text}
	p.turn.InThink = f.Think.Opened
	p.cut()
	calls := p.places()
	answer := firstLine(p.body, f.Answer.After)
	if answer < 0 && len(calls) == 0 {
		answer = strings.LastIndex(p.body, f.Answer.After)
	}
	thought := p.body
	switch {
	case answer >= 0:
		thought = p.body[:answer]
		p.turn.Answer, p.turn.Answered = p.answer(p.body[answer+len(f.Answer.After):]), true
		if len(calls) > 0 && calls[0].start() < answer {
			p.problem(TextAfterCall, calls[0].start(), answer, "an answer follows the call, which is not made")
		}
	case len(calls) > 0:
		thought = p.body[:calls[0].start()]
		for i, c := range calls {
			if !p.budget.step() {
				p.problem(BadJSON, c.start(), len(p.body), "more calls than a turn may have")
				break
			}
			end := len(p.body)
			if i+1 < len(calls) {
				end = calls[i+1].start()
			}
			p.call(c, end)
		}
	case f.Answer.Optional && strings.TrimSpace(p.body) != "" && len(p.turn.Problems) == 0:
		p.turn.Text = strings.TrimSpace(p.body)
		p.turn.Answer, p.turn.Answered = p.turn.Text, true
		return p.turn
	}
	if f.Think.Open == "" {
		p.turn.Text = strings.TrimSpace(thought)
		return p.turn
	}
	p.turn.Think = f.thought(thought)
	return p.turn
}

// cut ends the body where the model's turn ends: at a response that it invented,
// at an end token, and at the next question behind a call or an answer.
func (p *lineParser) cut() {
	whole := len(p.body)
	if i := firstLine(p.body, p.Response.Open); p.Response.Open != "" && i >= 0 {
		p.body, p.Ended = p.body[:i], true
		p.problem(InventedResponse, i, whole, "the model wrote a tool's response itself")
	}
	for _, token := range p.ends {
		if label := strings.TrimLeft(token, "\n"); label != token {
			from := firstLine(p.body, p.Answer.After)
			if call := firstLine(p.body, p.Call.Arguments[0]); from < 0 || call >= 0 && call < from {
				from = call
			}
			if i := nextLine(p.body, label, max(0, from)); from >= 0 && i >= 0 {
				p.body, p.Ended = p.body[:i], true
			}
		} else if i := strings.Index(p.body, token); i >= 0 {
			p.body, p.Ended = p.body[:i], true
		}
	}
}

// A place is where the two labels of a call stand, -1 for none.
type place struct{ name, arguments int }

func (p place) start() int {
	if p.name >= 0 {
		return p.name
	}
	return p.arguments
}

// places finds the labels of the calls. Where a turn has one call it is the
// last name before the last arguments; without arguments, the last name.
func (p *lineParser) places() []place {
	if p.SingleCall {
		at := place{arguments: lastLine(p.body, p.Call.Arguments[0])}
		if before := p.body[:max(0, at.arguments)]; at.arguments >= 0 {
			at.name = lastLine(before, p.Call.Name[0])
		} else {
			at.name = lastLine(p.body, p.Call.Name[0])
		}
		if at.start() < 0 {
			return nil
		}
		return []place{at}
	}
	var out []place
	for from := 0; ; {
		name := nextLine(p.body, p.Call.Name[0], from)
		if name < 0 {
			break
		}
		end := nextLine(p.body, p.Call.Name[0], name+1)
		if end < 0 {
			end = len(p.body)
		}
		out = append(out, place{name, nextLine(p.body[:end], p.Call.Arguments[0], name)})
		from = end
	}
	if args := firstLine(p.body, p.Call.Arguments[0]); len(out) == 0 && args >= 0 {
		out = append(out, place{-1, args})
	}
	return out
}

func (p *lineParser) problem(kind ProblemKind, start, end int, message string) {
	p.turn.Problems = append(p.turn.Problems, Problem{kind, start, end, message})
}

// call reads the call whose labels stand there; it ends before body[end:].
func (p *lineParser) call(at place, end int) {
	if at.arguments < 0 {
		p.withoutArguments(at, end)
		return
	}
	if at.name < 0 {
		p.problem(MissingName, at.arguments, end, "the call does not say which tool")
		return
	}
	name, _, _ := strings.Cut(strings.TrimSpace(p.body[at.name+len(p.Call.Name[0]):at.arguments]), "\n")
	call := Call{Name: strings.TrimSpace(name), Start: at.name}
	if !p.Strict {
		call = p.plainName(call)
	}
	if call.Name == "" {
		p.problem(MissingName, at.name, end, "the call does not say which tool")
		return
	}
	start := at.arguments + len(p.Call.Arguments[0])
	if again := skipBlanks(p.body, start); !p.Strict && strings.HasPrefix(p.body[again:end], p.Call.Arguments[0]) { // said twice
		start, call.Repairs = again+len(p.Call.Arguments[0]), appendOnce(call.Repairs, RepairTags)
	}
	value, size, err := p.budget.readJSON(p.body[start:end])
	if _, ok := object(value); err != nil || !ok {
		p.mendedCall(call, start, end, err)
		return
	}
	call.Arguments, call.End = value, start+size
	p.add(p.unwrapped(call))
	if after := strings.TrimSpace(p.body[call.End:end]); strings.Trim(after, "`") != "" {
		p.turn.Text = after
		p.problem(TextAfterCall, call.End, end, "text after the arguments")
	}
}

func (p *lineParser) add(call Call) { p.turn.Calls = append(p.turn.Calls, p.fitted(call)) }

// withoutArguments reads a call that has only the label of the name.
func (p *lineParser) withoutArguments(at place, end int) {
	from := skipBlanks(p.body, at.name+len(p.Call.Name[0]))
	line := strings.TrimRight(p.body[from:max(from, end)], blanks)
	call, ok := p.inName(line)
	switch {
	case ok:
		call.Start, call.End = at.name, from+len(line)
		p.add(call)
	case !p.Strict && isNothing(line): // "Action: None"
	default:
		p.problem(UnclosedCall, at.name, end, "the call has no arguments")
	}
}

// mendedCall reads arguments, at body[start:end], that are no JSON object.
func (p *lineParser) mendedCall(call Call, start, end int, err error) {
	from := skipBlanks(p.body[:end], start)
	text := strings.TrimRight(p.body[from:end], blanks)
	cut := !p.Ended && end == len(p.body) && (p.Cut || p.budget.unfinished(text) || text == "" && !p.known(call.Name))
	if !p.Strict && !cut {
		if arguments, repairs, ok := p.argumentsIn(call.Name, text); ok {
			call.Arguments, call.End = arguments, start
			if text != "" {
				call.End = from + len(text)
			}
			call.Repairs = appendOnce(call.Repairs, repairs...)
			p.add(p.unwrapped(call))
			return
		}
	}
	switch {
	case err == errNoEnd || text == "" || cut && p.Cut:
		p.problem(UnclosedCall, call.Start, end, "the arguments have no end")
	case err != nil:
		p.problem(BadJSON, call.Start, end, err.Error())
	default:
		p.problem(BadJSON, call.Start, end, "the arguments are not a JSON object")
	}
}

// unwrapped takes the arguments out of a whole call that stands in their place.
func (p *lineParser) unwrapped(call Call) Call {
	keys, _ := object(call.Arguments)
	tool, known := p.anyTool(call.Name)
	if p.Strict || !known || len(keys) == 0 {
		return call
	}
	own := p.budget.parameters(tool)
	for key := range keys {
		if _, ok := own[key]; ok {
			return call
		}
	}
	usual := p.usual()
	inner, problem := usual.calls(call.Arguments)
	if problem.Kind == "" && len(inner) == 1 && inner[0].Name == tool.Name {
		call.Arguments, call.Repairs = inner[0].Arguments, appendOnce(call.Repairs, append(inner[0].Repairs, RepairNesting)...)
	}
	return call
}

// inName reads a call that stands as a whole where the name should:
// search[owl], search("owl"), search(query="owl"), or JSON.
func (p *lineParser) inName(line string) (Call, bool) {
	if p.Strict {
		return Call{}, false
	}
	if i := strings.IndexAny(line, "{["); i >= 0 && (i == 0 || strings.HasPrefix(line, fenceMark)) {
		usual := p.usual()
		if calls, ok := usual.mendedOrWhole(line[i:]); ok && p.budget.measure(line[i:]).closed && len(calls) == 1 && p.offered(calls) {
			return repaired(calls, RepairSpelling)[0], true
		}
	}
	m := nameWithInput.FindStringSubmatch(line)
	if m == nil {
		return Call{}, false
	}
	call := p.plainName(Call{Name: m[1]})
	if !p.known(call.Name) {
		return Call{}, false
	}
	arguments, repairs, ok := p.argumentsIn(call.Name, strings.TrimSpace(m[2]))
	if !ok {
		return Call{}, false
	}
	call.Arguments = arguments
	call.Repairs = appendOnce(append(call.Repairs, RepairArguments), repairs...)
	return call, true
}

// nameWithInput finds a name with its input in brackets, to the end of the text.
var nameWithInput = regexp.MustCompile(`(?s)^[\x60"']?([\w.-]+)[\x60"']?\s*[\[(]\s*(.*?)\s*[\])]\s*[\x60.]*$`)

// plainName takes quotes, brackets and emphasis from a name.
func (p *lineParser) plainName(call Call) Call {
	plain := strings.TrimPrefix(call.Name, p.Call.Name[0])
	plain = strings.Trim(plain, "`'\"*_[](){}<>“”‘’.,;: \t")
	if plain != "" && plain != call.Name {
		if _, ok := p.tool(call.Name); !ok {
			call.Name, call.Repairs = plain, appendOnce(call.Repairs, RepairName)
		}
	}
	return call
}

// answer cuts an answer where the model goes on with another label.
func (p *lineParser) answer(text string) string {
	for _, label := range []string{p.Think.Open, p.Call.Name[0], p.Call.Arguments[0]} {
		// A label in a code block is an example.
		if i := strings.Index(text, "\n"+label); label != "" && i >= 0 && strings.Count(text[:i], fenceMark)%2 == 0 {
			text = text[:i]
		}
	}
	if !p.Strict {
		text = strings.TrimLeft(text, "*_ \n") // **Final Answer:**
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

// firstLine, nextLine and lastLine give the place of a label at the start of a
// line, or -1. The white space that begins the text does not count: the text
// goes on in a line of the prompt.
func firstLine(text, label string) int { return nextLine(text, label, 0) }

func nextLine(text, label string, from int) int {
	for at := from; at < len(text); {
		i := strings.Index(text[at:], label)
		if i < 0 {
			return -1
		}
		if at += i; startsLine(text, at) {
			return at
		}
		at++
	}
	return -1
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

// labelled reports whether a text has one of the labels.
func labelled(text string, labels ...string) bool {
	return slices.ContainsFunc(labels, func(l string) bool { return l != "" && strings.Contains(text, l) })
}
