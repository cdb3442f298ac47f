package batch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Parquet is read here and not by a library: those that there are take more
// seconds to compile than all else of the command, for what a dataset needs of
// it: flat and nested columns, written plainly or with a dictionary
// (github.com/apache/parquet-format).

// footerLimit is the longest metadata that is read, in bytes.
const footerLimit = 64 << 20

// unpackLimit is what a file may unpack to, in bytes: a few bytes can say that a
// long text stands in millions of rows.
const unpackLimit = 4 << 30

const magic = "PAR1"

// A parquetFile is one that is read, and what of it may still be unpacked.
type parquetFile struct {
	io.ReaderAt
	left int64
}

// spend counts what is unpacked.
func (f *parquetFile) spend(n int64) error {
	if f.left -= n; f.left < 0 {
		return errors.New("it unpacks to too much: write it as several files, or as JSON lines")
	}
	return nil
}

// readParquet reads the rows of a Parquet file, which may unpack to so many bytes.
// Of its columns only those are decoded that a question is read from; of others
// it is known that they are there.
func readParquet(in io.ReaderAt, size, limit int64, take taker) error {
	f := &parquetFile{in, limit}
	meta, err := parquetFooter(f, size)
	if err != nil {
		return fmt.Errorf("it is no Parquet file: %w", err)
	}
	root, err := parquetSchema(meta.list(2))
	if err != nil {
		return err
	}
	n := 0
	for _, group := range meta.list(4) {
		rows, err := readGroup(f, root, group)
		if err != nil {
			return err
		}
		for _, values := range rows {
			n++
			object, err := json.Marshal(values)
			if err == nil {
				err = f.spend(int64(len(object)))
			}
			if err != nil {
				return err
			}
			r, fault := newRow(object)
			take(n, r, fault)
		}
	}
	return nil
}

func parquetFooter(f io.ReaderAt, size int64) (thrift, error) {
	var tail [8]byte
	if size < 12 {
		return nil, errShort
	}
	if _, err := f.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if string(tail[4:]) != magic {
		return nil, errors.New("its end is missing")
	}
	if length > size-8 || length > footerLimit {
		return nil, errShort
	}
	b := make([]byte, length)
	if _, err := f.ReadAt(b, size-8-length); err != nil {
		return nil, err
	}
	c := cursor{b: b}
	return c.readStruct(0), c.err
}

// A node is a group or a column of the schema.
type node struct {
	name     string
	repeated bool
	optional bool
	list     bool // a LIST: a group with one repeated child
	children []*node
	kind     int64 // of a column
	width    int   // of a fixed column
	rep, def int   // levels at which the node is there
}

// wantedColumn reports whether a question is read from a column.
func wantedColumn(name string) bool {
	return slices.Contains(idKeys, name) || slices.Contains(questionKeys, name) || slices.Contains(answerKeys, name) ||
		slices.Contains(documentKeys, name) ||
		slices.Contains([]string{"messages", "prompt", "answer_aliases", "reward_model", "function", "supporting_facts", "paragraphs"}, name)
}

func parquetSchema(elements []thrift) (*node, error) {
	var build func(rep, def, depth int) (*node, error)
	build = func(rep, def, depth int) (*node, error) {
		if len(elements) == 0 || depth > thriftDepth {
			return nil, errShort
		}
		e := elements[0]
		elements = elements[1:]
		n := &node{name: e.text(4), repeated: e.num(3) == 2, optional: e.num(3) == 1, kind: e.num(1), width: int(e.num(2))}
		n.list = e.has(6) && e.num(6) == 3 || e.sub(10).has(3)
		if depth > 0 && n.repeated {
			rep++
		}
		if depth > 0 && (n.repeated || n.optional) {
			def++
		}
		n.rep, n.def = rep, def
		for range e.num(5) {
			child, err := build(rep, def, depth+1)
			if err != nil {
				return nil, err
			}
			n.children = append(n.children, child)
		}
		return n, nil
	}
	return build(0, 0, 0)
}

// readGroup gives the rows of a row group.
func readGroup(f *parquetFile, root *node, group thrift) ([]map[string]any, error) {
	var rows []map[string]any
	var others []string // columns that are not decoded
	for _, chunk := range group.list(1) {
		path, err := root.path(chunk.sub(3))
		if err != nil {
			return nil, err
		}
		top := path[0]
		if !wantedColumn(strings.ToLower(top.name)) {
			others = append(others, top.name)
			continue
		}
		entries, err := readColumn(f, chunk.sub(3), path[len(path)-1])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", top.name, err)
		}
		for row := 0; len(entries) > 0; row++ {
			n := 1
			for n < len(entries) && entries[n].rep > 0 {
				n++
			}
			if row == len(rows) {
				rows = append(rows, map[string]any{})
			}
			merge(rows[row], assemble(path, entries[:n]))
			entries = entries[n:]
		}
	}
	for _, row := range rows {
		for _, name := range others {
			row[name] = true
		}
		for _, n := range root.children {
			if v, ok := row[n.name]; ok {
				row[n.name] = n.plain(v)
			}
		}
	}
	if int64(len(rows)) != group.num(3) {
		return nil, errors.New("it has no column that a question could be read from, or is damaged")
	}
	return rows, nil
}

// path gives the nodes on the way to a column.
func (n *node) path(meta thrift) ([]*node, error) {
	var path []*node
	names, _ := meta[3].([]any)
	for _, name := range names {
		b, _ := name.([]byte)
		i := slices.IndexFunc(n.children, func(c *node) bool { return c.name == string(b) })
		if i < 0 {
			return nil, errShort
		}
		n = n.children[i]
		path = append(path, n)
	}
	if len(path) == 0 || len(n.children) > 0 {
		return nil, errShort
	}
	return path, nil
}

// An entry is a value of a column with its levels.
type entry struct {
	rep, def int
	value    any
}

// assemble gives what the entries of one row are, below a path of the schema
// (the record assembly of Dremel, a column at a time).
func assemble(path []*node, entries []entry) map[string]any {
	n := path[0]
	below := func(part []entry) any {
		if len(path) == 1 {
			return part[0].value
		}
		return assemble(path[1:], part)
	}
	if !n.repeated {
		if entries[0].def < n.def {
			return map[string]any{n.name: nil}
		}
		return map[string]any{n.name: below(entries)}
	}
	list := []any{}
	for from := 0; from < len(entries) && entries[0].def >= n.def; {
		to := from + 1
		for to < len(entries) && entries[to].rep > n.rep {
			to++
		}
		list = append(list, below(entries[from:to]))
		from = to
	}
	return map[string]any{n.name: list}
}

// merge adds what one column knows of a row to what others do.
func merge(into, more map[string]any) {
	for key, v := range more {
		switch old := into[key].(type) {
		case map[string]any:
			if m, ok := v.(map[string]any); ok {
				merge(old, m)
			}
		case []any:
			list, _ := v.([]any)
			for i := range min(len(old), len(list)) {
				a, isMap := old[i].(map[string]any)
				if b, ok := list[i].(map[string]any); ok && isMap {
					merge(a, b)
				}
			}
		default:
			into[key] = v
		}
	}
}

// plain leaves the groups out that only Parquet's lists have.
func (n *node) plain(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = n.inside(v[i])
		}
	case map[string]any:
		if n.list && len(n.children) == 1 && n.children[0].repeated {
			element := n.children[0]
			list, _ := element.plain(v[element.name]).([]any)
			for i := range list {
				if m, ok := list[i].(map[string]any); ok && len(element.children) == 1 {
					list[i] = m[element.children[0].name]
				}
			}
			if list == nil {
				return nil
			}
			return list
		}
		return n.inside(v)
	}
	return v
}

// inside does that for the children of a group.
func (n *node) inside(v any) any {
	if m, ok := v.(map[string]any); ok {
		for _, c := range n.children {
			if x, ok := m[c.name]; ok {
				m[c.name] = c.plain(x)
			}
		}
	}
	return v
}
