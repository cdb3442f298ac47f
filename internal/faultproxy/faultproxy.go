// Package faultproxy stands between a client and a model server and breaks one
// answer in every way that a server, or what stands before it, can. It writes
// HTTP by hand, over pipes in process or over TCP. It is for tests.
package faultproxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// A Stream is how the protocol of the answer says what some faults say. Its
// functions give whole frames, with what ends them.
type Stream struct {
	Media string              // the Content-Type
	Line  func(string) string // a frame with this text as its data, whatever it is
	Text  func(string) string // a frame of generated text
	// Final is the frame, or the frames, that end a generation: the reason as
	// JSON, and a number for each of its counts.
	Final func(reason, count string) string
	Error string // an error frame
	Shape string // JSON that the protocol does not have
	Alive string // a sign of life without a token
}

// A Proxy answers requests as Answer does, except those for Path: their answers
// have the Fault. Its fields may change between two requests.
type Proxy struct {
	Path   string
	Answer func(*http.Request) (*http.Response, error)
	Stream Stream
	Fault  Fault
	At     int // bytes of the body before the fault
	// Times is how many answers are broken, zero for all.
	Times  int
	broken atomic.Int32

	piped sync.WaitGroup
}

// To answers as the server at address does, a host and a port.
func To(address string) func(*http.Request) (*http.Response, error) {
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	return func(r *http.Request) (*http.Response, error) {
		r.URL.Scheme, r.URL.Host, r.RequestURI = "http", address, ""
		return transport.RoundTrip(r)
	}
}

// Dial gives a connection in process, for http.Transport.DialContext.
func (p *Proxy) Dial(_ context.Context, network, address string) (net.Conn, error) {
	if p.Fault.refuses {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	near, far := net.Pipe()
	reset := new(atomic.Bool)
	p.piped.Go(func() { p.serve(pipeEnd{far, reset}) })
	return pipeEnd{near, reset}, nil
}

// Wait returns when the client has left all connections in process.
func (p *Proxy) Wait() { p.piped.Wait() }

// Listen serves on a TCP port until stop, which waits for what is served.
func (p *Proxy) Listen() (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		conns = map[net.Conn]bool{}
	)
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			wg.Go(func() { p.serve(conn) })
		}
	})
	return l.Addr().String(), func() {
		l.Close()
		mu.Lock()
		for c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	}, nil
}

// serve answers the requests of one connection.
func (p *Proxy) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		ctx, cancel := context.WithCancel(context.Background())
		err = p.answer(conn, req.WithContext(ctx))
		cancel()
		if err != nil {
			return
		}
	}
}

var errBroken = errors.New("the answer was broken")

// answer answers one request. An error ends the connection.
func (p *Proxy) answer(conn net.Conn, req *http.Request) error {
	hit := req.URL.Path == p.Path && p.Fault.do != nil
	if hit && p.Times > 0 {
		hit = int(p.broken.Add(1)) <= p.Times
	}
	if hit && p.Fault.Whole {
		p.Fault.do(&answer{conn: conn, Stream: p.Stream})
		return errBroken
	}
	resp, err := p.Answer(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !hit {
		return resp.Write(conn)
	}
	a := &answer{conn: conn, Stream: p.Stream, body: resp.Body, at: p.At}
	p.Fault.do(a)
	return errBroken
}

// An answer is being written. After the client has left, nothing more is.
type answer struct {
	Stream
	conn net.Conn
	body io.Reader
	at   int
	sent []byte // of the body
	gone bool
}

func (a *answer) raw(b []byte) {
	if !a.gone && len(b) > 0 {
		_, err := a.conn.Write(b)
		a.gone = err != nil
	}
}

// head writes a status and headers, each with its value.
func (a *answer) head(status int, headers ...string) {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for i := 0; i < len(headers); i += 2 {
		b.WriteString(headers[i] + ": " + headers[i+1] + "\r\n")
	}
	a.raw([]byte(b.String() + "\r\n"))
}

// begin writes the head of a stream and what comes of it before the fault.
func (a *answer) begin() {
	a.head(http.StatusOK, "Content-Type", a.Media, "Transfer-Encoding", "chunked")
	a.first(a.chunk)
}

// first gives what comes before the fault to a function.
func (a *answer) first(to func([]byte)) { a.pass(io.LimitReader(a.body, int64(a.at)), to) }

// pass gives what it reads to a function, as it comes.
func (a *answer) pass(from io.Reader, to func([]byte)) {
	buf := make([]byte, 4096)
	for !a.gone {
		n, err := from.Read(buf)
		a.sent = append(a.sent, buf[:n]...)
		to(buf[:n])
		if err != nil {
			return
		}
	}
}

// chunk writes bytes as one chunk of the body.
func (a *answer) chunk(b []byte) {
	if len(b) > 0 {
		a.raw(fmt.Appendf(nil, "%x\r\n%s\r\n", len(b), b))
	}
}

func (a *answer) say(text string) { a.chunk([]byte(text)) }

// rest writes what is left of the stream, and its end.
func (a *answer) rest() {
	a.pass(a.body, a.chunk)
	a.end()
}

// end writes the end of the body.
func (a *answer) end() { a.raw([]byte("0\r\n\r\n")) }

// silence waits until the client leaves.
func (a *answer) silence() {
	_, _ = io.Copy(io.Discard, a.conn)
	a.gone = true
}

// reset ends the connection as a process that dies does.
func (a *answer) reset() {
	switch c := a.conn.(type) {
	case *net.TCPConn:
		_ = c.SetLinger(0)
	case pipeEnd:
		c.reset.Store(true)
	}
	a.conn.Close()
	a.gone = true
}

// A pipeEnd is one end of a pipe that can be reset.
type pipeEnd struct {
	net.Conn
	reset *atomic.Bool
}

func (c pipeEnd) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.EOF && c.reset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	return n, err
}

// A oneByte reads a byte at a time.
type oneByte struct{ io.Reader }

func (r oneByte) Read(b []byte) (int, error) { return r.Reader.Read(b[:min(1, len(b))]) }
