package template

import (
	"regexp"
	"strings"
	"testing"
)

// TestPrefix says how each format begins a turn with a call: of any of two
// tools, and of the tool search, where the prompt has opened the thinking part
// as the format does.
func TestPrefix(t *testing.T) {
	const (
		name   = "<tool_call>\n{\"name\": \"search\", \"arguments\":"
		closed = "\n</think>\n\n"
	)
	table := map[string][2]string{
		"deepresearch":   {"<tool_call>", name},
		"fewshot":        {"<tool_call>", name},
		"llama3":         {`{"name":`, `{"name": "search", "parameters":`},
		"mistral":        {"[TOOL_CALLS]", `[TOOL_CALLS][{"name": "search", "arguments":`},
		"mistral-v13":    {"[TOOL_CALLS]", "[TOOL_CALLS]search[ARGS]"},
		"python":         {"[", "[search("},
		"qwen":           {"<tool_call>", name},
		"qwen-functions": {"✿FUNCTION✿:", "✿FUNCTION✿: search\n✿ARGS✿:"},
		"qwen2.5":        {"<tool_call>", name},
		"qwen3-coder":    {"<tool_call>", "<tool_call>\n<function=search>\n"},
		"qwq":            {"<tool_call>", "<tool_call>\n{\"action\": \"search\", \"action_input\":"},
		"qwq-tools":      {closed + "<tool_call>", closed + name},
		"react":          {"\nAction:", "\nAction: search\nAction Input:"},
		"search-r1":      {"", "<search>"},
		"weaver-outline": {"", ""}, // it has no tag for search
		"weaver-plan":    {"", "<search>"},
		"weaver-write":   {"", ""}, // nor has this
	}
	for _, name := range rendering() {
		f := load(t, name)
		for i, tool := range []string{"", "search"} {
			got, ok := f.Prefix(tool, []Tool{searchTool, readTool}, f.Think.Opened)
			if want, listed := table[name]; !listed || got != want[i] || ok != (got != "") {
				t.Errorf("%s, tool %q: got %q, %v, want %q", name, tool, got, ok, want[i])
			}
		}
	}
}

// TestPrefixGoesOn: what a format writes of a call begins with the prefix, and
// the prefix and the rest read as that call, whether thinking is open or not.
func TestPrefixGoesOn(t *testing.T) {
	for _, name := range rendering() {
		f := load(t, name)
		calls, tools := f.samples()
		for i, call := range calls {
			written, err := f.writeCalls([]Call{call})
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"", call.Name} {
				for _, inThink := range []bool{false, true} {
					if inThink && f.Think.Open == "" {
						continue
					}
					prefix, ok := f.Prefix(tool, tools, inThink)
					if !ok && tool == "" && f.Call.Kind == TagCalls {
						continue
					}
					begun := strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(prefix), f.Think.Close), "\n")
					rest, found := strings.CutPrefix(written, begun)
					if !ok || !found {
						t.Errorf("%s: %q, %v does not begin %q", name, prefix, ok, written)
						continue
					}
					turn := f.Parse(prefix+rest, Reading{InThink: inThink, Tools: tools, Strict: true})
					if len(turn.Calls) != 1 || !sameCall(turn.Calls[0], calls[i]) || len(turn.Problems) > 0 {
						t.Errorf("%s: %q is read as %+v", name, prefix+rest, turn)
					}
				}
			}
		}
	}
}

// TestFrame puts calls together from the pieces of each format's frame.
func TestFrame(t *testing.T) {
	framed := map[string]bool{
		"deepresearch": true, "fewshot": true, "llama3": true, "mistral": true, "mistral-v13": true, "qwen": true, "qwen-functions": true,
		"qwen2.5": true, "qwq": true, "qwq-tools": true, "react": true,
	}
	for _, name := range rendering() {
		f := load(t, name)
		frame, ok := f.Frame()
		if ok != framed[name] {
			t.Errorf("%s: %+v, %v", name, frame, ok)
		}
		if !ok {
			continue
		}
		tool, calls := "search", []Call{{Name: "search", Arguments: []byte(`{"query": ["owl"]}`)}}
		if frame.Quoted {
			tool = `"search"`
		}
		text := frame.Before + tool + frame.Between + string(calls[0].Arguments) + frame.After
		if want, err := f.writeCalls(calls); err != nil || text != want {
			t.Errorf("%s: got %q, %v, want %q", name, text, err, want)
		}
		opening := regexp.MustCompile(frame.Opening)
		if m := opening.FindStringIndex(text); m == nil || text[:m[1]] != frame.Opened || !strings.HasPrefix(frame.Before, frame.Opened) {
			t.Errorf("%s: %q and %q do not open %q", name, frame.Opening, frame.Opened, text)
		}
	}
}

// TestFrameBare: a bare call is recognised behind the tag that it may have, and
// not in the middle of an answer.
func TestFrameBare(t *testing.T) {
	frame, _ := load(t, "llama3").Frame()
	opening := regexp.MustCompile(frame.Opening)
	for text, want := range map[string]bool{
		`{"name": "a"}`: true, "\n {": true, "<|python_tag|>{": true, "<|python_tag|>\n{": true,
		`The entry is {"name": "a"}`: false, "[{": false, "<|python_tag|>print(1)": false,
	} {
		if opening.MatchString(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func load(t *testing.T, name string) *Format {
	t.Helper()
	f, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
