package train

import "strings"

// The words that questions and documents are made of. What an exam may use and
// what training may use are disjoint: every fifth word belongs to the exam.
var (
	nouns = strings.Fields(`capital owner colour age price speed weight height length width depth
 population mayor captain ruler river language motto flag anthem patron symbol currency leader manager
 director teacher pilot keeper guardian champion rival neighbour partner sponsor founder designer
 architect engineer painter sculptor composer author editor publisher printer inventor discoverer
 builder maker baker brewer gardener conductor librarian surgeon judge treasurer secretary chairman
 president minister bishop abbot headmaster coach trainer navigator cook host guide interpreter
 birthplace hometown residence headquarters harbour station market square street garden school church
 museum theatre library hospital prison factory mill mine quarry forest valley mountain island lake
 glacier volcano desert cave spring waterfall bay cape strait canal bridge tunnel tower castle palace
 gate wall statue fountain bell clock organ window door roof dome floor room hall chapel crypt cellar
 anchor mast sail engine rudder keel cargo crew route destination purpose origin nickname signature
 emblem mascot instrument material fuel metal stone wood fabric dye ingredient spice sauce filling
 topping drink dish recipe dialect alphabet calendar festival holiday ceremony costume dance song
 melody theme genre title sequel prequel chapter hero villain sidekick narrator translator illustrator
 prize medal trophy record rank grade licence password callsign frequency wavelength orbit moon ring
 diameter radius volume temperature pressure density voltage capacity lifespan diet habitat prey
 predator parasite mate nest egg feather horn tail collar saddle stable rider breeder breed sire dam
 vintage blend label bottler cellarer successor predecessor heir guardian apprentice mentor tutor
 assistant deputy spokesman lawyer doctor nurse midwife barber tailor cobbler smith carpenter mason
 plumber glazier tanner weaver dyer potter jeweller watchmaker locksmith hinge handle blade shaft lens
 mirror filter valve pump boiler chimney furnace turbine propeller antenna sensor battery keyboard`)

	degrees = strings.Fields(`first last oldest newest largest smallest highest only main official second favourite best
 longest deepest original famous annual chief`)

	zhDeeds = strings.Fields("设计 发明 建造 创办 发现 写 画 制作 领导 修复 翻译 出版 拍摄 命名 种植")

	zhNouns = strings.Fields(`首都 校长 船长 馆长 颜色 语言 市长 作者 画家 老师 徒弟 邻居 主人 创始人 设计师 建筑师 发明者
 总部 故乡 港口 车站 广场 图书馆 博物馆 材料 燃料 重量 高度 长度 年龄 价格 口号 旗帜 标志 节日 舞蹈 歌曲 食物 饮料 香料
 天敌 栖息地 卫星 直径 温度 名字 别名 搭档 对手 赞助商`)

	// Regular verbs for "X was designed by Y", base forms.
	deeds = strings.Fields(`design found paint discover invent compose direct produce publish print open
 restore repair finance purchase donate install launch name crown rescue train raise guard manage own
 govern conquer destroy rebuild translate edit illustrate record perform measure survey explore map
 photograph describe excavate identify classify breed plant harvest cook brew bottle roast cultivate
 assemble engineer construct weld polish carve sculpt engrave decorate furnish inherit auction import
 export patent license commission inspect certify sponsor organise chair host judge coach mentor
 educate hire appoint elect follow replace assist advise treat cure vaccinate baptise marry adopt
 imprison pardon exile capture smuggle hide abandon salvage tow pilot navigate command staff
 program decode encrypt test calibrate tune conduct arrange dedicate unveil bless consecrate
 nickname mock praise review criticise ban censor collect catalogue lend borrow preserve clean`)

	// "X produces Y": base forms whose third person ends in s.
	acts = strings.Fields(`produce export import sell teach carry serve collect guard protect supply feed
 heat light cross face overlook border join contain display print publish manufacture repair train
 host fund own rent grow harvest brew cook bake weave study observe record transmit measure count
 explore hunt avoid need require burn drink eat like fear love play sing speak read write translate
 celebrate honour organise support oppose rule lead`)

	// "X is named after Y".
	states = []string{"named after", "made of", "known for", "famous for", "ruled by", "covered with",
		"driven by", "joined to", "dedicated to", "based on", "surrounded by", "decorated with",
		"filled with", "lit by", "heated by", "powered by", "guarded by", "related to", "married to",
		"allied with", "owned by", "used for", "built on", "fed by", "twinned with", "allergic to",
		"afraid of", "proud of", "rich in", "short of", "sealed with", "wrapped in", "served with",
		"paid in", "measured in", "tied to", "sworn to", "promised to", "lent to", "leased to"}

	// "X stands in Y": base form, third person.
	places = [][2]string{{"stand", "stands"}, {"lie", "lies"}, {"live", "lives"}, {"hang", "hangs"},
		{"grow", "grows"}, {"begin", "begins"}, {"end", "ends"}, {"sleep", "sleeps"}, {"work", "works"},
		{"nest", "nests"}, {"meet", "meets"}, {"sail", "sails"}, {"rise", "rises"}, {"rest", "rests"},
		{"dock", "docks"}}

	// "X was born in Y", of a place or a year.
	events = strings.Fields(`born built opened founded launched buried painted written found invented
 discovered finished started sold moved closed restored signed crowned printed filmed recorded held
 seen lost stolen repaired planted adopted married trained hidden baptised elected arrested killed`)

	measures = [][2]string{{"long", "metres"}, {"high", "metres"}, {"wide", "metres"}, {"deep", "metres"},
		{"heavy", "kilograms"}, {"old", "years"}, {"tall", "feet"}, {"thick", "centimetres"},
		{"far", "miles"}, {"large", "hectares"}, {"fast", "knots"}, {"warm", "degrees"}}

	counted = strings.Fields(`rooms members windows doors children islands bridges arches seats pages
 chapters wheels masts guns towers bells pupils ships horses teeth legs wings eggs stars moons valves
 cylinders keys strings pipes floors steps lamps gardens rivers schools voters workers sisters volumes
 employees platforms tunnels wells statues`)

	kinds = strings.Fields(`bridge tower ship lake river castle library museum observatory company school
 mountain island village town harbour lighthouse ferry comet telescope festival novel painting opera
 dance dish cheese wine tea bird beetle orchid horse machine engine clock organ mine mill railway
 tunnel canal garden forest cave temple abbey prison theatre club guild expedition treaty crown sword
 meadow glacier volcano archive factory brewery bakery station market gallery`)

	// Words that names are made of, capitalised: Grey Petrel, Lantern Street.
	adjectives = strings.Fields(`grey white black red green blue golden silver old new long short high low
 northern southern eastern western upper lower great little quiet silent hidden broken crooked hollow
 frozen burning bright dark wild gentle lost distant royal holy iron copper amber crystal salt winter
 summer autumn midnight morning seven lucky restless patient humble proud narrow`)

	things = strings.Fields(`petrel lantern anchor falcon heron raven otter badger fox wolf stag oak birch
 willow thistle clover rose lily star moon sun comet arrow hammer needle mirror candle kettle barrel
 drum harp fiddle bell crown shield feather pebble harbour meadow orchard hollow ridge summit hearth
 compass sparrow salmon lobster beacon furnace mill gate tower ember frost thunder tide sail rope`)

	colours = strings.Fields(`red blue green yellow white black grey brown purple orange copper silver golden
 pink scarlet crimson turquoise ochre`)

	trades = strings.Fields(`teacher baker cook sailor painter doctor judge miner weaver potter smith carpenter gardener
 musician lawyer pilot printer tailor nurse guide librarian engineer farmer fisherman shepherd glazier`)

	months = strings.Fields(`January February March April May June July August September October November December`)

	plain = strings.Fields(`copper salt wool silk amber honey barley cheese timber granite marble slate iron tin
 glass paper ink sugar pepper saffron coffee tea tobacco rubber wax leather linen cotton ivory coal oil
 gas water steam wind herring trout oysters apples pears plums cherries walnuts onions beans rice wheat
 oats maps bells clocks boots hats gloves carpets candles violins drums chess music history physics
 geometry grammar astronomy medicine law sheep goats horses bees storms wolves`)
)

// half gives the words of the training, or those of the exam.
func half[T any](list []T, exam bool) []T {
	var out []T
	for i, w := range list {
		if (i%5 == 4) == exam {
			out = append(out, w)
		}
	}
	return out
}

// past gives the past tense of a regular verb, which is its participle too.
func past(base string) string {
	switch {
	case strings.HasSuffix(base, "e"):
		return base + "d"
	case strings.HasSuffix(base, "y") && !strings.ContainsAny(base[len(base)-2:len(base)-1], "aeiou"):
		return base[:len(base)-1] + "ied"
	case base == "ban" || base == "map" || base == "program":
		return base + base[len(base)-1:] + "ed"
	}
	return base + "ed"
}

// third gives the third person of a regular verb.
func third(base string) string {
	switch {
	case strings.HasSuffix(base, "ss"), strings.HasSuffix(base, "sh"), strings.HasSuffix(base, "ch"), strings.HasSuffix(base, "x"):
		return base + "es"
	case strings.HasSuffix(base, "y") && !strings.ContainsAny(base[len(base)-2:len(base)-1], "aeiou"):
		return base[:len(base)-1] + "ies"
	}
	return base + "s"
}
