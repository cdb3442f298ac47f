package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The defaults of a Cache.
const (
	DefaultCacheBytes = 256 << 20
	DefaultCacheAge   = time.Hour
)

// maxEntries bounds the files of a Cache.
const maxEntries = 20_000

// A Cache keeps answers on disk, a file each, readable by the user alone. A
// nil Cache keeps nothing; so does one whose folder cannot be written. Several
// processes may share one.
type Cache struct {
	Dir   string
	Bytes int64         // of all files; zero means DefaultCacheBytes
	Age   time.Duration // after which a file counts no more; zero means DefaultCacheAge
}

// A head stands in the first line of a file. The whole key is there, so that
// a file is never taken for another one's.
type head struct {
	Key     string `json:"key"`
	URL     string `json:"url,omitempty"`
	Type    string `json:"type,omitempty"`
	Charset string `json:"charset,omitempty"`
}

// Get gives what was kept under a key.
func (c *Cache) Get(key string) ([]byte, bool) {
	_, body, ok := c.read(key)
	return body, ok
}

// Put keeps something under a key. What cannot be kept is let go in silence.
func (c *Cache) Put(key string, body []byte) { c.write(head{Key: key}, body) }

func (c *Cache) page(key string) (Page, bool) {
	h, body, ok := c.read(key)
	return Page{URL: h.URL, Type: h.Type, Charset: h.Charset, Body: body, Cached: true}, ok
}

func (c *Cache) keep(key string, p Page) {
	c.write(head{Key: key, URL: p.URL, Type: p.Type, Charset: p.Charset}, p.Body)
}

func (c *Cache) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.Dir, hex.EncodeToString(sum[:16])+".page")
}

func (c *Cache) read(key string) (h head, body []byte, ok bool) {
	if c == nil || c.Dir == "" {
		return h, nil, false
	}
	f, err := os.Open(c.path(key))
	if err != nil {
		return h, nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) > c.age() {
		return h, nil, false
	}
	all, err := io.ReadAll(io.LimitReader(f, MaxBytes+maxHeader))
	line, body, found := bytes.Cut(all, []byte("\n"))
	if err != nil || !found || json.Unmarshal(line, &h) != nil || h.Key != key {
		return h, nil, false
	}
	return h, body, true
}

func (c *Cache) write(h head, body []byte) {
	if c == nil || c.Dir == "" || int64(len(body)) > c.bytes()/4 || os.MkdirAll(c.Dir, 0o700) != nil {
		return
	}
	line, err := json.Marshal(h)
	if err != nil {
		return
	}
	f, err := os.CreateTemp(c.Dir, "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(append(append(line, '\n'), body...))
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), c.path(h.Key)) != nil {
		_ = os.Remove(f.Name())
		return
	}
	c.trim()
}

// trim removes what is too old, and the oldest of what is too much.
func (c *Cache) trim() {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return
	}
	type file struct {
		path string
		size int64
		at   time.Time
	}
	var files []file
	var total int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, file{filepath.Join(c.Dir, e.Name()), info.Size(), info.ModTime()})
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b file) int { return a.at.Compare(b.at) })
	for i, f := range files {
		if total <= c.bytes() && len(files)-i <= maxEntries && time.Since(f.at) <= c.age() {
			return
		}
		if os.Remove(f.path) == nil {
			total -= f.size
		}
	}
}

func (c *Cache) bytes() int64 {
	if c.Bytes > 0 {
		return c.Bytes
	}
	return DefaultCacheBytes
}

func (c *Cache) age() time.Duration {
	if c.Age > 0 {
		return c.Age
	}
	return DefaultCacheAge
}
