package batch

import (
	"encoding/binary"
	"errors"
	"math"
)

var errShort = errors.New("it is cut off or damaged")

// A thrift is a struct of Thrift's compact protocol, by its fields' numbers: a
// value is a bool, int64, float64, []byte, []any or thrift. Parquet's metadata
// is written in it (github.com/apache/thrift, thrift-compact-protocol.md).
type thrift map[int]any

func (t thrift) num(field int) int64 {
	n, _ := t[field].(int64)
	return n
}

func (t thrift) has(field int) bool { _, ok := t[field]; return ok }

func (t thrift) sub(field int) thrift {
	s, _ := t[field].(thrift)
	return s
}

func (t thrift) text(field int) string {
	b, _ := t[field].([]byte)
	return string(b)
}

// list gives the structs of a list.
func (t thrift) list(field int) []thrift {
	all, _ := t[field].([]any)
	var out []thrift
	for _, x := range all {
		if s, ok := x.(thrift); ok {
			out = append(out, s)
		}
	}
	return out
}

// thriftValues is how many values are read with one cursor: a byte may be one,
// which takes many times that in memory.
const thriftValues = 4 << 20

// A cursor reads bytes. After the first fault it gives zeros, and err says so.
type cursor struct {
	b      []byte
	err    error
	values int // of Thrift that were read
}

// take gives the next n bytes.
func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.b) {
		c.err = errShort
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.err, n, v = errShort, 0, 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) zigzag() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// size is a length that what is left can have.
func (c *cursor) size() int {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.err = errShort
		return 0
	}
	return int(n)
}

// The types of the compact protocol.
const (
	thriftTrue, thriftFalse, thriftByte   = 1, 2, 3
	thriftI64, thriftDouble, thriftBinary = 6, 7, 8
	thriftList, thriftSet, thriftStruct   = 9, 10, 12
	thriftDepth                           = 16
)

func (c *cursor) readStruct(depth int) thrift {
	out := thrift{}
	for field := 0; c.err == nil; {
		head := c.byte()
		kind := int(head & 15)
		if kind == 0 {
			break
		}
		if delta := int(head >> 4); delta > 0 {
			field += delta
		} else {
			field = int(c.zigzag())
		}
		out[field] = c.value(kind, false, depth)
	}
	return out
}

// value reads a value. In a list a truth value has a byte of its own.
func (c *cursor) value(kind int, inList bool, depth int) any {
	c.values++
	switch {
	case depth > thriftDepth || c.values > thriftValues:
		c.err = errShort
	case kind == thriftTrue || kind == thriftFalse:
		if inList {
			return c.byte() == thriftTrue
		}
		return kind == thriftTrue
	case kind == thriftByte:
		return int64(int8(c.byte()))
	case kind <= thriftI64:
		return c.zigzag()
	case kind == thriftDouble:
		if b := c.take(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case kind == thriftBinary:
		return c.take(c.size())
	case kind == thriftList || kind == thriftSet:
		head := c.byte()
		n, item := int(head>>4), int(head&15)
		if n == 15 {
			n = c.size()
		}
		var list []any
		for ; n > 0 && c.err == nil; n-- {
			list = append(list, c.value(item, true, depth+1))
		}
		return list
	case kind == thriftStruct:
		return c.readStruct(depth + 1)
	default: // maps: Parquet has none
		c.err = errShort
	}
	return nil
}
