package corpus

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
)

// The inverted index. Passages are numbered without gaps, and a chunk is 65 536
// of them. For each term and chunk there is one row, whose data is a posting of
// three bytes for each passage with the term, in the order of their numbers: the
// lower 16 bits of the number, and how often the term occurs. For each chunk
// there are the lengths of its passages, two bytes each, at twice those 16 bits.
//
// New passages have the highest numbers, so that rows only grow at their end;
// what is removed is cut out. There is nothing to merge, and nothing to forget:
// the index of some documents is the same whatever came and went before.
const (
	chunkBits    = 16
	chunkSize    = 1 << chunkBits
	postingBytes = 3
	maxCount     = math.MaxUint8
	maxLength    = math.MaxUint16
)

// maxPending bounds the postings that wait in memory, here and there.
const maxPending = 4 << 20

// Frequencies say how often each term occurs in a passage, where those of the title
// count titleWeight times, and length is how many terms the passage has.
type frequencies struct {
	of     map[string]int
	length int
}

// add counts the terms of a text.
func (c *frequencies) add(text string, weight int) {
	eachTerm(text, false, func(t term) {
		c.of[t.text] += weight
		c.length++
	})
}

func countTerms(title, text string) frequencies {
	c := frequencies{of: make(map[string]int)}
	c.add(title, titleWeight)
	c.add(text, 1)
	return c
}

// Postings wait for being written, those of one transaction.
type postings struct {
	added   map[string][]byte // all of one chunk
	chunk   int64
	lengths []byte // of the passages that were added
	removed map[string][]int64
	pending int
}

func newPostings() postings {
	return postings{added: make(map[string][]byte), removed: make(map[string][]int64)}
}

// add notes a new passage; its number is higher than any before.
func (p *postings) add(num int64, c frequencies) {
	p.chunk = num >> chunkBits
	p.lengths = binary.LittleEndian.AppendUint16(p.lengths, uint16(min(c.length, maxLength)))
	for text, n := range c.of {
		data, known := p.added[text]
		if !known {
			text = strings.Clone(text) // the text is a part of the document
		}
		data = binary.LittleEndian.AppendUint16(data, uint16(num))
		p.added[text] = append(data, byte(min(n, maxCount)))
	}
	p.pending += len(c.of)
}

// remove notes that a passage is gone.
func (p *postings) remove(num int64, c frequencies) {
	for text := range c.of {
		if _, known := p.removed[text]; !known {
			text = strings.Clone(text)
		}
		p.removed[text] = append(p.removed[text], num)
	}
	p.pending += len(c.of)
}

// full reports whether what waits must be written before a passage of a number
// is added.
func (p *postings) full(next int64) bool {
	return p.pending >= maxPending || len(p.lengths) > 0 && next>>chunkBits != p.chunk
}

// write writes what waits.
func (p *postings) write(ctx context.Context, conn *sql.Conn) error {
	if err := p.writeLengths(ctx, conn); err != nil {
		return err
	}
	get, err := conn.PrepareContext(ctx, "SELECT data FROM postings WHERE term = ? AND chunk = ?")
	if err != nil {
		return err
	}
	defer get.Close()
	put, err := conn.PrepareContext(ctx, "INSERT OR REPLACE INTO postings(term, chunk, data) VALUES(?, ?, ?)")
	if err != nil {
		return err
	}
	defer put.Close()
	change := func(text string, chunk int64, do func([]byte) []byte) error {
		var data []byte
		err := get.QueryRowContext(ctx, text, chunk).Scan(&data)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if data = do(data); len(data) == 0 {
			_, err = conn.ExecContext(ctx, "DELETE FROM postings WHERE term = ? AND chunk = ?", text, chunk)
			return err
		}
		_, err = put.ExecContext(ctx, text, chunk, data)
		return err
	}
	// In the order of the table, which is the fastest.
	for _, text := range slices.Sorted(maps.Keys(p.added)) {
		more := p.added[text]
		if err := change(text, p.chunk, func(data []byte) []byte { return append(data, more...) }); err != nil {
			return err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(p.removed)) {
		gone := p.removed[text]
		slices.Sort(gone)
		for len(gone) > 0 {
			chunk := gone[0] >> chunkBits
			n, _ := slices.BinarySearch(gone, (chunk+1)<<chunkBits)
			some := gone[:n]
			if err := change(text, chunk, func(data []byte) []byte { return without(data, some) }); err != nil {
				return err
			}
			gone = gone[n:]
		}
	}
	*p = newPostings()
	return nil
}

// writeLengths appends the lengths of the new passages to those of their chunk.
func (p *postings) writeLengths(ctx context.Context, conn *sql.Conn) error {
	if len(p.lengths) == 0 {
		return nil
	}
	var data []byte
	err := conn.QueryRowContext(ctx, "SELECT data FROM lengths WHERE chunk = ?", p.chunk).Scan(&data)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = conn.ExecContext(ctx, "INSERT OR REPLACE INTO lengths(chunk, data) VALUES(?, ?)", p.chunk, append(data, p.lengths...))
	return err
}

// without cuts the postings of some passages of one chunk out. Both are in the
// order of the numbers.
func without(data []byte, gone []int64) []byte {
	kept := data[:0]
	for len(data) >= postingBytes {
		low := binary.LittleEndian.Uint16(data)
		for len(gone) > 0 && uint16(gone[0]) < low {
			gone = gone[1:]
		}
		if len(gone) == 0 || uint16(gone[0]) != low {
			kept = append(kept, data[:postingBytes]...)
		}
		data = data[postingBytes:]
	}
	return kept
}

// A posting list is what the index has of one term, by chunk.
type postingList map[int64][]byte

// count is how many passages have the term.
func (l postingList) count() int {
	n := 0
	for _, data := range l {
		n += len(data) / postingBytes
	}
	return n
}

// readPostings gives the postings of a term of a query. One that stands for all
// terms that begin with it has the postings of them all.
func readPostings(ctx context.Context, tx *sql.Tx, t term) (postingList, error) {
	query, args := "SELECT chunk, data FROM postings WHERE term = ?", []any{t.text}
	if t.prefix {
		query, args = "SELECT chunk, data FROM postings WHERE term >= ? AND term < ?", []any{t.text, t.text + "\U0010FFFF"}
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list, sums := make(postingList), make(sums)
	for rows.Next() {
		var chunk int64
		var data []byte
		if err := rows.Scan(&chunk, &data); err != nil {
			return nil, err
		}
		if t.prefix {
			sums.add(chunk, data)
		} else {
			list[chunk] = data
		}
	}
	if t.prefix {
		list = sums.list()
	}
	return list, rows.Err()
}

// Sums say how often any of several terms occurs in the passages of a chunk, by
// the lower bits of their numbers. A character may begin thousands of terms.
type sums map[int64]*[chunkSize]byte

func (s sums) add(chunk int64, data []byte) {
	counts := s[chunk]
	if counts == nil {
		counts = new([chunkSize]byte)
		s[chunk] = counts
	}
	for ; len(data) >= postingBytes; data = data[postingBytes:] {
		low := binary.LittleEndian.Uint16(data)
		counts[low] = byte(min(int(counts[low])+int(data[2]), maxCount))
	}
}

// list gives the sums as the postings of one term.
func (s sums) list() postingList {
	list := make(postingList, len(s))
	for chunk, counts := range s {
		var data []byte
		for low, n := range counts {
			if n > 0 {
				data = append(binary.LittleEndian.AppendUint16(data, uint16(low)), n)
			}
		}
		list[chunk] = data
	}
	return list
}
