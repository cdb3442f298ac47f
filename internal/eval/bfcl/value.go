package bfcl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A value is JSON as Python's json.loads reads it: nil, bool, *big.Int, float64,
// string, list or *dict. The checker's rules are about Python's types: 5 is no
// 5.0, though the two are equal.
type (
	value any
	list  []value
	// A dict keeps the order of its keys, because the first fault that is found
	// names the error.
	dict struct {
		keys   []string
		values map[string]value
	}
)

func (d *dict) get(key string) (value, bool) {
	v, ok := d.values[key]
	return v, ok
}

// set adds a key, or changes its value and leaves it where it is.
func (d *dict) set(key string, v value) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

// MarshalJSON writes the keys in their order.
func (d *dict) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(d.values[k])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// maxDepth bounds the nesting of JSON, and with it every recursion over it;
// Python's json.loads ends at about the same depth.
const maxDepth = 1000

var errDeep = fmt.Errorf("it is nested deeper than %d levels", maxDepth)

// read reads one JSON value.
func read(src []byte) (value, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	v, err := readNext(dec, 0)
	if err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("text after the JSON value")
	}
	return v, nil
}

func readNext(dec *json.Decoder, depth int) (value, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Number:
		return number(t.String()), nil
	case json.Delim:
		if t == '[' {
			return readList(dec, depth+1)
		}
		return readDict(dec, depth+1)
	}
	return token, nil
}

func readList(dec *json.Decoder, depth int) (value, error) {
	l := list{}
	for dec.More() {
		v, err := readNext(dec, depth)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := dec.Token()
	return l, err
}

func readDict(dec *json.Decoder, depth int) (value, error) {
	d := &dict{values: map[string]value{}}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		v, err := readNext(dec, depth)
		if err != nil {
			return nil, err
		}
		d.set(key.(string), v) // the decoder takes no other keys
	}
	_, err := dec.Token()
	return d, err
}

// number is an int where it is spelled as one.
func number(s string) value {
	if i, ok := new(big.Int).SetString(s, 10); ok && !strings.ContainsAny(s, ".eE") {
		return i
	}
	f, _ := strconv.ParseFloat(s, 64) // infinite where it is too large, as in Python
	return f
}

// A kind is one of Python's types; none is that of a list in which there is
// nothing to tell it by.
type kind string

const (
	none    kind = ""
	null    kind = "NoneType"
	boolean kind = "bool"
	integer kind = "int"
	decimal kind = "float"
	text    kind = "str"
	array   kind = "list"
	object  kind = "dict"
)

func kindOf(v value) kind {
	switch v.(type) {
	case bool:
		return boolean
	case *big.Int:
		return integer
	case float64:
		return decimal
	case string:
		return text
	case list:
		return array
	case *dict:
		return object
	}
	return null
}

// equal is Python's ==: True is 1 and 1 is 1.0.
func equal(a, b value) bool {
	if x, ok := numeric(a); ok {
		y, ok := numeric(b)
		return ok && x.Cmp(y) == 0
	}
	switch x := a.(type) {
	case float64: // infinite
		return kindOf(b) == decimal && x == b.(float64)
	case string:
		y, ok := b.(string)
		return ok && x == y
	case list:
		y, ok := b.(list)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for k, v := range x.values {
			if w, ok := y.values[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	}
	return a == nil && b == nil
}

// numeric gives the exact value of a number that is finite.
func numeric(v value) (*big.Rat, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewRat(1, 1), true
		}
		return new(big.Rat), true
	case *big.Int:
		return new(big.Rat).SetInt(v), true
	case float64:
		r := new(big.Rat).SetFloat64(v)
		return r, r != nil
	}
	return nil, false
}

// in is Python's "v in l".
func in(v value, l list) bool {
	for _, w := range l {
		if equal(v, w) {
			return true
		}
	}
	return false
}
