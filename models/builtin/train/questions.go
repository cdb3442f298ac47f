package train

import (
	"strings"

	"stopgap/tools/corpus"
)

// A Kind is what a question asks of the model.
type Kind string

const (
	OneHop      Kind = "one hop"
	TwoHops     Kind = "two hops"
	Absent      Kind = "not in the documents"
	AbsentLater Kind = "not in the documents, second hop"
	OtherTool   Kind = "another tool"
	NoTool      Kind = "no tool fits"
	Talk        Kind = "no tool needed"
)

// What the model says where there is nothing to tell.
const (
	Unknown        = "I do not know: the documents do not tell."
	UnknownChinese = "我不知道：文件里没有说明。"
	Helpless       = "I cannot look that up: I have no tool for it."
)

// A step is one call and what came back.
type step struct {
	tool     string
	argument string // the only one of the call
	response string
	thought  string // after the response: the line that helps and what it tells, or that none does
	found    string // at the end of the thought
}

// An exchange is one question and what the model is to do about it.
type exchange struct {
	kind     Kind
	question string
	steps    []step
	answer   string
}

// chain is a question about a world before it is asked: facts, one behind the other.
type chain struct {
	subject   entity
	relations []relation
	values    []value
	cites     []document
	silent    *document // about the last subject, without the fact asked for
	kind      Kind
	chinese   bool
}

// plant puts the documents of one question into a world, and others that look
// like them. hard, from 0 to 1, says how many.
func (w *writer) plant(x *world, kind Kind, chinese bool, hard float64) chain {
	c := chain{kind: kind, chinese: chinese}
	if chinese {
		c.subject = w.chineseEntity()
	} else {
		c.subject = w.entity()
	}
	hops := 1
	if kind == TwoHops || kind == AbsentLater {
		hops = 2
	}
	e := c.subject
	for hop := range hops {
		r := w.relationFor(e, hop < hops-1)
		v := w.value(r, chinese, hop < hops-1)
		for hop < hops-1 && v.entity == nil {
			r = w.relationFor(e, true)
			v = w.value(r, chinese, true)
		}
		missing := hop == hops-1 && (kind == Absent || kind == AbsentLater)
		c.relations, c.values = append(c.relations, r), append(c.values, v)
		more := w.IntN(1 + int(2.99*hard))
		switch {
		case !missing:
			c.cites = append(c.cites, w.add(x, e, []fact{{relation: r, value: v}}, more))
		case w.chance(0.55): // the document says other things
			c.silent = w.addWithout(x, e, r, 1+more)
		}
		w.plantAround(x, e, r, hard)
		if v.entity != nil {
			e = *v.entity
			e.chinese = chinese
		}
	}
	return c
}

// addWithout writes a document that does not tell one relation.
func (w *writer) addWithout(x *world, e entity, r relation, facts int) *document {
	var list []fact
	for len(list) < facts {
		other := w.relationFor(e, false)
		if !other.clashes(r) {
			list = append(list, fact{relation: other, value: w.value(other, e.chinese, false)})
		}
	}
	w.add(x, e, list[:1], 0)
	d := &x.documents[len(x.documents)-1]
	for _, f := range list[1:] {
		f.sentence = fill(pick(w, f.relation.again), e, f.value.text)
		d.facts = append(d.facts, f)
	}
	out := *d
	return &out
}

// plantAround adds documents that a search for the fact also finds.
func (w *writer) plantAround(x *world, e entity, r relation, hard float64) {
	draw := w.entity
	if e.chinese {
		draw = w.chineseEntity
	}
	more := func() int { return w.IntN(1 + int(2.99*hard)) }
	alike := func() bool { return !w.exam && w.chance(0.3*hard) } // training has more of them
	if w.chance(0.5*hard) || alike() {                            // a name like it, and the same relation
		w.add(x, w.resembling(e), []fact{{relation: r, value: w.value(r, e.chinese, false)}}, more())
	}
	if w.chance(0.3*hard) || alike() { // a name like it, and something else
		w.add(x, w.resembling(e), nil, 1+more())
	}
	if w.chance(0.25 * hard) { // the name in another document
		o := draw()
		s := w.relationFor(o, true)
		w.add(x, o, []fact{{relation: s, value: value{text: e.name}}}, more())
	}
	for n := w.IntN(1 + int(3.99*hard)); n > 0; n-- { // the same relation of others
		w.add(x, draw(), []fact{{relation: r, value: w.value(r, e.chinese, false)}}, more())
	}
	if len(x.documents) < 2 || w.chance(0.4*hard) {
		w.add(x, draw(), nil, 1+more())
	}
}

var openers = []string{"Tell me ", "Please tell me ", "I want to know ", "Do you know ", "Can you find out ", "Could you tell me ",
	"Find out ", "Look up ", "I wonder ", "We need to know ", "Please look up "}

// ask words the question of a chain, and the first query with it.
func (w *writer) ask(c chain) (question, query string) {
	last := c.relations[len(c.relations)-1]
	about := c.subject
	if len(c.relations) == 2 {
		about = entity{name: fill(pick(w, c.relations[0].names), c.subject, "")}
	}
	pattern := pick(w, last.ask)
	indirect := !c.chinese && w.chance(0.15)
	if indirect {
		pattern = pick(w, last.told)
	}
	query = fill(pattern, about, "")
	switch opener := pick(w, openers); {
	case c.chinese:
		question = query + pick(w, []string{"？", "？", "？", ""})
		if w.chance(0.1) {
			question = "请问" + question
		}
	case !indirect:
		question = query + pick(w, []string{"?", "?", "?", "?", ""})
	case strings.HasPrefix(opener, "Do"), strings.HasPrefix(opener, "C"):
		question = opener + query + "?"
	default:
		question = opener + query + "."
	}
	switch {
	case len(c.relations) == 2:
		query = about.name
	case last.query != "":
		query = fill(last.query, c.subject, "")
	}
	return question, query
}

// exchange plays a chain: what is asked, what the searches give, what is said.
func (w *writer) exchange(x *world, c chain, hits int) exchange {
	ex := exchange{kind: c.kind}
	question, query := w.ask(c)
	ex.question = question
	unknown, silent := Unknown, "not told"
	if c.chinese {
		unknown, silent = UnknownChinese, "没有说"
	}
	for hop, r := range c.relations {
		found := corpus.Found{Query: query, Terms: 1, Hits: x.search(query, hits)}
		s := step{argument: query}
		last := hop == len(c.relations)-1
		known := hop < len(c.cites)
		if known {
			found.Hits = w.with(found.Hits, c.cites[hop], hits)
		}
		switch {
		case known:
			s.found = c.values[hop].text
			s.thought = c.cites[hop].line() + "\n" + query + ": " + s.found
		case c.silent != nil:
			found.Hits = w.with(found.Hits, *c.silent, hits)
			s.found = silent
			s.thought = c.silent.line() + "\n" + query + ": " + s.found
		default:
			s.thought = "None of these lines tells it."
		}
		s.response = corpus.Render([]corpus.Found{found})
		ex.steps = append(ex.steps, s)
		switch {
		case !known:
			ex.answer = unknown
			return ex
		case last:
			ex.answer = c.values[hop].text + " [" + c.cites[hop].id + "]"
			return ex
		}
		next := c.relations[hop+1]
		query = w.next(question, r, next, c, hop)
	}
	return ex
}

// next is the question again, with what the last step found in place of the
// words for it.
func (w *writer) next(question string, r, next relation, c chain, hop int) string {
	if next.query != "" {
		return fill(next.query, entity{name: c.values[hop].text}, "")
	}
	for _, n := range r.names {
		if phrase := fill(n, c.subject, ""); strings.Contains(question, phrase) {
			q := strings.Replace(question, phrase, c.values[hop].text, 1)
			for _, o := range openers {
				q = strings.TrimPrefix(q, o)
			}
			q = strings.TrimPrefix(q, "请问")
			return strings.TrimRight(q, "?.？")
		}
	}
	return fill(next.ask[0], entity{name: c.values[hop].text}, "")
}

// with makes sure that the hits have the document: a real search for words as
// rare as these would.
func (w *writer) with(hits []corpus.Hit, d document, most int) []corpus.Hit {
	for _, h := range hits {
		if h.ID == d.id {
			return hits
		}
	}
	if len(hits) < most {
		return append(hits, d.hit(0.5+w.Float64()))
	}
	hits[len(hits)-1] = d.hit(hits[len(hits)-1].Score)
	return hits
}
