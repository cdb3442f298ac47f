package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stopgap/runner"
)

// sample are a short run.
var sample = []runner.Event{
	runner.Started{Question: "Where?", Format: "qwen", Prompt: []runner.Segment{{Source: "user", Text: "Where?"}}},
	runner.Text{Turn: 1, Span: "text", Text: "<tool_call>\n\u2028\x1b"},
	runner.Called{Turn: 1, Name: "search", Arguments: []byte(`{"q":1}`)},
	runner.Returned{Turn: 1, Name: "search", Status: "ok", Content: "Here."},
	runner.Ended{Outcome: runner.Outcome{Termination: runner.TermAnswered, Answer: "Here."}},
}

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// unsynced is a file that leaves the disk to the system.
type unsynced struct{ *os.File }

func (unsynced) Sync() error { return nil }

// write appends a run to a file.
func write(t *testing.T, path string, events ...runner.Event) {
	t.Helper()
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w.file = unsynced{w.file.(*os.File)} // thousands of writes
	w.now = func() time.Time { return someTime }
	put(w, events...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// put writes a run.
func put(w *Writer, events ...runner.Event) {
	_ = w.begin(Header{ID: "x", Version: "1", Model: "script:a", Settings: map[string]string{"seed": "5"}}) // Close tells
	for _, ev := range events {
		_ = w.append(ev.Kind(), ev)
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
	path := filepath.Join(t.TempDir(), "runs.trace")
	write(t, path, sample...)
	write(t, path, sample[0])
	b, runs := read(t, path)
	if len(runs) != 2 || !runs[0].Ended() || runs[1].Ended() || runs[0].Torn || runs[1].Torn {
		t.Fatalf("%+v", runs)
	}
	if h := runs[0].Header; h.Version != "1" || h.Model != "script:a" || h.Settings["seed"] != "5" {
		t.Errorf("%+v", h)
	}
	for i, rec := range runs[0].Records {
		if rec.Seq != i+1 || rec.Kind != sample[i].Kind() || !rec.Time.Equal(someTime) {
			t.Errorf("%+v", rec)
		}
		if ev, err := rec.RunnerEvent(); err != nil || fmt.Sprintf("%+v", ev) != fmt.Sprintf("%+v", sample[i]) {
			t.Errorf("%+v\nwas %+v, %v", ev, sample[i], err)
		}
	}
	lines := strings.Split(string(b), "\n")
	if want := `0000005b c36e3ef8 {"seq":2,"time":"2026-01-02T03:04:05.000000006Z","event":"text","turn":1,"span":"text","text":"<tool_call>\n\u2028\u001b"}`; lines[2][frameHead:] != want[frameHead:] {
		t.Errorf("%s", lines[2])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
}

// The checksum is that of RFC 3720, B.4, and other programs can compute it.
func TestFrame(t *testing.T) {
	if got, want := string(appendFrame(nil, []byte("123456789"))), "00000009 e3069283 123456789\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTornAnywhere cuts a journal at every byte. What was written whole is
// read, the cut is seen, and the next run can be appended and read.
func TestTornAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	write(t, path, sample...)
	before, _ := read(t, path)
	write(t, path, sample...)
	all, _ := read(t, path)
	for cut := len(before) + 1; cut < len(all); cut++ {
		if err := os.WriteFile(path, all[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(all[len(before):cut], []byte("\n"))
		complete := all[cut-1] == '\n' || all[cut] == '\n' // only the newline itself is missing
		check := func(when string, runs []Run, later int) {
			t.Helper()
			if len(runs) != 2+later || !runs[0].Ended() || len(runs[0].Records) != len(sample) {
				t.Fatalf("%s at %d: %+v", when, cut, runs)
			}
			if n := len(runs[1].Records); runs[1].Torn == complete || n < lines-1 || n > lines {
				t.Fatalf("%s at %d: torn %v, %d records of %d lines", when, cut, runs[1].Torn, n, lines)
			}
		}
		_, runs := read(t, path)
		check("cut", runs, 0)
		write(t, path, sample...)
		_, runs = read(t, path)
		check("appended after a cut", runs, 1)
		if last := runs[2]; !last.Ended() || last.Torn || len(last.Records) != len(sample) {
			t.Fatalf("appended after a cut at %d: %+v", cut, last)
		}
	}
}

// TestFlippedAnywhere changes every byte of a journal, in each of its bits and
// to some other bytes. The damage is found, in its line, and what stands before
// it is read.
func TestFlippedAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	write(t, path, sample...)
	write(t, path, sample...)
	all, _ := read(t, path)
	for at, was := range all {
		for _, now := range append([]byte("\n\x00 f"), was^1, was^2, was^4, was^8, was^16, was^32, was^64, was^128) {
			if now == was {
				continue
			}
			b := slices.Clone(all)
			b[at] = now
			runs, err := Read(bytes.NewReader(b))
			var bad *FormatError
			if !errors.As(err, &bad) {
				t.Fatalf("byte %d, %q for %q: no error, %+v", at, now, was, runs)
			}
			// The newline that is gone, or one that is new, joins or parts lines.
			line := 1 + bytes.Count(all[:at], []byte("\n"))
			if bad.Line < line || bad.Line > line+1 || !bytes.Equal(b[:bad.Offset], all[:bad.Offset]) && bad.Line == line {
				t.Fatalf("byte %d of line %d, %q for %q: %v", at, line, now, was, bad)
			}
			n := 0
			for _, r := range runs {
				n += 1 + len(r.Records)
			}
			if n != line-1 {
				t.Fatalf("byte %d of line %d: %d records are read", at, line, n)
			}
		}
	}
}

// Zeros are what a file system may leave at the end when the machine goes down.
func TestZerosAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	write(t, path, sample...)
	all, _ := read(t, path)
	start := bytes.LastIndexByte(all[:len(all)-1], '\n') + 1 // of the last line
	for _, n := range []int{0, 1, 8, 9, 17, 18, 19, 60} {
		b := append(slices.Clone(all[:start+n]), make([]byte, 4096)...)
		if runs, err := Read(bytes.NewReader(b)); err != nil || len(runs) != 1 || !runs[0].Torn || len(runs[0].Records) != len(sample)-1 {
			t.Errorf("%d bytes and zeros: %+v, %v", n, runs, err)
		}
	}
}

// lines are a journal of these bodies.
func lines(bodies ...string) string {
	var b []byte
	for _, body := range bodies {
		b = appendFrame(b, []byte(body))
	}
	return string(b)
}

func TestReadRefuses(t *testing.T) {
	header := `{"seq":0,"time":"2026-01-02T03:04:05Z","event":"header","id":"a"}`
	text := `{"seq":1,"time":"2026-01-02T03:04:05Z","event":"text"}`
	for _, c := range []struct {
		name, in string
		line     int
	}{
		{"no header", lines(text), 1},
		{"another file", "# Lakes\n\nLake Bled\n", 1},
		{"one line of another file", "{}", 1},
		{"the beginning of a header", "000000", 1},
		{"a journal without frames", header + "\n" + text + "\n", 1},
		{"a record twice", lines(header, text, text), 3},
		{"a record left out", lines(header, `{"seq":2,"event":"text"}`), 2},
		{"no number", lines(header, `{"event":"text"}`), 2},
		{"no JSON", lines(header, "text"), 2},
		{"garbage in the middle", lines(header) + "garbage\n" + lines(text), 2},
		{"an empty line", lines(header) + "\n" + lines(text), 2},
		{"a line that is cut, in the middle", lines(header) + "00000020 \n" + lines(text), 2},
		{"a strange header", lines(`{"seq":0,"event":"header","version":1}`), 1},
		{"a header with a number", lines(`{"seq":1,"event":"header"}`), 1},
		{"the continuation of nothing", lines(header, `{"seq":1,"event":"revived","run":"b","from":0}`), 2},
		{"the continuation of more than there is", lines(header, `{"seq":2,"event":"revived","run":"a","from":1}`), 2},
		{"the continuation with another number", lines(header, `{"seq":2,"event":"revived","run":"a","from":0}`), 2},
		{"the continuation of what has ended", lines(header, `{"seq":1,"event":"ended"}`, `{"seq":1,"event":"revived","run":"a","from":0}`), 3},
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

// A run that was cut off goes on behind a later one, and loses what was under way.
func TestReadRevived(t *testing.T) {
	in := lines(`{"seq":0,"event":"header","id":"a"}`, `{"seq":1,"event":"started"}`, `{"seq":2,"event":"text"}`) +
		"000000ff 12345678 {\"seq\":3\n" + lines(`{"seq":0,"event":"header","id":"b"}`, `{"seq":1,"event":"started"}`,
		`{"seq":2,"event":"revived","run":"a","from":1}`, `{"seq":3,"event":"text"}`, `{"seq":4,"event":"ended"}`)
	runs, err := Read(strings.NewReader(in))
	if err != nil || len(runs) != 2 || runs[0].Torn || runs[0].Revived != 1 || !runs[0].Ended() || len(runs[1].Records) != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	var kinds []string
	for _, rec := range runs[0].Records {
		kinds = append(kinds, rec.Kind)
	}
	if want := []string{"started", "revived", "text", "ended"}; !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds)
	}
}

// A disk has so much room, and counts what reaches it.
type disk struct {
	bytes.Buffer
	room   int
	synced []int // lengths at which Sync was called
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), max(0, d.room-d.Len()))
	d.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left on device")
	}
	return n, nil
}
func (d *disk) Sync() error  { d.synced = append(d.synced, d.Len()); return nil }
func (d *disk) Close() error { return nil }

// A disk that is full at any byte: the error is told and stays, and what had
// room is a journal that a crash might have left.
func TestFullDisk(t *testing.T) {
	roomy := &disk{room: 1 << 20}
	w := &Writer{file: roomy, now: time.Now}
	put(w, sample...)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for room := range roomy.Len() - 20 {
		d := &disk{room: room}
		w := &Writer{file: d, now: time.Now}
		put(w, sample...)
		err := w.Err()
		d.room = 1 << 20 // there is room again
		if again := w.append("text", sample[1]); err == nil || again != err || w.Close() != err {
			t.Fatalf("room for %d bytes: %v, then %v", room, err, again)
		}
		runs, err := Read(&d.Buffer)
		if first := bytes.IndexByte(roomy.Bytes(), '\n'); room > first && (err != nil || len(runs) != 1 || runs[0].Ended()) {
			t.Fatalf("room for %d bytes: %+v, %v", room, runs, err)
		}
	}
}

// TestBatches: text waits for more of it, everything else is written at once.
func TestBatches(t *testing.T) {
	d := &disk{room: 1 << 20}
	now := someTime
	w := &Writer{file: d, now: func() time.Time { return now }}
	put(w)
	for range 3 {
		before := d.Len()
		if err := errors.Join(w.append("text", sample[1]), w.append("text", sample[1])); err != nil || d.Len() != before {
			t.Errorf("text is written at once: %v", err)
		}
		now = now.Add(pendingTime)
		if err := w.append("text", sample[1]); err != nil || bytes.Count(d.Bytes()[before:], []byte("\n")) != 3 {
			t.Errorf("text is not written: %v", err)
		}
		if err := errors.Join(w.append("text", sample[1]), w.append("called", sample[2])); err != nil || bytes.Count(d.Bytes()[before:], []byte("\n")) != 5 {
			t.Errorf("a call is not written: %v", err)
		}
	}
	if err := w.Close(); err != nil || len(d.synced) != 1 || d.synced[0] != d.Len() {
		t.Errorf("%v, %v", d.synced, err)
	}
}

func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.trace")
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrBusy) {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(lines(`{"seq":0,"event":"header"}`, `{"seq":1,"event":"text"}`)))
	f.Add([]byte("{"))
	f.Add([]byte("00000001"))
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, err := Read(bytes.NewReader(b))
		if err == nil && len(bytes.Trim(b, "\x00")) > 0 && len(runs) == 0 {
			t.Fatalf("%q: neither runs nor an error", b)
		}
		for i := range runs {
			if _, err := newTape(&runs[i]); err != nil && !errors.As(err, new(*RecordError)) {
				t.Fatal(err)
			}
		}
	})
}

var _ = json.Valid
