package models

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/cenkalti/backoff/v5"
	"github.com/tmaxmax/go-sse"
)

// lineLimit bounds one line or event of a stream. The longest that a server
// sends for a reason is the echo of a whole prompt.
const lineLimit = 64 << 20

// overrun is how many times the tokens that were asked for may come as chunks:
// some servers cut a token into several.
const overrun = 8

// loadPoll is the time between two requests to a server that is loading.
const loadPoll = 500 * time.Millisecond

// A generation is one streamed request.
type generation struct {
	path  string
	media string // the media type of the stream
	// prepare makes the body; it may ask the server for what it needs to know.
	// It is called until it succeeds, under the same rules as the request.
	prepare func(context.Context) (any, error)
	prompt  []Segment // for what error messages must not repeat
	max     int       // tokens that are asked for, zero for no limit
	// read turns the body into chunks. It ends after the chunk with Final, or
	// early where the stream is cut; generate makes the error of that.
	read func(io.Reader) iter.Seq2[Chunk, error]
	// abandon is called, where it is set, when a request that was sent is left
	// before its end.
	abandon func()
}

// A flow is the state of one stream.
type flow struct {
	*server
	generation
	outer  context.Context // the caller's
	ctx    context.Context // ends with the stream
	cancel context.CancelCauseFunc
	yield  func(Chunk, error) bool
	timer  *time.Timer

	left   bool      // the caller has left: nothing may be yielded any more
	sent   time.Time // when the answered request was sent
	first  time.Duration
	bytes  int
	tokens int
}

var errSilent = errors.New("the server was silent for too long")

// generate sends the request and yields what comes: retries before the first
// token, the limits on silence, and one typed error at the end of a stream that
// does not say how it ended.
func (s *server) generate(ctx context.Context, g generation) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(Chunk{}, err)
			return
		}
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		f := &flow{server: s, generation: g, outer: ctx, ctx: inner, cancel: cancel, yield: yield}
		// The timer only ever cancels; it says nothing once the stream is over.
		f.timer = time.AfterFunc(time.Hour, func() { cancel(errSilent) })
		f.timer.Stop()
		defer f.timer.Stop()
		if err := f.run(); err != nil && !f.left {
			yield(Chunk{}, err)
		}
	}
}

// run sends the request and passes the chunks on. Its error is for the caller.
func (f *flow) run() error {
	ended := false
	defer func() {
		if f.abandon != nil && !ended && !f.sent.IsZero() {
			f.abandon()
		}
	}()
	resp, err := f.open()
	if err != nil {
		return f.explain(err)
	}
	defer resp.Body.Close()
	f.watch()
	if err := f.checkMedia(resp); err != nil {
		return f.explain(err)
	}
	for c, err := range f.read(resp.Body) {
		f.timer.Stop()
		if err != nil {
			return f.explain(err)
		}
		if c.Text != "" || len(c.Tokens) > 0 {
			if f.tokens == 0 {
				f.first = time.Since(f.sent)
			}
			f.bytes += len(c.Text)
			f.tokens += max(1, len(c.Tokens))
			if f.max > 0 && f.tokens > overrun*f.max+overrun {
				return &ProtocolError{Server: f.kind, Reason: "many more tokens than were asked for"}
			}
		}
		if c.Final != nil {
			ended = true
			c.Final.Timings.FirstToken = f.first
			c.Final.Timings.Total = time.Since(f.sent)
			f.yield(c, nil)
			return nil
		}
		if !f.yield(c, nil) {
			f.left = true
			return nil
		}
		f.watch()
	}
	return f.explain(nil)
}

// reply sends a request that is answered with one JSON value and decodes it
// into out, under the rules of a generation: unlike call it waits for a server
// that loads its model, and as long for the answer as for a first token.
func (s *server) reply(ctx context.Context, g generation, out any) error {
	g.media = "application/json"
	g.read = func(r io.Reader) iter.Seq2[Chunk, error] {
		return func(yield func(Chunk, error) bool) {
			b, err := io.ReadAll(io.LimitReader(r, answerLimit+1))
			switch {
			case err != nil:
				yield(Chunk{}, readError{err})
			case len(b) > answerLimit:
				yield(Chunk{}, &ProtocolError{Server: s.kind, Reason: "the answer to " + g.path + " is too long"})
			case json.Unmarshal(b, out) != nil:
				yield(Chunk{}, &ProtocolError{Server: s.kind, Reason: "the answer to " + g.path + " is not what it should be", Excerpt: excerpt(string(b), excerptLimit)})
			default:
				yield(Chunk{Final: &Final{}}, nil)
			}
		}
	}
	for _, err := range s.generate(ctx, g) {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMedia refuses an answer that is no stream: a page, or an error that is
// reported as a success.
func (f *flow) checkMedia(resp *http.Response) error {
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return &ProtocolError{Server: f.kind, Reason: "the answer is compressed, which was not asked for: " + quoted(coding)}
	}
	given := resp.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(given); given == "" || err == nil && media == f.media {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return readError{err}
	}
	if fail, ok := parseFailure(b); ok {
		return f.failed(fail)
	}
	return &ProtocolError{Server: f.kind, Reason: "the answer is no stream but " + quoted(given), Excerpt: excerpt(string(b), excerptLimit)}
}

// watch starts the clock for the silence that is allowed now. It does not run
// while the caller works on a chunk.
func (f *flow) watch() {
	if limit := f.stall().Limit; limit > 0 {
		f.timer.Reset(limit)
	}
}

// stall is the error of too long a silence at this point.
func (f *flow) stall() *StallError {
	if f.tokens == 0 {
		return &StallError{Phase: StallFirstToken, Limit: f.opts.FirstToken}
	}
	return &StallError{Phase: StallBetweenTokens, Limit: f.opts.BetweenTokens}
}

// open sends the request until it is answered with a stream. It waits for a
// server that loads its model, and sends again what may succeed a second time.
func (f *flow) open() (*http.Response, error) {
	var (
		body    []byte
		tries   int
		began   = time.Now()
		loading *LoadingError
	)
	attempt := func() (*http.Response, error) {
		loading = nil
		resp, wait, err := f.try(&body)
		if err == nil {
			return resp, nil
		}
		if errors.As(err, &loading) {
			if loading.Waited = time.Since(began); loading.Waited >= f.opts.LoadWait {
				return nil, backoff.Permanent(err)
			}
			return nil, &backoff.RetryAfterError{Duration: loadPoll}
		}
		if tries++; tries > f.opts.Retries || !temporary(err) || wait > time.Minute {
			return nil, backoff.Permanent(err)
		}
		if wait >= 0 {
			return nil, &backoff.RetryAfterError{Duration: wait}
		}
		return nil, err
	}
	note := func(error, time.Duration) {
		p := &Progress{Phase: Retrying}
		if loading != nil {
			p.Phase = Loading
		}
		if !f.yield(Chunk{Progress: p}, nil) {
			f.left = true
			f.cancel(nil)
		}
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = 250 * time.Millisecond
	pause.MaxInterval = 10 * time.Second
	return backoff.Retry(f.ctx, attempt, backoff.WithBackOff(pause), backoff.WithNotify(note), backoff.WithMaxElapsedTime(0))
}

// try sends the request once. wait is the server's Retry-After, negative where
// it gave none.
func (f *flow) try(body *[]byte) (resp *http.Response, wait time.Duration, err error) {
	f.watch()
	defer f.timer.Stop()
	if *body == nil {
		v, err := f.prepare(f.ctx)
		if err == nil {
			*body, err = encode(v)
		}
		if err != nil {
			return nil, -1, err
		}
	}
	f.sent = time.Now()
	resp, err = f.do(f.ctx, http.MethodPost, f.path, *body)
	if err != nil {
		return nil, -1, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, -1, nil
	}
	defer resp.Body.Close()
	fail := readFailure(resp)
	if cause := context.Cause(f.ctx); cause != nil {
		return nil, -1, cause
	}
	return nil, fail.RetryAfter, f.failed(fail)
}

// explain turns whatever ended the stream into the error for the caller. nil
// means that the stream ended without saying why.
func (f *flow) explain(err error) error {
	if f.outer.Err() != nil {
		return f.outer.Err()
	}
	switch cause := context.Cause(f.ctx); cause {
	case nil:
	case errSilent:
		return f.stall()
	default:
		return cause
	}
	err = f.withholdFrom(f.complete(f.outer, err), f.prompt)
	var (
		se *ServerError
		pe *ProtocolError
		ce *CutError
	)
	switch {
	case errors.As(err, &se):
		return se
	case errors.As(err, &pe):
		return pe
	case errors.As(err, &ce):
		ce.Bytes, ce.Tokens = f.bytes, f.tokens
		return ce
	case err == nil || f.tokens > 0 || isRead(err):
		return &CutError{Bytes: f.bytes, Tokens: f.tokens, Err: err}
	}
	return err
}

// A readError is what went wrong while reading a body.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

func isRead(err error) bool {
	var r readError
	return errors.As(err, &r)
}

// readLines yields the lines of an NDJSON body without their newline. A last
// line without newline counts if it is a whole JSON value; otherwise the body
// was cut inside it.
func readLines(r io.Reader, kind string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sc := bufio.NewScanner(r)
		sc.Buffer(nil, lineLimit)
		sc.Split(func(data []byte, atEOF bool) (int, []byte, error) {
			if i := bytes.IndexByte(data, '\n'); i >= 0 {
				return i + 1, data[:i], nil
			}
			if !atEOF || len(data) == 0 {
				return 0, nil, nil
			}
			if !json.Valid(data) {
				return 0, nil, io.ErrUnexpectedEOF
			}
			return len(data), data, nil
		})
		for sc.Scan() {
			if line := bytes.TrimSpace(sc.Bytes()); len(line) > 0 && !yield(line, nil) {
				return
			}
		}
		switch err := sc.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(nil, &ProtocolError{Server: kind, Reason: "a line is too long"})
		case err != nil:
			yield(nil, readError{err})
		}
	}
}

// readEvents yields the data of the events of an SSE body. Comments, which
// servers send to keep a connection alive, are no events.
func readEvents(r io.Reader, kind string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		lines := &eventReader{Reader: r, kind: kind}
		for ev, err := range sse.Read(lines, &sse.ReadConfig{MaxEventSize: lineLimit + bufio.MaxScanTokenSize}) {
			switch {
			case err != nil && lines.err != nil: // the parser tells only what it makes of it
				yield("", readError{lines.err})
				return
			case errors.Is(err, bufio.ErrTooLong):
				yield("", &ProtocolError{Server: kind, Reason: "an event is too long"})
				return
			case err != nil:
				yield("", readError{err})
				return
			case ev.Data != "" && !yield(ev.Data, nil):
				return
			}
		}
	}
}

// promptText joins the prompt for servers that take text. JSON cannot carry
// anything but UTF-8, and a replaced byte would be a changed prompt.
func promptText(prompt []Segment) (string, error) {
	var b bytes.Buffer
	for _, s := range prompt {
		b.WriteString(s.Text)
	}
	if b.Len() == 0 {
		return "", &PromptError{Reason: "it is empty"}
	}
	if !utf8.Valid(b.Bytes()) {
		return "", &PromptError{Reason: "it is not UTF-8, and this server takes only text"}
	}
	return b.String(), nil
}

// fail is a stream that is nothing but an error.
func fail(err error) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) { yield(Chunk{}, err) }
}

// limitReached tells apart the two ends that many servers call "length": the
// asked number of tokens, or the end of the context when fewer came.
func limitReached(max int, generated Count) Finish {
	if max > 0 && (!generated.Known || generated.N >= max) {
		return FinishLength
	}
	return FinishContext
}
