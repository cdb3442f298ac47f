package train

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A writer draws names, facts and questions; one for each sample.
type writer struct {
	*rand.Rand
	exam bool // names and words that training never uses
}

func (w *writer) chance(p float64) bool { return w.Float64() < p }

func pick[T any](w *writer, list []T) T { return list[w.IntN(len(list))] }

// drawn picks from the half of a list that this writer may use.
func drawn[T any](w *writer, list []T) T { return pick(w, half(list, w.exam)) }

var (
	onsets   = strings.Fields("b d f g h k l m n p r s t v b d f g h k l m n p r s t v c j w z br dr gr kr tr st sk th sh qu")
	nuclei   = strings.Fields("a e i o u a e i o u a e i o u ai ea ie oo y")
	codas    = strings.Fields("n r l s n r l s m t k d x nd rn lt ck st")
	endings  = strings.Fields("a o e us is en ia ar ik ov ane ell ora im")
	accented = strings.Split("áàâäåãéèêëíîïóôöøõúûüñçßšžł", "")
	hanzi    = strings.Split("安白北长成川春大德东尔方飞风海河和黑红华黄火江金静克兰雷里丽林灵龙鲁绿罗马玛梅明木南宁诺欧平青清泉日瑞萨赛山石水斯松苏塔泰天铁亭维温文西霞夏仙星雪雅岩阳叶伊银英永玉云月泽珠竹庄卓子达菲格洪基凯利米尼帕奇森特乌希亚约扎", "")
)

// syllable draws one syllable. The exam's are those whose spelling falls into a
// fifth that training leaves out.
func (w *writer) syllable(closed bool) string {
	for {
		s := pick(w, onsets) + pick(w, nuclei)
		if closed {
			s += pick(w, codas)
		}
		sum := 0
		for _, c := range s {
			sum = sum*31 + int(c)
		}
		if (sum%5 == 4) == w.exam {
			return s
		}
	}
}

// coined gives an invented word without capitals.
func (w *writer) coined() string {
	s := w.syllable(w.chance(0.3))
	for n := w.IntN(2); n > 0; n-- {
		s += w.syllable(w.chance(0.3))
	}
	if w.chance(0.4) {
		s += pick(w, endings)
	}
	if len(s) < 4 {
		s += w.syllable(true)
	}
	return s
}

func capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s // has no capital
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func (w *writer) coinedName() string {
	name := capital(w.coined())
	if w.exam && w.chance(0.1) || w.chance(0.3) {
		name = capital(w.wild())
	}
	if w.chance(0.03) { // a letter that is not in ASCII
		name = strings.Replace(name, pick(w, []string{"a", "e", "i", "o", "u"}), pick(w, accented), 1)
	}
	return name
}

// wild gives a word with nothing to guess: letters in any order, or fragments
// of words. Each token of the vocabulary gets to be copied that way.
func (w *writer) wild() string {
	if w.exam || w.chance(0.3) {
		b := make([]byte, 3+w.IntN(5))
		for i := range b {
			b[i] = byte('a' + w.IntN(26))
		}
		return string(b)
	}
	s := w.fragment() + w.fragment()
	if w.chance(0.25) { // begins like a word of the prompts, which nothing else is like
		return pick(w, prompted) + w.fragment()
	}
	if w.chance(0.2) { // begins like a word that is everywhere else: offer, hero, isle
		s = pick(w, little) + w.fragment()
	}
	if len(s) < 4 || w.chance(0.3) {
		s += w.fragment()
	}
	return s
}

var little = strings.Fields("a an as at be by do for has have he her his how i in is it its not of on one she so the to two up was what where who with")

// prompted are words of the prompts that are tokens of their own: without
// them nothing would ever have them to copy, and a model cannot copy a token
// that it never wrote. Only beginnings of longer words, as some of them are
// among what the exam asks.
var prompted = strings.Fields(`access action answer archive argument arithmetic assist before best between bracket
 calculate call care cite clear come current day detail direct document everybody example external fact few final find
 first follow format found function further give help hit illustration inform input interact know knowledge lack later
 like line list long make man many match memory more name near need new now object old one open own person place proud
 provide query question read reason recent repeat researcher result return score search several short sign square
 stand surprise tag take tell text thing think time title today tool top translate use user want weather word work
 write year zero`)

// fragment is a part of a word, of two to five letters.
func (w *writer) fragment() string {
	for {
		word := pick(w, pick(w, [][]string{nouns, nouns, deeds, acts, kinds, things, adjectives, counted, events}))
		n := 2 + w.IntN(4)
		if len(word) <= n {
			continue
		}
		at := w.IntN(len(word) - n + 1)
		return word[at : at+n]
	}
}

// An entity is what a document is about.
type entity struct {
	title   string // of its document: Velmar Bridge
	name    string // in a sentence: the Velmar Bridge
	kind    string // bridge
	pronoun string // It, He, She
	chinese bool
}

// start is the name at the beginning of a sentence.
func (e entity) start() string { return capital(e.name) }

func (e entity) its() string {
	return map[string]string{"It": "Its", "He": "His", "She": "Her"}[e.pronoun]
}

func (w *writer) person() entity {
	name := w.coinedName() + " " + w.coinedName()
	switch {
	case w.chance(0.08):
		name = w.coinedName()
	case w.chance(0.06):
		name = pick(w, []string{"Dr.", "Captain", "Lady", "Sister", "Father", "Professor"}) + " " + name
	}
	return entity{title: name, name: name, kind: "person", pronoun: pick(w, []string{"He", "She"})}
}

func (w *writer) thing() entity {
	kind := drawn(w, kinds)
	e := entity{kind: kind, pronoun: "It"}
	common := func() string { return capital(drawn(w, adjectives)) + " " + capital(drawn(w, things)) }
	switch n := w.IntN(20); {
	case n < 6:
		e.title = w.coinedName()
	case n < 11: // Velmar Bridge
		e.title = w.coinedName() + " " + capital(kind)
	case n < 13:
		e.title = w.coinedName() + " " + w.coinedName()
	case n < 16: // Grey Petrel
		e.title = common()
	case n < 17:
		e.title = capital(drawn(w, things)) + " " + w.coinedName()
	case n < 18:
		e.title = pick(w, []string{"Mount", "Lake", "Port", "Cape", "Fort", "Saint", "Castle", "Isle"}) + " " + w.coinedName()
	case n < 19:
		e.title = fmt.Sprintf("%s-%d", strings.ToUpper(w.syllable(false)), 1+w.IntN(99))
	default:
		e.title = w.coinedName() + " " + capital(drawn(w, things))
	}
	e.name = e.title
	if strings.Contains(e.title, " ") && w.chance(0.45) || w.chance(0.05) {
		e.name = "the " + e.title
		if w.chance(0.25) {
			e.title = "The " + e.title
		}
	}
	return e
}

func (w *writer) entity() entity {
	if w.chance(0.25) {
		return w.person()
	}
	return w.thing()
}

func (w *writer) chineseEntity() entity {
	var b strings.Builder
	for n := 2 + w.IntN(3); n > 0; n-- {
		if !w.exam && w.chance(0.3) { // any character, so that all bytes are copied
			b.WriteRune(rune(0x4e00 + w.IntN(0x51a0)))
			continue
		}
		b.WriteString(drawn(w, hanzi))
	}
	if w.chance(0.3) {
		b.WriteString(pick(w, []string{"桥", "塔", "岛", "山", "湖", "号", "学校", "公司", "节", "城"}))
	}
	return entity{title: b.String(), name: b.String(), kind: "东西", pronoun: "它", chinese: true}
}

// resembling gives an entity whose name shares a word with another's.
func (w *writer) resembling(e entity) entity {
	if e.chinese {
		o := w.chineseEntity()
		r := []rune(e.title)
		o.title = string(r[:len(r)/2]) + drawn(w, hanzi) + drawn(w, hanzi)
		o.name = o.title
		return o
	}
	words := strings.Fields(strings.TrimPrefix(e.title, "The "))
	if !w.exam && w.chance(0.2) {
		words = w.beginningAlike(words)
	} else if len(words) < 2 {
		if w.chance(0.5) && e.kind != "person" {
			words = append(words, capital(drawn(w, kinds)))
		} else {
			words = []string{words[0], w.coinedName()}
		}
	} else if i := w.IntN(len(words)); w.chance(0.5) {
		words[i] = w.coinedName()
	} else {
		words[i] = capital(drawn(w, things))
	}
	title := strings.Join(words, " ")
	e.name = strings.Replace(e.name, strings.TrimPrefix(e.title, "The "), title, 1)
	e.title = title
	return e
}

// beginningAlike changes how one of the words ends: Velmar, Velheim.
func (w *writer) beginningAlike(words []string) []string {
	i := w.IntN(len(words))
	r := []rune(words[i])
	words[i] = string(r[:1+w.IntN(len(r))]) + w.fragment()
	return words
}
