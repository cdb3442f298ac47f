package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// KindRevived is the kind of the record with which a run goes on whose process
// was killed.
const KindRevived = "revived"

// The kinds of records beside the events of the runner.
const (
	kindHeader    = "header"
	kindRequest   = "request"  // to the model
	kindStream    = "stream"   // what the model answered, when it has ended
	kindRender    = "render"   // an opening that the server wrote
	kindSpelling  = "spelling" // how the model spells text as tokens
	kindEncodings = "encoded"  // texts and their tokens
	kindCounts    = "counted"  // texts and how many tokens the caller counted
	kindRunning   = "running"  // a tool begins
	kindResult    = "result"   // what it gave, before it was cut
	kindLedger    = "ledger"   // the hash of the ledger at the end
	kindFailed    = "failed"   // the run never began
)

var kindEnded, kindStopped = runner.Ended{}.Kind(), runner.Stopped{}.Kind()

// revived goes on with a run after its record From.
type revived struct {
	Run     string `json:"run"`
	From    int    `json:"from"`
	Version string `json:"version"` // of stopgap
}

// A request is one request to the model.
type request struct {
	Request int `json:"request"` // from 1
	Turn    int `json:"turn"`    // from 1
	prompt
	MaxTokens  int                `json:"max_tokens,omitempty"`
	Sampling   models.Sampling    `json:"sampling"`
	Stop       []string           `json:"stop,omitempty"`
	Schema     json.RawMessage    `json:"schema,omitempty"`
	Preserve   []string           `json:"preserve,omitempty"`
	Session    string             `json:"session,omitempty"`
	ToolChoice *models.ToolChoice `json:"tool_choice,omitempty"` // of a chat endpoint
}

// A prompt is what a request sends, as what is new in it: the first Kept pieces
// are those of the request before.
type prompt struct {
	Kept   int     `json:"kept,omitempty"`
	Append []piece `json:"append,omitempty"`
	Bytes  int     `json:"bytes"`  // of all text
	SHA256 string  `json:"sha256"` // of all pieces, in hex
}

// A piece is a segment of a prompt, or a message of a conversation.
type piece struct {
	Text    string   `json:"text,omitempty"`
	Bytes   []byte   `json:"bytes,omitempty"` // in place of Text where it is not UTF-8
	Tokens  []int    `json:"tokens,omitempty"`
	Message *message `json:"message,omitempty"`
}

func (p *piece) text() string {
	if p.Bytes != nil {
		return string(p.Bytes)
	}
	return p.Text
}

// hash adds the piece to a digest, so that the bytes of a prompt that begins
// with another begin with the other's: ids stand before the text that they
// spell, each behind a byte that UTF-8 does not have.
func (p *piece) hash(b []byte) []byte {
	for _, id := range p.Tokens {
		b = binary.LittleEndian.AppendUint32(append(b, 0xff), uint32(id))
	}
	if p.Message != nil {
		m, _ := json.Marshal(p.Message) // strings
		return append(b, m...)
	}
	return append(b, p.text()...)
}

// digest gives the length and the hash of pieces.
func digest(pieces []piece) (bytes int, sum string) {
	h := sha256.New()
	var b []byte
	for i := range pieces {
		bytes += len(pieces[i].text())
		b = pieces[i].hash(b[:0])
		h.Write(b)
	}
	return bytes, hex.EncodeToString(h.Sum(nil))
}

// segmentPieces are the pieces of a raw prompt.
func segmentPieces(prompt []models.Segment) []piece {
	out := make([]piece, len(prompt))
	for i, s := range prompt {
		out[i] = piece{Text: s.Text, Tokens: s.Tokens}
		if !utf8.ValidString(s.Text) {
			out[i].Text, out[i].Bytes = "", []byte(s.Text)
		}
	}
	return out
}

// messagePieces are the pieces of a conversation.
func messagePieces(messages []models.Message) []piece {
	out := make([]piece, len(messages))
	for i, m := range messages {
		out[i] = piece{Message: &message{m.Role, m.Content, m.Thinking, newCalls(m.Calls), m.Name, m.CallID}}
	}
	return out
}

// A stream is what one request gave.
type stream struct {
	Request int     `json:"request"`
	Chunks  []chunk `json:"chunks,omitempty"`
	// Left says that the runner ended the request, at a stop of its own.
	Left  bool     `json:"left,omitempty"`
	Error *failure `json:"error,omitempty"`
	// Done says that the run's context was, when the stream ended.
	Done bool `json:"done,omitempty"`
}

// A chunk is a models.ChatChunk, or a models.Chunk, which has fewer fields.
type chunk struct {
	Text     string           `json:"text,omitempty"`
	Bytes    []byte           `json:"bytes,omitempty"` // in place of Text where it is not UTF-8
	Tokens   []int            `json:"tokens,omitempty"`
	Progress *models.Progress `json:"progress,omitempty"`
	Usage    *models.Usage    `json:"usage,omitempty"`
	Final    *models.Final    `json:"final,omitempty"`
	Thinking string           `json:"thinking,omitempty"`
	Calls    []call           `json:"calls,omitempty"`
}

func newChunk(c models.Chunk) chunk {
	out := chunk{Text: c.Text, Tokens: c.Tokens, Progress: c.Progress, Usage: c.Usage, Final: c.Final}
	if !utf8.ValidString(c.Text) {
		out.Text, out.Bytes = "", []byte(c.Text)
	}
	return out
}

func (c *chunk) chunk() models.Chunk {
	text := c.Text
	if c.Bytes != nil {
		text = string(c.Bytes)
	}
	return models.Chunk{Text: text, Tokens: c.Tokens, Progress: c.Progress, Usage: c.Usage, Final: c.Final}
}

func newChatChunk(c models.ChatChunk) chunk {
	out := newChunk(c.Chunk)
	out.Thinking, out.Calls = c.Thinking, newCalls(c.Calls)
	return out
}

func (c *chunk) chatChunk() models.ChatChunk {
	return models.ChatChunk{Chunk: c.chunk(), Thinking: c.Thinking, Calls: toolCalls(c.Calls)}
}

// A call is a models.ToolCall. Its arguments are a string: they stay as the
// model spelled them, JSON or not.
type call struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"`
}

func newCalls(list []models.ToolCall) []call {
	var out []call
	for _, c := range list {
		out = append(out, call{c.ID, c.Name, string(c.Arguments)})
	}
	return out
}

func toolCalls(list []call) []models.ToolCall {
	var out []models.ToolCall
	for _, c := range list {
		out = append(out, models.ToolCall{ID: c.ID, Name: c.Name, Arguments: json.RawMessage(c.Arguments)})
	}
	return out
}

// A message is a models.Message.
type message struct {
	Role     models.Role `json:"role"`
	Content  string      `json:"content,omitempty"`
	Thinking string      `json:"thinking,omitempty"`
	Calls    []call      `json:"calls,omitempty"`
	Name     string      `json:"name,omitempty"`
	CallID   string      `json:"call_id,omitempty"`
}

// message gives the models.Message back.
func (m *message) message() models.Message {
	return models.Message{Role: m.Role, Content: m.Content, Thinking: m.Thinking, Calls: toolCalls(m.Calls), Name: m.Name, CallID: m.CallID}
}

// A rendering is an opening that the server wrote. The words of Mark stand in
// it for the question.
type rendering struct {
	Mark  string   `json:"mark"`
	Text  string   `json:"text,omitempty"`
	Error *failure `json:"error,omitempty"`
	Done  bool     `json:"done,omitempty"` // as in stream
}

// A place is that of a call: the turn, from 1, and its number among the calls
// of the turn, from 0.
type place struct {
	Turn int `json:"turn"`
	Call int `json:"call"`
}

// running says that a tool begins. It is on the disk before that.
type running struct {
	place
	Name string `json:"name"`
}

// A result is what a tool gave. It is on the disk before the run goes on.
type result struct {
	place
	Name     string        `json:"name"`
	Status   tools.Status  `json:"status"`
	Content  string        `json:"content,omitempty"`
	Bytes    []byte        `json:"bytes,omitempty"` // in place of Content where it is not UTF-8
	Duration time.Duration `json:"duration_ns"`
	Done     bool          `json:"done,omitempty"` // as in stream
}

func newResult(at place, name string, r tools.Result, took time.Duration, done bool) result {
	out := result{place: at, Name: name, Status: r.Status, Content: r.Content, Duration: took, Done: done}
	if !utf8.ValidString(r.Content) {
		out.Content, out.Bytes = "", []byte(r.Content)
	}
	return out
}

func (r *result) result() tools.Result {
	if r.Bytes != nil {
		return tools.Result{Status: r.Status, Content: string(r.Bytes)}
	}
	return tools.Result{Status: r.Status, Content: r.Content}
}

// A failed run never began: it was refused before it had anything to tell.
type failed struct {
	Error *failure `json:"error"`
}

// A ledger tells the ledger of a run apart from others.
type ledger struct {
	SHA256 string `json:"sha256"`
}

// Ledger gives the hash of a ledger: of its segments, their ids and who wrote
// each.
func Ledger(l *runner.Ledger) string {
	h := sha256.New()
	var b []byte
	for _, s := range l.Segments() {
		p := piece{Text: s.Text, Tokens: s.Tokens}
		b = append(p.hash(append(append(b[:0], s.Source...), 0)), 0)
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
