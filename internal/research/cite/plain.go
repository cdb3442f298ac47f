package cite

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var (
	blockMarks = regexp.MustCompile(`^(?:\s*(?:>|#{1,6}\s|[-*+•]\s))+`)
	ruleLine   = regexp.MustCompile(`^[\s|:_*=-]*$`)
	footnote   = regexp.MustCompile(`^\[\^?\d{1,3}\]`)
)

// plain is a text as evidence and pages are compared: see Page.Look.
func plain(text string) string {
	p := plainer{}
	p.out.Grow(len(text))
	for line := range strings.SplitSeq(norm.NFKC.String(text), "\n") {
		p.space = true
		if !ruleLine.MatchString(line) {
			p.line(line[len(blockMarks.FindString(line)):])
		}
	}
	return p.out.String()
}

// A plainer writes a text with its spaces in the right places.
type plainer struct {
	out   strings.Builder
	last  rune // that was written
	space bool // one is due before the next
}

const maxAddress = 2048 // bytes of the address of a link

// line writes a line without its inline marks.
func (p *plainer) line(line string) {
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		rest := line[i+size:]
		i += size
		switch r {
		case '*', '_', '`', '\u00ad', '\u200b', '\u2060', '\ufeff':
		case '~':
			if strings.HasPrefix(rest, "~") {
				i++
				continue
			}
			p.write(r)
		case '\\':
			if rest != "" && rest[0] < utf8.RuneSelf && unicode.In(rune(rest[0]), unicode.Punct, unicode.Symbol) {
				p.put(rune(rest[0]))
				i++
				continue
			}
			p.write(r)
		case '!':
			if !strings.HasPrefix(rest, "[") {
				p.write(r)
			}
		case '[':
			i += max(len(footnote.FindString(line[i-1:]))-1, 0)
		case ']':
			i += address(rest)
		case '|':
			p.space = true
		default:
			p.put(r)
		}
	}
}

// address is the length of a link's address in parentheses.
func address(rest string) int {
	if !strings.HasPrefix(rest, "(") {
		return 0
	}
	depth := 0
	for i := 0; i < min(len(rest), maxAddress); i++ {
		switch rest[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// put writes a character in its one spelling.
func (p *plainer) put(r rune) {
	switch {
	case unicode.IsSpace(r):
		p.space = true
		return
	case strings.ContainsRune("“”„‟«»″〝〞＂", r):
		r = '"'
	case strings.ContainsRune("‘’‚‛‹›′´", r):
		r = '\''
	case unicode.Is(unicode.Pd, r) || r == '−':
		r = '-'
	}
	p.write(r)
}

// write writes a character, and the space before it where there is to be one.
func (p *plainer) write(r rune) {
	if r == '-' && p.last == '-' {
		p.space = false
		return
	}
	if p.space && p.last != 0 && r != '-' && p.last != '-' && !solid(r) && !solid(p.last) {
		p.out.WriteByte(' ')
	}
	p.out.WriteRune(r)
	p.last, p.space = r, false
}
