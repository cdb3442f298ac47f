package template

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A quoteReader spells the strings of what is almost JSON, or almost Python, as
// JSON does, and what stands between them in ASCII. It knows a string's end by
// what follows it, because models forget to escape quotes.
type quoteReader struct {
	text   string
	python bool
	out    []byte
	open   []byte // the brackets that are open
	last   byte   // the last character between strings that is not white space; '"' for a string
	wasKey bool   // the last string was a key
	done   []Repair
}

// respellQuotes gives the text with other strings and punctuation and what was
// repaired. It is the text itself where a string has no end.
func respellQuotes(text string, python bool) (string, []Repair) {
	q := &quoteReader{text: text, python: python}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		closing := closingQuotes(r)
		if n := q.skip(text[at:]); n > 0 { // before quotes: a comment may have some
			at += n
			continue
		}
		if closing == "" || q.python && r == '`' {
			q.mark(r, text[at:at+size])
			at += size
			if r == ')' {
				q.missingComma(at)
			}
			continue
		}
		next, ok := q.quoted(at, size, closing)
		if !ok {
			return text, nil
		}
		q.missingComma(next)
		at = next
	}
	return string(q.out), q.done
}

// missingComma puts in the comma that a Python argument or call lacks before
// the next one, which text[at:] begins with.
func (q *quoteReader) missingComma(at int) {
	if q.python && len(q.open) > 0 && (q.last == '"' || q.last == ')') && nextPython.MatchString(q.text[at:min(len(q.text), at+maxTag)]) {
		q.out = append(q.out, ',')
		q.last = ','
		q.note(RepairStrings)
	}
}

// nextPython finds another argument by name, or another call in the next line.
var nextPython = regexp.MustCompile(`^(?:[ \t\r\n]+[A-Za-z_]\w*[ \t]*=[^=]|[ \t]*\r?\n\s*[A-Za-z_][\w.]*\()`)

// skip gives the length of what stands between strings and is left out: comments,
// the rest of arrows such as =>, commas too many.
func (q *quoteReader) skip(rest string) int {
	n := 0
	switch rest[0] {
	case '<': // a token of another model
		n = len(controlToken.FindString(rest[:min(len(rest), maxTag)]))
	case '#':
		n = strings.IndexByte(rest, '\n')
	case '/':
		if strings.HasPrefix(rest, "//") {
			n = strings.IndexByte(rest, '\n')
		} else if strings.HasPrefix(rest, "/*") {
			if n = strings.Index(rest, "*/"); n >= 0 {
				n += len("*/")
			}
		}
	case '=', '-', ':':
		if !q.python && q.last == '"' && len(rest) > 1 && strings.IndexByte("=>", rest[1]) >= 0 {
			q.mark('=', "=")
			return 2
		}
	case ',':
		if strings.IndexByte(",{[(", q.last) >= 0 && q.last != 0 {
			n = 1
		}
	}
	if n < 0 {
		n = len(rest)
	}
	if n > 0 {
		q.note(RepairJSON5)
	}
	return n
}

// controlToken finds a token such as <|eot_id|>.
var controlToken = regexp.MustCompile(`^<\|\w+\|>`)

// spaces are blanks and what models write for them.
const spaces = blanks + "\u00a0\u3000\u2002\u2003\u2009\u202f\u200b\u2060\ufeff"

// closingQuotes gives the quotes that end a string which begins with one.
func closingQuotes(r rune) string {
	switch r {
	case '"', '\'', '`':
		return string(r)
	case '“', '”', '„', '‟', '＂':
		return "“”‟＂"
	case '«', '»':
		return "«»"
	case '‘', '’':
		return "‘’"
	}
	return ""
}

// quoted respells the string whose quote stands at text[at:] and gives the
// place behind it.
func (q *quoteReader) quoted(at, size int, closing string) (next int, ok bool) {
	quote, body := q.text[at:at+size], at+size
	repair := RepairStrings
	if triple := strings.Repeat(quote, 3); size == 1 && strings.HasPrefix(q.text[at:], triple) {
		n := strings.Index(q.text[at+3:], triple)
		if n < 0 {
			return 0, false
		}
		inner := q.text[at+3 : at+3+n]
		if quote == "`" { // a fence: the code begins in the next line
			if _, code, ok := strings.Cut(inner, "\n"); ok {
				inner = strings.TrimSuffix(code, "\n")
			}
		}
		q.note(RepairTripleQuote)
		q.write(pythonString(inner))
		return at + n + 6, true
	}
	if doubled := quote + quote; size == 1 && strings.HasPrefix(q.text[at:], doubled) { // ""Oslo""
		if n := strings.Index(q.text[at+2:min(len(q.text), at+maxName)], doubled); n > 0 && !strings.Contains(q.text[at+2:at+2+n], quote) && q.ends(q.text[at+4+n:]) {
			q.note(RepairStrings)
			q.write(respellString(q.text[at+2:at+2+n], q.python))
			return at + n + 4, true
		}
	}
	if quote != `"` && quote != "'" && quote != "`" {
		repair = RepairPunctuation
	}
	end, size, ok := q.end(body, closing)
	if !ok {
		return 0, false
	}
	plain := respellString(q.text[body:end], q.python)
	if quote != `"` || plain[1:len(plain)-1] != q.text[body:end] {
		q.note(repair)
	}
	next = end + size
	switch prefix := q.prefix(at); {
	case q.python && strings.HasPrefix(q.text[next:], "("): // "search"(…)
		plain = q.text[body:end]
		q.note(RepairName)
	case prefix == 'r':
		plain = pythonString(q.text[body:end])
	}
	q.write(plain)
	return next, true
}

// prefix takes back the letter before a Python string, as in r"\d" or f"…".
func (q *quoteReader) prefix(at int) byte {
	if at == 0 || at > 1 && isWord(q.text[at-2]) || strings.IndexByte("rRfFbBuU", q.text[at-1]) < 0 {
		return 0
	}
	q.out = q.out[:len(q.out)-1]
	q.note(RepairStrings)
	return q.text[at-1] | 0x20
}

func (q *quoteReader) write(literal string) {
	q.wasKey = q.key()
	q.out = append(q.out, literal...)
	q.last = '"'
}

func (q *quoteReader) note(r Repair) { q.done = appendOnce(q.done, r) }

// end finds the quote that ends the string from text[from:] on.
func (q *quoteReader) end(from int, closing string) (at, size int, ok bool) {
	inner, member := 0, false // quotes inside; one of them looks like a key
	for i := from; i < len(q.text); {
		r, size := utf8.DecodeRuneInString(q.text[i:])
		switch {
		case r == '\\':
			i++
			if i < len(q.text) {
				_, n := utf8.DecodeRuneInString(q.text[i:])
				i += n
			}
			continue
		case !strings.ContainsRune(closing, r):
		case q.ends(q.text[i+size:]):
			// "Oslo, "days": 3, "unit": "c": the first string has no end.
			return i, size, inner%2 == 0 || !member
		default:
			inner++
			member = member || strings.HasPrefix(strings.TrimLeft(q.text[i+size:], spaces), ":")
		}
		i += size
	}
	return 0, 0, false
}

// ends reports whether a quote ends its string: what follows it goes on with
// the object or the list, not with a sentence.
func (q *quoteReader) ends(after string) bool {
	rest := strings.TrimLeft(after, spaces)
	if rest == "" {
		return true
	}
	key := q.key()
	next, size := utf8.DecodeRuneInString(rest)
	then := strings.TrimLeft(rest[size:], spaces)
	if q.python && q.last == '=' && nextPython.MatchString(after[:min(len(after), maxTag)]) {
		return true
	}
	switch next {
	case ':', '：':
		return key || q.python && q.last != '='
	case '=', '{', '[':
		return key
	case '-':
		return key && strings.HasPrefix(then, ">")
	case '}', '｝', ']', '］':
		return !key
	case ')', '）':
		return !q.python && !key && len(q.open) > 0 && q.open[len(q.open)-1] == '[' && strings.ContainsRune(",}])", firstRune(then)) || q.python && (then == "" || strings.ContainsRune(",;]})\n，］）", firstRune(then)) || nextPython.MatchString(rest[size:min(len(rest), maxTag)]))
	case '(':
		return q.python && (q.last == 0 || q.last == '[' || q.last == ',')
	case ',', '，', '、', ';':
		if token := controlToken.FindString(then[:min(len(then), maxTag)]); token != "" {
			then = strings.TrimLeft(then[len(token):], spaces)
		}
		return !key && q.goesOn(then)
	case '+':
		return closingQuotes(firstRune(then)) != ""
	case '/':
		return strings.HasPrefix(rest, "/*") || strings.HasPrefix(rest, "//")
	case '#':
		return len(rest) < len(after)
	}
	return closingQuotes(next) != "" && len(rest) < len(after) // a comma or a colon is missing
}

// goesOn reports whether a text is what follows a comma.
func (q *quoteReader) goesOn(text string) bool {
	r := firstRune(text)
	if text == "" || closingQuotes(r) != "" || strings.ContainsRune("{[｛［}]｝］)）.-/#,", r) || r >= '0' && r <= '9' {
		return true
	}
	word := 0
	for word < len(text) && (isWord(text[word])) {
		word++
	}
	switch strings.ToLower(text[:word]) {
	case "true", "false", "null", "none", "nan":
		return true
	}
	then := firstRune(strings.TrimLeft(text[word:], " \t"))
	return word > 0 && (strings.ContainsRune(":：", then) || q.python && strings.ContainsRune("=(（", then))
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func firstRune(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// key reports whether the string at hand is the key of an object.
func (q *quoteReader) key() bool {
	return len(q.open) > 0 && q.open[len(q.open)-1] == '{' && (q.last == '{' || q.last == ',' || q.last == '"' && !q.wasKey || q.last == '}' || q.last == ']')
}

// mark writes a character between strings.
func (q *quoteReader) mark(r rune, c string) {
	plain, changed := plainMark(r, c)
	if changed {
		q.note(RepairPunctuation)
	}
	if plain == ";" && len(q.open) > 0 {
		plain = ","
		q.note(RepairPunctuation)
	}
	if !q.python {
		switch plain {
		case "(":
			plain, changed = "[", true
		case ")":
			plain, changed = "]", true
		}
		if changed {
			q.note(RepairPunctuation)
		}
	}
	switch plain {
	case "{", "[", "(":
		q.open = append(q.open, plain[0])
	case "}", "]", ")":
		q.open = q.open[:max(0, len(q.open)-1)]
	case "=":
		if !q.python && q.last == '"' {
			plain = ":"
			q.note(RepairPunctuation)
		}
	case ":":
		if q.python && len(q.open) > 0 && q.open[len(q.open)-1] == '(' {
			plain = "="
			q.note(RepairPunctuation)
		}
	}
	q.out = append(q.out, plain...)
	if plain != "" && strings.Trim(plain, blanks) != "" {
		q.last = plain[len(plain)-1]
	}
}

// plainMark gives the ASCII spelling of a character between strings.
func plainMark(r rune, c string) (plain string, changed bool) {
	switch r {
	case '：':
		plain = ":"
	case '，', '、':
		plain = ","
	case '｛':
		plain = "{"
	case '｝':
		plain = "}"
	case '［', '【':
		plain = "["
	case '］', '】':
		plain = "]"
	case '（':
		plain = "("
	case '）':
		plain = ")"
	case '＝':
		plain = "="
	case '\u00a0', '\u3000', '\u2002', '\u2003', '\u2009', '\u202f':
		plain = " "
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff':
	default:
		return c, false
	}
	return plain, true
}

// respellString spells what stands between quotes as a JSON string: line ends,
// tabs and quotes escaped, and backslashes that begin no escape doubled. In a
// path, all of them are.
func respellString(s string, python bool) string {
	path := isPath(s)
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			b.WriteString(`\"`)
		case c < 0x20:
			control := pythonString(string(rune(c)))
			b.WriteString(control[1 : len(control)-1])
		case c != '\\':
			b.WriteByte(c)
		case path:
			b.WriteString(`\\`)
		default:
			n, escape := respellEscape(s[i+1:], python)
			b.WriteString(escape)
			i += n
		}
	}
	b.WriteByte('"')
	return b.String()
}

// respellEscape gives the JSON for a backslash and what follows it, and how much
// of that it took.
func respellEscape(after string, python bool) (n int, escape string) {
	if after == "" {
		return 0, `\\`
	}
	switch c := after[0]; {
	case c == '\'' || c == '_' || c == '`':
		return 1, string(c)
	case c == 'u' && len(after) >= 5 && isHex(after[1:5]), c == '"', c == '\\', strings.IndexByte("bfnrt", c) >= 0:
		return 1, `\` + string(c)
	case c == '/' && !python:
		return 1, `\/`
	case c == 'x' && len(after) >= 3 && isHex(after[1:3]):
		return 3, `\u00` + after[1:3]
	case c == '\n' && python: // the string goes on in the next line
		return 1, ""
	}
	return 0, `\\`
}

// isPath reports whether a string is a path of Windows whose backslashes nothing
// escapes: one of them begins no escape.
func isPath(s string) bool {
	drive := len(s) > 3 && isWord(s[0]) && s[1] == ':' && s[2] == '\\' && s[3] != '\\'
	share := strings.HasPrefix(s, `\\`) && !strings.HasPrefix(s, `\\\\`) && strings.Contains(s[2:], `\`)
	if !drive && !share {
		return false
	}
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' {
			if strings.IndexByte(`"\/bfnrtu`, s[i+1]) < 0 {
				return !strings.Contains(s[2:], `\\`)
			}
			i++
		}
	}
	return false
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
