package document

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// builtinFormats are the formats that no Excel file spells out (ECMA-376,
// part 1, 18.8.30), as far as they change what a number means.
var builtinFormats = map[int]string{
	9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy",
	18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "m/d/yy h:mm",
	27: "yyyy-mm-dd", 28: "yyyy-mm-dd", 29: "yyyy-mm-dd", 30: "yyyy-mm-dd", 31: "yyyy-mm-dd",
	32: "h:mm", 33: "h:mm:ss", 34: "h:mm", 35: "h:mm:ss", 36: "yyyy-mm-dd",
	45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
	50: "yyyy-mm-dd", 51: "yyyy-mm-dd", 52: "yyyy-mm-dd", 53: "yyyy-mm-dd", 54: "yyyy-mm-dd",
	55: "h:mm", 56: "h:mm:ss", 57: "yyyy-mm-dd", 58: "yyyy-mm-dd",
}

// number shows a number of a cell. Dates and times are shown as in ISO 8601,
// whatever the format's order, and percentages as such; everything else as it
// is, with the 15 digits that Excel has.
func (b *workbook) number(v, format string) string {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return strings.TrimSpace(v)
	}
	marks := formatMarks(format)
	switch {
	case strings.Contains(marks, "elapsed"):
		return elapsed(f)
	case strings.ContainsAny(marks, "ymdhs"):
		date, clock := strings.ContainsAny(marks, "yd"), strings.ContainsAny(marks, "hs")
		at := f
		if date || !clock || f >= 1 { // else it is a time of no day
			at += b.epoch
		}
		if s, ok := moment(at, date, clock); ok {
			return s
		}
	case strings.Contains(marks, "%"):
		return digits(f*100) + "%"
	}
	return digits(f)
}

// digits writes a number with at most 15 digits, without an exponent where it
// is short enough.
func digits(f float64) string {
	f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 15, 64), 64) // it was a number
	if a := math.Abs(f); a != 0 && (a < 1e-9 || a >= 1e21) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// formatMarks are the letters of a format that are no literal text: of its
// first section, in lower case. "elapsed" stands for hours in brackets.
func formatMarks(format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		switch c := format[i]; c {
		case ';':
			return b.String()
		case '"':
			end := strings.IndexByte(format[i+1:], '"')
			if end < 0 {
				return b.String()
			}
			i += end + 1
		case '\\', '_', '*':
			i++
		case '[': // a colour, a condition, a language, or an elapsed time
			end := strings.IndexByte(format[i:], ']')
			if end < 0 {
				return b.String()
			}
			inside := strings.ToLower(format[i+1 : i+end])
			if inside != "" && strings.Trim(inside, inside[:1]) == "" && strings.ContainsAny(inside[:1], "hms") {
				b.WriteString("elapsed")
			}
			i += end
		default:
			if strings.HasPrefix(strings.ToLower(format[i:]), "general") {
				i += len("general") - 1
				continue
			}
			if c |= 0x20; strings.IndexByte("ymdhs%", c) >= 0 || format[i] == '%' {
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// moment is a date, a time or both. Day 60 is the 29th of February 1900, which
// only Excel knows.
func moment(f float64, date, clock bool) (string, bool) {
	if f < 0 || f >= 2_958_466 { // the year 10000
		return "", false
	}
	days, part := math.Modf(f)
	seconds := math.Round(part * 86_400)
	if seconds >= 86_400 {
		if seconds = 0; date || days > 0 { // a time of no day begins again
			days++
		}
	}
	if days < 60 {
		days++
	}
	t := time.Date(1899, 12, 30, 0, 0, int(seconds), 0, time.UTC).AddDate(0, 0, int(days))
	layout := time.DateOnly
	switch {
	case clock && (date || days > 1):
		layout = "2006-01-02 15:04:05"
	case clock:
		layout = time.TimeOnly
	}
	return strings.TrimSuffix(t.Format(layout), ":00"), true
}

// elapsed is a length of time as hours, minutes and seconds.
func elapsed(f float64) string {
	if math.Abs(f) > 1e9 {
		return digits(f)
	}
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	s := int64(math.Round(f * 86_400))
	return sign + strconv.FormatInt(s/3600, 10) + time.Unix(s, 0).UTC().Format(":04:05")
}
