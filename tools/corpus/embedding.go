package corpus

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
)

const (
	// embedBatch is how many texts a request has: what an interrupted run
	// loses at most.
	embedBatch = 32
	// probeText is embedded each time an index is opened: where its vector is
	// another one than before, the model behind the name is another one.
	probeText = "The quick brown fox jumps over the lazy dog."
	// sameModel is the least cosine of two vectors of one text by one model.
	// Batches and processors change the last digits only.
	sameModel = 0.999
)

// errAnotherModel says whose vectors are in the index now.
var errAnotherModel = errors.New("another process gives it vectors of another model")

// noteModel says why all vectors were made anew.
const noteModel = "the vectors were of another model"

// An embedding gives vectors to the passages that have none.
type embedding struct {
	db       *sql.DB
	path     string // of the index
	embedder Embedder
	probe    []byte // the vector of probeText in the index
	report   func(Progress)
	progress Progress
	stats    *Stats
}

// run embeds what has no vector yet, a batch at a time. What is embedded stays,
// whatever ends it.
func (e *embedding) run(ctx context.Context) error {
	if err := e.settle(ctx); err != nil {
		return err
	}
	const waiting = "SELECT count(*) FROM passages WHERE num NOT IN (SELECT passage FROM embedded)"
	if err := e.db.QueryRowContext(ctx, waiting).Scan(&e.progress.TotalPassages); err != nil {
		return err
	}
	if e.progress.TotalPassages == 0 && e.stats.Updated+e.stats.Removed == 0 {
		return nil
	}
	for last := int64(-1); ; {
		list, err := e.pending(ctx, last)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		last = list[len(list)-1].num
		if err := e.batch(ctx, list); err != nil {
			if bad, ok := errors.AsType[*EmbedError](err); ok {
				bad.Done, bad.Left = e.progress.Passages, e.progress.TotalPassages-e.progress.Passages
			}
			return err
		}
		e.progress.Passages += len(list)
		if e.report != nil {
			e.report(e.progress)
		}
	}
	return e.write(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "DELETE FROM vectors WHERE num NOT IN (SELECT vector FROM embedded)")
		return err
	})
}

// alone makes sure that the vectors of the index are still those of this model:
// vectors of two models cannot be compared.
func (e *embedding) alone(ctx context.Context, conn *sql.Conn) error {
	var ours bool
	const same = "SELECT embedder = ? AND probe = ? FROM meta"
	if err := conn.QueryRowContext(ctx, same, e.embedder.Name(), e.probe).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return &IndexError{Path: e.path, Err: errAnotherModel}
	}
	return nil
}

// settle throws the vectors of another model away. The name alone does not tell:
// a model may be pulled again.
func (e *embedding) settle(ctx context.Context) error {
	list, err := e.embedder.Embed(ctx, []string{probeText}, false)
	if err != nil {
		return err
	}
	var name string
	var probe []byte
	if err := e.db.QueryRowContext(ctx, "SELECT embedder, probe FROM meta").Scan(&name, &probe); err != nil {
		return err
	}
	old := decodeVector(probe)
	e.probe = probe
	if name == e.embedder.Name() && len(old) == len(list[0]) && cosine(old, list[0]) >= sameModel {
		return nil
	}
	if name != "" {
		e.stats.Rebuilt = noteModel
	}
	e.probe = encodeVector(list[0])
	return e.write(ctx, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "DELETE FROM embedded"); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "DELETE FROM vectors"); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "UPDATE meta SET embedder = ?, probe = ?", e.embedder.Name(), e.probe)
		return err
	})
}

// A waiting passage has no vector yet.
type waiting struct {
	num  int64
	text string // title and text, as they are embedded
	hash []byte // of text
}

// pending gives the next passages without a vector.
func (e *embedding) pending(ctx context.Context, after int64) ([]waiting, error) {
	rows, err := e.db.QueryContext(ctx, `
		SELECT p.num, d.title || char(10) || p.lead || p.text
		FROM passages p JOIN documents d ON d.num = p.document
		WHERE p.num > ? AND p.num NOT IN (SELECT passage FROM embedded)
		ORDER BY p.num LIMIT ?`, after, embedBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []waiting
	for rows.Next() {
		var w waiting
		if err := rows.Scan(&w.num, &w.text); err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(w.text))
		w.hash = sum[:16]
		list = append(list, w)
	}
	return list, rows.Err()
}

// batch embeds the texts of a few passages, each text once.
func (e *embedding) batch(ctx context.Context, list []waiting) error {
	var texts []string
	var hashes [][]byte
	seen := make(map[string]bool)
	for _, w := range list {
		var known bool
		err := e.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM vectors WHERE hash = ?)", w.hash).Scan(&known)
		if err != nil {
			return err
		}
		if !known && !seen[string(w.hash)] {
			seen[string(w.hash)] = true
			texts, hashes = append(texts, w.text), append(hashes, w.hash)
		}
	}
	vectors, err := e.embedder.Embed(ctx, texts, false)
	if err != nil {
		return err
	}
	e.stats.Embedded += len(texts)
	return e.write(ctx, func(conn *sql.Conn) error {
		if err := e.alone(ctx, conn); err != nil {
			return err
		}
		for i, v := range vectors {
			const insert = "INSERT INTO vectors(hash, vector) VALUES(?, ?) ON CONFLICT(hash) DO NOTHING"
			if _, err := conn.ExecContext(ctx, insert, hashes[i], encodeVector(v)); err != nil {
				return err
			}
		}
		for _, w := range list {
			// The passage may be gone by now.
			const link = `INSERT OR IGNORE INTO embedded
				SELECT p.num, v.num FROM passages p, vectors v WHERE p.num = ? AND v.hash = ?`
			if _, err := conn.ExecContext(ctx, link, w.num, w.hash); err != nil {
				return err
			}
		}
		return nil
	})
}

// write runs one transaction and tells open indexes that something changed.
func (e *embedding) write(ctx context.Context, do func(*sql.Conn) error) error {
	conn, err := e.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := begin(ctx, conn, nil); err != nil {
		return err
	}
	err = do(conn)
	if err == nil {
		_, err = conn.ExecContext(ctx, "UPDATE meta SET changes = changes + 1")
	}
	return end(ctx, conn, err)
}

// encodeVector writes a vector as the index keeps it: little-endian float32.
func encodeVector(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func decodeVector(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// cosine is that of two vectors of length one.
func cosine(a, b []float32) float64 {
	sum := 0.0
	for i, f := range a {
		sum += float64(f) * float64(b[i])
	}
	return sum
}
