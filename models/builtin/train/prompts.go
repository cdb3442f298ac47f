package train

import (
	"fmt"
	"strings"

	"stopgap/template"
)

var systems = []string{
	"You are a helpful assistant.", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
	"You answer questions from documents.", "Answer briefly and cite the document.", "You are a careful researcher.",
	"Use the tools. Do not answer from memory.", "Be exact.", "You help a team of editors with their archive.",
	"Look up facts before you answer. If the documents do not tell, say so.",
}

// opening draws what stands before the question.
func (p *play) opening(list []template.Tool, question string) template.Opening {
	o := template.Opening{Question: question, Tools: list}
	if p.chance(0.4) {
		o.System = pick(p.writer, systems)
		if p.chance(0.3) {
			o.System += " " + p.guidance()
		}
	}
	if p.chance(0.4) {
		o.Date = fmt.Sprintf("20%02d-%02d-%02d", 20+p.IntN(15), 1+p.IntN(12), 1+p.IntN(28))
	}
	if p.chance(0.3) {
		o.MaxCalls = 1 + p.IntN(9)
	}
	return o
}

// guidance is a sentence that changes nothing.
func (w *writer) guidance() string {
	return pick(w, []string{
		"The " + drawn(w, nouns) + " is not in the office today.", "Write for readers of a " + drawn(w, kinds) + ".", "Keep answers short.",
		"Do not guess.", "Cite where facts come from.", "Think before you answer.", "Never " + w.word(deeds) + " the " + drawn(w, things) + ".",
		"Each answer names its document.", "Be polite.", "Use plain words.", "The archive is about " + drawn(w, plain) + ".",
		"Users come from " + w.coinedName() + ".", "Search again when one search is not enough.",
	})
}

// open writes the beginning of the prompt. What the format says in prose is
// changed now and then, as somebody who edits a format would: the model is to
// read the tags, the tools and the question.
func (p *play) open(parts []template.Part, edit bool) {
	var b strings.Builder
	for _, part := range parts {
		if part.Source != template.FromTemplate || !edit {
			b.WriteString(part.Text)
			continue
		}
		lines := strings.SplitAfter(part.Text, "\n")
		for _, l := range lines {
			b.WriteString(p.edited(l))
		}
	}
	p.sample.Segments = append(p.sample.Segments, Segment{Text: b.String()})
}

// edited changes a line of prose. Lines with tags, schemas or labels stay.
func (p *play) edited(line string) string {
	if len(strings.Fields(line)) < 5 || strings.ContainsAny(line, "<{[|") {
		return line
	}
	end := line[len(strings.TrimRight(line, "\n")):]
	switch p.IntN(6) {
	case 0:
		return end
	case 1:
		return p.guidance() + end
	case 2:
		return strings.TrimSuffix(line, end) + " " + p.guidance() + end
	case 3:
		words := strings.Fields(line)
		i := p.IntN(len(words))
		return strings.Join(append(words[:i:i], words[i+1:]...), " ") + end
	}
	return line
}
