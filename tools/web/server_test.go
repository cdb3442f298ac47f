package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"stopgap/tools"
	"stopgap/tools/document"
	"stopgap/tools/fetch"
)

func TestMain(m *testing.M) {
	document.Child() // pages are parsed by this program, started again
	os.Exit(m.Run())
}

const key = "tvly-very-secret"

// An engineServer is a server that speaks like one of the engines, as their
// documentation has it, and keeps what it was asked.
type engineServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // method, path, query and body
	fail  []int    // statuses of the first answers
	// instead are the first answers, which are well.
	instead []string
}

func newEngine(t *testing.T, answer func(r *http.Request, body string) (int, string)) *engineServer {
	t.Helper()
	e := &engineServer{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := r.Body.Read(buf)
			body.Write(buf[:n])
			if err != nil {
				break
			}
		}
		e.mu.Lock()
		e.asked = append(e.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+body.String()))
		status, instead := 0, ""
		if len(e.fail) > 0 {
			status, e.fail = e.fail[0], e.fail[1:]
		}
		if len(e.instead) > 0 {
			instead, e.instead = e.instead[0], e.instead[1:]
		}
		e.mu.Unlock()
		if instead != "" {
			fmt.Fprint(w, instead)
			return
		}
		if status != 0 {
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "0")
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"detail":"no: %s"}`, r.Header.Get("Authorization"))
			return
		}
		status, text := answer(r, body.String())
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *engineServer) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.asked...)
}

// engineAnswers are what each engine answers a good request with; another one
// gets what its documentation says.
var engineAnswers = map[string]func(r *http.Request, body string) (int, string){
	Tavily: func(r *http.Request, body string) (int, string) {
		var in struct {
			Query string
			Max   int `json:"max_results"`
		}
		if r.Method != "POST" || r.URL.Path != "/search" || r.Header.Get("Content-Type") != "application/json" || json.Unmarshal([]byte(body), &in) != nil || in.Max != 10 {
			return 422, `{"detail":[{"type":"missing"}]}`
		}
		if r.Header.Get("Authorization") != "Bearer "+key {
			return 401, `{"detail":{"error":"Unauthorized: missing or invalid API key."}}`
		}
		if in.Query == "nothing" {
			return 200, `{"query":"nothing","results":[],"response_time":0.1}`
		}
		return 200, fmt.Sprintf(`{"query":%q,"follow_up_questions":null,"answer":null,"images":[],"results":[
			{"url":"https://a.example/1","title":"One","content":"About  one.\nMore.","score":0.99,"raw_content":null,"published_date":"2026-01-02"},
			{"url":"https://a.example/2","title":"Two","content":"About two.","score":0.5,"raw_content":null}],"response_time":1.2}`, in.Query)
	},
	Brave: func(r *http.Request, _ string) (int, string) {
		if r.Header.Get("X-Subscription-Token") != key {
			return 422, `{"type":"ErrorResponse","error":{"code":"SUBSCRIPTION_TOKEN_INVALID","status":422}}`
		}
		if r.URL.Path != "/res/v1/web/search" || r.URL.Query().Get("count") != "10" {
			return 404, ""
		}
		return 200, `{"type":"search","query":{"original":"q","more_results_available":true},"web":{"type":"search","results":[
			{"title":"One &amp; only","url":"https://a.example/1","is_source_local":false,"description":"About <strong>one</strong>. More.","page_age":"2026-01-02","language":"en"},
			{"title":"Two","url":"https://a.example/2","description":"About two."}]}}`
	},
	SearXNG: func(r *http.Request, _ string) (int, string) {
		if r.URL.Query().Get("format") != "json" || r.URL.Path != "/search" {
			return 403, "<!doctype html><title>403 Forbidden</title>"
		}
		var rest []string
		for i := 3; i <= 20; i++ { // it knows no limit
			rest = append(rest, fmt.Sprintf(`{"url":"https://a.example/%d","title":"More","content":"","engine":"brave","template":"default.html","parsed_url":["https","a.example","/","","",""],"engines":["brave"],"positions":[%d],"score":0.1,"category":"general"}`, i, i))
		}
		return 200, `{"query":"q","number_of_results":0,"results":[
			{"url":"https://a.example/1","title":"One","content":"About one. More.","publishedDate":"2026-01-02","engine":"bing","score":4.0},
			{"url":"javascript:alert(1)","title":"Bad","content":""},{"url":"","title":"Worse"},
			{"url":"https://a.example/2","title":"Two","content":"About two.","publishedDate":null,"engine":"bing"},` + strings.Join(rest, ",") + `],
			"answers":[],"corrections":[],"infoboxes":[],"suggestions":["q 2"],"unresponsive_engines":[["google","timeout"]]}`
	},
	Serper: func(r *http.Request, body string) (int, string) {
		if r.Header.Get("X-API-KEY") != key {
			return 403, `{"message":"Unauthorized.","statusCode":403}`
		}
		if r.Method != "POST" || !json.Valid([]byte(body)) {
			return 400, `{"message":"Missing query parameter","statusCode":400}`
		}
		if r.URL.Path == "/scholar" {
			return 200, `{"searchParameters":{"q":"q","type":"scholar"},"organic":[
				{"title":"Attention","link":"https://p.example/abs","publicationInfo":"A Vaswani - Advances, 2017","snippet":"We propose …","year":2017,"citedBy":100000,"pdfUrl":"https://p.example/a.pdf","id":"x"},
				{"title":"Another","link":"https://p.example/b","publicationInfo":"B","snippet":"","year":"2018"}],"credits":1}`
		}
		return 200, `{"searchParameters":{"q":"q","type":"search"},"organic":[
			{"title":"One","link":"https://a.example/1","snippet":"About one. More.","date":"2026-01-02","position":1},
			{"title":"Two","link":"https://a.example/2","snippet":"About two.","position":2}],"peopleAlsoAsk":[],"credits":1}`
	},
	OpenAlex: func(r *http.Request, _ string) (int, string) {
		if r.URL.Path != "/works" || r.URL.Query().Get("search") == "" {
			return 400, `{"error":"Invalid query parameters error."}`
		}
		return 200, `{"meta":{"count":2,"page":1,"per_page":10},"results":[
			{"id":"https://openalex.org/W1","doi":"https://doi.org/10.1/x","display_name":"Attention is all you need","publication_year":2017,"cited_by_count":6510,
			 "authorships":[{"author":{"display_name":"Ashish Vaswani"}},{"author":{"display_name":"Noam Shazeer"}},{"author":{"display_name":"C"}},{"author":{"display_name":"D"}},{"author":{"display_name":"E"}}],
			 "primary_location":{"landing_page_url":"https://pub.example/1","pdf_url":"https://pub.example/1.pdf","source":{"display_name":"NeurIPS"}},"open_access":{"is_oa":true,"oa_url":"https://oa.example/1.pdf"},
			 "abstract_inverted_index":{"models":[2],"The":[0],"dominant":[1],"are":[3]}},
			{"id":"https://openalex.org/W2","doi":null,"display_name":"Closed","publication_year":2020,"cited_by_count":0,"authorships":[],"primary_location":null,"open_access":{"oa_url":null},"abstract_inverted_index":null}]}`
	},
	ArXiv: func(r *http.Request, _ string) (int, string) {
		if r.URL.Path != "/api/query" || !strings.HasPrefix(r.URL.Query().Get("search_query"), "all:") {
			return 400, "bad"
		}
		return 200, `<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>ArXiv Query</title>
			<opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">2</opensearch:totalResults>
			<entry><id>http://arxiv.org/abs/1706.03762v7</id><published>2017-06-12T17:57:34Z</published><title>Attention Is All
 You Need</title><summary>The same paper.</summary><author><name>Ashish Vaswani</name></author><link href="http://arxiv.org/pdf/1706.03762v7" rel="related" type="application/pdf" title="pdf"/></entry>
			<entry><id>http://arxiv.org/abs/2001.00001v1</id><published>2020-01-01T00:00:00Z</published><title>Preprint</title><summary> A
 preprint. </summary><author><name>X Y</name></author><link href="http://arxiv.org/abs/2001.00001v1" rel="alternate"/><link title="pdf" href="http://arxiv.org/pdf/2001.00001v1"/></entry></feed>`
	},
}

// set makes the tools on servers of the test.
func set(t *testing.T, o Options, servers map[string]*engineServer) map[string]tools.Tool {
	t.Helper()
	if o.Keys == nil {
		o.Keys = map[string]string{}
	}
	o.Addresses = map[string]string{}
	for name, s := range servers {
		o.Addresses[name] = s.URL
		if name != SearXNG && name != Bing && name != OpenAlex && name != ArXiv {
			o.Keys[name] = key
		}
	}
	o.Pace, o.Patience, o.Fetch.Pace = -1, time.Millisecond, -1
	made, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tools.Tool{}
	for _, tool := range made.List() {
		out[tool.Spec().Name] = tool
	}
	return out
}

func run(t *testing.T, tool tools.Tool, args string) (string, error) {
	t.Helper()
	return tool.Run(t.Context(), json.RawMessage(args))
}

// onDisk is a cache of the test.
func onDisk(t *testing.T) fetch.Options { return fetch.Options{Cache: &fetch.Cache{Dir: t.TempDir()}} }
