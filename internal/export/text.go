package export

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"stopgap/template"
)

// A draft is a line of text or ids on its way: what counts in it.
type draft struct {
	text  string
	spans []span // of text, in bytes
	ids   []int  // nil for none
	marks []span // of ids
}

// draft joins what counts of a conversation. What stands in a line with its loss
// has none in a second one, where two questions continue the same run.
func (e *Exporter) draft(r *rollout) draft {
	d := draft{text: r.text, ids: slices.Clone(r.ids)}
	for _, b := range r.fresh() {
		d.spans, d.marks = append(d.spans, b.written...), append(d.marks, b.generated...)
		for _, end := range b.ends {
			if !end.hidden || e.EOS {
				d.end(end)
			}
		}
	}
	d.spans, d.marks = merge(d.spans), merge(d.marks)
	return d
}

// fresh are the runs of the conversation whose loss stands in no line yet. They
// do from now on.
func (r *rollout) fresh() []*rollout {
	var out []*rollout
	for b := r; b != nil; b = b.before {
		if b.wanted && !b.counted {
			b.counted = true
			out = append(out, b)
		}
		if b.before == nil || !b.extends(b.before) {
			break
		}
	}
	return out
}

// end counts the token that ended a turn, where the text goes on with it. Behind
// the last turn it is written.
func (d *draft) end(e ending) {
	last := e.at == len(d.text)
	if !last && !strings.HasPrefix(d.text[e.at:], e.text) || last && d.ids != nil && e.id < 0 {
		return
	}
	if d.ids != nil && e.id >= 0 {
		if last {
			e.idAt, d.ids = len(d.ids), append(d.ids, e.id)
		}
		if e.idAt >= 0 && d.ids[e.idAt] == e.id {
			d.marks = append(d.marks, span{e.idAt, e.idAt + 1})
		}
	}
	if last {
		d.text += e.text
	}
	d.spans = append(d.spans, span{e.at, e.at + len(e.text)})
}

// merge sorts spans and joins those that touch; empty ones are left out.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, s := range spans {
		switch n := len(out); {
		case s.from >= s.to:
		case n > 0 && s.from <= out[n-1].to:
			out[n-1].to = max(out[n-1].to, s.to)
		default:
			out = append(out, s)
		}
	}
	return out
}

// text spells a conversation as its text, with what the model wrote as spans of
// characters, as Python counts them.
func (e *Exporter) text(r *rollout) ([]field, error) {
	if r.chats() {
		e.Counts.Chats++
		return nil, nil
	}
	if !utf8.ValidString(r.text) { // before anything of it counts as written
		e.Counts.NotText++
		return nil, nil
	}
	d := e.draft(r)
	if len(d.spans) == 0 {
		e.Counts.Nothing++
		return nil, nil
	}
	spans := make([][2]int, len(d.spans))
	at, chars := 0, 0
	to := func(offset int) int {
		chars += utf8.RuneCountInString(d.text[at:offset])
		at = offset
		return chars
	}
	for i, s := range d.spans {
		spans[i] = [2]int{to(s.from), to(s.to)}
		e.Counts.Loss += spans[i][1] - spans[i][0]
	}
	return []field{{"text", d.text}, {"spans", spans}}, nil
}

// chats reports whether nobody knows the prompt.
func (r *rollout) chats() bool { return r.Runner.Format.Opening == template.OpenChat }
