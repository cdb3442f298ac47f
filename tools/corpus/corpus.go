// Package corpus searches the user's own documents.
//
// A corpus is a folder of text files and JSONL files, or one such file. It is
// indexed into one SQLite file, which is brought up to date each time it is
// opened: only changed files are read. The package never changes a document,
// never follows a symbolic link and never reads outside the folder. Documents
// that a program brings along are indexed in memory.
package corpus

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DefaultHits is how many hits the search tool gives for a query.
const DefaultHits = 5

// A Config says what is indexed and where.
type Config struct {
	// Path is a folder, searched with its subfolders, or one file.
	// Read are .md, .markdown, .txt, .rst, .org and, one document a line,
	// .jsonl and .ndjson.
	Path string
	// FS, where set, has the documents, and Path is only what errors call them.
	// Their index is kept in memory and made anew each time; Index is not used.
	// It is meant for a few hundred documents: a thousand take about 0.1 s.
	FS fs.FS
	// Index is the file of the index; empty means DefaultIndex(Path).
	Index string
	// Hits is how many hits the search tool gives; zero means DefaultHits.
	Hits int
	// Parse, where set, reads further types of files, whose names end as Types
	// say (".pdf"). An error skips the file; nothing else does.
	Parse func(ctx context.Context, name string, data []byte) (Document, error)
	Types []string
	// Embedder, where set, gives vectors to the passages, and searches rank by
	// words and vectors. It is not used for an FS.
	Embedder Embedder
	// Notice, where set, is told why a search did without vectors. Searches call
	// it, from any goroutine.
	Notice func(error)
	// Progress, where set, is told how far the indexing is, a few times a
	// second and at its end. It is called from the goroutine that called Open.
	Progress func(Progress)

	batch int64 // bytes between two commits; zero means batchBytes
}

// Progress tells how far the indexing is. The totals count what has to be
// read, not what the corpus has.
type Progress struct {
	Files, TotalFiles int
	Bytes, TotalBytes int64
	Name              string // the file being read, relative to the corpus
	// Waiting says that another process writes to the same index.
	Waiting bool
	// Passages counts those that got vectors. It begins when all files are read.
	Passages, TotalPassages int
}

// Stats tell what opening an index did.
type Stats struct {
	Documents int // in the index now
	Passages  int // parts that are searched; a short document has one
	// Added, Updated, Removed and Unchanged count files.
	Added, Updated, Removed, Unchanged int
	Skipped                            Skips
	// Embedded is how many texts the embedding model was asked for.
	Embedded int
	// Rebuilt says why an existing index, or all its vectors, were thrown away;
	// empty if they were not.
	Rebuilt  string
	Duration time.Duration
}

// An Index is an open corpus. It is safe for concurrent use.
type Index struct {
	db       *sql.DB
	path     string
	hits     int
	stats    Stats
	embedder Embedder // nil for none
	notice   func(error)

	mu      sync.Mutex
	vectors *vectors // as they were read last
}

// Open brings the index of a corpus up to date and opens it. Several processes
// may do so at once. When ctx ends it, the files that were read so far stay in
// the index, the next Open goes on from there, and ctx's error is returned.
//
// Errors are *ReadError for a corpus that cannot be read, *NoDocumentsError
// for one without documents, *IndexError for the index file and *EmbedError
// for the server of the embedding model; what was embedded by then stays.
func Open(ctx context.Context, cfg Config) (*Index, error) {
	start := time.Now()
	if cfg.FS != nil {
		x, err := openMemory(ctx, cfg)
		if err != nil {
			return nil, err
		}
		x.stats.Duration = time.Since(start)
		return x, nil
	}
	src, err := openSource(cfg)
	if err != nil {
		return nil, err
	}
	defer src.close()
	path := cfg.Index
	if path == "" {
		if path, err = DefaultIndex(cfg.Path); err != nil {
			return nil, err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, &IndexError{Path: cfg.Index, Err: err}
	}
	x, err := open(ctx, src, path, cfg)
	if err != nil {
		return nil, err
	}
	x.stats.Duration = time.Since(start)
	return x, nil
}

// open opens the index file and updates it, once more from nothing where the
// file turns out to be damaged.
func open(ctx context.Context, src *source, path string, cfg Config) (*Index, error) {
	rebuilt := ""
	for {
		db, note, err := openStore(ctx, path, src.name, cfg.Index != "")
		if rebuilt == "" {
			rebuilt = note
		}
		x := &Index{db: db, path: path, hits: cfg.Hits, embedder: cfg.Embedder, notice: cfg.Notice}
		if err == nil {
			src.index, err = os.Stat(path)
		}
		if err == nil {
			x.stats, err = update(ctx, db, src, cfg.Progress)
		}
		if err == nil && x.stats.Documents == 0 {
			err = &NoDocumentsError{Path: cfg.Path, Skipped: x.stats.Skipped}
		}
		if err == nil && cfg.Embedder != nil {
			e := &embedding{db: db, path: path, embedder: cfg.Embedder, report: cfg.Progress, stats: &x.stats}
			err = e.run(ctx)
		}
		if err == nil {
			if rebuilt != "" {
				x.stats.Rebuilt = rebuilt
			}
			return x, nil
		}
		if db != nil {
			_ = db.Close() // the first error is the one to tell
		}
		if !damaged(err) || rebuilt != "" {
			return nil, explain(ctx, path, err)
		}
		rebuilt = noteDamaged
		if err := removeStore(path); err != nil {
			return nil, &IndexError{Path: path, Err: err}
		}
	}
}

// openMemory indexes documents of the program in memory.
func openMemory(ctx context.Context, cfg Config) (*Index, error) {
	db, err := memoryStore(ctx, cfg.Path)
	if err != nil {
		return nil, explain(ctx, inMemory, err)
	}
	x := &Index{db: db, path: inMemory, hits: cfg.Hits}
	x.stats, err = update(ctx, db, &source{fsys: cfg.FS, name: cfg.Path, batch: batchBytes}, cfg.Progress)
	if err == nil && x.stats.Documents == 0 {
		err = &NoDocumentsError{Path: cfg.Path, Skipped: x.stats.Skipped}
	}
	if err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, explain(ctx, inMemory, err)
	}
	return x, nil
}

// maxNameBytes keeps the name of an index within what file systems take.
const maxNameBytes = 100

// DefaultIndex is where the index of a corpus is kept if nothing else is said:
// a file in the user's cache folder, named after the corpus and a hash of its
// absolute path.
func DefaultIndex(path string) (string, error) {
	resolved, err := resolve(path)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &IndexError{Path: path, Err: fmt.Errorf("there is no cache folder to keep it in: %w", err)}
	}
	sum := sha256.Sum256([]byte(resolved))
	name := filepath.Base(resolved)
	name = name[:floor(name, maxNameBytes)]
	if name == string(filepath.Separator) || name == "." {
		name = "root"
	}
	return filepath.Join(cache, "stopgap", "corpus", name+"-"+hex.EncodeToString(sum[:8])+".db"), nil
}

// resolve gives the absolute path of a corpus, without symbolic links.
func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", &ReadError{Path: path, Err: err}
	}
	abs, err = filepath.EvalSymlinks(abs)
	if err != nil {
		return "", &ReadError{Path: path, Err: bare(err)}
	}
	return abs, nil
}

// bare takes the path off a file error, because ours name it already.
func bare(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}

// Stats tell what Open did.
func (x *Index) Stats() Stats { return x.stats }

// Path is the file of the index, or ":memory:".
func (x *Index) Path() string { return x.path }

// Close closes the index. The file stays.
func (x *Index) Close() error { return x.db.Close() }
