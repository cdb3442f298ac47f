package train

import (
	"strings"
)

// A relation is how a fact is told and asked. In its texts E is the entity at
// the beginning of a sentence, e inside of one, P its pronoun, I the possessive
// one, and V the value, each between braces.
type relation struct {
	key   string // tells relations of one document apart
	tell  []string
	again []string // with the pronoun, after a first sentence
	ask   []string // without the question mark
	told  []string // indirectly: Tell me …
	names []string // noun phrases for the value: the designer of {e}
	wants string   // kind of the value
	query string   // what to search for, where it is not the question
}

// clashes says that one document is not to tell both: it would say two things
// to one question.
func (r relation) clashes(o relation) bool {
	where := r.wants == "place" && o.wants == "place"
	return r.key == o.key || where && (r.key == "kind" || o.key == "kind")
}

func fill(pattern string, e entity, v string) string {
	return strings.NewReplacer("{E}", e.start(), "{e}", e.name, "{P}", e.pronoun, "{I}", e.its(), "{V}", v).Replace(pattern)
}

// word draws a word from a list, or makes one up.
func (w *writer) word(list []string) string {
	if w.chance(0.15) {
		return w.coined()
	}
	return w.strange(list)
}

// strange draws a word from a list, and for training often one that nobody
// knows: what a word does in its sentence is to be told by where it stands and
// how it ends, not by having been seen there.
func (w *writer) strange(list []string) string {
	if !w.exam && w.chance(0.35) {
		return w.wild()
	}
	return drawn(w, list)
}

// pair draws two forms of a word, as strange does.
func (w *writer) pair(list [][2]string, inflect func(string) string) [2]string {
	if !w.exam && w.chance(0.35) {
		word := w.wild()
		return [2]string{word, inflect(word)}
	}
	return pick(w, list)
}

// relation draws how one fact is told. linked asks for one whose value is an
// entity and which has a noun phrase for it.
func (w *writer) relation(linked bool) relation {
	for {
		var r relation
		switch n := w.IntN(27); {
		case n >= 25:
			r = w.partRelation()
		case n >= 22 && n < 25 && !w.exam:
			r = pick(w, curated)
		case n < 7:
			r = w.nounRelation(linked)
		case n < 11:
			r = w.deedRelation()
		case n < 13:
			r = w.placeRelation()
		case n < 15:
			r = w.eventRelation()
		case n < 17:
			r = w.actRelation()
		case n < 19:
			r = w.stateRelation()
		case n < 20:
			r = w.measureRelation()
		case n < 21:
			r = w.countRelation()
		default:
			r = w.kinRelation()
		}
		if !linked || len(r.names) > 0 {
			return r
		}
	}
}

func (w *writer) nounRelation(linked bool) relation {
	n := w.noun()
	is := pick(w, []string{"is", "is", "is", "is", "is", "was"})
	r := relation{
		key:   n,
		tell:  []string{"The " + n + " of {e} " + is + " {V}.", "The " + n + " of {e} " + is + " {V}.", "The " + n + " of {e} " + is + " {V}.", "{E} has {V} as its " + n + ".", "{V} " + is + " the " + n + " of {e}."},
		again: []string{"{I} " + n + " " + is + " {V}.", "{I} " + n + " " + is + " {V}.", "The " + n + " " + is + " {V}.", "{I} " + n + " is called {V}."},
		ask: []string{"What " + is + " the " + n + " of {e}", "What " + is + " the " + n + " of {e}", "What is the " + n + " of {e} called",
			"Which " + n + " does {e} have", "What " + n + " does {e} have"},
		told:  []string{"the " + n + " of {e}", "what the " + n + " of {e} is", "which " + n + " {e} has"},
		names: []string{"the " + n + " of {e}"},
		wants: "any",
	}
	if w.chance(0.5) {
		r.wants = "person"
		r.ask = []string{"Who " + is + " the " + n + " of {e}", "Who " + is + " the " + n + " of {e}", "What is the name of the " + n + " of {e}"}
		r.told = []string{"who the " + n + " of {e} is", "the name of the " + n + " of {e}"}
	} else if linked {
		r.wants = "entity"
	}
	return r
}

// noun draws a noun, with an adjective now and then: oldest recipe.
func (w *writer) noun() string {
	n := w.word(nouns)
	switch {
	case !w.exam && w.chance(0.12):
		n = w.wild() + pick(w, []string{"est", "al", ""}) + " " + n
	case w.chance(0.2):
		n = drawn(w, degrees) + " " + n
	}
	return n
}

// partRelation is about a part of an entity: Who ground the mirror of the
// Lantern? The words for the part are what to search for, as in a question with
// two hops, but the first document tells all.
func (w *writer) partRelation() relation {
	n := w.noun()
	p := past(w.word(deeds))
	m := w.measure()
	r := relation{
		key:   n,
		tell:  []string{"The " + n + " of {e} was " + p + " by {V}.", "{V} " + p + " the " + n + " of {e}."},
		again: []string{"{I} " + n + " was " + p + " by {V}.", "{I} " + n + " was " + p + " by {V}."},
		ask:   []string{"Who " + p + " the " + n + " of {e}", "Who " + p + " the " + n + " of {e}", "By whom was the " + n + " of {e} " + p},
		told:  []string{"who " + p + " the " + n + " of {e}"},
		wants: "person",
		query: "the " + n + " of {e}",
	}
	switch w.IntN(3) {
	case 0:
		r.tell = []string{"The " + n + " of {e} is {V} " + m[0] + "."}
		r.again = []string{"{I} " + n + " is {V} " + m[0] + "."}
		r.ask, r.told = []string{"How " + m[0] + " is the " + n + " of {e}"}, []string{"how " + m[0] + " the " + n + " of {e} is"}
		r.wants = "number " + m[1]
	case 1:
		r.tell = []string{"The " + n + " of {e} was " + p + " in {V}."}
		r.again = []string{"{I} " + n + " was " + p + " in {V}."}
		r.ask, r.told = []string{"When was the " + n + " of {e} " + p}, []string{"when the " + n + " of {e} was " + p}
		r.wants = "year"
	}
	return r
}

// article puts a or an before a word.
func article(word string) string {
	if strings.ContainsAny(word[:1], "aeiou") {
		return "an " + word
	}
	return "a " + word
}

func agent(base string) string {
	if strings.HasSuffix(base, "e") {
		return base + "r"
	}
	return base + "er"
}

func (w *writer) deedRelation() relation {
	base := w.word(deeds)
	p := past(base)
	return relation{
		key:   base,
		tell:  []string{"{E} was " + p + " by {V}.", "{E} was " + p + " by {V}.", "{E} was " + p + " by {V}.", "{E} was " + p + " by {V}.", "{V} " + p + " {e}."},
		again: []string{"{P} was " + p + " by {V}.", "{P} was " + p + " by {V}.", "{P} was later " + p + " by {V}."},
		ask:   []string{"Who " + p + " {e}", "Who " + p + " {e}", "By whom was {e} " + p, "Which person " + p + " {e}"},
		told:  []string{"who " + p + " {e}", "by whom {e} was " + p, "the name of the person who " + p + " {e}"},
		names: []string{"the person who " + p + " {e}", "the " + agent(base) + " of {e}", "the " + agent(base) + " of {e}", "the " + agent(base) + " of {e}", "the " + drawn(w, kinds) + " that " + p + " {e}"},
		wants: "person",
	}
}

func (w *writer) placeRelation() relation {
	v := w.pair(places, third)
	prep := pick(w, []string{"in", "in", "in", "on", "near", "at"})
	return relation{
		key:   v[0],
		tell:  []string{"{E} " + v[1] + " " + prep + " {V}."},
		again: []string{"{P} " + v[1] + " " + prep + " {V}."},
		ask:   []string{"Where does {e} " + v[0], "Where does {e} " + v[0], "In which place does {e} " + v[0]},
		told:  []string{"where {e} " + v[1]},
		names: []string{"the place where {e} " + v[1]},
		wants: "place",
	}
}

func (w *writer) eventRelation() relation {
	v := drawn(w, events)
	if w.chance(0.2) || !w.exam && w.chance(0.3) {
		v = past(w.word(deeds))
	}
	if w.chance(0.5) {
		return relation{
			key:   v + " in",
			tell:  []string{"{E} was " + v + " in {V}."},
			again: []string{"{P} was " + v + " in {V}."},
			ask:   []string{"Where was {e} " + v, "In which place was {e} " + v},
			told:  []string{"where {e} was " + v},
			names: []string{"the place where {e} was " + v},
			wants: "place",
		}
	}
	return relation{
		key:   v + " in",
		tell:  []string{"{E} was " + v + " in {V}."},
		again: []string{"{P} was " + v + " in {V}."},
		ask:   []string{"When was {e} " + v, "When was {e} " + v, "In which year was {e} " + v, "In what year was {e} " + v},
		told:  []string{"when {e} was " + v, "in which year {e} was " + v},
		wants: "year",
	}
}

func (w *writer) actRelation() relation {
	base := w.word(acts)
	s := third(base)
	return relation{
		key:   base,
		tell:  []string{"{E} " + s + " {V}."},
		again: []string{"{P} " + s + " {V}.", "{P} also " + s + " {V}."},
		ask:   []string{"What does {e} " + base, "What does {e} " + base, "Which thing does {e} " + base},
		told:  []string{"what {e} " + s},
		wants: "any",
	}
}

func (w *writer) stateRelation() relation {
	s := drawn(w, states)
	if !w.exam && w.chance(0.35) {
		s = past(w.wild()) + " " + pick(w, []string{"by", "with", "to", "for", "in", "on", "of", "after"})
	}
	return relation{
		key:   s,
		tell:  []string{"{E} is " + s + " {V}."},
		again: []string{"{P} is " + s + " {V}."},
		ask:   []string{"What is {e} " + s, "What is {e} " + s, "Who or what is {e} " + s},
		told:  []string{"what {e} is " + s},
		wants: "any",
	}
}

// measure draws an adjective with its unit.
func (w *writer) measure() [2]string {
	m := w.pair(measures, func(string) string { return pick(w, measures)[1] })
	if !w.exam && w.chance(0.1) {
		m[1] = w.wild() + "s"
	}
	return m
}

func (w *writer) measureRelation() relation {
	m := w.measure()
	return relation{
		key:   m[0],
		tell:  []string{"{E} is {V} " + m[0] + "."},
		again: []string{"{P} is {V} " + m[0] + "."},
		ask:   []string{"How " + m[0] + " is {e}"},
		told:  []string{"how " + m[0] + " {e} is"},
		wants: "number " + m[1],
	}
}

func (w *writer) countRelation() relation {
	n := drawn(w, counted)
	if !w.exam && w.chance(0.35) {
		n = w.wild() + "s"
	}
	return relation{
		key:   n,
		tell:  []string{"{E} has {V} " + n + ".", "There are {V} " + n + " in {e}."},
		again: []string{"{P} has {V} " + n + "."},
		ask:   []string{"How many " + n + " does {e} have", "How many " + n + " are there in {e}"},
		told:  []string{"how many " + n + " {e} has"},
		wants: "number",
	}
}

// kinRelation says what an entity is, and where.
func (w *writer) kinRelation() relation {
	k := w.strange(kinds)
	if w.chance(0.5) {
		return relation{
			key:   "kind",
			tell:  []string{"{E} is a {V}.", "{E} is a kind of {V}."},
			again: []string{"{P} is a {V}."},
			ask:   []string{"What kind of thing is {e}", "What kind of thing is {e}", "What sort of thing is {e}"},
			told:  []string{"what kind of thing {e} is"},
			wants: "kind",
		}
	}
	prep := pick(w, []string{"in", "in", "on", "near", "from"})
	return relation{
		key:   "kind",
		tell:  []string{"{E} is a " + k + " " + prep + " {V}.", "{E} is the oldest " + k + " " + prep + " {V}."},
		again: []string{"{P} is a " + k + " " + prep + " {V}."},
		ask:   []string{"Where is {e}", "Where is {e}", "Where can one find {e}"},
		told:  []string{"where {e} is", "where to find {e}"},
		names: []string{"the place where {e} is"},
		wants: "place",
	}
}

func (w *writer) chineseRelation() relation {
	switch n := drawn(w, zhNouns); w.IntN(9) {
	case 0, 1:
		d := drawn(w, zhDeeds)
		if !w.exam && w.chance(0.3) {
			d = drawn(w, hanzi) + drawn(w, hanzi)
		}
		return relation{key: d, tell: []string{"{e}由{V}" + d + "。", "{e}是{V}" + d + "的。", "{V}" + d + "了{e}。"}, again: []string{"它由{V}" + d + "。"},
			ask: []string{"谁" + d + "了{e}", "{e}由谁" + d, "{e}是谁" + d + "的"}, names: []string{"{e}的" + d + "者"}, wants: "person"}
	case 2:
		return relation{key: "建于", tell: []string{"{e}建于{V}年。"}, again: []string{"它建于{V}年。"},
			ask: []string{"{e}建于哪一年", "{e}是哪一年建的"}, wants: "year"}
	case 3:
		v := pick(w, []string{"位于", "出生在", "生活在", "安放在", "住在"})
		return relation{key: v, tell: []string{"{e}" + v + "{V}。"}, again: []string{"它" + v + "{V}。"},
			ask: []string{"{e}" + v + "哪里", "{e}" + v + "什么地方"}, names: []string{"{e}" + v + "的地方"}, wants: "place"}
	case 4:
		u := pick(w, [][2]string{{"长", "公里"}, {"高", "米"}, {"宽", "米"}, {"深", "米"}, {"重", "吨"}})
		return relation{key: u[0], tell: []string{"{e}" + u[0] + "{V}。"}, again: []string{"它" + u[0] + "{V}。"},
			ask: []string{"{e}" + u[0] + "多少" + u[1], "{e}有多" + u[0]}, wants: "number " + u[1]}
	case 5:
		u := pick(w, [][2]string{{"根", "弦"}, {"个", "房间"}, {"扇", "窗"}, {"座", "桥"}, {"名", "成员"}, {"本", "书"}, {"艘", "船"}})
		return relation{key: u[1], tell: []string{"{e}有{V}" + u[1] + "。"}, again: []string{"它有{V}" + u[1] + "。"},
			ask: []string{"{e}有多少" + u[0] + u[1], "{e}有几" + u[0] + u[1]}, wants: "number " + u[0]}
	default:
		return relation{key: n, tell: []string{"{e}的" + n + "是{V}。"}, again: []string{"它的" + n + "是{V}。"},
			ask: []string{"{e}的" + n + "是什么", "{e}的" + n + "是谁", "什么是{e}的" + n}, names: []string{"{e}的" + n}, wants: "any"}
	}
}
