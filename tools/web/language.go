package web

import "unicode"

// A language is what a script tells of a query, in the words of each engine.
type language struct {
	scripts         []*unicode.RangeTable
	searxng, brave  string
	google, country string
	market          string // of Bing
}

// languages are those that a script tells. Japanese comes before Chinese: it
// has characters of both.
var languages = []language{
	{[]*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}, "ja-JP", "jp", "ja", "jp", "ja-JP"},
	{[]*unicode.RangeTable{unicode.Hangul}, "ko-KR", "ko", "ko", "kr", "ko-KR"},
	{[]*unicode.RangeTable{unicode.Han}, "zh-CN", "zh-hans", "zh-cn", "cn", "zh-CN"},
	{[]*unicode.RangeTable{unicode.Cyrillic}, "ru-RU", "ru", "ru", "ru", "ru-RU"},
	{[]*unicode.RangeTable{unicode.Arabic}, "ar", "ar", "ar", "sa", "ar-SA"},
	{[]*unicode.RangeTable{unicode.Greek}, "el-GR", "el", "el", "gr", "el-GR"},
	{[]*unicode.RangeTable{unicode.Hebrew}, "he-IL", "he", "iw", "il", "he-IL"},
	{[]*unicode.RangeTable{unicode.Thai}, "th-TH", "th", "th", "th", "th-TH"},
	{[]*unicode.RangeTable{unicode.Devanagari}, "hi-IN", "hi", "hi", "in", "hi-IN"},
}

// languageOf gives the language of a query by its script: the first of the
// list with at least a quarter of the letters. Latin letters tell nothing.
func languageOf(query string) *language {
	letters, counts := 0, make([]int, len(languages))
	for _, r := range query {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		for i, l := range languages {
			if unicode.In(r, l.scripts...) {
				counts[i]++
			}
		}
	}
	for i, n := range counts {
		if n > 0 && 4*n >= letters {
			return &languages[i]
		}
	}
	return nil
}
