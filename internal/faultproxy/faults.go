package faultproxy

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"
)

// An Outcome is what a client may make of an answer.
type Outcome string

const (
	Complete    Outcome = "complete"    // the server has said how the generation ended
	Cut         Outcome = "cut"         // the stream ended before that
	Stalled     Outcome = "stalled"     // silence for longer than the limit
	Reported    Outcome = "reported"    // an error that the server tells
	Garbled     Outcome = "garbled"     // what the protocol does not have
	Unreachable Outcome = "unreachable" // no answer
	NotFound    Outcome = "not found"   // no such model
	Loading     Outcome = "loading"     // the model is still being loaded
)

// A Fault is one way to break an answer.
type Fault struct {
	Name string
	// Whole says that the fault is the answer as a whole, so that there is no
	// byte at which it happens.
	Whole bool
	// Outcomes are what may come of it while the end of the stream has not
	// come. Complete means that the fault breaks nothing, or says itself that
	// the generation is complete. Words in the middle of a frame may be Garbled.
	Outcomes []Outcome
	Adds     bool // the fault is more text
	Says     bool // the fault is words in the place of a frame

	refuses bool
	do      func(*answer)
}

const (
	pause   = 700 * time.Millisecond // shorter than any limit on silence
	eightMB = 8 << 20
)

func outcomes(o ...Outcome) []Outcome { return o }

// Faults are all there are.
var Faults = []Fault{
	// No answer, or another one.
	{Name: "refused", Whole: true, Outcomes: outcomes(Unreachable), refuses: true, do: (*answer).reset},
	{Name: "closed before the answer", Whole: true, Outcomes: outcomes(Unreachable), do: func(*answer) {}},
	{Name: "reset before the answer", Whole: true, Outcomes: outcomes(Unreachable), do: (*answer).reset},
	{Name: "silence before the answer", Whole: true, Outcomes: outcomes(Stalled), do: (*answer).silence},
	{Name: "no HTTP", Whole: true, Outcomes: outcomes(Garbled), do: func(a *answer) { a.raw([]byte("+OK ready\r\n\r\n")) }},
	{Name: "endless header", Whole: true, Outcomes: outcomes(Garbled), do: endlessHeader},
	{Name: "a header, slowly", Whole: true, Outcomes: outcomes(Stalled), do: slowHeader},
	{Name: "100 continue, for ever", Whole: true, Outcomes: outcomes(Garbled, Stalled), do: func(a *answer) {
		for wait := bytes.Repeat([]byte("HTTP/1.1 100 Continue\r\n\r\n"), 1000); !a.gone; {
			a.raw(wait)
		}
	}},
	{Name: "404", Whole: true, Outcomes: outcomes(NotFound, Reported), do: reports(404, `{"error":{"message":"model 'm' not found","code":404}}`)},
	{Name: "500", Whole: true, Outcomes: outcomes(Reported), do: reports(500, `{"error":{"message":"the runner died"}}`)},
	{Name: "503 while loading", Whole: true, Outcomes: outcomes(Loading, Reported), do: reports(503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)},
	{Name: "503", Whole: true, Outcomes: outcomes(Reported), do: reports(503, "busy")},
	{Name: "429", Whole: true, Outcomes: outcomes(Reported), do: reports(429, `{"error":"slow down"}`)},
	{Name: "a redirect", Whole: true, Outcomes: outcomes(Reported), do: func(a *answer) {
		a.head(307, "Location", "http://elsewhere.invalid/", "Content-Length", "0")
	}},
	{Name: "a page in place of a stream", Whole: true, Outcomes: outcomes(Garbled), do: func(a *answer) {
		a.head(200, "Content-Type", "text/html", "Content-Length", "22")
		a.raw([]byte("<html>Please log in.\r\n"))
	}},
	{Name: "an error with status 200", Whole: true, Outcomes: outcomes(Reported), do: reports(200, `{"error":{"message":"no more memory"}}`)},
	{Name: "a gzip", Whole: true, Outcomes: outcomes(Garbled), do: gzipped},
	{Name: "an empty answer", Whole: true, Outcomes: outcomes(Cut), do: func(a *answer) {
		a.head(200, "Content-Type", a.Media, "Content-Length", "0")
	}},

	// The connection, at any byte.
	{Name: "ended early", Outcomes: outcomes(Cut), do: then((*answer).end)},
	{Name: "closed", Outcomes: outcomes(Cut), do: then(func(*answer) {})},
	{Name: "reset", Outcomes: outcomes(Cut), do: then((*answer).reset)},
	{Name: "a chunk torn", Outcomes: outcomes(Cut), do: then(func(a *answer) { a.raw([]byte("ff\r\n   ")) })},
	{Name: "a chunk without a size", Outcomes: outcomes(Cut), do: then(func(a *answer) { a.raw([]byte("none\r\n")) })},
	{Name: "a chunk too large", Outcomes: outcomes(Cut), do: then(func(a *answer) { a.raw([]byte("fffffffffffffffff\r\n")) })},
	{Name: "chunks of notes", Outcomes: outcomes(Cut, Complete), do: then(chunksOfNotes)},
	{Name: "endless trailer", Outcomes: outcomes(Cut), do: then(func(a *answer) {
		for a.raw([]byte("0\r\n")); !a.gone; {
			a.raw([]byte("X-Note: and so on and so on\r\n"))
		}
	})},
	{Name: "a length too long", Outcomes: outcomes(Cut), do: func(a *answer) {
		a.head(200, "Content-Type", a.Media, "Content-Length", fmt.Sprint(a.at+1))
		a.first(a.raw)
	}},
	{Name: "a length too short", Outcomes: outcomes(Cut), do: func(a *answer) {
		a.head(200, "Content-Type", a.Media, "Content-Length", fmt.Sprint(a.at))
		a.first(a.raw)
		a.pass(a.body, a.raw)
	}},
	{Name: "silence", Outcomes: outcomes(Stalled), do: then((*answer).silence)},
	{Name: "signs of life", Outcomes: outcomes(Stalled, Garbled), do: then(func(a *answer) {
		for ; !a.gone; time.Sleep(pause) {
			a.say(a.Alive)
		}
	})},
	{Name: "empty lines", Outcomes: outcomes(Stalled, Garbled), do: then(func(a *answer) {
		for ; !a.gone; time.Sleep(pause / 50) {
			a.say(strings.Repeat("\n", 1000))
		}
	})},
	{Name: "a byte at a time, slowly", Outcomes: outcomes(Stalled, Complete), do: then(func(a *answer) {
		a.pass(oneByte{a.body}, func(b []byte) {
			a.chunk(b)
			time.Sleep(pause)
		})
	})},
	{Name: "a short pause", Outcomes: outcomes(Complete), do: then(func(a *answer) {
		time.Sleep(pause)
		a.rest()
	})},
	{Name: "a byte at a time", Outcomes: outcomes(Complete), do: then(func(a *answer) {
		a.pass(oneByte{a.body}, a.chunk)
		a.end()
	})},

	// What is said, at any byte.
	{Name: "an error", Outcomes: outcomes(Reported), Says: true, do: says(func(a *answer) string { return a.Error })},
	{Name: "an error, then the end", Outcomes: outcomes(Reported), Says: true, do: says(func(a *answer) string { return a.Error + a.Final(`"stop"`, "3") })},
	{Name: "an end without a reason", Outcomes: outcomes(Cut), Says: true, do: says(func(a *answer) string { return a.Final("null", "3") })},
	{Name: "an end for an unknown reason", Outcomes: outcomes(Garbled), Says: true, do: says(func(a *answer) string { return a.Final(`"moonrise"`, "3") })},
	{Name: "the end, then more", Outcomes: outcomes(Complete), Says: true, do: says(func(a *answer) string {
		return a.Final(`"stop"`, "3") + a.Text("late") + a.Final(`"length"`, "9")
	})},
	{Name: "negative counts", Outcomes: outcomes(Complete), Says: true, do: says(func(a *answer) string { return a.Final(`"stop"`, "-5") })},
	{Name: "huge counts", Outcomes: outcomes(Complete), Says: true, do: says(func(a *answer) string { return a.Final(`"stop"`, "4611686018427387904") })},
	{Name: "counts that are none", Outcomes: outcomes(Garbled), Says: true, do: says(func(a *answer) string { return a.Final(`"stop"`, "1e300") })},
	{Name: "a page", Outcomes: outcomes(Garbled), Says: true, do: says(func(*answer) string { return "<html>\n<h1>502 Bad Gateway</h1>\n</html>\n" })},
	{Name: "garbage", Outcomes: outcomes(Garbled), Says: true, do: into(func(a *answer) string { return a.Line("{]") })},
	{Name: "another shape", Outcomes: outcomes(Garbled), Says: true, do: into(func(a *answer) string { return a.Shape })},
	{Name: "deep nesting", Outcomes: outcomes(Garbled), Says: true, do: into(func(a *answer) string { return a.Line(strings.Repeat("[", 100_000)) })},
	{Name: "NUL bytes", Outcomes: outcomes(Garbled), Says: true, do: into(func(*answer) string { return "\x00\x00\x00" })},
	{Name: "no UTF-8", Outcomes: outcomes(Garbled), Says: true, do: into(func(a *answer) string { return a.spell("\xff\xfe") })},
	{Name: "half a character", Outcomes: outcomes(Garbled), Says: true, do: into(func(a *answer) string { return a.spell(`\ud83c`) })},
	{Name: "a line of another protocol", Outcomes: outcomes(Garbled), Says: true, do: into(func(*answer) string { return "error: {\"message\":\"no\"}\n\n" })},
	{Name: "the last line again", Outcomes: outcomes(Complete), Adds: true, Says: true, do: into((*answer).last)},
	{Name: "a line of 8 MiB", Outcomes: outcomes(Complete), Adds: true, Says: true, do: into(func(a *answer) string { return a.Text(strings.Repeat("0123456789abcdef", eightMB/16)) })},
	{Name: "a line without an end", Outcomes: outcomes(Garbled), do: then(func(a *answer) {
		for line := bytes.Repeat([]byte("x"), 1<<20); !a.gone; {
			a.chunk(line)
		}
	})},
	{Name: "text without an end", Outcomes: outcomes(Garbled), Adds: true, Says: true, do: then(func(a *answer) {
		for text := strings.Repeat(a.Text(" on"), 20); !a.gone; {
			a.say(text)
		}
	})},
}

// then does something at the byte of the fault.
func then(do func(*answer)) func(*answer) {
	return func(a *answer) {
		a.begin()
		do(a)
	}
}

// says ends the stream with words of the fault.
func says(words func(*answer) string) func(*answer) {
	return then(func(a *answer) {
		a.say(words(a))
		a.end()
	})
}

// into puts words into the stream, which goes on.
func into(words func(*answer) string) func(*answer) {
	return then(func(a *answer) {
		a.say(words(a))
		a.rest()
	})
}

// reports answers with a status and a body.
func reports(status int, body string) func(*answer) {
	return func(a *answer) {
		a.head(status, "Content-Type", "application/json", "Retry-After", "0", "Content-Length", fmt.Sprint(len(body)))
		a.raw([]byte(body))
	}
}

// spell is a frame of text with bytes as they are.
func (a *answer) spell(raw string) string { return strings.Replace(a.Text("QQ"), "QQ", raw, 1) }

// last is the last line that is complete, with what ends its frame.
func (a *answer) last() string {
	end := a.Text("")
	end = end[len(strings.TrimRight(end, "\n")):]
	n := bytes.LastIndex(a.sent, []byte(end))
	if n < 0 {
		return ""
	}
	begin := 0
	if i := bytes.LastIndex(a.sent[:n], []byte(end)); i >= 0 {
		begin = i + len(end)
	}
	return string(a.sent[begin:n]) + end
}

func endlessHeader(a *answer) {
	a.raw([]byte("HTTP/1.1 200 OK\r\n"))
	for note := []byte(strings.Repeat("X-Note: and so on and so on\r\n", 100)); !a.gone; {
		a.raw(note)
	}
}

func slowHeader(a *answer) {
	a.raw([]byte("HTTP/1.1 200 OK\r\n"))
	for ; !a.gone; time.Sleep(pause) {
		a.raw([]byte("X-Note: wait\r\n"))
	}
}

func gzipped(a *answer) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(a.Text("hidden") + a.Final(`"stop"`, "1"))) // a buffer takes everything
	_ = w.Close()
	a.head(200, "Content-Type", a.Media, "Content-Encoding", "gzip", "Content-Length", fmt.Sprint(b.Len()))
	a.raw(b.Bytes())
}

// chunksOfNotes sends each byte with a long note beside it.
func chunksOfNotes(a *answer) {
	note := strings.Repeat("n", 500)
	a.pass(oneByte{a.body}, func(b []byte) {
		if len(b) > 0 {
			a.raw(fmt.Appendf(nil, "1;%s\r\n%s\r\n", note, b))
		}
	})
	a.end()
}
