package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A fake is a tool for tests.
type fake struct {
	name       string
	parameters string
	deadline   time.Duration
	run        func(ctx context.Context, args json.RawMessage) (string, error)
}

func (f fake) Spec() Spec {
	return Spec{Name: f.name, Parameters: json.RawMessage(f.parameters)}
}

func (f fake) Deadline() time.Duration { return f.deadline }

func (f fake) Run(ctx context.Context, args json.RawMessage) (string, error) {
	return f.run(ctx, args)
}

// echo gives its arguments back.
func echo(name, parameters string) fake {
	return fake{name: name, parameters: parameters, run: func(_ context.Context, args json.RawMessage) (string, error) {
		return string(args), nil
	}}
}

func says(name, text string, err error) fake {
	return fake{name: name, run: func(context.Context, json.RawMessage) (string, error) { return text, err }}
}

const searchSchema = `{
	"type": "object",
	"properties": {"query": {"type": ["array", "string"], "items": {"type": "string"}}, "k": {"type": "integer", "minimum": 1}},
	"required": ["query"]
}`

func newSet(t *testing.T, opts Options, list ...Tool) *Set {
	t.Helper()
	s, err := NewSet(list, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(name, arguments string) Call {
	return Call{Name: name, Arguments: json.RawMessage(arguments)}
}

func TestRun(t *testing.T) {
	set := newSet(t, Options{},
		echo("search", searchSchema),
		echo("plain", ""),
		says("silent", " \n", nil),
		says("broken", "a\xffb\xfe\xfdc", nil),
		says("failing", "", errors.New("no such thing")),
		says("halfway", "line 1", errors.New("pipe closed")),
		fake{name: "panicking", run: func(context.Context, json.RawMessage) (string, error) { panic("boom") }},
		fake{name: "leaving", run: func(context.Context, json.RawMessage) (string, error) {
			runtime.Goexit()
			return "", nil
		}},
	)
	tests := []struct {
		call   Call
		status Status
		want   string   // the whole content
		has    []string // or parts of it
	}{
		{call("search", `{"query":["a"]}`), OK, `{"query":["a"]}`, nil},
		{call("search", ` {"query":"a"} `), OK, `{"query":"a"}`, nil},
		{call("plain", ""), OK, `{}`, nil},
		{call("plain", "null"), OK, `{}`, nil},
		{call("plain", `{"more":1}`), OK, `{"more":1}`, nil},
		{call("search", ""), BadArguments, "", []string{"the arguments of search do not fit", "missing property 'query'", `Its parameters are {"type":"object","properties":{"query"`}},
		{call("search", `{"query":[1,"a"]}`), BadArguments, "", []string{"query.0: got number, want string"}},
		{call("search", `{"query":"a","k":0}`), BadArguments, "", []string{"k: minimum: got 0, want 1"}},
		{call("search", `["a"]`), BadArguments, "", []string{"got array, want object"}},
		{call("search", `{"query":`), BadArguments, "", []string{"not valid JSON"}},
		{call("search", `{"query":"a"} {}`), BadArguments, "", []string{"not valid JSON"}},
		{call("serch", `{}`), UnknownTool, "", []string{`no tool named "serch"`, `Did you mean "search"?`, "The tools are: search, plain,"}},
		{call("Search", `{}`), UnknownTool, "", []string{`Did you mean "search"?`}},
		{call("weather_in_paris", `{}`), UnknownTool, "", []string{"The tools are: search"}},
		{call("", `{}`), UnknownTool, "", []string{`no tool named ""`}},
		{call("silent", ""), OK, emptyWords, nil},
		{call("broken", ""), OK, "a\uFFFDb\uFFFDc", nil},
		{call("failing", ""), Failed, "Error: failing failed: no such thing", nil},
		{call("halfway", ""), Failed, "Error: halfway failed: pipe closed\nOutput so far:\nline 1", nil},
		{call("panicking", ""), Failed, "Error: panicking failed: it broke: boom", nil},
		{call("leaving", ""), Failed, "Error: leaving failed: it ended without a result", nil},
	}
	var calls []Call
	for _, tt := range tests {
		calls = append(calls, tt.call)
	}
	results := set.Session().Run(t.Context(), calls)
	if len(results) != len(calls) {
		t.Fatalf("%d results for %d calls", len(results), len(calls))
	}
	for i, tt := range tests {
		got := results[i]
		if got.Status != tt.status || got.Name != tt.call.Name || tt.want != "" && got.Content != tt.want {
			t.Errorf("%s(%s) = %s %q, want %s %q", tt.call.Name, tt.call.Arguments, got.Status, got.Content, tt.status, tt.want)
		}
		for _, part := range tt.has {
			if !strings.Contains(got.Content, part) {
				t.Errorf("%s(%s) = %q, without %q", tt.call.Name, tt.call.Arguments, got.Content, part)
			}
		}
	}
	for i, tt := range tests {
		if tt.call.Name == "weather_in_paris" && strings.Contains(results[i].Content, "Did you mean") {
			t.Errorf("a name that is like no other got a suggestion: %q", results[i].Content)
		}
	}
}

func TestUnknownToolOfEmptySet(t *testing.T) {
	set := newSet(t, Options{})
	res := set.Session().Run(t.Context(), []Call{call(strings.Repeat("é", 1000), "")})[0]
	if res.Status != UnknownTool || len(res.Content) > 200 {
		t.Errorf("got %s with %d bytes", res.Status, len(res.Content))
	}
}

func TestNewSetErrors(t *testing.T) {
	tests := []struct {
		name  string
		tools []Tool
		opts  Options
		index int
		has   string
	}{
		{"no name", []Tool{echo("", "")}, Options{}, 0, "no name"},
		{"duplicate", []Tool{echo("a", ""), echo("b", ""), echo("a", "")}, Options{}, 2, "same name"},
		{"no JSON", []Tool{echo("a", `{"type":`)}, Options{}, 0, "not JSON"},
		{"no object", []Tool{echo("a", `{"type":"string"}`)}, Options{}, 0, `"type": "object"`},
		{"bad keyword", []Tool{echo("a", `{"type":"object","properties":{"b":{"type":"text"}}}`)}, Options{}, 0, "no JSON schema"},
		{"file reference", []Tool{echo("a", `{"type":"object","$ref":"file:///etc/passwd"}`)}, Options{}, 0, "not loaded"},
		{"http reference", []Tool{echo("a", `{"type":"object","properties":{"b":{"$ref":"http://127.0.0.1:1/x"}}}`)}, Options{}, 0, "not loaded"},
		{"own reference elsewhere", []Tool{echo("a", `{"type":"object","properties":{"b":{"$ref":"#/$defs/none"}}}`)}, Options{}, 0, "no JSON schema"},
		{"limit without a tool", []Tool{echo("a", "")}, Options{Limits: map[string]int{"b": 1}}, 1, "no such tool"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewSet(tt.tools, tt.opts)
			var spec *SpecError
			if !errors.As(err, &spec) || spec.Index != tt.index || !strings.Contains(err.Error(), tt.has) {
				t.Errorf("got %v, want a *SpecError for tool %d with %q", err, tt.index, tt.has)
			}
		})
	}
	if _, err := NewSet([]Tool{echo("a", ""), echo("a", "")}, Options{}); !errors.Is(err, ErrDuplicateName) {
		t.Errorf("got %v", err)
	}
}

func TestSpecsKeepTheirOrder(t *testing.T) {
	set := newSet(t, Options{}, echo("zebra", searchSchema), echo("ape", ""), echo("mole", ""))
	var names []string
	for _, s := range set.Specs() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "zebra ape mole" {
		t.Errorf("got %s", got)
	}
	if got := string(set.Specs()[0].Parameters); got != searchSchema {
		t.Errorf("the schema was changed: %s", got)
	}
}

// All calls of a turn run at once: each waits until the last has begun.
func TestRunInParallelInOrder(t *testing.T) {
	const n = 8
	var begun sync.WaitGroup
	begun.Add(n)
	meet := fake{name: "meet", run: func(ctx context.Context, args json.RawMessage) (string, error) {
		begun.Done()
		begun.Wait()
		return string(args), ctx.Err()
	}}
	set := newSet(t, Options{Parallel: n}, meet)
	var calls []Call
	for i := range n {
		calls = append(calls, call("meet", fmt.Sprintf(`{"i":%d}`, i)))
	}
	for i, res := range set.Session().Run(t.Context(), calls) {
		if want := string(calls[i].Arguments); res.Status != OK || res.Content != want {
			t.Errorf("result %d is %s %q, want %q", i, res.Status, res.Content, want)
		}
	}
}

func TestRunIsBounded(t *testing.T) {
	var running, most atomic.Int64
	set := newSet(t, Options{Parallel: 3}, fake{name: "a", run: func(context.Context, json.RawMessage) (string, error) {
		most.Store(max(most.Load(), running.Add(1)))
		runtime.Gosched()
		running.Add(-1)
		return "", nil
	}})
	set.Session().Run(t.Context(), repeated(call("a", ""), 100))
	if most.Load() > 3 {
		t.Errorf("%d calls ran at once, want at most 3", most.Load())
	}
}

func repeated(c Call, n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = c
	}
	return calls
}

func TestLimits(t *testing.T) {
	set := newSet(t, Options{Limit: 2, Limits: map[string]int{"once": 1, "free": 0}},
		echo("once", searchSchema), echo("twice", ""), echo("free", ""))
	ok := `{"query":"a"}`
	s := set.Session()
	first := s.Run(t.Context(), []Call{
		call("once", `{}`), call("once", ok), call("once", ok),
		call("twice", ""), call("free", ""), call("free", ""), call("free", ""),
	})
	second := s.Run(t.Context(), []Call{call("twice", ""), call("twice", ""), call("once", ok)})
	want := []Status{BadArguments, OK, LimitReached, OK, OK, OK, OK, OK, LimitReached, LimitReached}
	for i, res := range append(first, second...) {
		if res.Status != want[i] {
			t.Errorf("call %d: %s %q, want %s", i, res.Status, res.Content, want[i])
		}
	}
	if got := first[2].Content; got != "Error: once may be called once and was. Go on with what you have." {
		t.Errorf("got %q", got)
	}
	if got := second[1].Content; !strings.Contains(got, "2 times") {
		t.Errorf("got %q", got)
	}
	// Another run counts for itself.
	if res := set.Session().Run(t.Context(), []Call{call("once", ok)})[0]; res.Status != OK {
		t.Errorf("a new session began with %s", res.Status)
	}
}

func TestDeadlines(t *testing.T) { synctest.Test(t, deadlines) }

func deadlines(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	set := newSet(t, Options{Timeout: time.Hour},
		fake{name: "polite", deadline: time.Millisecond, run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			<-ctx.Done()
			return "half of it", ctx.Err()
		}},
		fake{name: "stubborn", deadline: time.Millisecond, run: func(context.Context, json.RawMessage) (string, error) {
			<-release
			return "too late", nil
		}},
		fake{name: "done", deadline: time.Millisecond, run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			<-ctx.Done()
			return "all of it", nil
		}},
	)
	s := set.Session()
	results := s.Run(t.Context(), []Call{call("polite", ""), call("stubborn", ""), call("done", "")})
	want := []Result{
		{Status: TimedOut, Content: "Error: polite did not finish within 1ms.\nOutput so far:\nhalf of it"},
		{Status: TimedOut, Content: "Error: stubborn did not finish within 1ms."},
		{Status: OK, Content: "all of it"},
	}
	for i, res := range results {
		if res.Status != want[i].Status || res.Content != want[i].Content {
			t.Errorf("%s: %s %q, want %s %q", res.Name, res.Status, res.Content, want[i].Status, want[i].Content)
		}
	}
	if s.Abandoned() != 1 {
		t.Errorf("%d abandoned, want 1", s.Abandoned())
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var ran atomic.Int64
	set := newSet(t, Options{Parallel: 1},
		fake{name: "cancels", run: func(ctx context.Context, _ json.RawMessage) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}},
		fake{name: "late", run: func(context.Context, json.RawMessage) (string, error) {
			ran.Add(1)
			return "", nil
		}})
	for _, res := range set.Session().Run(ctx, []Call{call("cancels", ""), call("late", "")}) {
		if res.Status != Cancelled || res.Content == "" {
			t.Errorf("%s: %s %q", res.Name, res.Status, res.Content)
		}
	}
	if ran.Load() != 0 {
		t.Error("a call began after the run was ended")
	}
}

func TestSessionsShareASet(t *testing.T) {
	set := newSet(t, Options{Limit: 5}, echo("a", searchSchema))
	var runs sync.WaitGroup
	for range 8 {
		runs.Go(func() {
			s := set.Session()
			ok := 0
			for range 4 {
				for _, res := range s.Run(t.Context(), repeated(call("a", `{"query":"x"}`), 3)) {
					if res.Status == OK {
						ok++
					}
				}
			}
			if ok != 5 {
				t.Errorf("%d calls ran, want 5", ok)
			}
		})
	}
	runs.Wait()
}

func TestErrorsAreCutToo(t *testing.T) {
	set := newSet(t, Options{MaxTokens: 50}, says("a", "", errors.New(strings.Repeat("no good ", 1000))))
	res := set.Session().Run(t.Context(), []Call{call("a", "")})[0]
	if res.Status != Failed || res.Cut == 0 || EstimateTokens(res.Content) > 50+EstimateTokens(notice(res.Cut))+1 {
		t.Errorf("got %s, cut %d, %d tokens", res.Status, res.Cut, EstimateTokens(res.Content))
	}
}

func TestNumbersOutOfAllBounds(t *testing.T) {
	set := newSet(t, Options{}, echo("scale", `{"type":"object","properties":{"n":{"type":"number","minimum":1,"multipleOf":0.5}}}`))
	res := set.Session().Run(t.Context(), []Call{call("scale", `{"n":1e999999999}`), call("scale", `{"n":1.5}`)})
	if res[0].Status != BadArguments || !strings.Contains(res[0].Content, "number") {
		t.Errorf("result is %+v", res[0])
	}
	if res[1].Status != OK {
		t.Errorf("result is %+v", res[1])
	}
}

// A handler sees the calls that are admitted and no others, with their places,
// and what it gives is cut like any other result.
func TestHandler(t *testing.T) {
	const textSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	set, err := NewSet([]Tool{echo("echo", textSchema)}, Options{Limit: 3, MaxTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	if o := set.Options(); o.Limit != 3 || o.MaxTokens != 5 {
		t.Errorf("%+v", o)
	}
	var mu sync.Mutex
	seen := map[int]string{}
	with := set.With(func(_ context.Context, at int, call Call, run func() Result) Result {
		mu.Lock()
		defer mu.Unlock()
		seen[at] = call.Name + string(call.Arguments)
		if at == 3 {
			return Result{Status: Interrupted, Content: strings.Repeat("long ", 50)}
		}
		return run()
	})
	calls := []Call{
		{Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`)}, {Name: "none"}, {Name: "echo", Arguments: json.RawMessage(`[]`)},
		{Name: "echo", Arguments: json.RawMessage(`{"text":"b"}`)},
	}
	results := with.Session().Run(t.Context(), calls)
	if want := map[int]string{0: `echo{"text":"a"}`, 3: `echo{"text":"b"}`}; !maps.Equal(seen, want) {
		t.Errorf("%v", seen)
	}
	if r := results[0]; r.Status != OK || r.Name != "echo" {
		t.Errorf("%+v", r)
	}
	if r := results[3]; r.Status != Interrupted || r.Cut == 0 || r.Name != "echo" {
		t.Errorf("%+v", r)
	}
	outer := with.With(func(_ context.Context, _ int, _ Call, run func() Result) Result {
		res := run()
		res.Content = "x" + res.Content
		return res
	})
	if r := outer.Session().Run(t.Context(), calls[:1]); r[0].Content != "x"+results[0].Content {
		t.Errorf("%+v", r)
	}
	if r := set.Session().Run(t.Context(), calls[3:]); r[0].Status != OK {
		t.Errorf("the set itself has a handler: %+v", r)
	}
}

func TestApprove(t *testing.T) {
	ran := 0
	act := effect{says("act", "done", nil), &ran}
	asked := []Call{}
	var refusal error
	set := newSet(t, Options{Approve: func(_ context.Context, c Call) error {
		asked = append(asked, c)
		return refusal
	}}, act, says("look", "seen", nil))
	try := func(name string) Result { return set.Session().Run(t.Context(), []Call{call(name, `{"a":1}`)})[0] }

	if res := try("act"); res.Status != OK || ran != 1 {
		t.Errorf("approved: %+v, ran %d times", res, ran)
	}
	refusal = errors.New("nobody allowed it.")
	if res := try("act"); res.Status != Refused || res.Content != "Error: act was not run: nobody allowed it." || ran != 1 {
		t.Errorf("refused: %+v, ran %d times", res, ran)
	}
	if res := try("look"); res.Status != OK {
		t.Errorf("a tool without side effects: %+v", res)
	}
	if len(asked) != 2 || asked[0].Name != "act" || string(asked[0].Arguments) != `{"a":1}` {
		t.Errorf("asked for %v", asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	set = newSet(t, Options{Approve: func(context.Context, Call) error { cancel(); return nil }}, act)
	if res := set.Session().Run(ctx, []Call{call("act", "")})[0]; res.Status != Cancelled || ran != 1 {
		t.Errorf("ended while it was asked: %+v, ran %d times", res, ran)
	}
}

// An effect is a tool with side effects, which are counted.
type effect struct {
	fake
	ran *int
}

func (e effect) Spec() Spec {
	spec := e.fake.Spec()
	spec.SideEffects = true
	return spec
}

func (e effect) Run(ctx context.Context, args json.RawMessage) (string, error) {
	*e.ran++
	return e.fake.Run(ctx, args)
}
