package models

import (
	"io"
	"iter"
	"strings"
	"testing"
)

// FuzzStreams gives anything at all to the reader of each protocol. It must
// come to an end: chunks, and then a final chunk, one error, or nothing more.
func FuzzStreams(f *testing.F) {
	for _, d := range dialects {
		f.Add([]byte(strings.Join(d.frames("one", " 中"), "")))
		f.Add([]byte(d.text("one") + d.broken))
	}
	for _, name := range []string{"llama-server/hole", "llama-server/hidden", "ollama/cut", "ollama/plain"} {
		for _, e := range loadTranscript(f, name).exchanges {
			f.Add(e.Response)
		}
	}
	f.Add([]byte("\n\n:\n\ndata\n\ndata:\n\n\xff\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, s := &ollama{}, &server{kind: "fuzz"}
		llama := llamaReader{kind: "fuzz", failed: s.failed, ids: true}
		legacy := openaiReader{server: s, context: 10}
		for _, read := range []func(io.Reader) iter.Seq2[Chunk, error]{
			func(r io.Reader) iter.Seq2[Chunk, error] { return o.read(r, 0) }, llama.read, legacy.read,
		} {
			over := false
			for c, err := range read(strings.NewReader(string(b))) {
				if over {
					t.Fatal("something follows the end")
				}
				over = err != nil || c.Final != nil
				if c.Final != nil && c.Final.Finish == "" {
					t.Fatal("an end without a reason")
				}
			}
		}
	})
}
