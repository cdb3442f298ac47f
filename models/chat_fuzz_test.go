package models

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzChats gives anything at all to the readers of chat endpoints. What they
// make of it does not depend on how the network cuts it; it comes to an end; and
// every call has a name and an ID of its own.
func FuzzChats(f *testing.F) {
	for _, s := range openaiStreams {
		f.Add([]byte(strings.Join(s.frames, "")))
	}
	for _, d := range []dialect{ollamaChatDialect, openaiChatDialect} {
		f.Add([]byte(strings.Join(d.frames("one", " 中"), "")))
		f.Add([]byte(d.text("one") + d.broken))
	}
	for _, name := range []string{"llama-server/chat-calls", "ollama/chat-calls", "ollama/chat-lost"} {
		for _, e := range loadTranscript(f, name).exchanges {
			f.Add(e.Response)
		}
	}
	req := after(ToolCall{ID: "call00001", Name: "search"})
	readers := map[string]func(io.Reader) iter.Seq2[heard, error]{
		"ollama": func(r io.Reader) iter.Seq2[heard, error] { return (&ollama{}).readChat(r, req) },
		"openai": func(r io.Reader) iter.Seq2[heard, error] {
			return newChatReader(&server{kind: "fuzz"}, req, 10).read(r)
		},
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, read := range readers {
			whole := spellChat(t, read(strings.NewReader(string(b))))
			cut := spellChat(t, read(iotest.OneByteReader(strings.NewReader(string(b)))))
			if whole != cut {
				t.Errorf("%s: read at once\n%s\nbyte by byte\n%s", name, whole, cut)
			}
		}
	})
}

// spellChat writes down a chat.
func spellChat(t *testing.T, chat iter.Seq2[heard, error]) string {
	var out strings.Builder
	over := false
	taken := map[string]bool{"call00001": true}
	for h, err := range chat {
		if over {
			t.Fatal("something follows the end")
		}
		over = err != nil || h.Final != nil
		if h.Final != nil && h.Final.Finish == "" {
			t.Fatal("an end without a reason")
		}
		for _, c := range h.Calls {
			if c.Name == "" || c.ID == "" || taken[c.ID] {
				t.Fatalf("a call with the name %q and the ID %q", c.Name, c.ID)
			}
			taken[c.ID] = true
		}
		fmt.Fprintf(&out, "%q %q %q %q %v\n", h.Text, h.Thinking, h.pieces, h.Calls, err)
	}
	return out.String()
}
