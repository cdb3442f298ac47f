package models

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// With -record the live tests write what the servers answer to testdata.
var record = flag.Bool("record", false, "write testdata from the live servers")

// A transcript is what a client and a server said to each other, in order.
type transcript struct {
	mu        sync.Mutex
	exchanges []exchange
}

type exchange struct {
	Method, Path string
	Request      []byte // JSON, empty for none
	Status       int
	Media        string
	Response     []byte
}

// keep makes a server that passes requests on to target and writes them down.
func (tr *transcript) keep(t *testing.T, target string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, target+r.URL.Path, bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		tr.mu.Lock()
		place := len(tr.exchanges)
		tr.exchanges = append(tr.exchanges, exchange{})
		tr.mu.Unlock()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		var answer bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := resp.Body.Read(buf)
			answer.Write(buf[:n])
			_, _ = w.Write(buf[:n]) // the client may be gone
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				break
			}
		}
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.exchanges[place] = exchange{
			Method: r.Method, Path: r.URL.Path, Request: body, Status: resp.StatusCode,
			Media: resp.Header.Get("Content-Type"), Response: answer.Bytes(),
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// play makes a server that answers as the transcript says, size bytes at a
// time (zero for whole), and insists on the same requests in the same order.
func (tr *transcript) play(t *testing.T, size int) *httptest.Server {
	next := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		tr.mu.Lock()
		if next >= len(tr.exchanges) {
			tr.mu.Unlock()
			t.Errorf("request %s %s is not in the transcript", r.Method, r.URL.Path)
			return
		}
		e := tr.exchanges[next]
		next++
		tr.mu.Unlock()
		if r.Method != e.Method || r.URL.Path != e.Path {
			t.Errorf("request %d is %s %s, recorded is %s %s", next, r.Method, r.URL.Path, e.Method, e.Path)
		}
		if !sameJSON(body, e.Request) {
			t.Errorf("request %d to %s is\n%s\nrecorded is\n%s", next, e.Path, body, e.Request)
		}
		w.Header().Set("Content-Type", e.Media)
		w.WriteHeader(e.Status)
		send(w, e.Response, size)
	}))
	t.Cleanup(s.Close)
	return s
}

// send writes b to the network in pieces of size bytes.
func send(w http.ResponseWriter, b []byte, size int) {
	for len(b) > 0 {
		n := len(b)
		if size > 0 {
			n = min(n, size)
		}
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		b = b[n:]
	}
}

func sameJSON(a, b []byte) bool {
	if len(bytes.TrimSpace(a)) == 0 || len(bytes.TrimSpace(b)) == 0 {
		return len(bytes.TrimSpace(a)) == len(bytes.TrimSpace(b))
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func transcriptFile(name string) string {
	return filepath.Join("testdata", filepath.FromSlash(name)+".txtar")
}

// save writes a transcript as testdata.
func (tr *transcript) save(t *testing.T, name, comment string) {
	t.Helper()
	a := &txtar.Archive{Comment: []byte(comment + "\n")}
	// Where the model lay on the machine that recorded is nobody's business.
	folder := regexp.MustCompile(regexp.QuoteMeta(os.TempDir()) + `/[^"\\ ]*/`)
	for i, e := range tr.exchanges {
		e.Response = folder.ReplaceAll(e.Response, []byte("/models/"))
		a.Files = append(a.Files,
			txtar.File{Name: fmt.Sprintf("%d %s %s", i+1, e.Method, e.Path), Data: e.Request},
			txtar.File{Name: fmt.Sprintf("%d %d %s", i+1, e.Status, e.Media), Data: e.Response})
	}
	path := transcriptFile(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// loadTranscript reads a transcript from testdata.
func loadTranscript(t testing.TB, name string) *transcript {
	t.Helper()
	b, err := os.ReadFile(transcriptFile(name))
	if err != nil {
		t.Fatal(err)
	}
	files := txtar.Parse(b).Files
	tr := &transcript{}
	for i := 0; i+1 < len(files); i += 2 {
		e := exchange{Request: files[i].Data, Response: files[i+1].Data}
		if _, err := fmt.Sscanf(files[i].Name, "%d %s %s", new(int), &e.Method, &e.Path); err != nil {
			t.Fatalf("%s: %q: %v", name, files[i].Name, err)
		}
		fields := strings.SplitN(files[i+1].Name, " ", 3)
		if _, err := fmt.Sscan(fields[1], &e.Status); err != nil {
			t.Fatalf("%s: %q: %v", name, files[i+1].Name, err)
		}
		if len(fields) == 3 {
			e.Media = fields[2]
		}
		tr.exchanges = append(tr.exchanges, e)
	}
	return tr
}
