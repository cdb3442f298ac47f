package fetch

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// slack is how many bytes may come out before the ratio is looked at: the
// beginning of a small page compresses well.
const slack = 1 << 20

var errTooMuch = errors.New("the body is too long")

// A counter counts what the server sends.
type counter struct {
	r    io.Reader
	sent int64
	left int64
}

func (c *counter) Read(p []byte) (int, error) {
	if c.left < 0 {
		return 0, errTooMuch
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left+1)])
	c.sent, c.left = c.sent+int64(n), c.left-int64(n)
	if c.left < 0 {
		return n, errTooMuch
	}
	return n, err
}

// decompressed gives the body as it was before the server compressed it.
func decompressed(host string, sent *counter, header http.Header) (io.Reader, error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	switch encoding {
	case "", "identity":
		return sent, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(sent)
		if errors.Is(err, io.EOF) { // nothing at all is an empty page
			return strings.NewReader(""), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s sent a body that is not gzip", host)
		}
		return &inflated{host: host, r: z, sent: sent}, nil
	}
	return nil, &TypeError{Host: host, Type: "an encoding that was not asked for"}
}

// An inflated is a decompressed body that may not be a bomb.
type inflated struct {
	host string
	r    io.Reader
	sent *counter
	out  int64
}

func (f *inflated) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.out += int64(n)
	if f.out > slack && f.out > MaxRatio*f.sent.sent {
		return 0, &LimitError{Host: f.host, What: fmt.Sprintf("it grows more than %d times when it is decompressed", MaxRatio)}
	}
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		err = fmt.Errorf("%s sent a body that is not gzip to its end", f.host)
	}
	return n, err
}
