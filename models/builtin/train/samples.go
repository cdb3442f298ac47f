// Package train writes the samples that the built-in model learns from, and the
// questions that it is examined with.
//
// A sample is a whole conversation: the prompt as a format renders it, what the
// model is to write, what the tools answer. Prompt and results come from
// packages template and corpus themselves, so that training and use never
// drift apart. Names, words and facts are drawn anew for each sample, so that an
// answer can only come from the results.
package train

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"unicode/utf8"

	"stopgap/template"
)

// Formats are those that the model learns.
var Formats = []string{"qwen", "qwq", "react", "search-r1"}

// A Sample is one conversation as text, cut where another begins to write.
type Sample struct {
	Format   string    `json:"format"`
	Kind     Kind      `json:"kind"` // of the first question
	Segments []Segment `json:"segments"`
}

// A Segment is a piece of a sample. Learn says that the model writes it.
type Segment struct {
	Text  string `json:"text"`
	Learn bool   `json:"learn,omitempty"`
	Marks []Mark `json:"marks,omitempty"`
}

// A Mark is a part of a segment that is hard to get right: characters From to
// To count Weight times as much as others.
type Mark struct {
	From, To int
	Weight   float64
}

// mark marks the last place of a text in what was learned last.
func (p *play) mark(text string, weight float64) {
	s := &p.sample.Segments[len(p.sample.Segments)-1]
	if at := strings.LastIndex(s.Text, text); at >= 0 {
		from := utf8.RuneCountInString(s.Text[:at])
		s.Marks = append(s.Marks, Mark{from, from + utf8.RuneCountInString(text), weight})
	}
}

// A Draw says which sample to write. The same draw gives the same sample.
type Draw struct {
	Seed, Number uint64
	Hard         float64 // from 0 to 1: how long and how misleading it may be
	Exam         bool    // with names and words that training never has
}

// Write writes a sample.
func Write(d Draw) (Sample, error) {
	w := &writer{Rand: rand.New(rand.NewPCG(d.Seed, d.Number)), exam: d.Exam}
	name := Formats[d.Number%uint64(len(Formats))]
	f, err := load(name)
	if err != nil {
		return Sample{}, err
	}
	p := &play{writer: w, format: f, sample: Sample{Format: name}}
	return p.perform(d.Hard)
}

var formats sync.Map // by name: compiling one costs more than a sample

func load(name string) (*template.Format, error) {
	if f, ok := formats.Load(name); ok {
		return f.(*template.Format), nil
	}
	f, err := template.Load(name)
	if err == nil {
		formats.Store(name, f)
	}
	return f, err
}

// A play writes one sample.
type play struct {
	*writer
	format  *template.Format
	sample  Sample
	finder  finder
	inThink bool
}

func (p *play) perform(hard float64) (Sample, error) {
	p.finder = p.writer.finder()
	searches := p.format.Name == "search-r1"
	if searches {
		p.finder = finder{realTools[0], "query"}
	}
	list, exchanges := p.scene(hard, searches)
	return p.write(p.opening(list, exchanges[0].question), exchanges, p.chance(0.5))
}

// write writes the sample of a scene. Where the prompt is edited it is not
// quite the format's own.
func (p *play) write(o template.Opening, exchanges []exchange, edit bool) (Sample, error) {
	p.sample.Kind = exchanges[0].kind
	parts, err := p.format.Open(o)
	if err != nil {
		return Sample{}, err
	}
	p.open(parts, edit)
	p.inThink = p.format.Think.Opened
	for i, ex := range exchanges {
		if i > 0 {
			if err := p.goOn(template.Continuation{Question: ex.question, InThink: p.inThink}, true); err != nil {
				return Sample{}, err
			}
		}
		if err := p.play(ex); err != nil {
			return Sample{}, err
		}
	}
	p.learn(endOf(p.format))
	return p.sample, nil
}

// endOf is the token that ends a conversation.
func endOf(f *template.Format) string {
	if f.Name == "react" {
		return "<|endoftext|>"
	}
	return "<|im_end|>"
}

// scene draws the tools and the questions of a sample.
func (p *play) scene(hard float64, searches bool) ([]template.Tool, []exchange) {
	w := p.writer
	n := w.Float64()
	switch {
	case n < 0.03:
		return p.offered(searches, w.IntN(2)), []exchange{w.talk()}
	case n < 0.06 && !searches: // a question, and no tool that fits
		x := w.world()
		ex := w.exchange(x, w.plant(x, OneHop, false, 0), 1)
		ex.kind, ex.steps, ex.answer = NoTool, nil, Helpless
		return w.extras(w.IntN(3)), []exchange{ex}
	case n < 0.11 && !searches:
		o := w.other()
		question, v := o.ask(w)
		result := o.result(w, v)
		list := append(p.offered(false, w.IntN(2)), o.Tool)
		w.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list, []exchange{{kind: OtherTool, question: question, answer: result,
			steps: []step{{tool: o.Name, argument: jsonObject(o.parameter, v), response: result}}}}
	}
	x := w.world()
	count := 1
	if hard > 0.3 && w.chance(0.85) {
		count = 2 + w.IntN(5) // several questions share the cost of a prompt
	}
	chinese := w.chance(0.1)
	var chains []chain
	for range count {
		kind := OneHop
		switch n := w.Float64(); {
		case n < 0.35*min(1, 0.3+hard):
			kind = TwoHops
		case n < 0.6:
			kind = Absent
		case n < 0.64 && hard > 0.5:
			kind = AbsentLater
		}
		chains = append(chains, w.plant(x, kind, chinese, hard))
	}
	w.Shuffle(len(x.documents), func(i, j int) { x.documents[i], x.documents[j] = x.documents[j], x.documents[i] })
	hits := pick(w, []int{1, 1, 2, 2, 3, 3, 4, 5})
	if hard < 0.3 {
		hits = 1 + w.IntN(2)
	}
	var list []exchange
	for _, c := range chains {
		list = append(list, w.exchange(x, c, hits))
	}
	return p.offered(searches, w.IntN(1+int(1.5*hard))), list
}

// offered are the tools of a run: one that searches, and some more.
func (p *play) offered(searches bool, more int) []template.Tool {
	list := []template.Tool{p.finder.Tool}
	if searches {
		return list
	}
	if p.finder.Name == realTools[0].Name && p.chance(0.6) {
		list = append(list, realTools[1])
	}
	list = append(list, p.extras(more)...)
	if p.chance(0.5) {
		p.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// play writes the turns of one question.
func (p *play) play(ex exchange) error {
	thought, found := "I look this up.", ""
	if len(ex.steps) == 0 {
		thought = "No search is needed."
		if ex.kind == NoTool {
			thought = "No tool fits."
		}
	}
	for _, s := range ex.steps {
		c := template.Call{Name: s.tool, Arguments: json.RawMessage(s.argument)}
		if s.tool == "" {
			c = template.Call{Name: p.finder.Name, Arguments: json.RawMessage(jsonObject(p.finder.parameter, s.argument))}
		}
		if err := p.turn(template.Turn{Think: thought, Calls: []template.Call{c}, InThink: p.format.Think.Calls}); err != nil {
			return err
		}
		p.markThought(thought, found)
		p.mark(s.argument, 2)
		result := template.Result{Name: c.Name, Content: s.response}
		if err := p.goOn(template.Continuation{Results: []template.Result{result}, InThink: p.inThink}, false); err != nil {
			return err
		}
		thought, found = s.thought, s.found
		if thought == "" {
			thought = "That is the result."
		}
	}
	if err := p.turn(template.Turn{Think: thought, Text: ex.answer, Answer: ex.answer, Answered: true}); err != nil {
		return err
	}
	p.markThought(thought, found)
	return nil
}

// markThought marks where a line is chosen, and what is found in it.
func (p *play) markThought(thought, found string) {
	if r := []rune(thought); found != "" || strings.HasPrefix(thought, "None") {
		p.mark(string(r[:3]), 2)
	}
	if found != "" {
		p.mark(": "+found, 3)
	}
}

func (p *play) turn(t template.Turn) error {
	text, err := p.format.Write(t, p.inThink)
	if err != nil {
		return err
	}
	p.learn(text)
	p.inThink = p.format.Parse(text, template.Reading{InThink: p.inThink}).InThink
	return nil
}

// goOn writes what stands between two turns. Where generation stops is for the
// model to write too: the token that ends a turn, and the label of a result.
func (p *play) goOn(c template.Continuation, answered bool) error {
	parts, err := p.format.Continue(c)
	if err != nil {
		return err
	}
	p.inThink = p.format.StartsInThink(c)
	text := ""
	for _, part := range parts {
		text += part.Text
	}
	for _, stop := range []string{"<|im_end|>", "\nObservation:"} {
		if rest, ok := strings.CutPrefix(text, stop); ok && !(answered && stop != "<|im_end|>") {
			p.learn(stop)
			text = rest
			break
		}
	}
	p.sample.Segments = append(p.sample.Segments, Segment{Text: text})
	return nil
}

func (p *play) learn(text string) {
	p.sample.Segments = append(p.sample.Segments, Segment{Text: text, Learn: true})
}

func jsonObject(key, text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always encodes
	return fmt.Sprintf(`{%q: %s}`, key, strings.TrimSuffix(b.String(), "\n"))
}
