package models

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeFrame reads one JSON frame of a stream. Bytes that are not UTF-8 are
// refused rather than replaced, because the text must come through unchanged.
func decodeFrame(kind string, data []byte, into any) error {
	reason := "a frame is not UTF-8"
	if utf8.Valid(data) {
		err := json.Unmarshal(data, into)
		if err == nil {
			return nil
		}
		if reason = "a frame is not what it should be"; errors.Is(err, errHalf) {
			reason = errHalf.Error()
		}
	}
	return &ProtocolError{Server: kind, Reason: reason, Excerpt: excerpt(string(data), excerptLimit)}
}

var errHalf = errors.New("a frame has half of a character")

// A wording is generated text in a frame.
type wording string

// UnmarshalJSON refuses what would be replaced.
func (w *wording) UnmarshalJSON(b []byte) error {
	if halfCharacter(b) {
		return errHalf
	}
	return json.Unmarshal(b, (*string)(w))
}

// halfCharacter reports whether valid JSON escapes one half of a surrogate pair
// without the other. Decoding would replace it, and the text would be another.
func halfCharacter(data []byte) bool {
	half := rune(0)
	for i := 0; i < len(data); i++ {
		r := rune(0)
		if data[i] == '\\' {
			if i++; data[i] == 'u' {
				n, _ := strconv.ParseUint(string(data[i+1:i+5]), 16, 16) // it is valid
				r, i = rune(n), i+4
			}
		}
		switch {
		case half != 0 && utf16.DecodeRune(half, r) == utf8.RuneError:
			return true
		case half != 0:
			half = 0
		case utf16.IsSurrogate(r):
			half = r
		}
	}
	return half != 0
}

// counted is a count as a server tells it. What cannot be one is unknown.
func counted(n *int) Count {
	if n == nil || *n < 0 || *n > math.MaxInt32 {
		return Count{}
	}
	return Known(*n)
}
