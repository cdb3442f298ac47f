package corpus

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"sync"

	"github.com/viterin/vek/vek32"
)

// Vectors are those of all passages, in memory: an exact search looks at each.
// 100 000 vectors of 384 numbers take 150 MB.
type vectors struct {
	changes  int64 // meta.changes when they were read
	embedder string
	width    int
	values   []float32 // row after row
	passages []int64   // their numbers
	rows     []int32   // the row of each passage; several may share one
}

// vectorsOf gives the vectors as the transaction sees them. They are read when
// a search needs them first, and again after a change.
func (x *Index) vectorsOf(ctx context.Context, tx *sql.Tx, changes int64) (*vectors, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.vectors != nil && x.vectors.changes == changes {
		return x.vectors, nil
	}
	v, err := readVectors(ctx, tx)
	if err != nil {
		return nil, err
	}
	v.changes = changes
	x.vectors = v
	return v, nil
}

func readVectors(ctx context.Context, tx *sql.Tx) (*vectors, error) {
	v := &vectors{}
	var count int
	var probe []byte
	const sizes = "SELECT (SELECT count(*) FROM vectors), probe, embedder FROM meta"
	if err := tx.QueryRowContext(ctx, sizes).Scan(&count, &probe, &v.embedder); err != nil {
		return nil, err
	}
	v.width = len(probe) / 4
	v.values = make([]float32, 0, count*v.width)
	row := make(map[int64]int32, count)
	err := each(ctx, tx, "SELECT num, vector FROM vectors ORDER BY num", func(rows *sql.Rows) error {
		var num int64
		var data sql.RawBytes
		if err := rows.Scan(&num, &data); err != nil {
			return err
		}
		if len(data) != 4*v.width {
			return fmt.Errorf("vector %d has %d bytes, not %d", num, len(data), 4*v.width)
		}
		row[num] = int32(len(row))
		v.values = append(v.values, decodeVector(data)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v, each(ctx, tx, "SELECT passage, vector FROM embedded ORDER BY passage", func(rows *sql.Rows) error {
		var passage, num int64
		if err := rows.Scan(&passage, &num); err != nil {
			return err
		}
		if r, ok := row[num]; ok {
			v.passages, v.rows = append(v.passages, passage), append(v.rows, r)
		}
		return nil
	})
}

// each calls scan for each row of a query.
func each(ctx context.Context, tx *sql.Tx, query string, scan func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// nearest gives the n passages whose vectors are closest to that of a query,
// the closest first, by the cosine.
func (v *vectors) nearest(query []float32, n int) []ranked {
	if v.width == 0 || len(query) != v.width {
		return nil
	}
	scores := v.scores(query)
	top := newBest(n)
	for i, p := range v.passages {
		top.add(ranked{p, float64(scores[v.rows[i]])})
	}
	top.settle()
	return top.list
}

// scores are the dot products of a query with all rows.
func (v *vectors) scores(query []float32) []float32 {
	count := len(v.values) / v.width
	out := make([]float32, count)
	workers := min(runtime.GOMAXPROCS(0), 1+count/4096)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w * count / workers; i < (w+1)*count/workers; i++ {
				out[i] = vek32.Dot(v.values[i*v.width:(i+1)*v.width], query)
			}
		})
	}
	wg.Wait()
	return out
}
