package corpus

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"
)

// open opens a file that is still a regular one: opening a pipe would hang.
func (u *updater) open(name string) (fs.File, error) {
	info, err := fs.Lstat(u.src.fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New(skipOdd)
	}
	return u.src.fsys.Open(name)
}

// digest hashes a file and goes back to its beginning.
func digest(ctx context.Context, in fs.File) ([]byte, error) {
	again, ok := in.(io.Seeker)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	h := sha256.New()
	if _, err := io.Copy(h, &meter{r: in, ended: ctx.Err, read: func(int) {}}); err != nil {
		return nil, err
	}
	_, err := again.Seek(0, io.SeekStart)
	return h.Sum(nil), err
}

// read indexes the documents of a file from a position on. What is wrong with
// the file or its lines goes to the record; an error is one of the index or of
// ctx.
func (u *updater) read(ctx context.Context, name string, in io.Reader, rec *record, at *position) error {
	counted := &meter{r: in, ended: ctx.Err, read: func(n int) {
		u.progress.Bytes += int64(n)
		u.tell(false)
	}}
	saved := at.bytes
	insert := func(line int, d Document) error {
		fresh, err := u.writer.insert(ctx, rec.num, d)
		if err == nil && !fresh {
			rec.collided = true
			rec.skips.add(maxSkipsPerFile, Skip{Path: name, Line: line, Reason: errDuplicate.Error()})
		}
		if err == nil && isLines(name) && at.bytes-saved >= u.src.batch {
			saved = at.bytes
			err = u.checkpoint(ctx, name, *rec, at)
		}
		return err
	}
	bad := func(line int, err error) {
		rec.skips.add(maxSkipsPerFile, Skip{Path: name, Line: line, Reason: err.Error()})
	}
	var err error
	switch {
	case u.src.parsed(name):
		err = u.src.readParsed(ctx, name, io.TeeReader(counted, at), insert, bad)
	case isLines(name):
		err = readLines(ctx, name, counted, at, insert, bad)
		if err == errNotJSON {
			bad(0, err)
			err = nil
		}
	default:
		err = readText(name, io.TeeReader(counted, at), insert, bad)
	}
	if err == nil {
		_, err = io.Copy(at, counted) // the hash is that of the whole file
	}
	if counted.err != nil {
		// The file broke off. What was read stays; the missing hash brings
		// the file up again the next time.
		bad(0, errors.New(unreadable(counted.err)))
		rec.mtime, err = 0, nil
	}
	rec.hash = at.hash.Sum(nil)
	return err
}

// readText indexes a file that is one document.
func readText(name string, in io.Reader, insert func(int, Document) error, bad func(int, error)) error {
	data, err := io.ReadAll(io.LimitReader(in, maxTextBytes+1))
	if err != nil {
		return err
	}
	d, err := parseText(name, data)
	if err != nil {
		bad(0, err)
		return nil
	}
	return insert(0, d)
}

// readParsed indexes a file that the caller's parser turns into text.
func (s *source) readParsed(ctx context.Context, name string, in io.Reader, insert func(int, Document) error, bad func(int, error)) error {
	data, err := io.ReadAll(io.LimitReader(in, maxParsedBytes+1))
	if err != nil {
		return err
	}
	d, err := s.parse(ctx, name, data)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		d, err = tidy(name, d)
	}
	if err != nil {
		bad(0, errors.New(abridge(squeeze(strings.ToValidUTF8(err.Error(), "\uFFFD")), maxReasonRunes)))
		return nil
	}
	return insert(0, d)
}

// A meter counts what is read, ends with its context, and keeps the reader's
// error apart from others.
type meter struct {
	r     io.Reader
	ended func() error
	read  func(int)
	err   error
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ended(); err != nil {
		return 0, err
	}
	n, err := m.r.Read(p)
	if err != nil && err != io.EOF {
		m.err = err
	}
	m.read(n)
	return n, err
}
