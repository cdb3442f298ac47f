package corpus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"time"
)

const (
	// batchBytes is how much is read between two commits: what an interrupted
	// run loses at most.
	batchBytes = 32 << 20
	// fileBytes is added for each file: a thousand small ones are work too.
	fileBytes = 32 << 10
	// racy is how old a change must be before a file's time stamp is trusted:
	// a second change in the same tick of a coarse clock would go unseen.
	racy = 2 * time.Second
	// progressEvery is the time between two reports of progress.
	progressEvery = 100 * time.Millisecond
)

// A record is what the index knows of a file.
type record struct {
	num, size, mtime int64
	hash             []byte
	collided         bool // some of its ids belonged to other documents
	skips            Skips
	bytes            int64 // how far a file was read whose reading was interrupted
	lines            int
}

// An updater brings an index up to date. All its writing goes over one
// connection, in transactions that end at the end of a file.
type updater struct {
	conn     *sql.Conn
	writer   *writer
	src      *source
	report   func(Progress)
	reported time.Time
	progress Progress
	writing  bool             // in a transaction
	pending  int64            // bytes since the last commit
	collided map[found]record // files read now, with ids that others had
	stats    Stats
}

// update compares the files with the index and reads what has changed. Where
// nothing has, it only reads, so that an index can be used while another
// process writes to it.
func update(ctx context.Context, db *sql.DB, src *source, report func(Progress)) (Stats, error) {
	files, skips, err := src.scan(ctx)
	if err != nil {
		return Stats{}, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return Stats{}, err
	}
	defer conn.Close()
	u := &updater{conn: conn, src: src, report: report, collided: make(map[found]record), stats: Stats{Skipped: skips}}
	if u.writer, err = newWriter(ctx, conn); err != nil {
		return Stats{}, err
	}
	defer u.writer.close()
	err = u.run(ctx, files)
	if err = u.end(ctx, err); err != nil {
		return Stats{}, err
	}
	counts := "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM passages)"
	err = conn.QueryRowContext(ctx, counts).Scan(&u.stats.Documents, &u.stats.Passages)
	return u.stats, err
}

func (u *updater) run(ctx context.Context, files []found) error {
	known, err := u.writer.records(ctx)
	if err != nil {
		return err
	}
	var changed []found
	same := make(map[found]record)
	for _, f := range files {
		rec, ok := known[f.path]
		if ok && rec.size == f.size && rec.mtime == f.mtime && f.mtime != 0 {
			same[f] = rec
		} else {
			changed = append(changed, f)
			u.progress.TotalBytes += f.size
		}
		delete(known, f.path)
	}
	u.progress.TotalFiles = len(changed)
	// The files that are gone come first: others may need their ids.
	for _, rec := range known {
		if err := u.begin(ctx); err != nil {
			return err
		}
		if err := u.writer.remove(ctx, rec.num, true); err != nil {
			return err
		}
		u.stats.Removed++
	}
	for _, f := range changed {
		if err := u.file(ctx, f, false); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := u.settle(ctx, f, same); err != nil {
			return err
		}
	}
	if u.progress.TotalFiles > 0 {
		u.tell(true)
	}
	return nil
}

// settle ends with a file once all that changed are read: what was skipped of
// it is told, and documents whose ids another file had may get in now.
func (u *updater) settle(ctx context.Context, f found, same map[found]record) error {
	rec, unchanged := same[f]
	if !unchanged {
		rec = u.collided[f]
	}
	if rec.collided && u.stats.Updated+u.stats.Removed > 0 {
		u.progress.TotalFiles++
		u.progress.TotalBytes += f.size
		if !unchanged {
			u.stats.Updated-- // it is counted already
		}
		return u.file(ctx, f, true)
	}
	if unchanged {
		u.stats.Unchanged++
	}
	u.stats.Skipped.merge(rec.skips)
	return nil
}

// begin opens a transaction, unless one is open.
func (u *updater) begin(ctx context.Context) error {
	if u.writing {
		return nil
	}
	err := begin(ctx, u.conn, func() {
		u.progress.Waiting = true
		u.tell(false)
	})
	u.progress.Waiting = false
	u.writing = err == nil
	return err
}

// end ends the transaction, if one is open.
func (u *updater) end(ctx context.Context, err error) error {
	if !u.writing {
		return err
	}
	u.writing, u.pending = false, 0
	if err == nil {
		err = u.writer.total(ctx)
	}
	return end(ctx, u.conn, err)
}

// tell reports the progress, now and then.
func (u *updater) tell(now bool) {
	if u.report == nil || !now && time.Since(u.reported) < progressEvery {
		return
	}
	u.reported = time.Now()
	u.report(u.progress)
}

// file reads one file again if it differs from what the index has, or anyway.
func (u *updater) file(ctx context.Context, f found, anyway bool) error {
	u.progress.Name = f.path
	u.tell(false)
	if err := u.begin(ctx); err != nil {
		return err
	}
	before := u.progress.Bytes
	err := u.replace(ctx, f, anyway)
	for errors.Is(err, errOvertaken) {
		err = u.replace(ctx, f, anyway)
	}
	if err != nil {
		return err
	}
	u.progress.Files++
	u.progress.Bytes = before + f.size
	if u.pending += f.size + fileBytes; u.pending >= u.src.batch {
		return u.end(ctx, nil)
	}
	return nil
}

// replace puts the documents of a file in the place of those that the index
// has of it.
func (u *updater) replace(ctx context.Context, f found, anyway bool) error {
	// Asked again inside the transaction: another process may have been here.
	old, err := u.writer.record(ctx, f.path)
	if err != nil {
		return err
	}
	in, err := u.open(f.path)
	if err != nil {
		u.stats.Skipped.add(maxSkips, Skip{Path: f.path, Reason: unreadable(err)})
		return u.writer.remove(ctx, old.num, true)
	}
	defer in.Close()
	rec := record{num: old.num, size: f.size, mtime: f.mtime}
	if age := time.Since(time.Unix(0, f.mtime)); age < racy {
		rec.mtime = 0
	}
	if old.num != 0 && !anyway && old.size == f.size && old.mtime == f.mtime && f.mtime != 0 {
		u.stats.Unchanged++
		u.stats.Skipped.merge(old.skips)
		return nil
	}
	at := &position{hash: sha256.New()}
	resumed := false
	switch {
	case old.num == 0 || anyway:
	case old.bytes > 0:
		resumed, err = resume(ctx, in, old, at)
	default:
		rec.hash, err = digest(ctx, in)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		u.stats.Skipped.add(maxSkips, Skip{Path: f.path, Reason: unreadable(err)})
		return u.writer.remove(ctx, old.num, true)
	case resumed:
		u.stats.Added++
		u.progress.Bytes += at.bytes
		rec.skips, rec.collided = old.skips, old.collided
		return u.index(ctx, f, in, &rec, at, anyway)
	case rec.hash != nil && bytes.Equal(rec.hash, old.hash):
		rec.skips, rec.collided = old.skips, old.collided
		u.stats.Unchanged++
		u.stats.Skipped.merge(rec.skips)
		return u.writer.save(ctx, f.path, &rec)
	}
	if old.num == 0 {
		u.stats.Added++
	} else {
		u.stats.Updated++
	}
	if err := u.writer.remove(ctx, old.num, false); err != nil {
		return err
	}
	rec.hash = nil
	if err := u.writer.save(ctx, f.path, &rec); err != nil {
		return err
	}
	return u.index(ctx, f, in, &rec, at, anyway)
}

// index reads a file from a position on and keeps its record.
func (u *updater) index(ctx context.Context, f found, in io.Reader, rec *record, at *position, anyway bool) error {
	if err := u.read(ctx, f.path, in, rec, at); err != nil {
		return err
	}
	if rec.collided && !anyway {
		u.collided[f] = *rec
	} else {
		u.stats.Skipped.merge(rec.skips)
	}
	return u.writer.save(ctx, f.path, rec)
}

// resume goes to where the reading of a file was interrupted, if what is before
// is what it was; else back to the beginning.
func resume(ctx context.Context, in fs.File, old record, at *position) (bool, error) {
	n, err := io.CopyN(at, &meter{r: in, ended: ctx.Err, read: func(int) {}}, old.bytes)
	if n == old.bytes && err == nil && bytes.Equal(at.hash.Sum(nil), old.hash) {
		at.lines = old.lines
		return true, nil
	}
	again, ok := in.(io.Seeker)
	if !ok {
		return false, errors.ErrUnsupported
	}
	*at = position{hash: sha256.New()}
	_, err = again.Seek(0, io.SeekStart)
	return false, err
}

// errOvertaken says that another process went on with a file meanwhile.
var errOvertaken = errors.New("another process reads the file")

// checkpoint commits what a file has given so far, and goes on with it unless
// another process does.
func (u *updater) checkpoint(ctx context.Context, name string, rec record, at *position) error {
	rec.mtime, rec.bytes, rec.lines, rec.hash = 0, at.bytes, at.lines, at.hash.Sum(nil)
	if err := u.writer.save(ctx, name, &rec); err != nil {
		return err
	}
	if err := u.end(ctx, nil); err != nil {
		return err
	}
	if err := u.begin(ctx); err != nil {
		return err
	}
	now, err := u.writer.record(ctx, name)
	if err == nil && (now.num != rec.num || now.bytes != rec.bytes || !bytes.Equal(now.hash, rec.hash)) {
		return errOvertaken
	}
	return err
}

// encodeSkips and decodeSkips keep what was left out of a file with its record.
func encodeSkips(s Skips) (string, error) {
	if s.Total == 0 {
		return "", nil
	}
	b, err := json.Marshal(s)
	return string(b), err
}

func decodeSkips(text string) (s Skips, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &s)
	}
	return s, err
}
