package corpus

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
)

// TestPrefix: a character stands for all terms that begin with it, and counts in
// a passage as often as they do together, whatever chunk the passage is of.
func TestPrefix(t *testing.T) {
	db, err := memoryStore(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	postings := func(list ...int) (data []byte) {
		for i := 0; i < len(list); i += 2 {
			data = append(binary.LittleEndian.AppendUint16(data, uint16(list[i])), byte(list[i+1]))
		}
		return data
	}
	for _, row := range []struct {
		term  string
		chunk int64
		data  []byte
	}{
		{"山", 0, postings(7, 1)},
		{"山上", 0, postings(1, 2, 7, 3, 65535, 1)},
		{"山下", 0, postings(7, 255)},
		{"山下", 4, postings(0, 5)},
		{"岳山", 0, postings(2, 1)},
	} {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO postings VALUES(?, ?, ?)", row.term, row.chunk, row.data); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, c := range []struct {
		term term
		want postingList
	}{
		{term{text: "山", prefix: true}, postingList{0: postings(1, 2, 7, 255, 65535, 1), 4: postings(0, 5)}},
		{term{text: "山"}, postingList{0: postings(7, 1)}},
		{term{text: "海", prefix: true}, postingList{}},
	} {
		got, err := readPostings(t.Context(), tx, c.term)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: %v, %v", c.term, got, err)
		}
	}
}

// BenchmarkPrefix: a character that begins 3 000 terms and stands in nearly every
// passage of a chunk.
func BenchmarkPrefix(b *testing.B) {
	var rows [][]byte
	for i := range 3000 {
		var data []byte
		for low := i % 97; low < chunkSize; low += 997 {
			data = append(binary.LittleEndian.AppendUint16(data, uint16(low)), 1)
		}
		rows = append(rows, data)
	}
	for b.Loop() {
		s := make(sums)
		for _, data := range rows {
			s.add(0, data)
		}
		s.list()
	}
}
