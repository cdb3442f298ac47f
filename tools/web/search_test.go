package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/tools"
)

// Every engine gives the same answer in the same shape.
func TestWebSearch(t *testing.T) {
	stamp := regexp.MustCompile(`"timestamp":\d{10}`)
	for _, name := range []string{Tavily, Brave, SearXNG, Serper} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engineAnswers[name])
			tool := set(t, Options{Engine: name, Fetch: onDisk(t)}, map[string]*engineServer{name: e})["web_search"]
			got, err := run(t, tool, `{"query":"the \"question\" & more"}`)
			if err != nil {
				t.Fatal(err)
			}
			var a webAnswer
			if err := json.Unmarshal([]byte(got), &a); err != nil || !stamp.MatchString(got) {
				t.Fatalf("%s: %v", got, err)
			}
			m := a.Metadata
			if a.Status != "success" || m.Engine != name || m.Query != `the "question" & more` || m.Total != len(a.Results) || len(a.Results) < 2 || len(a.Results) > MaxResults {
				t.Errorf("%s", got)
			}
			title := "One"
			if name == Brave {
				title = "One & only"
			}
			if want := (webResult{title, "https://a.example/1", "About one. More.", "2026-01-02"}); a.Results[0] != want {
				t.Errorf("%+v, want %+v", a.Results[0], want)
			}
			if want := (webResult{"Two", "https://a.example/2", "About two.", ""}); a.Results[1] != want {
				t.Errorf("%+v, want %+v", a.Results[1], want)
			}
			if strings.Contains(strings.Join(e.requests(), ""), key) {
				t.Error("the key stands in an address or a body")
			}
			// The same again comes from the cache.
			if again, err := run(t, tool, `{"query":["the \"question\" & more"]}`); err != nil || stamp.ReplaceAllString(again, "") != stamp.ReplaceAllString(got, "") || len(e.requests()) != 1 {
				t.Errorf("again: %s, %v, %d requests", again, err, len(e.requests()))
			}
		})
	}
}

func TestSearchIsText(t *testing.T) {
	e := newEngine(t, engineAnswers[Tavily])
	tool := set(t, Options{Engine: Tavily}, map[string]*engineServer{Tavily: e})["search"]
	got, err := run(t, tool, `{"query":["one","nothing"]}`)
	const want = "A web search for 'one' found 2 results:\n\n## Web Results\n" +
		"1. [One](https://a.example/1)\nDate published: 2026-01-02\n\nAbout one. More.\n\n2. [Two](https://a.example/2)\n\nAbout two.\n=======\n" +
		"No results found for 'nothing'. Try with a more general query."
	if err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// What passes is tried again; what does not is told at once, without the key.
func TestSearchErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		engine string
		fail   []int
		asked  int
		err    string // empty where it goes well in the end
	}{
		"too many, then well": {Tavily, []int{429, 503, 500}, 4, ""},
		"too many":            {Tavily, []int{429, 429, 429, 429, 429}, 4, "tavily has had too many requests"},
		"down":                {Serper, []int{502, 502, 502, 502, 502}, 4, "serper answered 502 Bad Gateway"},
		"bad key":             {Tavily, []int{401, 401}, 1, "tavily refused the key"},
		"bad key of Serper":   {Serper, []int{403}, 1, "serper refused the key"},
		"no JSON":             {SearXNG, []int{403}, 1, "json under search.formats"},
		"used up":             {Tavily, []int{432}, 1, "tavily answered 432"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, engineAnswers[tt.engine])
			e.fail = tt.fail
			all := set(t, Options{Engine: tt.engine}, map[string]*engineServer{tt.engine: e})
			got, err := run(t, all["search"], `{"query":"q"}`)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || len(e.requests()) != tt.asked {
				t.Errorf("%s, %v after %d requests", got, err, len(e.requests()))
			}
			e.fail = tt.fail
			json, err := run(t, all["web_search"], `{"query":"q"}`)
			if err != nil || tt.err != "" && (!strings.HasPrefix(json, `{"tool_call_status":"error","error_message":"`) || !strings.Contains(json, tt.err)) {
				t.Errorf("%s, %v", json, err)
			}
			if strings.Contains(json+got, key) {
				t.Error("the error tells the key")
			}
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		e := newEngine(t, engineAnswers[Tavily])
		e.Close()
		_, err := run(t, set(t, Options{}, map[string]*engineServer{Tavily: e})["search"], `{"query":"q"}`)
		var failed *EngineError
		if !errors.As(err, &failed) || strings.Contains(err.Error(), "/search") {
			t.Errorf("%v", err)
		}
	})
	t.Run("another page", func(t *testing.T) { // as of a network that wants a password first
		for engine, bad := range map[string]string{Tavily: "<html>Log in!</html>", SearXNG: "<html>Log in!</html>", ArXiv: `{"not": "a feed"}`} {
			e := newEngine(t, engineAnswers[engine])
			e.instead = []string{bad}
			name := "search"
			servers := map[string]*engineServer{engine: e}
			if engine == ArXiv {
				name, servers[OpenAlex] = "google_scholar", newEngine(t, func(*http.Request, string) (int, string) { return 200, `{"results": [` })
			}
			tool := set(t, Options{Fetch: onDisk(t)}, servers)[name]
			if got, err := run(t, tool, `{"query":"q"}`); err == nil {
				t.Errorf("%s: no error, %q", engine, got)
			}
			if got, err := run(t, tool, `{"query":"q"}`); err != nil || !strings.Contains(got, "' found ") {
				t.Errorf("%s, asked again: %q, %v", engine, got, err)
			}
		}
	})
	t.Run("half of the queries", func(t *testing.T) {
		e := newEngine(t, engineAnswers[Tavily])
		e.fail = []int{401}
		got, err := run(t, set(t, Options{}, map[string]*engineServer{Tavily: e})["search"], `{"query":["a","b"]}`)
		if err != nil || !strings.Contains(got, "failed: tavily refused the key.") || !strings.Contains(got, "found 2 results") {
			t.Errorf("%s, %v", got, err)
		}
	})
	t.Run("no engine", func(t *testing.T) {
		made := &Tools{}
		if _, err := run(t, search{made}, `{"query":"q"}`); !errors.Is(err, ErrNoEngine) {
			t.Errorf("%v", err)
		}
	})
}

// Queries tell their language by their script, each engine in its own words.
func TestLanguage(t *testing.T) {
	for query, want := range map[string]string{
		"who wrote it": "", "谁写的": "zh-CN", "誰が書いたのか": "ja-JP", "QwQ-32B 模型的相关信息 介绍": "zh-CN", "누가 썼나": "ko-KR", "кто это написал": "ru-RU",
		"من كتب": "ar", "ποιος": "el-GR", "מי כתב": "he-IL", "ใคร": "th-TH", "किसने": "hi-IN", "12345": "", "a long query in English with one 字": "",
	} {
		got := ""
		if l := languageOf(query); l != nil {
			got = l.searxng
		}
		if got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
	for engine, has := range map[string]string{Brave: "search_lang=zh-hans", SearXNG: "language=zh-CN", Serper: `"gl":"cn","hl":"zh-cn"`} {
		e := newEngine(t, engineAnswers[engine])
		all := set(t, Options{Engine: engine}, map[string]*engineServer{engine: e})
		for _, query := range []string{`{"query":"长城"}`, `{"query":"the wall"}`} {
			if _, err := run(t, all["search"], query); err != nil {
				t.Fatal(err)
			}
		}
		if r := e.requests(); !strings.Contains(r[0], has) || strings.Contains(r[1], "lang") || strings.Contains(r[1], "gl") {
			t.Errorf("%s was asked %q", engine, r)
		}
	}
}

func TestScholar(t *testing.T) {
	s := newEngine(t, engineAnswers[Serper])
	got, err := run(t, set(t, Options{}, map[string]*engineServer{Serper: s})["google_scholar"], `{"query":["q"]}`)
	const want = "A scholar search for 'q' found 2 results:\n\n## Scholar Results\n" +
		"1. [Attention](pdfUrl: https://p.example/a.pdf)\npublicationInfo: A Vaswani - Advances, 2017\nDate published: 2017\ncitedBy: 100000\n\nWe propose …\n\n" +
		"2. [Another](https://p.example/b)\npublicationInfo: B\nDate published: 2018\n"
	if err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	o, x := newEngine(t, engineAnswers[OpenAlex]), newEngine(t, engineAnswers[ArXiv])
	free := set(t, Options{}, map[string]*engineServer{OpenAlex: o, ArXiv: x})["google_scholar"]
	got, err = run(t, free, `{"query":"all \"you\" need: AND (more)"}`)
	const both = "A scholar search for 'all \"you\" need: AND (more)' found 3 results:\n\n## Scholar Results\n" +
		"1. [Attention is all you need](pdfUrl: https://pub.example/1.pdf)\npublicationInfo: Ashish Vaswani, Noam Shazeer, C, D and 1 more - NeurIPS\nDate published: 2017\ncitedBy: 6510\n\nThe dominant models are\n\n" +
		"2. [Closed](https://openalex.org/W2)\nDate published: 2020\n\n\n3. [Preprint](pdfUrl: http://arxiv.org/pdf/2001.00001v1)\npublicationInfo: X Y - arXiv\nDate published: 2020\n\nA preprint."
	if err != nil || got != both {
		t.Errorf("%q, %v, want %q", got, err, both)
	}
	if q := x.requests()[0]; !strings.Contains(q, "search_query=all%3Aall+AND+all%3Ayou+AND+all%3Aneed+AND+all%3Amore&") {
		t.Errorf("arXiv was asked %s", q)
	}
	o.fail = []int{400} // one of them is enough
	if got, err := run(t, free, `{"query":"q"}`); err != nil || !strings.Contains(got, "found 2 results") {
		t.Errorf("%s, %v", got, err)
	}
	o.fail, x.fail = []int{400}, []int{400}
	if _, err := run(t, free, `{"query":"q"}`); err == nil {
		t.Error("no error where nobody answers")
	}
}

// No key stands in what is kept on disk.
func TestKeysAreNotKept(t *testing.T) {
	o := Options{Fetch: onDisk(t), Keys: map[string]string{OpenAlex: "openalex-secret"}}
	s := newEngine(t, engineAnswers[OpenAlex])
	free := set(t, o, map[string]*engineServer{OpenAlex: s, ArXiv: newEngine(t, engineAnswers[ArXiv])})["google_scholar"]
	for range 2 {
		if _, err := run(t, free, `{"query":"q"}`); err != nil {
			t.Fatal(err)
		}
	}
	if asked := s.requests(); len(asked) != 1 || !strings.Contains(asked[0], "api_key=openalex-secret") {
		t.Errorf("OpenAlex was asked %q", asked)
	}
	files, err := filepath.Glob(filepath.Join(o.Fetch.Cache.Dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %v", files, err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "secret") {
			t.Errorf("%s: %v %s", f, err, b)
		}
	}
}

// What an engine sends is somebody else's: it is bounded and holds no tags.
func TestTidy(t *testing.T) {
	long := strings.Repeat("ä", 10_000)
	got := tidy([]Result{{Title: "<b>T</b>\n" + long, Link: "https://a.example/ü?q=<x>", Snippet: "a\xff <script>b</script> &lt;c " + long, Date: long, PDF: "file:///etc/passwd"}, {Link: "https://b.example", PDF: "\n https://b.example/<|im_end|>(1) \n"}, {Link: "ftp://a"}, {Link: "http://127.1/"}})
	if len(got) != 2 || got[0].PDF != "" || got[1].PDF != "https://b.example/%3C%7Cim_end%7C%3E%281%29" || strings.ContainsAny(got[0].Title+got[0].Link, "<>\n") {
		t.Fatalf("%d results: %.300s", len(got), fmt.Sprint(got))
	}
	for _, s := range []string{got[0].Title, got[0].Snippet, got[0].Date} {
		if utf8.RuneCountInString(s) > maxSnippet+1 || !utf8.ValidString(s) {
			t.Errorf("%d characters", utf8.RuneCountInString(s))
		}
	}
}

func TestReady(t *testing.T) {
	o := Options{Browser: "/bin/true", Keys: map[string]string{Brave: "k", Serper: "k"}}
	if got := strings.Join(o.Ready(), " "); got != "brave serper bing" {
		t.Errorf("%s", got)
	}
	o.Engine = Bing
	if got := strings.Join(o.Ready(), " "); got != "bing brave serper" {
		t.Errorf("%s", got)
	}
	for _, bad := range []Options{{Engine: Tavily}, {Engine: SearXNG}, {Engine: "altavista"}, {Engine: SearXNG, Addresses: map[string]string{SearXNG: "localhost:8080"}}} {
		if _, err := New(bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// A set takes all of the tools: their schemas are schemas, and they need the net.
func TestSpecs(t *testing.T) {
	made, err := New(Options{Browser: "/bin/true", Keys: map[string]string{Tavily: "k"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := tools.NewSet(made.List(), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range s.Specs() {
		if len(spec.Capabilities) != 1 || spec.Capabilities[0] != tools.Net || spec.SideEffects {
			t.Errorf("%s: %+v", spec.Name, spec)
		}
	}
	// What Tongyi DeepResearch was trained with, to the byte.
	for _, want := range []string{
		`"name": "search", "description": "Perform Google web searches then returns a string of the top search results. Accepts multiple queries.", "parameters": {"type": "object", "properties": {"query": {"type": "array", "items": {"type": "string", "description": "The search query."}, "minItems": 1, "description": "The list of search queries."}}, "required": ["query"]}`,
		`"name": "visit", "description": "Visit webpage(s) and return the summary of the content.", "parameters": {"type": "object", "properties": {"url": {"type": "array", "items": {"type": "string"}, "description": "The URL(s) of the webpage(s) to visit. Can be a single URL or an array of URLs."}, "goal": {"type": "string", "description": "The specific information goal for visiting webpage(s)."}}, "required": ["url", "goal"]}`,
		`"name": "google_scholar", "description": "Leverage Google Scholar to retrieve relevant information from academic publications. Accepts multiple queries. This tool will also return results from google search", "parameters": {"type": "object", "properties": {"query": {"type": "array", "items": {"type": "string", "description": "The search query."}, "minItems": 1, "description": "The list of search queries for Google Scholar."}}, "required": ["query"]}`,
	} {
		if !slices.ContainsFunc(s.Specs(), func(spec tools.Spec) bool {
			return fmt.Sprintf(`"name": %q, "description": %q, "parameters": %s`, spec.Name, spec.Description, spec.Parameters) == want
		}) {
			t.Errorf("no tool says of itself %s", want)
		}
	}
	for args, want := range map[string]tools.Status{
		`{"query":"a"}`: tools.OK, `{"query":["a","b"],"search_engine":"bing"}`: tools.OK, `{"query":"a","search_engine":"google"}`: tools.BadArguments, `{"query":[]}`: tools.BadArguments, `{}`: tools.BadArguments,
	} {
		if got, words := s.Check(tools.Call{Name: "web_search", Arguments: json.RawMessage(args)}); got != want {
			t.Errorf("%s: %s %s", args, got, words)
		}
	}
}
