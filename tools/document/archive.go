package document

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
)

// The bounds of archives, Office files among them.
const (
	maxEntries  = 2000
	maxUnpacked = 200 << 20 // in all, as often as it is read
	maxEntry    = 64 << 20  // of a file that must lie in memory
)

// A quota counts what archives unpack to, as it is read.
type quota struct {
	entries int
	bytes   int64
}

func newQuota() *quota { return &quota{entries: maxEntries, bytes: maxUnpacked} }

// An archive is a zip file whose entries count against a quota.
type archive struct {
	*zip.Reader
	quota *quota
}

// openArchive reads the directory of a zip file.
func (in input) openArchive() (*archive, error) {
	z, err := zip.NewReader(in.data, in.data.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fail(ErrDamaged, "is a damaged archive: %s", line(err.Error()))
	}
	if in.quota.entries -= len(z.File); in.quota.entries < 0 {
		return nil, fail(ErrTooLarge, "is an archive of more than %d files", maxEntries)
	}
	return &archive{Reader: z, quota: in.quota}, nil
}

// find gives an entry by its exact name, nil where there is none.
func (a *archive) find(name string) *zip.File {
	for _, f := range a.File {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// open unpacks an entry as it is read.
func (a *archive) open(f *zip.File) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fail(ErrDamaged, "is damaged: %s: %s", label(f.Name), line(err.Error()))
	}
	return &counted{ReadCloser: r, archive: a, name: f.Name}, nil
}

// load unpacks an entry into memory.
func (a *archive) load(f *zip.File) ([]byte, error) {
	r, err := a.open(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxEntry+1))
	if len(data) > maxEntry {
		return nil, fail(ErrTooLarge, "is larger than %s", size(maxEntry))
	}
	return data, err
}

// A counted reader takes what it gives from the quota, whatever the headers
// of the archive say.
type counted struct {
	io.ReadCloser
	archive *archive
	name    string
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.archive.quota.bytes -= int64(n)
	switch {
	case c.archive.quota.bytes < 0:
		return 0, fail(ErrTooLarge, "unpacks to more than %s", size(maxUnpacked))
	case err != nil && err != io.EOF:
		return n, fail(ErrDamaged, "is damaged: %s: %s", label(c.name), line(err.Error()))
	}
	return n, err
}

// archive reads a zip file or the Office file that it is.
func (in input) archive(w *writer) error {
	a, err := in.openArchive()
	if err != nil {
		return err
	}
	k := office(a.Reader)
	if !in.inside {
		w.doc.Type = string(k)
	}
	switch k {
	case kindDOCX:
		return in.docx(w, a)
	case kindPPTX:
		return in.pptx(w, a)
	case kindXLSX:
		return in.xlsx(w, a)
	case kindZip:
		return in.zip(w, a)
	}
	return unconverted(kindBinary, in.name, nil)
}

// zip reads the files of an archive, in the order of its directory. Archives
// inside of it are named and not opened; Office files are.
func (in input) zip(w *writer, a *archive) error {
	if in.inside {
		return fail(ErrTooLarge, "is an archive inside an archive, which is not opened")
	}
	for _, f := range a.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if reason := refusal(f); reason != "" {
			w.note("%s %s and is left out.", label(f.Name), reason)
			continue
		}
		err := in.entry(w, a, f)
		e, ok := errors.AsType[*Error](err)
		switch {
		case err == nil:
		case !ok || a.quota.bytes < 0: // the whole archive is at fault
			return err
		default:
			w.note("%s %s.", line(f.Name), e.Reason)
		}
	}
	return nil
}

// refusal says why an entry of an archive is not read; empty if it is. Nothing
// is ever written under its name, which only has to be one.
func refusal(f *zip.File) string {
	name := strings.ReplaceAll(f.Name, `\`, "/")
	switch {
	case !filepath.IsLocal(name) || strings.HasPrefix(name, "/"):
		return "has a name that leads outside"
	case !f.Mode().IsRegular():
		return "is a link or a device"
	case f.Flags&1 != 0:
		return "is encrypted"
	}
	return ""
}

// entry reads one file of an archive.
func (in input) entry(w *writer, a *archive, f *zip.File) error {
	data, err := a.load(f)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	inner := in
	inner.job.Name, inner.name, inner.inside = f.Name, f.Name, true
	inner.job.ContentType, inner.job.BaseURL = "", ""
	inner.data = io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
	text := &writer{max: w.max - w.text.Len()}
	err = inner.parse(text)
	full := errors.Is(err, errFull)
	if err != nil && !full {
		return err
	}
	if strings.TrimSpace(text.text.String()) != "" {
		if err := w.part(f.Name); err != nil {
			return err
		}
		if err := w.block("# " + line(f.Name)); err != nil {
			return err
		}
		if err := w.block(text.text.String()); err != nil {
			return err
		}
	}
	for _, n := range text.doc.Notes {
		w.note("%s: %s", line(f.Name), n)
	}
	if full {
		return errFull
	}
	return nil
}
