package corpus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// send posts JSON and gives the status and the answer.
func send(t *testing.T, url, host, kind, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(answer))
}

var served = files{
	"moon.md": "# The \"Moon\"\n\nIt goes round the Earth & <shines>.",
	"zh.md":   "# 天文台\n\n天文台在山上。",
	"wiki.jsonl": `{"id":"7","contents":"\"Tides\"\nThe moon makes the tides."}` + "\n" +
		`{"id":"8","title":"Long","text":"` + strings.Repeat("A whale of a tale. ", 200) + `"}`,
}

// TestServer: the routes as Search-R1 and ASearcher know them.
func TestServer(t *testing.T) {
	x := mustOpen(t, newCorpus(t, served))
	s := httptest.NewServer(x.Handler(ServeOptions{MaxBody: 2000, MaxQueries: 3, MaxTopK: 5, Hosts: []string{"localhost"}}))
	defer s.Close()
	const tides = `{"id":"7","contents":"\"Tides\"\nThe moon makes the tides.","title":"Tides","url":"7"}`
	const moon = `{"id":"moon.md","contents":"\"The \"Moon\"\"\nIt goes round the Earth & <shines>.","title":"The \"Moon\"","url":"moon.md"}`
	for _, c := range []struct {
		route, body string
		status      int
		want        string // "…" stands for anything
	}{
		{"/retrieve", `{"queries":["tides"],"topk":1}`, 200, `{"result":[[` + tides + `]]}`},
		{"/retrieve", `{"queries":["tides","nothing-such"],"topk":3,"return_scores":true}`, 200, `{"result":[[{"document":` + tides + `,"score":…}],[]]}`},
		{"/retrieve", `{"queries":["earth"],"topk":null,"more":1}`, 200, `{"result":[[` + moon + `]]}`},
		{"/retrieve", `{"queries":["天文"]}`, 200, `{"result":[[{"id":"zh.md",…}]]}`},
		{"/access", `{"urls":["7","nowhere","moon.md"]}`, 200, `{"result":[` + tides + `,null,` + moon + `]}`},
		{"/retrieve", `{"queries":[]}`, 422, `{"error":"\"queries\" is empty: it is a list of strings"}`},
		{"/retrieve", `{"queries":["a","b","c","d"]}`, 422, `{"error":"4 queries are more than 3"}`},
		{"/retrieve", `{"queries":["a"],"topk":6}`, 422, `{"error":"\"topk\" is from 1 to 5, not 6"}`},
		{"/retrieve", `{"queries":["a"],"topk":-1}`, 422, `{"error":"\"topk\" is from 1 to 5, not -1"}`},
		{"/access", `{"urls":[]}`, 422, `{"error":"\"urls\" is a list of 1 to 5 ids or addresses, not of 0"}`},
		{"/retrieve", `{"queries":"tides"}`, 400, `{"error":"the body is not the JSON that is wanted: …"}`},
		{"/retrieve", `{"queries":[`, 400, `{"error":"the body is not the JSON that is wanted: …"}`},
		{"/retrieve", `{"queries":["` + strings.Repeat("x", 2000) + `"]}`, 413, `{"error":"the request is longer than 2000 bytes"}`},
		{"/nothing", `{}`, 404, "404 page not found"},
	} {
		status, answer := send(t, s.URL+c.route, "", "application/json", c.body)
		before, after, _ := strings.Cut(c.want, "…")
		if status != c.status || !strings.HasPrefix(answer, before) || !strings.HasSuffix(answer, after) {
			t.Errorf("%s %.60s: %d\n%s\nwant %d\n%s", c.route, c.body, status, answer, c.status, c.want)
		}
	}
	for kind, status := range map[string]int{"text/plain": 415, "": 415, "application/json; charset=utf-8": 200} {
		if got, answer := send(t, s.URL+"/retrieve", "", kind, `{"queries":["moon"]}`); got != status {
			t.Errorf("%q: %d %s", kind, got, answer)
		}
	}
	for host, status := range map[string]int{
		"127.0.0.1:80": 200, "[::1]": 200, "LOCALHOST:9": 200, "evil.example": 403, "127.0.0.1.evil.example:80": 403, "10.0.0.1": 403,
	} {
		if got, answer := send(t, s.URL+"/retrieve", host, "application/json", `{"queries":["moon"]}`); got != status {
			t.Errorf("host %q: %d %s", host, got, answer)
		}
	}
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var told struct{ Documents int }
	if err := json.NewDecoder(resp.Body).Decode(&told); err != nil || told.Documents != 4 {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestRemote: a corpus behind a server is the same to a model as the one itself.
func TestRemote(t *testing.T) {
	x := mustOpen(t, newCorpus(t, served))
	s := httptest.NewServer(x.Handler(ServeOptions{}))
	defer s.Close()
	r, err := OpenRemote(t.Context(), s.URL+"/retrieve", RemoteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	here, there := x.Tools(), r.Tools()
	for _, call := range []struct {
		tool int
		args string
	}{
		{0, `{"query":["moon","天文","whale","nothing-such","??"]}`}, {0, `{"query":"earth"}`},
		{1, `{"id":"7"}`}, {1, `{"id":"[moon.md]"}`}, {1, `{"id":"8#2"}`}, {1, `{"id":"8"}`},
	} {
		want, err := here[call.tool].Run(t.Context(), json.RawMessage(call.args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := there[call.tool].Run(t.Context(), json.RawMessage(call.args))
		if err != nil || got != want {
			t.Errorf("%s:\n%s\n%v\nwant\n%s", call.args, got, err, want)
		}
	}
	var none *NotFoundError
	for _, id := range []string{"nowhere", "", " [] "} {
		if _, err := r.Read(t.Context(), id); !errors.As(err, &none) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestForeignServers: Search-R1's own server has no /access and no titles,
// ASearcher's has addresses; others answer nonsense.
func TestForeignServers(t *testing.T) {
	retrieved, accessed := "", ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{"/retrieve": retrieved, "/access": accessed}[r.URL.Path]
		if answer == "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	open := func() (*Remote, error) { return OpenRemote(t.Context(), s.URL, RemoteOptions{}) }
	retrieved = `{"result":[[{"document":{"id":"11","contents":"\"Evan Morris\"\nEvan Morris was a lobbyist."},"score":12.5},{"document":{"id":12,"contents":"no title"},"score":1}]]}`
	r, err := open()
	if err != nil {
		t.Fatal(err)
	}
	found, err := r.Search(t.Context(), []string{"lobbyist"}, 5)
	if err != nil || Render(found) != "Evan Morris. Evan Morris was a lobbyist. [11] (score 12.50)\n12. no title [12] (score 1.00)" {
		t.Errorf("%s, %v", Render(found), err)
	}
	if d, err := r.Read(t.Context(), "11"); err != nil || d.Text != "Evan Morris was a lobbyist." {
		t.Errorf("what was seen: %+v, %v", d, err)
	}
	retrieved = `{"result":[[{"contents":"\"Page\"\nA part.","url":"https://w/Page"}]]}`
	accessed = `{"result":[{"url":"https://w/Page","title":"Page","contents":"A part.\nAnd more."}]}`
	found, err = r.Search(t.Context(), []string{"part"}, 5)
	if err != nil || Render(found) != "Page. A part. [https://w/Page] (score 0.00)" {
		t.Errorf("%s, %v", Render(found), err)
	}
	if d, err := r.Read(t.Context(), "https://w/Page"); err != nil || d.Text != "A part.\nAnd more." || d.Title != "Page" {
		t.Errorf("%+v, %v", d, err)
	}
	for answer, want := range map[string]string{
		"":                       "it has no /retrieve",
		"<html>":                 "its answer to /retrieve is not what it should be",
		`{"result":[]}`:          "1 queries got 0 results",
		`{"result":[[1]]}`:       "a document of its answer is none",
		`{"result":[["words"]]}`: "a document of its answer is none",
	} {
		retrieved = answer
		var bad *RemoteError
		if _, err := open(); !errors.As(err, &bad) || bad.Err.Error() != want {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
	s.Close()
	var bad *RemoteError
	if _, err := open(); !errors.As(err, &bad) {
		t.Errorf("nobody there: %v", err)
	}
}

// TestSeenIsBounded: what a server sent is kept up to a number and a size, the
// latest first.
func TestSeenIsBounded(t *testing.T) {
	r := &Remote{seen: make(map[string]Document)}
	long := strings.Repeat("x", 1<<20)
	for i := range 200 {
		r.keep(Document{ID: fmt.Sprint(i), Text: long})
		r.keep(Document{ID: fmt.Sprint(i), Text: long}) // again
	}
	if len(r.seen) != 64 || len(r.order) != 64 || r.bytes != 64<<20 {
		t.Errorf("%d documents, %d in order, %d bytes", len(r.seen), len(r.order), r.bytes)
	}
	if _, ok := r.recall("199"); !ok {
		t.Error("the last one is gone")
	}
	for i := range 2000 {
		r.keep(Document{ID: fmt.Sprint("short ", i), Text: "x"})
	}
	if len(r.seen) != maxSeen || r.bytes != maxSeen {
		t.Errorf("%d documents, %d bytes", len(r.seen), r.bytes)
	}
	r.keep(Document{ID: "huge", Text: strings.Repeat("x", maxSeenBytes+1)})
	if len(r.seen) != 0 || r.bytes != 0 {
		t.Errorf("with one that is too long %d documents, %d bytes", len(r.seen), r.bytes)
	}
}

// TestServerIsBusy: who waits too long for a turn is told.
func TestServerIsBusy(t *testing.T) {
	cfg := newCorpus(t, served)
	cfg.Embedder = newMeaning()
	x := mustOpen(t, cfg)
	begun, release := make(chan struct{}), make(chan struct{})
	x.embedder = slow{begun, release}
	s := httptest.NewServer(x.Handler(ServeOptions{Parallel: 1, Timeout: 300 * time.Millisecond}))
	defer s.Close()
	done := make(chan int)
	ask := func() {
		status, _ := send(t, s.URL+"/retrieve", "", "application/json", `{"queries":["moon"]}`)
		done <- status
	}
	go ask()
	for waiting := true; waiting; {
		select {
		case <-begun:
			waiting = false
		case <-done: // its time was over before
			go ask()
		}
	}
	if status, answer := send(t, s.URL+"/retrieve", "", "application/json", `{"queries":["moon"]}`); status != 503 {
		t.Errorf("%d %s", status, answer)
	}
	close(release)
	if status := <-done; status != 503 && status != 200 {
		t.Errorf("the first one got %d", status)
	}
}

// TestSlowReader: who does not read its answer holds up nobody.
func TestSlowReader(t *testing.T) {
	s := serveIndex(t, longIndex(t), ServeOptions{Parallel: 1})
	defer askAndWait(t, s).Close()
	if status, answer := send(t, s.URL+"/retrieve", "", "application/json", `{"queries":["whale"]}`); status != 200 {
		t.Errorf("beside a slow reader: %d %s", status, answer)
	}
}

// TestSleepingReader: who goes to sleep over its answer is cut off.
func TestSleepingReader(t *testing.T) {
	limit := time.Second
	x := longIndex(t)
	conn, err := askLong(t, serveIndex(t, x, ServeOptions{Timeout: limit}))
	for err != nil && limit < time.Minute {
		limit *= 2 // the answer was not ready in time
		conn, err = askLong(t, serveIndex(t, x, ServeOptions{Timeout: limit}))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.Sleep(2 * limit)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := io.Copy(io.Discard, conn); n >= longTimes*longBytes || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a reader that had gone to sleep got %d bytes, %v", n, err)
	}
}

// A long answer has a long document so many times: more than the kernel takes.
const longBytes, longTimes = 14 * 30_000, 40

func longIndex(t *testing.T) *Index {
	t.Helper()
	return mustOpen(t, newCorpus(t, files{"big.txt": strings.Repeat("Many a whale. ", longBytes/14)}))
}

func serveIndex(t *testing.T, x *Index, opts ServeOptions) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(x.Handler(opts))
	t.Cleanup(s.Close)
	return s
}

// askAndWait asks for a long answer and reads its first byte.
func askAndWait(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	conn, err := askLong(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// askLong is askAndWait for a server that may take too long for its answer.
func askLong(t *testing.T, s *httptest.Server) (net.Conn, error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	body := `{"urls":["big.txt"` + strings.Repeat(`,"big.txt"`, longTimes-1) + `]}`
	fmt.Fprintf(conn, "POST /access HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil || !strings.HasSuffix(string(status), "200") {
		conn.Close()
		return nil, fmt.Errorf("%q, %w", status, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return conn, nil
}

// TestAnswerIsBounded: a request gets so many documents and no more.
func TestAnswerIsBounded(t *testing.T) {
	x := mustOpen(t, newCorpus(t, served))
	s := httptest.NewServer(x.Handler(ServeOptions{}))
	defer s.Close()
	ask := func(queries, k int) (int, string) {
		return send(t, s.URL+"/retrieve", "", "application/json", fmt.Sprintf(`{"queries":["-"%s],"topk":%d}`, strings.Repeat(`,"-"`, queries-1), k))
	}
	if status, answer := ask(4096, 8); status != 200 {
		t.Errorf("%d %.100s", status, answer)
	}
	if status, answer := ask(4096, 9); status != 422 || !strings.Contains(answer, "more than 32768 documents; ask in parts") {
		t.Errorf("%d %.100s", status, answer)
	}
}

// A slow model answers when it is let.
type slow struct{ begun, release chan struct{} }

func (s slow) Name() string { return "slow" }

func (s slow) Embed(ctx context.Context, texts []string, _ bool) ([][]float32, error) {
	select {
	case s.begun <- struct{}{}:
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.release:
		return nil, errors.New("no vectors")
	}
}
