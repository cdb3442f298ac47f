package models

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stopgap/internal/faultproxy"
)

// A recording is a stream that a server has sent, and how it is asked for.
type recording struct {
	dialect
	words  faultproxy.Stream
	body   []byte
	frames []frame
	text   string
	told   int // where the bytes are that say how the generation ended
}

// A frame is a line with text: where what ends it ends, and its text.
type frame struct {
	end  int
	text string
}

const brokenTokens = 100 // that are asked for; every recording has fewer

// recordings are one stream of each protocol, and OpenAI's older one as it is
// documented.
func recordings(t *testing.T) []*recording {
	recorded := func(name string, exchange int) []byte {
		return loadTranscript(t, name).exchanges[exchange-1].Response
	}
	all := []*recording{
		{dialect: ollamaDialect, body: recorded("ollama/plain", 2)},
		{dialect: llamaDialect, body: recorded("llama-server/ids", 5)},
		{dialect: openaiChatDialect, body: recorded("llama-server/chat-plain", 6)},
		{dialect: openaiDialect, body: []byte(strings.Join(openaiDialect.frames("one", " zwölf", " 三\n"), ""))},
	}
	for _, r := range all {
		r.measure(t)
		r.words = r.dialect.words()
	}
	return all
}

// measure finds out what the stream says, without the code under test.
func (r *recording) measure(t *testing.T) {
	end := 0
	for line := range strings.SplitAfterSeq(string(r.body), "\n") {
		end += len(line)
		data := strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		var f struct {
			Response, Content string
			Choices           []struct {
				Text   string
				Delta  struct{ Content string }
				Finish *string `json:"finish_reason"`
			}
			Done, Stop bool
		}
		if json.Unmarshal([]byte(data), &f) != nil {
			continue
		}
		text, finished := f.Response+f.Content, f.Done || f.Stop
		for _, c := range f.Choices {
			text += c.Text + c.Delta.Content
			finished = finished || c.Finish != nil
		}
		if finished && r.told == 0 {
			r.told = end - len(line) + strings.LastIndexByte(line, '}') + 1
		}
		if text != "" {
			last := end
			if r.media == "text/event-stream" {
				last++ // the empty line ends an event
			}
			r.frames = append(r.frames, frame{last, text})
			r.text += text
		}
	}
	if r.told == 0 || len(r.frames) < 2 {
		t.Fatalf("%s: %d frames, told at %d", r.name, len(r.frames), r.told)
	}
}

// said is the text of the frames that are whole in the first bytes.
func (r *recording) said(at int) string {
	text := ""
	for _, f := range r.frames {
		if f.end <= at {
			text += f.text
		}
	}
	return text
}

// between reports whether the first bytes end with a frame.
func (r *recording) between(at int) bool {
	frame := r.dialect.text("")
	return at == 0 || bytes.HasSuffix(r.body[:at], []byte(strings.TrimPrefix(frame, strings.TrimSpace(frame))))
}

// words are what faults say in this protocol.
func (d dialect) words() faultproxy.Stream {
	s := faultproxy.Stream{Media: d.media, Text: d.text, Error: d.broken, Alive: d.text("")}
	s.Line = func(data string) string { return data + "\n" }
	s.Shape = `{"response":5,"message":5}` + "\n"
	if d.media == "text/event-stream" {
		s.Line, s.Alive = event, ": ping\n\n"
		s.Shape = event(`{"content":5,"choices":5}`)
	}
	var end string // with R for the reason and 7777 for each count
	switch d.name {
	case "ollama":
		end = `{"response":"","done":true,"done_reason":R,"prompt_eval_count":7777,"eval_count":7777}` + "\n"
	case "llamacpp":
		end = event(`{"content":"","tokens":[],"stop":true,"stop_type":R,"tokens_predicted":7777,"tokens_evaluated":7777,"timings":{"cache_n":7777,"prompt_n":7777}}`)
	default:
		end = event(`{"choices":[{"index":0,"text":"","delta":{},"finish_reason":R}],"timings":{"cache_n":7777,"prompt_n":7777,"predicted_n":7777}}`) +
			event(`{"choices":[],"usage":{"prompt_tokens":7777,"completion_tokens":7777,"prompt_tokens_details":{"cached_tokens":7777}}}`) + event("[DONE]")
	}
	s.Final = func(reason, count string) string {
		if d.name == "llamacpp" {
			reason = map[string]string{`"stop"`: `"eos"`, `"length"`: `"limit"`, "null": `"none"`}[cmp.Or(reason)]
			reason = cmp.Or(reason, `"moonrise"`)
		}
		return strings.NewReplacer("R,", reason+",", "R}", reason+"}", "7777", count).Replace(end)
	}
	return s
}

// answer gives the recording and what a client asks besides.
func (r *recording) answer(req *http.Request) (*http.Response, error) {
	body, media := []byte(r.asides[req.URL.Path]), "application/json"
	if req.URL.Path == r.path {
		body, media = r.body, r.media
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// A breaker asks for a recording through a proxy that breaks it.
type breaker struct {
	*recording
	proxy   *faultproxy.Proxy
	model   Model
	opts    Options
	idle    func()
	slack   time.Duration // that an error may take over its limit
	skipped bool          // what arrived before a reset may be lost, as on a network
}

// newBreaker opens the model of a recording; dial is nil for TCP to the address.
func newBreaker(t *testing.T, r *recording, opts Options, address string, p *faultproxy.Proxy) *breaker {
	client := (Options{}).withDefaults().Client // what users have
	transport := client.Transport.(*http.Transport)
	if address == "" {
		transport.DialContext, address = p.Dial, "in.process"
	}
	opts.Client, opts.OllamaHost, opts.Retries = client, address, -1
	m, err := Open(r.ref("http://"+address), opts)
	if err != nil {
		t.Fatal(err)
	}
	if r.chat {
		m = asPrompt{m}
	}
	return &breaker{recording: r, proxy: p, model: m, opts: opts, idle: transport.CloseIdleConnections, slack: time.Second}
}

// try breaks the stream once and checks what comes of it.
func (b *breaker) try(t *testing.T, fault faultproxy.Fault, at int) faultproxy.Outcome {
	b.proxy.Fault, b.proxy.At = fault, at
	began := time.Now()
	got := listen(t, context.Background(), b.model, Request{Prompt: text("p"), MaxTokens: brokenTokens})
	took := time.Since(began)
	b.idle()
	b.proxy.Wait() // no connection is left behind

	where := fmt.Sprintf("%s, %s at byte %d (after %.30q)", b.name, fault.Name, at, b.body[max(0, at-30):at])
	o := outcome(got)
	over := !fault.Whole && at >= b.told // the stream has said how it ended
	inside := !fault.Whole && fault.Says && !b.between(at)
	if !slices.Contains(fault.Outcomes, o) && !(over && o == faultproxy.Complete) && !((inside || over && fault.Says) && o == faultproxy.Garbled) {
		t.Errorf("%s: %s, %v", where, o, got.err)
	}
	limit := b.opts.FirstToken
	if b.said(at) != "" {
		limit = b.opts.BetweenTokens
	}
	if fault.Name == "a byte at a time, slowly" { // a frame may come within the limit
		limit = 2 * b.opts.FirstToken
	}
	if fault.Name == "503 while loading" {
		limit = b.opts.LoadWait
	}
	if took > limit+b.slack {
		t.Errorf("%s: it took %v", where, took)
	}
	b.checkText(t, where, fault, at, got)
	for _, u := range []*Usage{got.usage, usageOf(got.final)} {
		if u != nil && !plausible(*u) {
			t.Errorf("%s: counts %+v", where, *u)
		}
	}
	return o
}

// checkText makes sure that nothing is lost that came, and nothing added.
func (b *breaker) checkText(t *testing.T, where string, fault faultproxy.Fault, at int, got told) {
	if fault.Whole {
		check(t, where+": text", got.text, "")
		return
	}
	before := b.said(at)
	switch {
	case fault.Adds && got.final != nil:
		if !contains(got.text, b.frames) {
			t.Errorf("%s: text of a complete stream is %.200q", where, got.text)
		}
	case fault.Adds:
		if !strings.HasPrefix(got.text, before) {
			t.Errorf("%s: text is %.200q", where, got.text)
		}
	case got.final != nil && got.text != b.text && got.text != before:
		t.Errorf("%s: text of a complete stream is %q", where, got.text)
	case got.final != nil && got.text != b.text && (at >= b.told || !fault.Says):
		t.Errorf("%s: text of a complete stream is %q", where, got.text)
	case !strings.HasPrefix(b.text, got.text) || !strings.HasPrefix(got.text, before) && !b.skipped:
		t.Errorf("%s: text is %q", where, got.text)
	}
}

// contains reports whether a text has those of all frames, in order.
func contains(text string, frames []frame) bool {
	for _, f := range frames {
		_, after, ok := strings.Cut(text, f.text)
		if !ok {
			return false
		}
		text = after
	}
	return true
}

func usageOf(f *Final) *Usage {
	if f == nil {
		return nil
	}
	return &f.Usage
}

func plausible(u Usage) bool {
	for _, c := range []Count{u.Prompt, u.Evaluated, u.Reused, u.Generated} {
		if c.N < 0 || c.N > 1<<31 || !c.Known && c.N != 0 {
			return false
		}
	}
	return true
}

// outcome is what became of a stream. An error without a type of this package
// has none.
func outcome(got told) faultproxy.Outcome {
	switch got.err.(type) {
	case nil:
		return faultproxy.Complete
	case *CutError:
		return faultproxy.Cut
	case *StallError:
		return faultproxy.Stalled
	case *ServerError:
		return faultproxy.Reported
	case *ProtocolError:
		return faultproxy.Garbled
	case *UnreachableError:
		return faultproxy.Unreachable
	case *NotFoundError:
		return faultproxy.NotFound
	case *LoadingError:
		return faultproxy.Loading
	}
	return ""
}

// TestEveryFault breaks recorded streams in every way, at every byte where
// STOPGAP_FAULTS is "all" (the two faults of megabytes at some) and at some of
// them otherwise. It runs on a clock of its own: a stream that hangs, and a
// goroutine or a connection that is left, fails it. What a user would wait for
// takes no time, and what takes too long is seen exactly.
func TestEveryFault(t *testing.T) {
	var (
		mu    sync.Mutex
		table = map[string]map[faultproxy.Outcome]int{}
		tries int
	)
	quietly(t)
	t.Run("streams", func(t *testing.T) {
		for _, r := range recordings(t) {
			for _, fault := range faultproxy.Faults {
				t.Run(r.name+" "+fault.Name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						counts := map[faultproxy.Outcome]int{}
						p := &faultproxy.Proxy{Path: r.path, Answer: r.answer, Stream: r.words}
						b := newBreaker(t, r, Options{FirstToken: 3 * time.Second, BetweenTokens: time.Second, LoadWait: 2 * time.Second}, "", p)
						complete(t, b.model, Request{Prompt: text("p"), MaxTokens: brokenTokens}) // what it asks once, it has asked
						for _, at := range places(r, fault) {
							counts[b.try(t, fault, at)]++
							if t.Failed() {
								break
							}
						}
						b.idle()
						mu.Lock()
						defer mu.Unlock()
						if table[fault.Name] == nil {
							table[fault.Name] = map[faultproxy.Outcome]int{}
						}
						for o, n := range counts {
							table[fault.Name][o] += n
							tries += n
						}
					})
				})
			}
		}
	})
	t.Log("\n" + faultTable(table, tries))
}

// quietly keeps net/http from logging what comes after the end of an answer.
func quietly(t *testing.T) {
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
}

// places are the bytes at which a fault is tried.
func places(r *recording, fault faultproxy.Fault) []int {
	step, all := 211, os.Getenv("STOPGAP_FAULTS") == "all"
	switch heavy := fault.Name == "a line of 8 MiB" || fault.Name == "a line without an end"; {
	case fault.Whole:
		return []int{0}
	case heavy && testing.Short():
		return nil
	case heavy && !all:
		return []int{r.frames[1].end}
	case all && !heavy: // those take half a second each
		step = 1
	}
	var out []int
	for at := 0; at <= len(r.body); at += step {
		out = append(out, at)
	}
	for _, f := range r.frames {
		out = append(out, f.end)
	}
	return append(out, r.told-1, r.told)
}

// faultTable is for people: a row a fault, a column an outcome.
func faultTable(table map[string]map[faultproxy.Outcome]int, tries int) string {
	columns := []faultproxy.Outcome{
		faultproxy.Complete, faultproxy.Cut, faultproxy.Stalled, faultproxy.Reported,
		faultproxy.Garbled, faultproxy.Unreachable, faultproxy.NotFound, faultproxy.Loading,
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s", "fault")
	for _, c := range columns {
		fmt.Fprintf(&b, "%12s", c)
	}
	for _, f := range faultproxy.Faults {
		fmt.Fprintf(&b, "\n%-28s", f.Name)
		for _, c := range columns {
			fmt.Fprintf(&b, "%12d", table[f.Name][c])
		}
	}
	fmt.Fprintf(&b, "\n%d streams of %d faults", tries, len(faultproxy.Faults))
	return b.String()
}

// TestFaultsOverTCP breaks a stream in every way on a real network, with real
// time, at one place.
func TestFaultsOverTCP(t *testing.T) {
	quietly(t)
	for _, r := range recordings(t) {
		for _, fault := range faultproxy.Faults {
			t.Run(r.name+" "+fault.Name, func(t *testing.T) {
				t.Parallel()
				p := &faultproxy.Proxy{Path: r.path, Answer: r.answer, Stream: r.words}
				address, stop, err := p.Listen()
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				opts := Options{FirstToken: time.Minute, BetweenTokens: time.Minute, LoadWait: time.Second} // a machine that is busy is no fault
				if slices.Contains(fault.Outcomes, faultproxy.Stalled) {
					opts.FirstToken, opts.BetweenTokens = 2*time.Second, time.Second
				}
				b := newBreaker(t, r, opts, address, p)
				b.slack, b.skipped = time.Minute, true
				complete(t, b.model, Request{Prompt: text("p"), MaxTokens: brokenTokens})
				b.idle()
				if fault.Name == "refused" {
					stop()
				}
				b.try(t, fault, r.frames[1].end)
			})
		}
	}
}

// The table has what the project promises, each under one name.
func TestFaultNames(t *testing.T) {
	seen, atBytes := map[string]bool{}, 0
	for _, f := range faultproxy.Faults {
		if seen[f.Name] || len(f.Outcomes) == 0 {
			t.Errorf("%q: twice, or without an outcome", f.Name)
		}
		if seen[f.Name] = true; !f.Whole {
			atBytes++
		}
	}
	if atBytes < 30 {
		t.Errorf("%d faults happen at a byte", atBytes)
	}
	if !errors.Is(&CutError{Err: io.ErrUnexpectedEOF}, io.ErrUnexpectedEOF) {
		t.Error("a CutError hides its cause")
	}
}
