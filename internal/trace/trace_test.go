package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stopgap/runner"
)

// events are a short run.
var events = []runner.Event{
	runner.Started{Question: "Where?", Format: "qwen", Prompt: []runner.Segment{{Source: "user", Text: "Where?"}}},
	runner.Text{Turn: 1, Span: "text", Text: "<tool_call>\n\u2028\x1b"},
	runner.Called{Turn: 1, Name: "search", Arguments: []byte(`{"q":1}`)},
	runner.Returned{Turn: 1, Name: "search", Status: "ok", Content: "Here."},
	runner.Ended{Outcome: runner.Outcome{Termination: runner.TermAnswered, Answer: "Here."}},
}

// unsynced is a file that leaves the disk to the system.
type unsynced struct{ *os.File }

func (unsynced) Sync() error { return nil }

func write(t *testing.T, path string, events ...runner.Event) {
	t.Helper()
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w.file = unsynced{w.file.(*os.File)} // thousands of writes
	w.now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }
	if err := w.Begin(Header{Version: "1", Model: "script:a", Format: "qwen", Settings: map[string]string{"seed": "5"}}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if err := w.Write(ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) ([]byte, []Run) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return b, runs
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	write(t, path, events...)
	write(t, path, events[0])
	b, runs := read(t, path)
	if len(runs) != 2 || !runs[0].Ended() || runs[1].Ended() || runs[0].Torn || runs[1].Torn {
		t.Fatalf("%+v", runs)
	}
	if h := runs[0].Header; h.Version != "1" || h.Model != "script:a" || h.Settings["seed"] != "5" {
		t.Errorf("%+v", h)
	}
	for i, rec := range runs[0].Records {
		if rec.Seq != i+1 || rec.Kind != events[i].Kind() || !rec.Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)) {
			t.Errorf("%+v", rec)
		}
		if i == 1 && !strings.Contains(string(rec.Event), `"text":"<tool_call>\n`) {
			t.Errorf("tags cannot be read: %s", rec.Event)
		}
		if i == 2 && !strings.Contains(string(rec.Event), `"arguments":{"q":1}`) {
			t.Errorf("%s", rec.Event)
		}
	}
	first, _, _ := strings.Cut(string(b), "\n")
	if want := `{"seq":0,"time":"2026-01-02T03:04:05.000000006Z","event":"header","version":"1","model":"script:a","format":"qwen","settings":{"seed":"5"}}`; first != want {
		t.Errorf("%s", first)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// TestTornAnywhere cuts a journal at every byte. What was written whole is
// read, the cut is seen, and the next run can be appended and read.
func TestTornAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	write(t, path, events...)
	whole, _ := read(t, path)
	headerEnd := bytes.IndexByte(whole, '\n')
	for cut := 1; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := Read(bytes.NewReader(whole[:cut]))
		lines := bytes.Count(whole[:cut], []byte("\n"))
		complete := whole[cut-1] == '\n' || whole[cut] == '\n' // only the newline itself is missing
		switch {
		case cut < headerEnd:
			var bad *FormatError
			if !errors.As(err, &bad) {
				t.Fatalf("cut at %d: %+v, %v", cut, runs, err)
			}
		case err != nil || len(runs) != 1 || runs[0].Torn == complete:
			t.Fatalf("cut at %d: %+v, %v", cut, runs, err)
		case len(runs[0].Records) < lines-1:
			t.Fatalf("cut at %d: %d records of %d lines", cut, len(runs[0].Records), lines)
		}
		write(t, path, events...)
		_, runs = read(t, path)
		if last := runs[len(runs)-1]; !last.Ended() || last.Torn || len(last.Records) != len(events) {
			t.Fatalf("appended after a cut at %d: %+v", cut, last)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	header := `{"seq":0,"time":"2026-01-02T03:04:05Z","event":"header"}` + "\n"
	text := `{"seq":1,"time":"2026-01-02T03:04:05Z","event":"text"}` + "\n"
	for _, c := range []struct {
		name, in string
		line     int
	}{
		{"no header", text, 1},
		{"another file", "# Lakes\n\nLake Bled\n", 1},
		{"one line of another file", "{}", 1},
		{"a record twice", header + text + text, 3},
		{"garbage in the middle", header + "garbage\n" + text, 2},
		{"an empty line", header + "\n" + text, 2},
		{"a strange header", `{"seq":0,"event":"header","version":1}`, 1},
	} {
		runs, err := Read(strings.NewReader(c.in))
		var bad *FormatError
		if !errors.As(err, &bad) || bad.Line != c.line {
			t.Errorf("%s: %+v, %v", c.name, runs, err)
		}
	}
	if runs, err := Read(strings.NewReader("")); err != nil || len(runs) != 0 {
		t.Errorf("an empty file: %+v, %v", runs, err)
	}
}

// A disk counts what reaches it.
type disk struct {
	bytes.Buffer
	synced []int // lengths at which Sync was called
	full   bool
}

func (d *disk) Write(p []byte) (int, error) {
	if d.full {
		return 0, errors.New("no space")
	}
	return d.Buffer.Write(p)
}
func (d *disk) Sync() error  { d.synced = append(d.synced, d.Len()); return nil }
func (d *disk) Close() error { return nil }

// TestSync: a call is on the disk before its tool runs, a response before it
// is used, and the end at once.
func TestSync(t *testing.T) {
	d := &disk{}
	w := &Writer{file: d, now: time.Now}
	if err := w.Begin(Header{}); err != nil {
		t.Fatal(err)
	}
	for _, ev := range events {
		if err := w.Write(ev); err != nil {
			t.Fatal(err)
		}
		synced := len(d.synced) > 0 && d.synced[len(d.synced)-1] == d.Len()
		want := ev.Kind() == "called" || ev.Kind() == "returned" || ev.Kind() == "ended"
		if synced != want {
			t.Errorf("after %s: synced %v", ev.Kind(), synced)
		}
	}
	d.full = true
	if err := w.Write(events[0]); err == nil {
		t.Error("a full disk is no error")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"seq":0,"event":"header"}` + "\n" + `{"seq":1,"event":"text"}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, err := Read(bytes.NewReader(b))
		if err == nil && len(bytes.TrimSpace(b)) > 0 && len(runs) == 0 {
			t.Fatalf("%q: neither runs nor an error", b)
		}
	})
}
