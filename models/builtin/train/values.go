package train

import (
	"fmt"
	"strings"
)

// A value is what a fact says: a text as it stands in the sentence, and the
// entity that it names, if any.
type value struct {
	text   string
	entity *entity
}

// value draws what a relation of an entity says.
func (w *writer) value(r relation, chinese, linked bool) value {
	named := func(e entity) value { return value{e.name, &e} }
	if chinese {
		switch {
		case r.wants == "year":
			return value{text: fmt.Sprint(1000 + w.IntN(1030))}
		case strings.HasPrefix(r.wants, "number "):
			return value{text: pick(w, []string{fmt.Sprint(2 + w.IntN(900)), pick(w, strings.Fields("两 三 四 五 六 七 八 九 十 十二 十九 二十 三百 一千"))}) + strings.TrimPrefix(r.wants, "number ")}
		case r.wants == "any" && !linked && w.chance(0.3):
			return value{text: pick(w, strings.Fields("铜 盐 丝绸 木头 红色 蓝色 金色 三百米 七天 大米 茶叶 石头 玻璃 音乐 数学 羊毛"))}
		}
		return named(w.chineseEntity())
	}
	kind, unit, _ := strings.Cut(r.wants, " ")
	switch kind {
	case "person":
		return named(w.person())
	case "entity":
		return named(w.entity())
	case "place":
		if w.chance(0.2) {
			return named(w.thing())
		}
		e := entity{title: w.coinedName(), kind: "place", pronoun: "It"}
		if w.chance(0.3) {
			e.title = pick(w, []string{"Port", "Lake", "Mount", "Upper", "Saint", "Cape"}) + " " + e.title
		}
		e.name = e.title
		return named(e)
	case "year":
		return value{text: w.date()}
	case "number":
		n := fmt.Sprint(2 + w.IntN(998))
		switch {
		case unit == "" && w.chance(0.4):
			n = pick(w, strings.Fields("two three four five six seven eight nine ten eleven twelve twenty forty ninety"))
		case w.chance(0.15):
			n = fmt.Sprintf("%d.%d", 1+w.IntN(99), w.IntN(10))
		case w.chance(0.15):
			n = fmt.Sprintf("%d,%03d", 1+w.IntN(99), w.IntN(1000))
		}
		if unit != "" {
			n += " " + unit
		}
		return value{text: n}
	case "kind":
		return value{text: w.plainWord(kinds)}
	case "colour":
		return value{text: w.plainWord(colours)}
	case "plain":
		return value{text: w.plainWord(plain)}
	case "month":
		return value{text: pick(w, months)}
	case "trade":
		return value{text: drawn(w, trades)}
	}
	if linked {
		return named(w.entity())
	}
	switch w.IntN(8) {
	case 0:
		return value{text: w.plainWord(colours)}
	case 1:
		return value{text: w.plainWord(plain)}
	case 2:
		return value{text: w.plainWord(plain) + " and " + w.plainWord(plain)}
	case 3:
		return value{text: w.plainWord(adjectives) + " " + w.plainWord(things)}
	case 4:
		return value{text: w.plainWord(nil)}
	case 5:
		return value{text: article(w.plainWord(adjectives)) + " " + w.plainWord(things)}
	}
	return named(w.entity())
}

// plainWord draws a word from a list, or for training now and then one that
// nobody knows: answers begin with words that training never has, and their
// tokens without a space before them are others than with one.
func (w *writer) plainWord(list []string) string {
	switch {
	case !w.exam && (list == nil || w.chance(0.35)) && w.chance(0.8):
		return w.wild()
	case list == nil:
		return w.coined()
	}
	return drawn(w, list)
}

func (w *writer) date() string {
	year := fmt.Sprint(1000 + w.IntN(1030))
	if w.chance(0.12) {
		return pick(w, months) + " " + year
	}
	return year
}
