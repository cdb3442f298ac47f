package template

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// A Repair is one thing that was done to read a call that is not spelled as
// the format asks.
type Repair string

// The repairs, in the order in which they are tried. A call lists those that
// it needed.
const (
	// The spelling around the JSON.
	RepairTags     Repair = "tags"     // a tag or label is misspelled
	RepairOpen     Repair = "open"     // the opening tag is missing
	RepairClose    Repair = "close"    // the closing tag is missing or another one
	RepairSpelling Repair = "spelling" // the call is spelled as in another format
	// The JSON.
	RepairHTML        Repair = "html"         // the call is escaped for HTML
	RepairAround      Repair = "around"       // a code fence, a comment or words stand around the JSON
	RepairJSON5       Repair = "json5"        // it is JSON5: single quotes, trailing commas, comments, bare keys
	RepairTripleQuote Repair = "triple_quote" // a string between """ or '''
	RepairPunctuation Repair = "punctuation"  // typographic quotes, full-width colons and commas, other spaces
	RepairStrings     Repair = "strings"      // line ends or wrong escapes in a string
	RepairBrackets    Repair = "brackets"     // brackets too few, too many or of the wrong kind
	RepairJSON        Repair = "json"         // more than that: missing quotes, commas, colons, Python's literals
	// The call.
	RepairNesting   Repair = "nesting"   // the call stands in a list, in {"function": …}, or its name is a key
	RepairKeys      Repair = "keys"      // other keys than the format's
	RepairName      Repair = "name"      // the tool's name with other case, punctuation or a prefix
	RepairArguments Repair = "arguments" // the arguments are a string, a list, null, or stand beside the name
	RepairTypes     Repair = "types"     // a value of another type than the schema's: "5" for 5
)

// A rewriting is one repair of a text. What is JSON already stays the same.
type rewriting func(b *budget, text string) (string, []Repair)

// rewritings are the repairs in the order in which they are tried.
var rewritings = []rewriting{
	always(RepairAround, trimAround),
	always(RepairJSON5, fromJSON5),
	always(RepairHTML, fromHTML),
	always(RepairArguments, unquotedObject),
	func(_ *budget, s string) (string, []Repair) { return respellQuotes(s, false) },
	always(RepairBrackets, mendBrackets),
	always(RepairJSON5, fromJSON5),
	(*budget).lastResort,
}

func always(r Repair, f func(string) string) rewriting {
	return func(_ *budget, s string) (string, []Repair) { return f(s), []Repair{r} }
}

// mend gives the JSON that the text was meant to be and what it took, or false
// where no repair makes an object or a list of it. The text has a known end.
func (b *budget) mend(text string) (json.RawMessage, []Repair, bool) {
	return b.mendTo(text, func(json.RawMessage) bool { return true })
}

// mendTo is mend for JSON that is to be accepted: where the first reading is not,
// the repair of last resort reads the text as it was.
func (b *budget) mendTo(text string, accept func(json.RawMessage) bool) (json.RawMessage, []Repair, bool) {
	if b.mends++; b.mends > maxMends || len(text) > maxRepair || nesting(text) > maxRepairDepth {
		return nil, nil, false
	}
	text = strings.TrimSpace(text)
	b.work += len(text) * (len(rewritings) + 1)
	if value, done, ok := b.rewritten(text, rewritings, accept); ok {
		return value, done, true
	}
	return b.rewritten(text, []rewriting{always(RepairAround, trimAround), (*budget).lastResort}, accept)
}

// rewritten tries rewritings one after the other, each on what the last one left.
func (b *budget) rewritten(text string, all []rewriting, accept func(json.RawMessage) bool) (json.RawMessage, []Repair, bool) {
	var done []Repair
	for _, r := range all {
		mended, repairs := r(b, text)
		if mended == text {
			continue
		}
		text, done = mended, appendOnce(done, repairs...)
		if value := json.RawMessage(strings.TrimSpace(text)); composite(string(value)) && json.Valid(value) {
			return value, done, accept(value)
		}
	}
	return nil, nil, false
}

// composite reports whether a text begins as an object or a list does.
func composite(text string) bool { return text != "" && (text[0] == '{' || text[0] == '[') }

// nesting is how many brackets are open at once, at most, strings or not.
func nesting(text string) int {
	deepest, now := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now = max(0, now-1)
		}
	}
	return deepest
}

// lastResort is the library that guesses what is missing.
func (b *budget) lastResort(text string) (string, []Repair) {
	if end := strings.TrimRight(text, blanks); measure(text).quoted && !strings.HasSuffix(end, "}") && !strings.HasSuffix(end, "]") {
		return text, nil // it is cut in a string
	}
	cost := len(text) * (1 + strings.Count(text, "{") + strings.Count(text, "[") + strings.Count(text, `"`) +
		strings.Count(text, "'") + strings.Count(text, ":") + strings.Count(text, `\`))
	if b.guess += cost; b.guess > maxGuess {
		return text, nil
	}
	mended, err := guarded(text)
	if err != nil {
		return text, nil
	}
	return mended, []Repair{RepairJSON}
}

// guarded keeps a fault of the library from ending more than the repair.
func guarded(text string) (mended string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the repair broke: %v", r)
		}
	}()
	return jsonrepair.Repair(text)
}

// trimAround cuts off what stands before the first bracket and after the one
// that closes it: fences, words, invisible characters.
func trimAround(text string) string {
	start := strings.IndexAny(text, "{[")
	if start < 0 {
		return text
	}
	e := measure(text[start:])
	switch rest := strings.TrimSpace(text[start+e.end:]); {
	case !e.closed: // only a fence at the end is known not to belong to it
		return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text[start:]), "```"))
	case strings.Trim(rest, "]} \t\r\n") == "", closedTooEarly(rest): // brackets too many are another repair
		return strings.TrimSpace(text[start:])
	}
	return text[start : start+e.end]
}

// closedTooEarly reports whether an object goes on behind its end: }, "key": …
func closedTooEarly(rest string) bool {
	rest, comma := strings.CutPrefix(rest, ",")
	return comma && strings.HasPrefix(strings.TrimLeft(rest, blanks), `"`)
}

// An extent is how far the bracketed value goes that a text begins with.
type extent struct {
	end    int
	closed bool   // its bracket is closed
	quoted bool   // the text ends inside a string
	open   string // the brackets that are open at the end
}

// measure finds the end of a bracketed value. A bracket of another kind closes
// those that are open inside of its own: [{"a": 1] is a list.
func measure(text string) extent {
	var b brackets
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			b.push(c)
		case c == '}' || c == ']':
			if b.pop(c); len(b.open) == 0 {
				return extent{end: i + 1, closed: true}
			}
		}
	}
	return extent{end: len(text), quoted: quoted, open: string(b.open)}
}

func (b *budget) measure(text string) extent {
	e := measure(text)
	b.work += e.end
	return e
}

func (b *budget) measurePython(text string) extent {
	e := measurePython(text)
	b.work += e.end
	return e
}

// measurePython is measure for Python: with parentheses, and with strings between
// quotes of either kind.
func measurePython(text string) extent {
	var b brackets
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			n, ok := pythonStringEnd(text[i:])
			if !ok {
				return extent{end: len(text), quoted: true}
			}
			i += n - 1
		case '(', '[', '{':
			b.push(c)
		case ')', ']', '}':
			if b.pop(c); len(b.open) == 0 {
				return extent{end: i + 1, closed: true}
			}
		case "（"[0]: // full-width ones, as models write them in Chinese
			if strings.HasPrefix(text[i:], "（") {
				b.push('(')
			} else if strings.HasPrefix(text[i:], "）") {
				if b.pop(')'); len(b.open) == 0 {
					return extent{end: i + len("）"), closed: true}
				}
			}
		}
	}
	return extent{end: len(text), open: string(b.open)}
}

// brackets are those that are open.
type brackets struct {
	open  []byte
	count [3]int // of each kind
}

func (b *brackets) push(c byte) {
	b.open = append(b.open, c)
	b.count[kindOfBracket(c)]++
}

// pop closes the last bracket of the kind of c and those inside of it, if there
// is one.
func (b *brackets) pop(c byte) {
	for kind := kindOfBracket(c); b.count[kind] > 0; {
		last := kindOfBracket(b.open[len(b.open)-1])
		b.open = b.open[:len(b.open)-1]
		b.count[last]--
		if last == kind {
			return
		}
	}
}

func kindOfBracket(c byte) int {
	switch c {
	case '{', '}':
		return 0
	case '[', ']':
		return 1
	}
	return 2
}
