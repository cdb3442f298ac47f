package trace

import (
	"bytes"
	"hash/crc32"
	"strconv"
)

// A frame is one line: the length of the body in bytes and its CRC-32C, both as
// eight hexadecimal digits, then the body, which has no line break.
//
//	00000018 3a1c9f02 {"seq":4,"event":"text"}

const frameHead = 8 + 1 + 8 + 1 // bytes before the body

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame adds the line of a body to b.
func appendFrame(b, body []byte) []byte {
	b = appendHex(b, uint32(len(body)))
	b = append(b, ' ')
	b = appendHex(b, crc32.Checksum(body, castagnoli))
	b = append(b, ' ')
	return append(append(b, body...), '\n')
}

const hexDigits = "0123456789abcdef"

func appendHex(b []byte, n uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[n>>shift&0xf])
	}
	return b
}

// A condition is what a line of a journal turns out to be.
type condition int

const (
	whole   condition = iota
	torn              // the beginning of a frame: the rest was never written
	damaged           // neither
)

// readFrame gives the body of a line, without its line break.
func readFrame(line []byte) ([]byte, condition) {
	if len(line) < frameHead {
		if len(line) > 0 && beginsFrame(line) {
			return nil, torn
		}
		return nil, damaged
	}
	if !beginsFrame(line[:frameHead]) {
		return nil, damaged
	}
	length, _ := strconv.ParseUint(string(line[:8]), 16, 32) // beginsFrame has seen digits
	sum, _ := strconv.ParseUint(string(line[9:17]), 16, 32)
	body := line[frameHead:]
	fits := crc32.Checksum(body, castagnoli) == uint32(sum)
	switch n := uint64(len(body)); {
	case n == length && fits:
		return body, whole
	case n < length && !fits:
		return nil, torn
	}
	return nil, damaged // a body that fits its sum was written with its length
}

// beginsFrame reports whether a frame can begin with these bytes.
func beginsFrame(head []byte) bool {
	for i, c := range head {
		if space := i == 8 || i == 17; space != (c == ' ') || !space && !bytes.ContainsRune([]byte(hexDigits), rune(c)) {
			return false
		}
	}
	return true
}
