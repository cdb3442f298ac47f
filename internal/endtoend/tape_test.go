package endtoend

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"stopgap/template"
	"stopgap/tools"
)

var record = flag.Bool("record", false, "write testdata from the live llama-server")

var tapeFile = filepath.Join("testdata", "llama-server-prefix.json.gz")

// A tape is conversations with a server: what it answered, and all that its
// prompts were made of.
type tape struct {
	mu            sync.Mutex
	Conversations int
	Formats       []tapedFormat
	Questions     []string
	Tools         []tapedTool
	Exchanges     []taped
}

type tapedFormat struct{ Name, Text string }

// A tapedTool has its results by their arguments.
type tapedTool struct {
	About   tools.Spec
	Results map[string]string
}

// A taped is one exchange. Of a request only what the answer depends on is
// kept: the prompt, or the text to tokenize.
type taped struct {
	Path, Key string
	Status    int
	Media     string
	Answer    string
}

// key gives what the answer to a request depends on.
func key(body []byte) string {
	var r struct {
		Prompt  json.RawMessage `json:"prompt"`
		Content json.RawMessage `json:"content"`
		Special bool            `json:"parse_special"`
	}
	if json.Unmarshal(body, &r) != nil || r.Prompt == nil && r.Content == nil {
		return ""
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // it was just read
	}
	return string(b)
}

// keep makes a server that passes requests on to target and writes them down.
func (tp *tape) keep(t *testing.T, target string) string {
	return tp.serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
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
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		var answer bytes.Buffer
		for buf := make([]byte, 4096); err == nil; {
			var n int
			n, err = resp.Body.Read(buf)
			answer.Write(buf[:n])
			_, _ = w.Write(buf[:n]) // the client may be gone
			_ = http.NewResponseController(w).Flush()
		}
		tp.mu.Lock()
		defer tp.mu.Unlock()
		tp.Exchanges = append(tp.Exchanges, taped{r.URL.Path, key(body), resp.StatusCode, resp.Header.Get("Content-Type"), answer.String()})
	})
}

// serve runs a server until the test ends and gives its URL.
func (tp *tape) serve(t *testing.T, answer func(http.ResponseWriter, *http.Request, []byte)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		answer(w, r, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// listen writes down what a talk is made of, and gives one whose tools do.
func (tp *tape) listen(t *testing.T, k talk) talk {
	t.Helper()
	tp.Conversations, tp.Questions = runs(), k.questions
	for _, f := range k.formats {
		text, err := template.Shipped(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		tp.Formats = append(tp.Formats, tapedFormat{f.Name, string(text)})
	}
	results := map[string]map[string]string{}
	for _, s := range k.tools.Specs() {
		results[s.Name] = map[string]string{}
		tp.Tools = append(tp.Tools, tapedTool{s, results[s.Name]})
	}
	k.tools = k.tools.With(func(_ context.Context, _ int, call tools.Call, run func() tools.Result) tools.Result {
		r := run()
		tp.mu.Lock()
		defer tp.mu.Unlock()
		results[call.Name][string(call.Arguments)] = r.Content
		return r
	})
	return k
}

// play gives the URL of a server that answers as the tape says, each exchange
// once, the talk that goes with it, and the number of its conversations. A
// stream that ends in its middle was halted there: it stays open until the
// client leaves.
func (tp *tape) play(t *testing.T) (url string, k talk, n int) {
	url = tp.serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		e, ok := tp.take(r.URL.Path, key(body))
		if !ok {
			t.Errorf("a request to %s was never recorded: %s", r.URL.Path, body)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", e.Media)
		w.WriteHeader(e.Status)
		_, _ = io.WriteString(w, e.Answer) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		if e.Media == "text/event-stream" && !bytes.Contains([]byte(e.Answer), []byte(`"stop":true`)) {
			<-r.Context().Done()
		}
	})
	for _, f := range tp.Formats {
		format, err := template.Compile(f.Name, []byte(f.Text))
		if err != nil {
			t.Fatal(err)
		}
		k.formats = append(k.formats, format)
	}
	var list []tools.Tool
	for _, tool := range tp.Tools {
		list = append(list, tool)
	}
	set, err := tools.NewSet(list, tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k.tools, k.questions = set, tp.Questions
	return url, k, tp.Conversations
}

// take finds an exchange and takes it from the tape; one without a key, which
// asks for what never changes, stays.
func (tp *tape) take(path, key string) (taped, bool) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for i, e := range tp.Exchanges {
		if e.Path == path && e.Key == key {
			if key != "" {
				tp.Exchanges = append(tp.Exchanges[:i:i], tp.Exchanges[i+1:]...)
			}
			return e, true
		}
	}
	return taped{}, false
}

func (tool tapedTool) Spec() tools.Spec { return tool.About }

func (tool tapedTool) Run(_ context.Context, args json.RawMessage) (string, error) {
	result, ok := tool.Results[string(args)]
	if !ok {
		return "", os.ErrNotExist
	}
	return result, nil
}

// save writes the tape as testdata.
func (tp *tape) save(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(z).Encode(tp)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(tapeFile), 0o755)
	}
	if err == nil {
		err = os.WriteFile(tapeFile, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func loadTape(t *testing.T) *tape {
	t.Helper()
	f, err := os.Open(tapeFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tp := &tape{}
	if err := json.NewDecoder(z).Decode(tp); err != nil {
		t.Fatal(err)
	}
	return tp
}
