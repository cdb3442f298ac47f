package models

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode"
)

// The errors of this package never hold prompt text or keys, and what they
// quote from a server is bounded. Each is returned as a pointer.

// A RefError says that a model reference cannot be read.
type RefError struct {
	Ref    string
	Reason string
	Kinds  []Kind // what would have been understood
}

func (e *RefError) Error() string {
	return fmt.Sprintf("model reference %q: %s", e.Ref, e.Reason)
}

// A PromptError says that a prompt cannot be sent as it is.
type PromptError struct {
	Reason string
}

func (e *PromptError) Error() string { return "prompt: " + e.Reason }

// An UnsupportedError says that a server cannot do what was asked of it.
type UnsupportedError struct {
	Server string
	What   string // for example "tool_choice: a named function"
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot do this: %s", e.Server, e.What)
}

// A SchemaError says that a JSON schema cannot constrain a generation: it is
// none, or the server refuses it.
type SchemaError struct {
	Server string // empty where nothing was sent
	Reason string
}

func (e *SchemaError) Error() string {
	if e.Server == "" {
		return "JSON schema: " + e.Reason
	}
	return e.Server + " refuses the JSON schema: " + e.Reason
}

// An UnreachableError says that no server answered: refused, reset, an unknown
// host, or silence.
type UnreachableError struct {
	Server string // the kind of server, for example "ollama"
	URL    string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot reach %s at %s: %s", e.Server, e.URL, e.Reason())
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Reason is why the server did not answer, without the address, which stands
// in URL, and the names of system calls: "connection refused".
func (e *UnreachableError) Reason() string {
	var (
		dns  *net.DNSError
		op   *net.OpError
		call *os.SyscallError
	)
	switch {
	case errors.As(e.Err, &dns):
		return dns.Err
	case errors.As(e.Err, &call):
		return call.Err.Error()
	case errors.As(e.Err, &op):
		return op.Err.Error()
	}
	return fmt.Sprint(e.Err)
}

// A silence is how long a server was waited for that did not answer. It is an
// os.ErrDeadlineExceeded.
type silence time.Duration

func (d silence) Error() string        { return "no answer within " + time.Duration(d).String() }
func (d silence) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// A NotFoundError says that the server does not have the model.
type NotFoundError struct {
	Server    string
	URL       string
	Model     string
	Available []string // what it has instead, nil where unknown
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s at %s has no model %q", e.Server, e.URL, e.Model)
}

// A LoadingError says that the server was still loading its model when the
// time to wait was over.
type LoadingError struct {
	Server string
	URL    string
	Waited time.Duration
}

func (e *LoadingError) Error() string {
	return fmt.Sprintf("%s at %s is still loading its model after %s", e.Server, e.URL, e.Waited.Round(time.Second))
}

// An OverflowError says that the prompt does not fit the context.
type OverflowError struct {
	PromptTokens Count
	Context      Count // tokens
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("the prompt does not fit the context (prompt tokens: %s, context: %s)", e.PromptTokens, e.Context)
}

// A CutError says that a stream ended before the server said why.
type CutError struct {
	Bytes  int // of text received before the cut
	Tokens int // tokens received, or chunks where the server sends no ids
	Err    error
}

func (e *CutError) Error() string {
	s := fmt.Sprintf("the stream was cut after %d bytes (%d tokens)", e.Bytes, e.Tokens)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *CutError) Unwrap() error { return e.Err }

// A StallPhase is the part of a stream in which nothing came.
type StallPhase string

const (
	StallFirstToken    StallPhase = "first_token"
	StallBetweenTokens StallPhase = "between_tokens"
)

// A StallError says that the server was silent for longer than the limit.
type StallError struct {
	Phase StallPhase
	Limit time.Duration
}

func (e *StallError) Error() string {
	if e.Phase == StallFirstToken {
		return fmt.Sprintf("no first token within %s", e.Limit)
	}
	return fmt.Sprintf("no further token within %s", e.Limit)
}

// A ServerError is an error that the server reported, by status or, after a
// stream had begun, in the stream (Status is then 0 unless the frame has one).
type ServerError struct {
	Server  string
	Status  int
	Message string
}

func (e *ServerError) Error() string {
	s := e.Server + " reports an error"
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// A ProtocolError says that the server sent something that its protocol does
// not have.
type ProtocolError struct {
	Server  string
	Reason  string
	Excerpt string // the first bytes of what came
}

func (e *ProtocolError) Error() string {
	s := fmt.Sprintf("unexpected answer from %s: %s", e.Server, e.Reason)
	if e.Excerpt != "" {
		s += fmt.Sprintf(": %q", e.Excerpt)
	}
	return s
}

const (
	excerptLimit = 120 // bytes quoted of a garbage line
	messageLimit = 600 // bytes quoted of a server's message
	echoLength   = 24  // bytes in common with the prompt that count as an echo
)

// excerpt makes one line of s, without control characters, which a terminal
// might obey, and cuts it to n bytes at a rune boundary.
func excerpt(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// withhold removes from a server's message what it echoes of the secrets.
// Servers that validate requests like to quote them back.
func withhold(message string, key string, prompt []Segment) string {
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	for _, s := range prompt {
		message = withoutEcho(message, s.Text)
	}
	return message
}

// withoutEcho replaces every run of at least echoLength bytes that message
// shares with text. Short texts count as a whole.
func withoutEcho(message, text string) string {
	n := min(echoLength, len(text))
	if n < 8 {
		return message
	}
	var out strings.Builder
	for i := 0; i < len(message); {
		if i+n > len(message) || !strings.Contains(text, message[i:i+n]) {
			out.WriteByte(message[i])
			i++
			continue
		}
		end := i + n
		for end < len(message) && strings.Contains(text, message[end-n+1:end+1]) {
			end++
		}
		out.WriteString("[prompt]")
		i = end
	}
	return out.String()
}
