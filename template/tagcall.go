package template

import (
	"encoding/json"
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
	}
	return out
}

func (tagCalls) bare(_ *tagParser, i int) int { return i }

func (tagCalls) read(p *tagParser, tag string, i int) int {
	body := i + len(tag)
	spec := p.Call.Tags[slices.IndexFunc(p.Call.Tags, func(t CallTag) bool { return t.open() == tag })]
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
	if next < closing { // the nearest opening tag counts
		p.write(tag)
		return body
	}
	if closing == len(p.text) {
		p.bad(Problem{UnclosedCall, i, closing, "the call has no closing tag"})
		return closing
	}
	end := closing + len(spec.close())
	call, problem := p.tagged(spec, p.text[body:closing])
	p.complete([]Call{p.fitted(call)}, problem, i, end)
	return end
}

// tagged reads what stands inside a tag.
func (r *reader) tagged(spec CallTag, inner string) (Call, Problem) {
	call := Call{Name: spec.name()}
	tool, _ := r.tool(call.Name)
	known := tool.parameters()
	found := map[string][]string{}
	var keys []string
	text := inner
	for child, argument := range spec.Children {
		var values []string
		if text, values = takeChildren(text, child); len(values) > 0 {
			found[argument] = values
		}
	}
	if plain := strings.TrimSpace(text); spec.Text != "" && plain != "" {
		found[spec.Text] = []string{plain}
	} else if plain != "" && !r.Strict {
		r.strayText(spec, plain, known, found, &call)
	}
	values := map[string]json.RawMessage{}
	for argument, list := range found {
		keys = append(keys, argument)
		values[argument] = known[argument].fromTexts(list)
	}
	slices.Sort(keys)
	arguments := dict{keys, values}
	call.Arguments = arguments.encode()
	if len(keys) == 0 {
		return call, Problem{Kind: BadJSON, Message: "the call is empty"}
	}
	return call, Problem{}
}

// strayText reads text in a tag that has only children: the values of the one
// child that is a list and is missing, separated by commas or white space.
func (r *reader) strayText(spec CallTag, text string, known map[string]parameter, found map[string][]string, call *Call) {
	for _, argument := range spec.Children {
		if p := known[argument]; len(found[argument]) > 0 || !slices.Contains(p.Types, "array") {
			continue
		}
		words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(", \t\r\n[];，、", c) })
		if len(words) > 0 {
			found[argument], call.Repairs = words, appendOnce(call.Repairs, RepairArguments)
		}
		return
	}
}

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
	if len(list) == 1 {
		return p.fromText(list[0])
	}
	item := parameter{Types: p.Items}
	values := make([]json.RawMessage, len(list))
	for i, text := range list {
		values[i] = item.fromText(text)
	}
	out, _ := encode(values) // valid values always encode
	return out
}
