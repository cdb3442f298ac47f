package tokenizer

import "strings"

// Byte-level vocabularies write each byte as one printable character: printable
// Latin-1 stands for itself, the other 68 bytes are the characters from U+0100
// on, in order (bytes_to_unicode in GPT-2's encoder).
var (
	letters [256]rune     // by byte
	octets  [0x0144]int16 // by letter; -1 where a character is no letter
)

func init() {
	for i := range octets {
		octets[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r, next = next, next+1
		}
		letters[b], octets[r] = r, int16(b)
	}
}

// fromLetters gives the bytes that a token of a byte-level vocabulary stands
// for, and false where not each of its characters is a letter.
func fromLetters(token string) (string, bool) {
	var b strings.Builder
	b.Grow(len(token))
	for _, r := range token {
		if int(r) >= len(octets) || octets[r] < 0 {
			return "", false
		}
		b.WriteByte(byte(octets[r]))
	}
	return b.String(), true
}
