// Package mcp is both ends of the Model Context Protocol: tools of other
// programs for our models, and our tools for other programs.
//
// What a server sends is not trusted: the number of its tools, their names,
// descriptions and schemas, and the size of what it answers have bounds. A
// server that is a program gets next to nothing of our environment and is ended
// with all processes that it has started.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stopgap/tools"
)

// The bounds of a server.
const (
	DefaultStarting = 30 * time.Second // to start, to answer, and to list its tools
	mostTools       = 128
	mostStarts      = 3       // of a program that ends
	mostBytes       = 8 << 20 // of one message, or of one answer over HTTP
)

// A Config says what a server is: a program, or an address.
type Config struct {
	// Name stands before the names of the tools: name.tool. It is of letters,
	// digits and _, at most 32.
	Name string
	// Command is the program and its arguments. It is run as it is, by no shell,
	// and can do whatever the user can.
	Command []string
	// Dir is the folder that the program is started in; empty for the current one.
	Dir string
	// Env is added to the few variables that every program needs.
	Env map[string]string
	// URL is the address of a server that speaks streamable HTTP.
	URL string
	// Header is sent with every request.
	Header map[string]string
	// Timeout is the time for a call; zero means that of the tools.Set.
	Timeout time.Duration
	// Starting is the time until the server has listed its tools; zero means
	// DefaultStarting.
	Starting time.Duration
	// Capabilities are those of all of its tools; nil means Code for a program and
	// Net for an address.
	Capabilities []tools.Capability
	// Secrets are parts of Env and Header that no error tells. The values of Header
	// are secrets anyway.
	Secrets []string
	// Version is ours, as the server is told.
	Version string
}

// needs are the capabilities of the server's tools.
func (c *Config) needs() []tools.Capability {
	switch {
	case c.Capabilities != nil:
		return c.Capabilities
	case len(c.Command) > 0:
		return []tools.Capability{tools.Code}
	}
	return []tools.Capability{tools.Net}
}

// Needs are the capabilities of the server's tools.
func (c *Config) Needs() []tools.Capability { return slices.Clone(c.needs()) }

var serverName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)

// Check says what is wrong with a configuration, in a clause.
func (c *Config) Check() error {
	switch {
	case !serverName.MatchString(c.Name):
		return fmt.Errorf("the name %q is not of letters, digits and _, at most 32", c.Name)
	case len(c.Command) > 0 && c.URL != "":
		return errors.New("it has both a command and a url")
	case len(c.Command) == 0 && c.URL == "":
		return errors.New("it has neither a command nor a url")
	case c.URL != "" && !strings.HasPrefix(c.URL, "http://") && !strings.HasPrefix(c.URL, "https://"):
		return errors.New("its url is neither http nor https")
	case c.URL != "" && (c.Dir != "" || len(c.Env) > 0):
		return errors.New("dir and env are for a command")
	case c.URL == "" && len(c.Header) > 0:
		return errors.New("headers are for a url")
	}
	return nil
}

// A Server is one that was started or reached. Its methods are safe for
// concurrent use.
type Server struct {
	config Config
	tools  []tools.Tool
	left   []string

	mu     sync.Mutex
	link   *link
	starts int
	closed bool
}

// Open starts or reaches a server and asks for its tools. Close ends it.
func Open(ctx context.Context, c Config) (*Server, error) {
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("MCP server %q: %w", c.Name, err)
	}
	s := &Server{config: c}
	limit := c.Starting
	if limit <= 0 {
		limit = DefaultStarting
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := s.current(limited)
	if err == nil {
		err = s.list(limited, l)
	}
	if err == nil {
		return s, nil
	}
	s.Close()
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("it did not answer within %s", limit)
	}
	return nil, fmt.Errorf("MCP server %q: %w", c.Name, err)
}

// Tools gives the server's tools, named server.tool.
func (s *Server) Tools() []tools.Tool { return s.tools }

// Left tells which of the server's tools are not there, and why.
func (s *Server) Left() []string { return s.left }

// Close ends the server.
func (s *Server) Close() {
	s.mu.Lock()
	l := s.link
	s.link, s.closed = nil, true
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// list asks the server for its tools.
func (s *Server) list(ctx context.Context, l *link) error {
	names := map[string]bool{}
	for remote, err := range l.session.Tools(ctx, nil) {
		if err != nil {
			return s.explain(ctx, l, err)
		}
		if len(s.tools)+len(s.left) == mostTools {
			s.left = append(s.left, fmt.Sprintf("and more: a server may have %d tools", mostTools))
			break
		}
		t, err := newTool(s, remote)
		if err == nil && names[t.spec.Name] {
			err = errors.New("another one has the same name")
		}
		if err != nil {
			s.left = append(s.left, fmt.Sprintf("%s: %v", cut(mute(remote.Name), 80), err))
			continue
		}
		names[t.spec.Name] = true
		s.tools = append(s.tools, t)
	}
	return nil
}

// current gives the connection. A program that has ended is started again, a
// few times.
func (s *Server) current(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errors.New("it is closed")
	case s.link != nil && !s.link.ended():
		return s.link, nil
	case s.starts == mostStarts:
		return nil, fmt.Errorf("it has ended %d times%s", mostStarts, s.link.says(&s.config))
	}
	if s.link != nil {
		s.link.close()
	}
	s.starts++
	l, err := s.connect(ctx, handshake)
	if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) && ctx.Err() == nil {
		l, err = s.connect(ctx, "") // it may know only the newest version
	}
	if err != nil {
		return nil, err
	}
	s.link = l
	return l, nil
}

// handshake is the version of the protocol that we begin with: every server
// answers its first message, also one that is older.
const handshake = "2025-11-25"

// connect makes a connection.
func (s *Server) connect(ctx context.Context, version string) (*link, error) {
	l := &link{done: make(chan struct{})}
	var transport sdk.Transport
	if len(s.config.Command) > 0 {
		p, err := start(&s.config)
		if err != nil {
			return nil, err
		}
		l.process = p
		transport = &sdk.IOTransport{Reader: p.stdout, Writer: p.stdin, MaxLineLength: mostBytes}
	} else {
		transport = &sdk.StreamableClientTransport{
			Endpoint: s.config.URL, HTTPClient: s.client(), MaxRetries: 1, DisableStandaloneSSE: true, MaxEventSize: mostBytes,
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "stopgap", Version: s.config.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{}, // the server may ask for nothing
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		err = s.explain(ctx, l, err)
		l.close()
		return nil, err
	}
	l.session = session
	go func() {
		_ = session.Wait() // why it ended is told where it is missed
		close(l.done)
	}()
	return l, nil
}

// client sends the headers, reads no more than it should and follows nobody to
// another host: the headers may be secrets.
func (s *Server) client() *http.Client {
	return &http.Client{
		Transport: &bounded{base: http.DefaultTransport, header: maps.Clone(s.config.Header)},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errors.New("it sends us elsewhere")
			}
			return nil
		},
	}
}

// explain makes an error one for the model: without addresses and secrets, with
// what a program said before it ended.
func (s *Server) explain(ctx context.Context, l *link, err error) error {
	var refused *jsonrpc.Error
	var lost *url.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &lost):
		err = lost.Err // the rest is the address
	case strings.Contains(err.Error(), "maximum line length"): // the library has no value for it
		return fmt.Errorf("it sent a message larger than %d MiB", mostBytes>>20)
	case errors.As(err, &refused):
		return &jsonrpc.Error{Code: refused.Code, Message: "it says: " + cut(mute(s.config.hide(refused.Message)), 500)}
	case l.process != nil && l.process.wait(grace):
		return errors.New("it has ended" + l.says(&s.config))
	}
	return errors.New(cut(mute(s.config.hide(err.Error())), 500))
}

// shortestSecret is how long a value is at least that is looked for in errors; a
// shorter one stands there by chance.
const shortestSecret = 6

// hide takes the server's address and the secrets out of a text.
func (c *Config) hide(text string) string {
	if c.URL != "" {
		text = strings.ReplaceAll(text, c.URL, "its address")
	}
	secrets := slices.AppendSeq(slices.Clone(c.Secrets), maps.Values(c.Header))
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) }) // one may be part of another
	for _, secret := range secrets {
		if len(secret) >= shortestSecret {
			text = strings.ReplaceAll(text, secret, "****")
		}
	}
	return text
}

// A link is one connection to a server.
type link struct {
	session *sdk.ClientSession
	process *process // nil for an address
	done    chan struct{}
}

func (l *link) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return l.process != nil && l.process.wait(0)
	}
}

// says is what a program said last, after a colon; empty where it said nothing.
func (l *link) says(c *Config) string {
	if l.process == nil {
		return ""
	}
	return l.process.says(c)
}

func (l *link) close() {
	if l.process != nil {
		l.process.stop()
	}
	if l.session != nil {
		_ = l.session.Close() // what it cannot be told any more it need not know
	}
}
