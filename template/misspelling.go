package template

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// A vocabulary gives the format's tags and labels by their letters: "toolcall"
// for <tool_call>, "/toolcall" for </tool_call>, "actioninput" for "Action
// Input:". Models change case, spaces, brackets and punctuation.
type vocabulary map[string]string

// synonyms are words that models write for those of a tag.
var synonyms = map[string][]string{
	"toolcall":  {"functioncall", "tooluse"},
	"think":     {"thinking", "thought"},
	"function":  {"invoke"},
	"parameter": {"param"},
	// ReAct in Chinese.
	"action":      {"行动", "动作"},
	"actioninput": {"input", "行动输入", "动作输入"},
	"observation": {"观察", "观察结果"},
	"finalanswer": {"最终答案", "最终回答"},
}

func (f *Format) vocabulary() vocabulary {
	v := vocabulary{}
	if f.Call.Kind == LineCalls {
		for _, labels := range [][]string{f.Call.Name, f.Call.Arguments, {f.Answer.After}, {f.Response.Open}} {
			for _, l := range labels {
				for _, word := range append(synonyms[letterKey(l)], letterKey(l)) {
					v.add(word, labels[0])
				}
			}
		}
		return v
	}
	own := []string{f.Think.Open, f.Think.Close, f.Call.Open, f.Call.Close, f.Answer.Open, f.Answer.Close, f.Response.Open}
	for _, t := range f.Call.Tags {
		own = append(own, t.open(), t.close())
	}
	if f.Call.Kind == XMLCalls {
		for _, open := range []string{f.Call.Name[0], f.Call.Arguments[0]} {
			own = append(own, open, closingOf(open))
		}
	}
	for _, tag := range own {
		if t, ok := readTag(tag + "\n"); ok {
			v.add(t.key, tag)
			word := strings.TrimPrefix(t.key, "/")
			for _, s := range synonyms[word] {
				v.add(strings.TrimSuffix(t.key, word)+s, tag)
			}
		}
	}
	return v
}

func (v vocabulary) add(key, tag string) {
	if _, taken := v[key]; !taken && strings.Trim(key, "/") != "" {
		v[key] = tag
	}
}

// letterKey gives the letters of a tag's or label's words in lower case,
// without the number of a step and the s of a plural.
func letterKey(s string) string {
	return strings.TrimSuffix(strings.TrimRight(letters(s), "0123456789"), "s")
}

// A looseTag is something in a text that is spelled like a tag.
type looseTag struct {
	key        string // its letters, "/" before those of a closing tag
	attribute  string // search in <function=search> and <function name="search">
	start, end int
	headless   bool // it begins a line without its first bracket
}

const maxTag = 80 // bytes of the longest misspelt tag or label

// looseTags finds all that is spelled like a tag.
func looseTags(text string) []looseTag {
	var out []looseTag
	for i := range len(text) {
		if c := text[i]; c == '<' || c == '[' || c == '&' || c == "＜"[0] {
			if t, ok := readTag(text[i:]); ok {
				t.start, t.end = i, i+t.end
				out = append(out, t)
			}
		} else if i == 0 || text[i-1] == '\n' {
			if t, ok := readTag("<" + text[i:min(len(text), i+maxTag)]); ok && text[i+t.end-2] == '>' {
				t.start, t.end, t.headless = i, i+t.end-1, true
				out = append(out, t)
			}
		}
	}
	return out
}

// tagOpen and tagClose give the length of the bracket of a tag, as models and
// pages spell it, that a text begins with.
func tagOpen(text string) int  { return bracket(text, '<', '[', "&lt;", "＜") }
func tagClose(text string) int { return bracket(text, '>', ']', "&gt;", "＞") }

func bracket(text string, angle, square byte, entity, wide string) int {
	if text == "" {
		return 0
	}
	switch c := text[0]; {
	case c == angle || c == square:
		return 1
	case c == '&' && strings.HasPrefix(text, entity):
		return len(entity)
	case c == wide[0] && strings.HasPrefix(text, wide):
		return len(wide)
	}
	return 0
}

// readTag reads what is spelled like a tag where text begins. Its last bracket
// may be missing before a line end, before an object and, in a closing tag, at
// the end of the text.
func readTag(text string) (t looseTag, ok bool) {
	text = text[:min(len(text), maxTag)]
	from := tagOpen(text)
	if from == 0 {
		return t, false
	}
	from += tagOpen(text[from:]) // <<tool_call>>
	at := from
	for at < len(text) && strings.IndexByte("\n{<[&\"'>]", text[at]) < 0 && tagClose(text[at:]) == 0 {
		at++
	}
	if at == len(text) && at == maxTag {
		return t, false
	}
	head, rest := strings.Trim(text[from:at], " \t|｜"), text[at:]
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		if t.attribute, rest = quotedAttribute(rest); rest == "" || !strings.HasSuffix(head, "=") {
			return t, false
		}
	} else if i := strings.IndexAny(head, "=:"); i >= 0 {
		head, t.attribute = head[:i+1], head[i+1:]
	}
	stroke := strings.HasPrefix(head, "/") || strings.HasPrefix(head, `\`)
	if word, more, two := strings.Cut(head, " "); two && strings.Trim(more, " =:") == "name" {
		head = word
	}
	t.attribute = strings.Trim(t.attribute, " \t\"'|/")
	if t.key = letterKey(head); t.key == "" {
		return t, false
	}
	if stroke {
		t.key = "/" + t.key
	}
	n := tagClose(rest)
	if t.end = len(text) - len(rest) + n; n > 0 {
		t.end += tagClose(rest[n:])
		return t, true
	}
	if rest == "" {
		return t, stroke
	}
	return t, t.attribute == "" && (rest[0] == '\n' || rest[0] == '{')
}

// quotedAttribute reads an attribute in quotes up to the tag's last bracket.
func quotedAttribute(text string) (value, rest string) {
	for i := 1; i < len(text) && text[i] != '\n'; i++ {
		if tagClose(text[i:]) > 0 {
			return text[:i], text[i:]
		}
	}
	return "", ""
}

// An edit says that plain[start:end] stood at other places in the text.
type edit struct{ start, end, oldStart, oldEnd int }

type edits []edit

// A respelling writes a text anew, with some of its parts in other words.
type respelling struct {
	text  string
	out   strings.Builder
	at    int // what stands before it in text is written
	edits edits
}

// replace writes a text for text[from:to].
func (r *respelling) replace(from, to int, with string) {
	r.out.WriteString(r.text[r.at:from])
	start := r.out.Len()
	r.out.WriteString(with)
	r.at = to
	if r.text[from:to] != with {
		r.edits = append(r.edits, edit{start, r.out.Len(), from, to})
	}
}

// canonical spells the format's tags and labels in a text as the format does;
// tags are what looseTags gives. Without edits the text had none that are spelled
// otherwise.
func (f *Format) canonical(text string, tags []looseTag) (string, edits) {
	r := &respelling{text: text}
	if f.Call.Kind == LineCalls {
		f.canonicalLabels(r)
	} else {
		f.canonicalTags(r, tags)
	}
	if len(r.edits) == 0 {
		return text, nil
	}
	r.out.WriteString(text[r.at:])
	return r.out.String(), r.edits
}

func (f *Format) canonicalTags(r *respelling, tags []looseTag) {
	for _, t := range tags {
		tag := f.spelled[t.key]
		if tag == "" || t.start < r.at || r.text[t.start] == '[' && tag[0] != '[' && !strings.Contains(tag, "_") {
			continue
		}
		if t.headless && !strings.HasPrefix(r.text[t.start:], tag[1:]) {
			continue
		}
		switch {
		case strings.HasSuffix(tag, "="): // <function=
			tag += t.attribute + ">"
		case tag == f.Call.Open && t.attribute != "": // <tool_call name="search">
			tag += t.attribute
		}
		r.replace(t.start, t.end, tag)
	}
}

// canonicalLabels looks for a label before each colon: the last words of what
// stands before it in the line.
func (f *Format) canonicalLabels(r *respelling) {
	text := r.text
	from := 0 // the line, or what follows the last colon
	for i := 0; i < len(text); i++ {
		colon := 0
		switch {
		case text[i] == ':':
			colon = 1
		case text[i] == "："[0] && strings.HasPrefix(text[i:], "："):
			colon = len("：")
		}
		if text[i] == '\n' {
			from = i + 1
		}
		if label := f.bareLabel(text, i); label != "" { // ✿FUNCTION✿ search
			r.replace(i, i+len(label)-len(":"), label)
			i, from = r.at-1, r.at
			continue
		}
		if colon == 0 {
			continue
		}
		start, label := f.label(text, max(from, i-maxTag), i)
		from = i + colon
		if label == "" {
			continue
		}
		if before := strings.TrimRight(text[:start], " \t"); before != "" && !strings.HasSuffix(before, "\n") {
			label = "\n" + label
		}
		for from < len(text) && strings.IndexByte("*_`", text[from]) >= 0 {
			from++
		}
		r.replace(start, from, label)
		i = from - 1
	}
}

// bareLabel gives the label that begins the line at text[i:] without its colon.
// Only labels that are no words are found so.
func (f *Format) bareLabel(text string, i int) string {
	if i > 0 && text[i-1] != '\n' || text[i] < utf8.RuneSelf {
		return ""
	}
	for _, label := range []string{f.Call.Name[0], f.Call.Arguments[0], f.Answer.After, f.Response.Open} {
		if plain, ok := strings.CutSuffix(label, ":"); ok && strings.HasPrefix(text[i:], plain) {
			if r := firstRune(text[i+len(plain):]); r != ':' && r != '：' {
				return label
			}
		}
	}
	return ""
}

// label finds the label that ends at text[to:] and where it begins, list marks
// and emphasis included.
func (f *Format) label(text string, from, to int) (start int, label string) {
	at := to
	for words := 0; words < 4 && at > from; words++ {
		end := strings.TrimRight(text[from:at], " \t")
		at = from + strings.LastIndexAny(end, " \t") + 1
		if l := f.spelled[letterKey(text[at:to])]; l != "" && !strings.ContainsAny(text[at:to], "{}[]()<>=\"'") {
			start, label = at, l
		}
		if at == from {
			break
		}
	}
	return start, label
}

// inside reports whether something was edited inside of a call, where it may be a
// part of an argument. XML and labels stand inside of calls themselves.
func (e edits) inside(f *Format, calls []Call) bool {
	if f.Call.Kind == XMLCalls || f.Call.Kind == LineCalls {
		return false
	}
	for _, c := range calls {
		i := sort.Search(len(e), func(i int) bool { return e[i].start > c.Start })
		if i < len(e) && e[i].end < c.End && !slices.ContainsFunc(calls, func(o Call) bool { return o.Start == e[i].start }) {
			return true
		}
	}
	return false
}

// relocate moves the places in a turn from the edited text to the one that was
// edited. A place inside a tag becomes the tag's.
func (e edits) relocate(t *Turn) {
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Start, c.End = e.before(c.Start, false), e.before(c.End, true)
	}
	for i := range t.Problems {
		p := &t.Problems[i]
		p.Start, p.End = e.before(p.Start, false), e.before(p.End, true)
	}
}

// before gives the place in the text before the edits.
func (e edits) before(at int, end bool) int {
	i := sort.Search(len(e), func(i int) bool { return e[i].end >= at }) // the first edit that does not lie before it
	if i < len(e) && at > e[i].start {
		if end || at == e[i].end {
			return e[i].oldEnd
		}
		return e[i].oldStart
	}
	if i == 0 {
		return at
	}
	return e[i-1].oldEnd + at - e[i-1].end
}
