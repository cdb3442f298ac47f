package trace

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"sync"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// A sink takes the records of one run, in their order.
type sink interface {
	append(kind string, v any) error
	sync() error
}

// A recorder stands between a runner and all that is outside of it, and writes
// down what passes.
type recorder struct {
	sink sink
	now  func() time.Time
	// answer, where it is set, may answer a call in place of its tool; nothing of
	// that is written down.
	answer   func(ctx context.Context, at place, call tools.Call) (tools.Result, bool)
	effects  map[string]bool // tools with side effects
	spellers *spellers       // of the conversation

	mu     sync.Mutex
	turn   int // turns that have ended
	asked  int // requests so far
	pieces []piece
	// texts and counted are not written down yet.
	texts   []encoding
	counted []counted
}

// record gives the Runner whose runs pass through the recorder.
func (rec *recorder) record(r *runner.Runner) *runner.Runner {
	recorded := *r
	recorded.Model = rec.model(r.Model)
	if r.CountTokens != nil {
		recorded.CountTokens = rec.count(r.CountTokens)
	}
	if r.Tools != nil {
		recorded.Tools = r.Tools.With(rec.tool)
		rec.effects = map[string]bool{}
		for _, s := range r.Tools.Specs() {
			rec.effects[s.Name] = s.SideEffects
		}
	}
	return &recorded
}

// run makes a run and writes its events down. The journal's own errors do not
// end it: an answer is worth more than its record.
func (rec *recorder) run(ctx context.Context, r *runner.Runner, task runner.Task) iter.Seq2[runner.Event, error] {
	return func(yield func(runner.Event, error) bool) {
		began := false
		for ev, err := range rec.record(r).Run(ctx, task) {
			switch {
			case err == nil:
				began = true
				rec.event(ev)
			case !began:
				_ = rec.sink.append(kindFailed, failed{newFailure(err)})
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

func (rec *recorder) event(ev runner.Event) {
	if !lazy(ev.Kind()) {
		rec.tellTexts()
	}
	switch ev := ev.(type) {
	case runner.Stopped:
		rec.mu.Lock()
		rec.turn++
		rec.mu.Unlock()
	case runner.Ended:
		_ = rec.sink.append(kindLedger, ledger{Ledger(ev.Ledger)})
	}
	_ = rec.sink.append(ev.Kind(), ev)
	if ev.Kind() == kindEnded {
		_ = rec.sink.sync()
	}
}

// request writes a request down and gives its number.
func (rec *recorder) request(pieces []piece, r request) int {
	rec.mu.Lock()
	rec.asked++
	r.Request, r.Turn = rec.asked, rec.turn+1
	for r.Kept < min(len(pieces), len(rec.pieces)) && reflect.DeepEqual(pieces[r.Kept], rec.pieces[r.Kept]) {
		r.Kept++
	}
	rec.pieces = pieces
	rec.mu.Unlock()
	r.Append = pieces[r.Kept:]
	r.Bytes, r.SHA256 = digest(pieces)
	rec.tellTexts()
	_ = rec.sink.append(kindRequest, r)
	return r.Request
}

// A recording is a model that is listened to.
type recording struct {
	*recorder
	inner models.Model
}

// model gives a model with the abilities that the runner uses of m.
func (rec *recorder) model(m models.Model) models.Model {
	r := recording{rec, m}
	return assemble(r, abilitiesOf(m), recordedChat{r}, recordedRendering{r}, recordedSpelling{r})
}

// Stream implements models.Model. What only lets the server read ahead is no
// part of the run: it changes nothing but times.
func (r recording) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	if req.Prefill {
		return r.inner.Stream(ctx, req)
	}
	return func(yield func(models.Chunk, error) bool) {
		n := r.request(segmentPieces(req.Prompt), request{
			MaxTokens: req.MaxTokens, Sampling: req.Sampling, Stop: req.Stop, Schema: req.Schema, Preserve: req.Preserve, Session: req.Session,
		})
		listen(r.recorder, ctx, n, r.inner.Stream(ctx, req), newChunk, yield)
	}
}

type recordedChat struct{ recording }

// Chat implements models.Chatter.
func (r recordedChat) Chat(ctx context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	return func(yield func(models.ChatChunk, error) bool) {
		n := r.request(messagePieces(req.Messages), request{
			MaxTokens: req.MaxTokens, Sampling: req.Sampling, Session: req.Session, ToolChoice: &req.ToolChoice,
		})
		listen(r.recorder, ctx, n, r.inner.(models.Chatter).Chat(ctx, req), newChatChunk, yield)
	}
}

// listen passes a stream on and writes it down as one record when it has ended:
// a token costs no more than to be kept.
func listen[C any](rec *recorder, ctx context.Context, n int, chunks iter.Seq2[C, error], write func(C) chunk, yield func(C, error) bool) {
	s := stream{Request: n}
	defer func() { _ = rec.sink.append(kindStream, s) }()
	for c, err := range chunks {
		if err != nil {
			s.Error, s.Done = newFailure(err), ctx.Err() != nil
		} else {
			s.Chunks = append(s.Chunks, write(c))
		}
		if !yield(c, err) {
			s.Left = s.Error == nil
			return
		}
	}
}

type recordedRendering struct{ recording }

// Render implements models.Renderer.
func (r recordedRendering) Render(ctx context.Context, c models.Conversation) (string, error) {
	text, err := r.inner.(models.Renderer).Render(ctx, c)
	_ = r.sink.append(kindRender, rendering{Mark: questionOf(c), Text: text, Error: newFailure(err), Done: err != nil && ctx.Err() != nil})
	return text, err
}

// questionOf is the text of the last message.
func questionOf(c models.Conversation) string {
	if n := len(c.Messages); n > 0 {
		return c.Messages[n-1].Content
	}
	return ""
}

// errNotKept says why a tool is not run.
var errNotKept = errors.New("the journal cannot be written")

// tool runs a tool between two records, each on the disk before it goes on. A
// tool with side effects does not run where the first one cannot be kept:
// after a crash nobody would know.
func (rec *recorder) tool(ctx context.Context, at int, call tools.Call, run func() tools.Result) tools.Result {
	rec.mu.Lock()
	p := place{Turn: rec.turn, Call: at}
	rec.mu.Unlock()
	if rec.answer != nil {
		if r, ok := rec.answer(ctx, p, call); ok {
			return r
		}
	}
	err := rec.sink.append(kindRunning, running{p, call.Name})
	if err == nil {
		err = rec.sink.sync()
	}
	if err != nil && rec.effects[call.Name] {
		return tools.Result{Status: tools.Failed, Content: "Error: " + call.Name + " was not run: " + errNotKept.Error() + "."}
	}
	began := rec.now()
	res := run()
	rec.give(newResult(p, call.Name, res, rec.now().Sub(began), ctx.Err() != nil))
	return res
}

// give writes a result down.
func (rec *recorder) give(r result) {
	_ = rec.sink.append(kindResult, r)
	_ = rec.sink.sync()
}
