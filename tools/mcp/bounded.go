package mcp

import (
	"fmt"
	"io"
	"net/http"
)

// A bounded transport sends headers with each request and ends an answer that
// is too large.
type bounded struct {
	base   http.RoundTripper
	header map[string]string
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for name, value := range b.header {
		req.Header.Set(name, value)
	}
	res, err := b.base.RoundTrip(req)
	if err == nil {
		res.Body = &limited{ReadCloser: res.Body, left: mostBytes}
	}
	return res, err
}

// A limited body gives an error where it is longer than it may be.
type limited struct {
	io.ReadCloser
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("its answer is larger than %d MiB", mostBytes>>20)
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
