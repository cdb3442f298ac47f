package document

import (
	"bytes"
	"io"
	"mime"
	"sort"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// decode gives a text as UTF-8. head is its beginning, by which the encoding
// is found: a byte order mark, UTF-8 that is valid, the charset that a server
// or the page itself names, and else a guess by the frequency of letters.
func decode(r io.Reader, head []byte, contentType string, page bool) io.Reader {
	return transform.NewReader(r, encodingOf(head, contentType, page).NewDecoder())
}

func encodingOf(head []byte, contentType string, page bool) encoding.Encoding {
	switch order := utf16Order(head); {
	case order == "le":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case order == "be":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case validPrefix(head):
		return unicode.UTF8BOM
	}
	if page {
		if e, _, certain := charset.DetermineEncoding(head, contentType); certain {
			return e
		}
	} else if _, params, err := mime.ParseMediaType(contentType); err == nil && params["charset"] != "" {
		if e, _ := charset.Lookup(params["charset"]); e != nil {
			return e
		}
	}
	return guess(head)
}

// guess is the likeliest encoding of text that nothing tells about. Ties are
// broken by the name: the library compares in parallel.
func guess(head []byte) encoding.Encoding {
	all, err := chardet.NewTextDetector().DetectAll(head)
	if err == nil && len(all) > 0 {
		sort.Slice(all, func(i, j int) bool {
			if all[i].Confidence != all[j].Confidence {
				return all[i].Confidence > all[j].Confidence
			}
			return all[i].Charset+all[i].Language < all[j].Charset+all[j].Language
		})
		if e, _ := charset.Lookup(all[0].Charset); e != nil && all[0].Confidence >= 10 {
			return e
		}
	}
	e, _ := charset.Lookup("windows-1252")
	return e
}

// utf16Order is "le" or "be" for UTF-16: by its mark, or by zero bytes that
// stand at every second place of text that is mostly ASCII.
func utf16Order(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return "le"
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return "be"
	}
	n := len(head) &^ 1
	if n < 8 {
		return ""
	}
	var zeros [2]int
	for i := range n {
		if head[i] == 0 {
			zeros[i&1]++
		}
	}
	switch {
	case zeros[1] > n/4 && zeros[0] == 0:
		return "le"
	case zeros[0] > n/4 && zeros[1] == 0:
		return "be"
	}
	return ""
}

// validPrefix reports whether bytes are UTF-8 that may end inside a character.
func validPrefix(head []byte) bool {
	for cut := 0; cut < utf8.UTFMax && cut <= len(head); cut++ {
		if utf8.Valid(head[:len(head)-cut]) {
			return cut == 0 || len(head) == headBytes
		}
	}
	return false
}
