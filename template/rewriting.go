package template

import (
	"bytes"
	"encoding/json"
	"html"
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/titanous/json5"
)

// fromJSON5 spells JSON5 as JSON, or gives the text as it is.
func fromJSON5(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	var whole, v any
	if json5.Unmarshal([]byte(text), &whole) != nil { // the decoder below would stop after the value
		return text
	}
	dec := json5.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return text
	}
	plain, ok := fromJSON5Value(v)
	if !ok {
		return text
	}
	out, err := encode(plain)
	if err != nil {
		return text
	}
	return string(out)
}

// fromJSON5Value makes the numbers of JSON5 those of JSON: hexadecimal ones,
// a sign +, a point without digits. JSON has no infinity.
func fromJSON5Value(v any) (any, bool) {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if v[k], ok = fromJSON5Value(e); !ok {
				return nil, false
			}
		}
	case []any:
		for i, e := range v {
			if v[i], ok = fromJSON5Value(e); !ok {
				return nil, false
			}
		}
	case json5.Number:
		return plainNumber(string(v))
	}
	return v, true
}

func plainNumber(s string) (json.Number, bool) {
	s = strings.TrimPrefix(s, "+")
	if digits := strings.ToLower(strings.TrimPrefix(s, "-")); strings.HasPrefix(digits, "0x") {
		n, ok := new(big.Int).SetString(digits[2:], 16)
		if !ok {
			return "", false
		}
		if s[0] == '-' {
			n.Neg(n)
		}
		return json.Number(n.String()), true
	}
	sign, digits := "", s
	if strings.HasPrefix(s, "-") {
		sign, digits = "-", s[1:]
	}
	if strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	if whole, rest, found := strings.Cut(digits, "."); found && (rest == "" || rest[0] == 'e' || rest[0] == 'E') {
		digits = whole + ".0" + rest
	}
	return json.Number(sign + digits), json.Valid([]byte(sign + digits))
}

// encode is json.Marshal without escapes for HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// fromHTML undoes HTML's escapes where the quotes of the JSON are escaped.
func fromHTML(text string) string {
	if !strings.Contains(text, "&quot;") && !strings.Contains(text, "&#34;") && !strings.Contains(text, "&#x22;") {
		return text
	}
	return html.UnescapeString(text)
}

// tripleQuotes finds strings as Python writes them over lines.
var tripleQuotes = regexp.MustCompile(`(?s)"""(.*?)"""|'''(.*?)'''`)

// fromTriple spells a string between triple quotes as JSON.
func fromTriple(s string) string { return pythonString(s[3 : len(s)-3]) }

// plainPunctuation spells the punctuation between strings in ASCII: the quotes
// around them, colons, commas, brackets and spaces.
func plainPunctuation(text string) string {
	var b strings.Builder
	closing := "" // the quotes that end the string at hand
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		c := text[i : i+size]
		i += size
		switch {
		case closing == `"`:
			if r == '\\' && i < len(text) {
				_, n := utf8.DecodeRuneInString(text[i:])
				c += text[i : i+n]
				i += n
			}
			if r == '"' {
				closing = ""
			}
			b.WriteString(c)
		case closing != "" && strings.ContainsRune(closing, r):
			closing = ""
			b.WriteByte('"')
		case closing != "" && r == '"':
			b.WriteString(`\"`)
		case closing != "":
			b.WriteString(c)
		default:
			plain := c
			plain, closing = plainMark(r, c)
			b.WriteString(plain)
		}
	}
	return b.String()
}

// plainMark gives the ASCII spelling of a character between strings and, for
// one that opens a string, those that end it.
func plainMark(r rune, c string) (plain, closing string) {
	switch r {
	case '"':
		return c, `"`
	case '“', '”', '„', '‟', '＂':
		return `"`, "“”‟＂"
	case '«', '»':
		return `"`, "«»"
	case '：':
		return ":", ""
	case '，', '、':
		return ",", ""
	case '｛':
		return "{", ""
	case '｝':
		return "}", ""
	case '［', '【':
		return "[", ""
	case '］', '】':
		return "]", ""
	case '\u00a0', '\u3000', '\u2002', '\u2003', '\u2009', '\u202f':
		return " ", ""
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff':
		return "", ""
	}
	return c, ""
}

// mendStrings escapes what may not stand in a JSON string as it is: line ends,
// tabs, other control characters, and backslashes that begin no escape.
func mendStrings(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case !quoted || c == '"':
			quoted = quoted != (c == '"')
			b.WriteByte(c)
		case c == '\\':
			next := text[i+1 : min(i+6, len(text))]
			switch {
			case next == "":
				b.WriteString(`\\`)
			case next[0] == '\'':
				b.WriteByte('\'')
				i++
			case next[0] == 'u' && len(next) == 5 && isHex(next[1:]), strings.IndexByte(`"\/bfnrt`, next[0]) >= 0:
				b.WriteByte(c)
				b.WriteByte(next[0])
				i++
			default:
				b.WriteString(`\\`)
			}
		case c < 0x20:
			quotedControl := pythonString(string(rune(c)))
			b.WriteString(quotedControl[1 : len(quotedControl)-1])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// mendBrackets closes what is open, puts in brackets that others need, and
// leaves out those that close nothing or open an object inside of a key.
func mendBrackets(text string) string {
	var b strings.Builder
	var open []byte
	quoted, last := false, byte(0) // last is the last character between strings that is not white space
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted:
			if c == '\\' && i+1 < len(text) {
				b.WriteByte(c)
				i++
				c = text[i]
			} else if c == '"' {
				quoted = false
			}
			b.WriteByte(c)
			continue
		case c == '"':
			quoted = true
		case c == '{' && last == '{':
			continue
		case c == '{' || c == '[':
			open = append(open, c)
		case c == '}' || c == ']':
			var out string
			open, out = closeBracket(open, c, strings.TrimLeft(text[i+1:], blanks))
			b.WriteString(out)
			last = c
			continue
		}
		b.WriteByte(c)
		if strings.IndexByte(blanks, c) < 0 {
			last = c
		}
	}
	if quoted {
		return text
	}
	mended := strings.TrimRight(b.String(), blanks+",")
	for i := len(open) - 1; i >= 0; i-- {
		mended += string(closer(open[i]))
	}
	return mended
}

// closeBracket gives what is open after a closing bracket and what stands for
// the bracket; after follows it.
func closeBracket(open []byte, c byte, after string) ([]byte, string) {
	n := len(open)
	for i := n - 1; i >= 0; i-- {
		if closer(open[i]) != c {
			continue
		}
		if i == 0 && strings.HasPrefix(after, ",") && strings.HasPrefix(strings.TrimLeft(after[1:], blanks), `"`) {
			return open, "" // the object goes on: this one is too many
		}
		out := ""
		for j := n - 1; j >= i; j-- {
			out += string(closer(open[j]))
		}
		return open[:i], out
	}
	return open, ""
}

func closer(open byte) byte {
	if open == '{' {
		return '}'
	}
	return ']'
}
