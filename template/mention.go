package template

import (
	"regexp"
	"slices"
	"strings"
)

// usualEnds are tokens that end a model's turn. Servers leave them in the text
// of a model that they do not know.
var usualEnds = []string{"<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "</s>"}

// endTokens gives the tokens that end a turn: the usual ones and the format's.
func (f *Format) endTokens() []string {
	ends := slices.Clone(usualEnds)
	for _, s := range f.Stops {
		if s.Literal != "" && (s.Means == MeansEnd || s.Means == MeansAnswer && strings.HasPrefix(s.Literal, "\n")) {
			ends = union(ends, []string{s.Literal})
		}
	}
	return ends
}

// otherTurn is how a turn of somebody else begins behind the token </s>.
var otherTurn = regexp.MustCompile(`^(?:$|<s>\s*\[|<\||\[/?[A-Z_]+\])`)

// endsTurn reports whether a token that ends a turn, before text[end:], is meant
// so. The text </s> is HTML too: only another turn, or nothing, follows it.
func (p *tagParser) endsTurn(token string, end int) bool {
	return token != "</s>" || otherTurn.MatchString(trimTokens(p.text[end:], p.ends))
}

// trimTokens cuts tokens and white space from the start of a text.
func trimTokens(text string, tokens []string) string {
	for {
		text = strings.TrimLeft(text, blanks)
		i := slices.IndexFunc(tokens, func(t string) bool { return strings.HasPrefix(text, t) })
		if i < 0 {
			return text
		}
		text = text[len(tokens[i]):]
	}
}

// mentioned reports whether the opening tag at text[i:body] is spoken of, not
// used: in backquotes, in the middle of a sentence, in a code block after which
// the text goes on, or before the placeholders of the prompt's own example.
func (p *tagParser) mentioned(i, body int) bool {
	switch {
	case p.quoted.inline(p.text, i, body), p.quoted.example(p, i):
		return true
	case p.Call.Kind == TagCalls:
		return false
	case placeholder.MatchString(p.text[body:min(len(p.text), body+maxPlaceholder)]):
		return true
	}
	return !lineBegins(p.text[p.plainAt:], i-p.plainAt) && !looksLikeCall(p.text[body:]) && !p.nameBegins(body)
}

// nameBegins reports whether a call whose name comes first begins at text[at:].
func (p *tagParser) nameBegins(at int) bool {
	at = skipBlanks(p.text, at)
	if p.Call.Kind == XMLCalls {
		return strings.HasPrefix(p.text[at:], p.Call.Name[0])
	}
	_, _, ok := p.namedCall(at)
	return ok
}

// placeholder finds the prompt's own example: {"name": <function-name>, … or
// {"name": "<function-name>", …
var placeholder = regexp.MustCompile(`^\s*\{\s*"\w+"\s*:\s*"?<[a-z][\w -]*>`)

const maxPlaceholder = 200 // bytes in which a placeholder is looked for

// looksLikeCall tells the beginning of a call from a tag in prose.
func looksLikeCall(body string) bool {
	body = strings.TrimLeft(body, blanks)
	return body == "" || composite(body) || strings.HasPrefix(body, "```")
}

// lineBegins reports whether only white space stands before text[i:] in its line.
func lineBegins(text string, i int) bool {
	before := strings.TrimRight(text[max(0, i-maxIndent):i], " \t")
	return before == "" && i <= maxIndent || strings.HasSuffix(before, "\n")
}

// A quoting follows the code blocks of a text.
type quoting struct {
	fenced bool // it stands in one
	seen   bool // goesOn is known for it
	goesOn bool // text follows the block
}

const fenceMark = "```"

// plain reads text[at:i], which is no part of a call.
func (q *quoting) plain(text string, at, i int) {
	for at < i {
		n := strings.Index(text[at:i], fenceMark)
		if n < 0 {
			return
		}
		if at += n; lineBegins(text, at) {
			q.fenced, q.seen = !q.fenced, false
		}
		at += len(fenceMark)
	}
}

// inline reports whether text[i:end] stands in backquotes.
func (q *quoting) inline(text string, i, end int) bool {
	return i > 0 && text[i-1] == '`' && (end == len(text) || text[end] == '`')
}

// example reports whether the parser stands in a code block after which prose
// goes on. i is where it stands.
func (q *quoting) example(p *tagParser, i int) bool {
	if !q.fenced {
		return false
	}
	if !q.seen {
		closing := p.tags.index("\n"+fenceMark, i)
		after := trimTokens(p.text[min(len(p.text), closing+1+len(fenceMark)):], p.ends)
		tags := append(p.kind.opens(p.Call), p.Response.Open)
		tagged := slices.ContainsFunc(tags, func(t string) bool { return t != "" && strings.HasPrefix(after, t) })
		q.seen, q.goesOn = true, after != "" && !tagged
	}
	return q.goesOn
}
