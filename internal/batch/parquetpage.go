package batch

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// pageLimit is the largest page that is read, in bytes; writers make them about
// a megabyte.
const pageLimit = 256 << 20

// entryLimit is how many values a column may have in one row group: a few bytes
// can say that there are any number of them.
const entryLimit = 4 << 20

// entryBytes is about what a value takes, beside its text.
const entryBytes = 48

// The kinds of pages, encodings and codecs, as parquet.thrift numbers them.
const (
	pageData, pageDictionary, pageDataV2                     = 0, 2, 3
	encPlain, encPlainDictionary, encRLE, encRLEDictionary   = 0, 2, 3, 8
	codecNone, codecSnappy, codecGzip, codecZstd             = 0, 1, 2, 6
	kindBoolean, kindInt32, kindInt64, kindInt96             = 0, 1, 2, 3
	kindFloat, kindDouble, kindByteArray, kindFixedByteArray = 4, 5, 6, 7
)

// readColumn gives all entries of a column in a row group.
func readColumn(f *parquetFile, meta thrift, n *node) ([]entry, error) {
	from, size := meta.num(9), meta.num(7)
	if meta.has(11) && meta.num(11) > 0 && meta.num(11) < from {
		from = meta.num(11)
	}
	if from < 0 || size < 0 || size > math.MaxInt32 {
		return nil, errShort
	}
	chunk, err := io.ReadAll(io.NewSectionReader(f, from, size))
	if err == nil {
		err = f.spend(int64(len(chunk)))
	}
	if err != nil {
		return nil, err
	}
	c := cursor{b: chunk}
	var dictionary []any
	var out []entry
	for total := meta.num(5); int64(len(out)) < total; {
		before := len(c.b)
		header := c.readStruct(0)
		body := c.take(int(header.num(3)))
		if c.err != nil {
			return nil, c.err
		}
		p := page{node: n, file: f, header: header, codec: meta.num(4), dictionary: dictionary}
		switch header.num(1) {
		case pageDictionary:
			dictionary, err = p.readDictionary(body)
		case pageData:
			out, err = p.readV1(body, out)
		case pageDataV2:
			out, err = p.readV2(body, out)
		}
		if err != nil {
			return nil, err
		}
		if len(c.b) == before {
			return nil, errShort
		}
	}
	return out, nil
}

// A page is a data page.
type page struct {
	*node
	file       *parquetFile
	header     thrift
	codec      int64
	dictionary []any
}

func (p *page) readDictionary(body []byte) ([]any, error) {
	body, err := p.decompress(body, p.header.num(2))
	count := p.header.sub(7).num(1)
	if err == nil {
		err = p.file.spend(max(count, 0) * entryBytes)
	}
	if err != nil {
		return nil, err
	}
	return plainValues(&cursor{b: body}, p.node, int(count))
}

func (p *page) readV1(body []byte, out []entry) ([]entry, error) {
	body, err := p.decompress(body, p.header.num(2))
	if err != nil {
		return nil, err
	}
	h := p.header.sub(5)
	c := &cursor{b: body}
	level := func(most int) []byte {
		if most == 0 {
			return nil
		}
		b := c.take(4)
		if b == nil {
			return nil
		}
		return c.take(int(binary.LittleEndian.Uint32(b)))
	}
	reps, defs := level(p.rep), level(p.def)
	if c.err != nil {
		return nil, c.err
	}
	return p.entries(reps, defs, c.b, h.num(1), h.num(2), out)
}

func (p *page) readV2(body []byte, out []entry) ([]entry, error) {
	h := p.header.sub(8)
	c := &cursor{b: body}
	reps, defs := c.take(int(h.num(6))), c.take(int(h.num(5)))
	if c.err != nil {
		return nil, c.err
	}
	values := c.b
	if packed, said := h[7].(bool); packed || !said {
		var err error
		if values, err = p.decompress(values, p.header.num(2)-h.num(5)-h.num(6)); err != nil {
			return nil, err
		}
	}
	return p.entries(reps, defs, values, h.num(1), h.num(4), out)
}

// entries puts levels and values together.
func (p *page) entries(reps, defs, values []byte, count, encoding int64, out []entry) ([]entry, error) {
	if count < 0 || count > entryLimit-int64(len(out)) {
		return nil, fmt.Errorf("a row group has more than %d values", entryLimit)
	}
	if err := p.file.spend(count * entryBytes); err != nil {
		return nil, err
	}
	n := int(count)
	rep, err := levels(reps, p.rep, n)
	if err != nil {
		return nil, err
	}
	def, err := levels(defs, p.def, n)
	if err != nil {
		return nil, err
	}
	there := n
	if p.def > 0 {
		there = 0
		for _, d := range def {
			if d == p.def {
				there++
			}
		}
	}
	list, err := p.values(values, encoding, there)
	if err != nil {
		return nil, err
	}
	for i := range n {
		e := entry{}
		if p.rep > 0 {
			e.rep = rep[i]
		}
		if p.def > 0 {
			e.def = def[i]
		}
		if e.def == p.def {
			e.value, list = list[0], list[1:]
		}
		out = append(out, e)
	}
	return out, nil
}

// levels reads the levels of n entries; nil where all are zero.
func levels(b []byte, most, n int) ([]int, error) {
	if most == 0 {
		return nil, nil
	}
	return hybrid(&cursor{b: b}, bits.Len(uint(most)), n)
}

// values reads n values.
func (p *page) values(b []byte, encoding int64, n int) ([]any, error) {
	c := &cursor{b: b}
	switch encoding {
	case encPlain:
		return plainValues(c, p.node, n)
	case encPlainDictionary, encRLEDictionary:
		if n == 0 {
			return nil, nil
		}
		indexes, err := hybrid(c, int(c.byte()), n)
		if err != nil {
			return nil, err
		}
		out := make([]any, n)
		for i, x := range indexes {
			if x >= len(p.dictionary) {
				return nil, errShort
			}
			out[i] = p.dictionary[x]
		}
		return out, nil
	case encRLE: // truth values, behind their length
		c.take(4)
		ones, err := hybrid(c, 1, n)
		out := make([]any, len(ones))
		for i, x := range ones {
			out[i] = x == 1
		}
		return out, err
	}
	return nil, fmt.Errorf("its encoding (%d) is not read here: write it plainly or with a dictionary, as pandas does", encoding)
}

// hybrid reads n numbers of some bits in runs and packs (the encoding RLE).
func hybrid(c *cursor, width, n int) ([]int, error) {
	if width > 32 {
		return nil, errShort
	}
	var out []int
	for len(out) < n && c.err == nil {
		head := c.uvarint()
		if head&1 == 0 { // a run
			b := c.take((width + 7) / 8)
			v := 0
			for i := range b {
				v |= int(b[i]) << (8 * i)
			}
			for run := min(head>>1, uint64(n-len(out))); run > 0 && c.err == nil; run-- {
				out = append(out, v)
			}
			if head == 0 {
				return nil, errShort
			}
			continue
		}
		groups := head >> 1
		if groups > uint64(len(c.b))+1 {
			return nil, errShort
		}
		b := c.take(min(int(groups)*width, len(c.b)))
		for i := 0; i < int(groups)*8 && len(out) < n; i++ {
			v := 0
			for bit := range width {
				at := i*width + bit
				if at/8 >= len(b) {
					return nil, errShort
				}
				v |= int(b[at/8]>>(at%8)&1) << bit
			}
			out = append(out, v)
		}
	}
	return out, c.err
}

// plainValues reads n values as they are.
func plainValues(c *cursor, n *node, count int) ([]any, error) {
	if count < 0 || count > entryLimit || n.kind == kindFixedByteArray && n.width < 1 {
		return nil, errShort
	}
	var out []any
	for i := 0; i < count && c.err == nil; i++ {
		switch n.kind {
		case kindBoolean:
			if i/8 >= len(c.b) {
				return nil, errShort
			}
			out = append(out, c.b[i/8]>>(i%8)&1 == 1)
		case kindInt32:
			if b := c.take(4); b != nil {
				out = append(out, int64(int32(binary.LittleEndian.Uint32(b))))
			}
		case kindInt64:
			if b := c.take(8); b != nil {
				out = append(out, int64(binary.LittleEndian.Uint64(b)))
			}
		case kindInt96: // an old time stamp: no part of a question
			c.take(12)
			out = append(out, nil)
		case kindFloat:
			if b := c.take(4); b != nil {
				out = append(out, finite(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))))
			}
		case kindDouble:
			if b := c.take(8); b != nil {
				out = append(out, finite(math.Float64frombits(binary.LittleEndian.Uint64(b))))
			}
		case kindByteArray:
			if b := c.take(4); b != nil {
				out = append(out, string(c.take(int(binary.LittleEndian.Uint32(b)))))
			}
		case kindFixedByteArray:
			out = append(out, string(c.take(n.width)))
		default:
			return nil, errShort
		}
	}
	return out, c.err
}

// finite gives a number that JSON has, or nil.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// decompress gives what a page was before it was compressed, which has size
// bytes.
func (p *page) decompress(b []byte, size int64) ([]byte, error) {
	if size < 0 || size > pageLimit {
		return nil, errShort
	}
	if err := p.file.spend(size); err != nil {
		return nil, err
	}
	var out []byte
	var err error
	switch p.codec {
	case codecNone:
		return b, nil
	case codecSnappy:
		out, err = unsnap(b, int(size))
	case codecGzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
			out, err = io.ReadAll(io.LimitReader(z, size+1))
		}
	case codecZstd:
		var z *zstd.Decoder
		if z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(pageLimit)); err == nil {
			defer z.Close()
			out, err = z.DecodeAll(b, nil)
		}
	default:
		return nil, errors.New("its compression is not read here: use snappy, gzip, zstd or none")
	}
	if err == nil && int64(len(out)) != size {
		err = errShort
	}
	return out, err
}

// unsnap decompresses a block of snappy (github.com/google/snappy,
// format_description.txt).
func unsnap(b []byte, size int) ([]byte, error) {
	c := &cursor{b: b}
	if c.uvarint() != uint64(size) {
		return nil, errShort
	}
	out := make([]byte, 0, size)
	little := func(n int) int {
		v := 0
		for i, x := range c.take(n) {
			v |= int(x) << (8 * i)
		}
		return v
	}
	for len(c.b) > 0 && c.err == nil {
		tag := c.byte()
		length, offset := int(tag>>2)+1, 0
		switch tag & 3 {
		case 0: // literal
			if length > 60 {
				length = little(length-60) + 1
			}
			if length > size-len(out) {
				return nil, errShort
			}
			out = append(out, c.take(length)...)
			continue
		case 1:
			length, offset = int(tag>>2&7)+4, int(tag>>5)<<8|int(c.byte())
		case 2:
			offset = little(2)
		case 3:
			offset = little(4)
		}
		if offset <= 0 || offset > len(out) || length > size-len(out) {
			return nil, errShort
		}
		for range length { // it may overlap
			out = append(out, out[len(out)-offset])
		}
	}
	return out, c.err
}
