package template

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// tagCalls reads calls that are a tag for each tool: <search>owl</search>,
// <access>url <goal>…</goal></access>, <terminate>.
type tagCalls struct{}

func (tagCalls) opens(s Spelling) []string {
	var out []string
	for _, t := range s.Tags {
		out = append(out, t.open())
		if t.Empty {
			out = append(out, t.alone())
		}
	}
	return out
}

func (tagCalls) bare(_ *tagParser, i int) int { return i }

func (k tagCalls) read(p *tagParser, tag string, i int) int {
	body := i + len(tag)
	spec := p.Call.Tags[slices.IndexFunc(p.Call.Tags, func(t CallTag) bool { return t.open() == tag || t.alone() == tag })]
	if !p.counts() {
		p.write(tag)
		return body
	}
	if spec.Empty {
		end := body
		if after := skipBlanks(p.text, body); strings.HasPrefix(p.text[after:], spec.close()) {
			end = after + len(spec.close())
		}
		p.add([]Call{{Name: spec.name(), Arguments: json.RawMessage("{}")}}, i, end)
		return end
	}
	closing, next := p.tags.index(spec.close(), body), p.tags.index(tag, body)
	if closing == len(p.text) || next < closing {
		return k.cut(p, spec, i, body)
	}
	end := closing + len(spec.close())
	inner, behind := p.text[body:closing], end
	if !p.Strict {
		inner, behind = p.childrenBehind(spec, inner, end)
	}
	call, problem := p.tagged(spec, inner)
	if behind > end {
		call.Repairs, end = appendOnce(call.Repairs, RepairClose), behind
	}
	p.complete([]Call{p.fitted(call)}, problem, i, end)
	return end
}

// cut reads a call without its closing tag. What follows shows its end: another
// tag in place of the closing one, the next call, a response.
func (k tagCalls) cut(p *tagParser, spec CallTag, i, body int) int {
	tag := spec.open()
	next, limit := p.tags.index(tag, body), p.limit(tag, body)
	for _, t := range k.opens(p.Call) {
		if at := p.tags.index(t, body); lineBegins(p.text, at) {
			limit = min(limit, at)
		}
	}
	inner, end := p.text[body:limit], limit
	shown := limit < len(p.text) && lineBegins(p.text, i)
	if m := wrongClose.FindStringSubmatchIndex(inner[max(0, len(inner)-maxTag):]); m != nil {
		m0 := max(0, len(inner)-maxTag)
		wrong := inner[m0+m[2]:m0+m[3]] + ">"
		if strings.Count(inner, "<"+wrong) < strings.Count(inner, "</"+wrong) { // <search>owl</query>
			inner, shown = inner[:m0+m[0]], true
		}
	}
	if limit == next && next < len(p.text) && trimTokens(p.text[next+len(tag):], p.ends) == "" { // <search>owl<search>
		end, shown = next+len(tag), true
	}
	if n := strings.LastIndex(inner, "</"); n >= 0 && len(inner)-n > len("</") && strings.HasPrefix(spec.close(), inner[n:]) { // <search>owl</sear
		inner, shown = inner[:n], true
	}
	if strings.TrimSpace(inner) != "" && shown && !p.Strict {
		call, problem := p.tagged(spec, inner)
		call.Repairs = appendOnce(call.Repairs, RepairClose)
		p.complete([]Call{p.fitted(call)}, problem, i, end)
		return end
	}
	if next < len(p.text) {
		p.write(tag) // the nearest opening tag counts
		return body
	}
	p.bad(Problem{UnclosedCall, i, len(p.text), "the call has no closing tag"})
	return len(p.text)
}

// wrongClose finds a closing tag at the end of a text.
var wrongClose = regexp.MustCompile(`</([\w-]+)>\s*$`)

// childrenBehind takes the children that stand behind the closing tag, at
// text[end:], into the call.
func (p *tagParser) childrenBehind(spec CallTag, inner string, end int) (string, int) {
	for _, child := range spec.children() {
		open, closing := "<"+child+">", "</"+child+">"
		at := skipBlanks(p.text, end)
		if strings.Contains(inner, open) || !strings.HasPrefix(p.text[at:], open) {
			continue
		}
		if n := strings.Index(p.text[at:min(len(p.text), at+maxChild)], closing); n >= 0 {
			inner, end = inner+p.text[at:at+n+len(closing)], at+n+len(closing)
		}
	}
	return inner, end
}

const maxChild = 4 << 10 // bytes of a child behind the closing tag

// tagged reads what stands inside a tag.
func (r *reader) tagged(spec CallTag, inner string) (Call, Problem) {
	call := Call{Name: spec.name()}
	tool, _ := r.tool(call.Name)
	known := r.budget.parameters(tool)
	if arguments, repairs, ok := r.objectInTag(known, inner); ok {
		call.Arguments, call.Repairs = arguments, repairs
		return call, Problem{}
	}
	found := map[string][]string{}
	text := inner
	for _, child := range spec.children() {
		var values []string
		if text, values = takeChildren(text, child); len(values) > 0 {
			found[spec.Children[child]] = values
		}
	}
	if !r.Strict && spec.Text != "" { // <url>…</url>
		if rest, values := takeChildren(text, spec.Text); len(values) == 1 && strings.TrimSpace(rest) == "" {
			text, call.Repairs = values[0], appendOnce(call.Repairs, RepairTags)
		}
	}
	plain := strings.TrimSpace(text)
	if m := markdownLink.FindStringSubmatch(plain); m != nil && !r.Strict {
		plain, call.Repairs = m[1], appendOnce(call.Repairs, RepairAround)
	}
	if spec.Text != "" && plain != "" {
		found[spec.Text] = []string{plain}
	} else if plain != "" && !r.Strict {
		r.strayText(spec, plain, known, found, &call)
	}
	var arguments dict
	for _, argument := range spec.arguments() {
		if list := found[argument]; len(list) > 0 {
			arguments.set(argument, known[argument].fromTexts(list))
		}
	}
	call.Arguments = arguments.encode()
	if len(found) == 0 {
		return call, Problem{Kind: BadJSON, Message: "the call is empty"}
	}
	return call, Problem{}
}

// markdownLink finds a text that is a link as a whole.
var markdownLink = regexp.MustCompile(`^\[[^\]]*\]\((https?://\S+)\)$`)

// objectInTag reads a JSON object of the tool's arguments where text should be.
func (r *reader) objectInTag(known map[string]parameter, inner string) (json.RawMessage, []Repair, bool) {
	inner = strings.TrimSpace(inner)
	if r.Strict || !strings.HasPrefix(inner, "{") {
		return nil, nil, false
	}
	value, repairs, ok := r.mendedValue(inner)
	keys, isObject := object(value)
	if !ok || !isObject || len(keys) == 0 {
		return nil, nil, false
	}
	for key := range keys {
		if _, ok := known[key]; !ok {
			return nil, nil, false
		}
	}
	return value, appendOnce(repairs, RepairSpelling), true
}

// strayText reads text in a tag that has only children: the values of the one
// child that is a list and is missing, separated by commas or white space.
func (r *reader) strayText(spec CallTag, text string, known map[string]parameter, found map[string][]string, call *Call) {
	for _, child := range spec.children() {
		argument := spec.Children[child]
		if p := known[argument]; len(found[argument]) > 0 || !slices.Contains(p.Types, "array") {
			continue
		}
		words := strings.FieldsFunc(text, separates)
		if len(words) > 0 {
			found[argument], call.Repairs = words, appendOnce(call.Repairs, RepairArguments)
		}
		return
	}
}

// separates reports whether a character stands between the values of a list.
func separates(c rune) bool { return strings.ContainsRune(", \t\r\n[];，、", c) }

// takeChildren takes the elements of one name out of a text.
func takeChildren(text, child string) (rest string, values []string) {
	open, closing := "<"+child+">", "</"+child+">"
	var b strings.Builder
	for {
		i := strings.Index(text, open)
		if i < 0 {
			break
		}
		n := strings.Index(text[i+len(open):], closing)
		if next := strings.Index(text[i+len(open):], open); next >= 0 && next < n { // it has no end of its own
			b.WriteString(strings.TrimRight(text[:i], ", \t\r\n"))
			values = append(values, strings.Trim(text[i+len(open):i+len(open)+next], ", \t\r\n"))
			text = text[i+len(open)+next:]
			continue
		}
		if n < 0 { // to the end of the tag, as models forget it
			b.WriteString(text[:i])
			return b.String(), append(values, strings.TrimSpace(text[i+len(open):]))
		}
		b.WriteString(strings.TrimRight(text[:i], ", \t\r\n"))
		values = append(values, strings.TrimSpace(text[i+len(open):i+len(open)+n]))
		text = text[i+len(open)+n+len(closing):]
	}
	b.WriteString(text)
	return b.String(), values
}

// fromTexts reads the texts of one argument: several are a list.
func (p parameter) fromTexts(list []string) json.RawMessage {
	if many := slices.Contains(p.Types, "array") && len(p.Items) > 0; len(list) == 1 && (!many || composite(list[0])) {
		return p.fromText(list[0])
	}
	item := p.item()
	if !item.takes("string") { // <id>1, 2</id>
		var words []string
		for _, text := range list {
			numbers := strings.FieldsFunc(text, separates)
			if slices.ContainsFunc(numbers, func(w string) bool { return !json.Valid([]byte(w)) }) {
				numbers = []string{text}
			}
			words = append(words, numbers...)
		}
		list = words
	}
	values := make([]json.RawMessage, len(list))
	for i, text := range list {
		values[i] = item.fromText(text)
	}
	out, _ := encode(values) // valid values always encode
	return out
}
