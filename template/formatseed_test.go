package template

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// seed gives the text of the document that a format comes from, its code
// without the indentation.
func seed(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("../../shared/seeds/" + name)
	if os.IsNotExist(err) {
		t.Skipf("the document is not there: no ../shared/seeds/%s beside the project", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "    ")
	}
	return strings.Join(lines, "\n")
}

// between gives the text between two others.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, before)
	inner, _, closed := strings.Cut(rest, after)
	if !ok || !closed {
		t.Fatalf("nothing between %q and %q", before, after)
	}
	return inner
}

// TestDeepResearchSeed compares the format with the code that ran the model.
func TestDeepResearchSeed(t *testing.T) {
	code := seed(t, "000_153a9c7d5a8afbbf.txt")
	system := between(t, code, `SYSTEM_PROMPT = """`, `"""`)
	f, err := Load("deepresearch")
	if err != nil {
		t.Fatal(err)
	}

	var tools []Tool
	for _, line := range strings.Split(system, "\n") {
		if strings.HasPrefix(line, `{"type": "function", "function": {"name": "PythonInterpreter"`) {
			tools = append(tools, Tool{Name: "PythonInterpreter", Description: "Runs Python.", Parameters: json.RawMessage(`{"type": "object", "properties": {"code": {"type": "string"}}}`)})
		}
		var tool struct{ Function Tool }
		if json.Unmarshal([]byte(line), &tool) == nil && tool.Function.Name != "" {
			tools = append(tools, tool.Function)
		}
	}
	if len(tools) != 5 {
		t.Fatalf("%d tools in the system prompt", len(tools))
	}
	got := join(t)(f.Open(Opening{Question: "Who?", Tools: tools, Date: "2025-03-14"}))
	if want := "<|im_start|>system\n" + system + "2025-03-14<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n"; got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}

	limit := strings.ReplaceAll(between(t, code, `messages[-1]['content'] = "You have now`, `"`), `\n`, "\n")
	if got := mustWords(t, f.Force, "the limit of tokens is reached"); got != "You have now"+limit {
		t.Errorf("at the limit of tokens: %q, want %q", got, "You have now"+limit)
	}
	unreadable := between(t, code, `result = '`, `'`)
	if got, err := f.Problem(Problem{Kind: BadJSON, Message: "m"}, []string{"search"}); err != nil || got != unreadable {
		t.Errorf("a call that is not JSON: %q, %v, want %q", got, err, unreadable)
	}
	result := between(t, code, `result = "<tool_response>`, `"`) + "R" + between(t, code, ` + result + "`, `"`)
	if got := join(t)(f.Continue(Continuation{Results: results([]string{"R"})})); !strings.Contains(got, "<|im_start|>user\n<tool_response>"+strings.ReplaceAll(result, `\n`, "\n")+"<|im_end|>") {
		t.Errorf("the response is %q", got)
	}
}

// TestDeepResearchHead holds the figures that the model was run with.
func TestDeepResearchHead(t *testing.T) {
	f, err := Load("deepresearch")
	if err != nil {
		t.Fatal(err)
	}
	if s := f.Sampling; *s.Temperature != 0.6 || *s.TopP != 0.95 || *s.PresencePenalty != 1.1 || s.TopK != nil || f.MaxTokens != 10000 || f.MaxCalls != 0 {
		t.Errorf("sampling %+v, max_tokens %d, max_calls %d", s, f.MaxTokens, f.MaxCalls)
	}
	if want := (Body{Open: "<code>", Close: "</code>", Argument: "code", Tool: "PythonInterpreter"}); f.Call.Body != want {
		t.Errorf("body %+v", f.Call.Body)
	}
}

// TestSearchR1Stops: the closing tags stay in the text, a response that the
// model begins to invent does not.
func TestSearchR1Stops(t *testing.T) {
	f, err := Load("search-r1")
	if err != nil {
		t.Fatal(err)
	}
	want := []Stop{
		{Name: "call", Literal: "</search>", Means: MeansCall, OutsideThink: true},
		{Name: "answer", Literal: "</answer>", Means: MeansAnswer, OutsideThink: true},
		{Name: "invented response", Literal: "<information>", Strip: true, Means: MeansInvented, OutsideThink: true},
		{Name: "end of turn", Literal: "<|im_end|>", Strip: true, Means: MeansEnd},
		{Name: "end of text", Literal: "<|endoftext|>", Strip: true, Means: MeansEnd},
	}
	if !reflect.DeepEqual(f.Stops, want) {
		t.Errorf("stops %+v", f.Stops)
	}
}

// TestWeaverTexts: what the research mode sets stands in the prompt.
func TestWeaverTexts(t *testing.T) {
	for name, order := range map[string][]string{
		"weaver-plan":    {"Question: Who?", "The outline so far:\n# Owls", "Summaries since the last outline, by number:\n1: Ann.<|im_end|>"},
		"weaver-write":   {"Question: Who?", "The outline:\n# Owls", "Summaries, by number:\n1: Ann.<|im_end|>"},
		"weaver-outline": {"Question: Who?", "The outline so far:\n# Owls", "Summaries since the last outline, by number:\n1: Ann.<|im_end|>"},
	} {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		prompt := join(t)(f.Open(Opening{Question: "Who?", Texts: map[string]string{"outline": "# Owls", "summaries": "1: Ann."}}))
		if want := strings.Join(order, "\n\n"); !strings.Contains(prompt, want) {
			t.Errorf("%s: %q does not have %q", name, prompt, want)
		}
		empty := join(t)(f.Open(Opening{Question: "Who?"}))
		if strings.Contains(empty, "The outline") || strings.Contains(empty, "Summaries") {
			t.Errorf("%s: %q", name, empty)
		}
	}
}

// TestFewShotExample: the examples in the prompt are never taken for calls, and
// a base model that goes on with the next one is stopped before it.
func TestFewShotExample(t *testing.T) {
	f, err := Load("fewshot")
	if err != nil {
		t.Fatal(err)
	}
	prompt := join(t)(f.Open(Opening{Question: "Who?", Tools: []Tool{searchTool}}))
	for _, stop := range f.Stops {
		if !strings.Contains(prompt, stop.Literal) {
			t.Errorf("the examples never write %q", stop.Literal)
		}
	}
	turn := f.Parse("Answer: Ann.", Reading{Tools: []Tool{searchTool}})
	if len(turn.Calls) > 0 || turn.Answer != "Ann." {
		t.Errorf("got %+v", turn)
	}
}
