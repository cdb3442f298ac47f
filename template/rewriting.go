package template

import (
	"bytes"
	"encoding/json"
	"html"
	"math/big"
	"regexp"
	"strings"

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

// unquotedObject takes the quotes from an object or a list that stands in them
// with quotes of its own: "arguments": "{"city": "Oslo"}".
func unquotedObject(text string) string {
	if !quotedStart.MatchString(text) {
		return text
	}
	return quotedEnd.ReplaceAllString(quotedStart.ReplaceAllString(text, "$1$2"), "$1$2")
}

var (
	quotedStart = regexp.MustCompile(`(:\s*)"([{\[]["'])`)
	quotedEnd   = regexp.MustCompile(`([}\]])"(\s*[},\]])`)
)

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
		case c == '{' || c == '[' || c == '(':
			open = append(open, c)
		case c == '}' || c == ']' || c == ')':
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
	var end []byte
	for i := len(open) - 1; i >= 0; i-- {
		end = append(end, closer(open[i]))
	}
	return strings.TrimRight(b.String(), blanks+",") + string(end)
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
	switch open {
	case '{':
		return '}'
	case '[':
		return ']'
	}
	return ')'
}
