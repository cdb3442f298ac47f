package template

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A Spelling is how calls are spelled.
type Spelling struct {
	Kind CallKind `yaml:"kind"`
	// Open and Close are what stands around a call, or around each of several.
	// Close may be missing: then a call ends where its JSON does.
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
	// Name and Arguments are the keys of a JSON call, the canonical one first;
	// where several are present the first of this list counts. For lines they
	// are the labels, for example "Action:"; the first is the one that models
	// are told, the others are read as well. For xml, Name is what the name of
	// the tool follows, "<function=", and Arguments what that of an argument
	// follows, "<parameter=".
	Name      []string `yaml:"name"`
	Arguments []string `yaml:"arguments"`
	// Bare says that a turn that begins with a JSON call needs no Open.
	Bare bool `yaml:"bare"`
	// JSON5 says that the JSON of calls may be JSON5.
	JSON5 bool `yaml:"json5"`
	// List says that JSON calls stand in a list, also a single one.
	List bool `yaml:"list"`
	// Between, where it is not empty, is another spelling of a JSON call: the
	// name as a word, this text, and the arguments as an object.
	Between string `yaml:"between"`
	// Body is a text that may follow the JSON of a call and becomes one of its
	// arguments.
	Body Body `yaml:"body"`
	// Tags are the calls of the kind tags, one for each tool.
	Tags []CallTag `yaml:"tags"`
}

// A CallKind is a family of spellings.
type CallKind string

const (
	// JSONCalls are JSON objects between two tags, any number a turn.
	JSONCalls CallKind = "json"
	// LineCalls are a line with the tool's name and then the arguments as a
	// JSON object, as in ReAct.
	LineCalls CallKind = "lines"
	// XMLCalls name the tool and each argument in a tag and have the values as
	// text, as Qwen3-Coder does.
	XMLCalls CallKind = "xml"
	// TagCalls have a tag for each tool, with its argument as text, as
	// Search-R1 does.
	TagCalls CallKind = "tags"
	// PythonCalls are a list of calls as Python writes them.
	PythonCalls CallKind = "python"
)

// A Body is a text after the JSON of a call, as it is, between two tags.
type Body struct {
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
	// Argument is the key under which the tool gets it.
	Argument string `yaml:"argument"`
	// Tool is the tool that a call with a body and without a name means.
	Tool string `yaml:"tool"`
}

// A CallTag is a tag that calls a tool.
type CallTag struct {
	Tag  string `yaml:"tag"`  // without brackets: search for <search>…</search>
	Tool string `yaml:"tool"` // the tool's name, where it is not the tag's
	// Text is the argument that the tag's own text is; empty if it has none.
	Text string `yaml:"text"`
	// Children are tags inside: tag to argument. One that occurs several times
	// is a list.
	Children map[string]string `yaml:"children"`
	// Empty says that the tag stands alone: it has no content and needs no end.
	Empty bool `yaml:"empty"`
}

func (t CallTag) open() string  { return "<" + t.Tag + ">" }
func (t CallTag) close() string { return "</" + t.Tag + ">" }

// alone is the tag where it is empty, as XML spells it.
func (t CallTag) alone() string { return "<" + t.Tag + "/>" }

// name is the tool's.
func (t CallTag) name() string {
	if t.Tool != "" {
		return t.Tool
	}
	return t.Tag
}

// children are the tags inside, sorted.
func (t CallTag) children() []string { return slices.Sorted(maps.Keys(t.Children)) }

// arguments are the names of all the arguments that the tag can spell.
func (t CallTag) arguments() []string {
	var out []string
	if t.Text != "" {
		out = append(out, t.Text)
	}
	return append(out, slices.Sorted(maps.Values(t.Children))...)
}

// checkCalls checks the spelling keys against each other.
func (h *Head) checkCalls() (field, msg string) {
	for _, check := range []func(*Head) (string, string){
		(*Head).checkKind, (*Head).checkThink, (*Head).checkTags, (*Head).checkPairs, (*Head).checkKeys, (*Head).checkNumbers,
	} {
		if field, msg := check(h); msg != "" {
			return field, msg
		}
	}
	return "", ""
}

// checkKind checks what a kind of call needs.
func (h *Head) checkKind() (field, msg string) {
	c := h.Call
	if c.Kind != TagCalls && len(c.Tags) > 0 {
		return "call.tags", "tags are for calls of the kind tags"
	}
	if c.Kind != JSONCalls && (c.Bare || c.List || c.JSON5 || c.Between != "" || c.Body != Body{}) {
		return "call", "bare, json5, list, between and body are for calls of the kind json"
	}
	switch c.Kind {
	case JSONCalls:
		if c.Open == "" {
			return "call", "JSON calls need the tag open"
		}
		if len(c.Name) == 0 || len(c.Arguments) == 0 {
			return "call", "JSON calls need the keys name and arguments"
		}
		if (c.Body != Body{}) && (c.Body.Open == "" || c.Body.Close == "" || c.Body.Argument == "") {
			return "call.body", "a body needs open, close and argument"
		}
	case LineCalls:
		return h.checkLines()
	case XMLCalls:
		if c.Open == "" || c.Close == "" || len(c.Name) != 1 || len(c.Arguments) != 1 {
			return "call", "XML calls need open, close, and one beginning of a tag each, name and arguments"
		}
	case TagCalls:
		return h.checkCallTags()
	case PythonCalls:
		if c.Open != "" || c.Close != "" || len(c.Name) > 0 || len(c.Arguments) > 0 {
			return "call", "Python calls have no tags and no keys"
		}
	case "":
		return "call.kind", "the kind of call is missing: json, lines, xml, tags or python"
	default:
		return "call.kind", "the kind of call is json, lines, xml, tags or python"
	}
	return "", ""
}

func (h *Head) checkLines() (field, msg string) {
	c := h.Call
	switch {
	case len(c.Name) == 0 || len(c.Arguments) == 0:
		return "call", "calls in lines need labels, name and arguments"
	case c.Open != "" || c.Close != "" || h.Response.Close != "" || h.Think.Close != "":
		return "call", "a format with calls in lines has labels and no closing tags"
	case h.Answer.Open != "":
		return "answer", "a format with calls in lines has the marker answer.after, no tags"
	case h.Answer.After == "":
		return "answer", "a format with calls in lines needs the marker answer.after"
	}
	return "", ""
}

func (h *Head) checkCallTags() (field, msg string) {
	c := h.Call
	if len(c.Tags) == 0 {
		return "call.tags", "calls of the kind tags need tags"
	}
	if c.Open != "" || c.Close != "" || len(c.Name) > 0 || len(c.Arguments) > 0 {
		return "call", "calls of the kind tags have only tags"
	}
	seen := map[string]bool{}
	for i, t := range c.Tags {
		field := fmt.Sprintf("call.tags[%d]", i)
		switch {
		case !isTagName(t.Tag):
			return field, "a tag is a word of letters, digits, _ and -"
		case seen[t.Tag]:
			return field, "the tag stands twice"
		case t.Empty && (t.Text != "" || len(t.Children) > 0):
			return field, "an empty tag has neither text nor children"
		case !t.Empty && t.Text == "" && len(t.Children) == 0:
			return field, "the tag needs text or children, or empty: true"
		}
		seen[t.Tag] = true
		for child := range t.Children {
			if !isTagName(child) {
				return field, "a child is a word of letters, digits, _ and -"
			}
		}
	}
	return "", ""
}

func isTagName(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func (h *Head) checkThink() (field, msg string) {
	if h.Call.Kind != LineCalls && (h.Think.Open == "") != (h.Think.Close == "") {
		return "think", "the thinking part needs both tags, open and close"
	}
	if h.Think.Open == "" && (h.Think.Opened || h.Think.Calls || h.Think.Continues) {
		return "think.open", "the format has no tag that opens the thinking part"
	}
	if (h.Answer.Open == "") != (h.Answer.Close == "") {
		return "answer", "the answer needs both tags, open and close"
	}
	if h.Answer.Open != "" && h.Answer.After != "" {
		return "answer", "the answer has either tags or a marker"
	}
	return "", ""
}

// tags are the format's own tags, labels and markers, with the keys that they
// stand under.
func (h *Head) tags() []struct{ field, text string } {
	c := h.Call
	return []struct{ field, text string }{
		{"think.open", h.Think.Open}, {"think.close", h.Think.Close}, {"call.open", c.Open}, {"call.close", c.Close},
		{"call.between", c.Between}, {"call.body.open", c.Body.Open}, {"call.body.close", c.Body.Close},
		{"response.open", h.Response.Open}, {"response.close", h.Response.Close},
		{"answer.after", h.Answer.After}, {"answer.open", h.Answer.Open}, {"answer.close", h.Answer.Close},
	}
}

// checkTags refuses tags that cannot be told apart or escaped.
func (h *Head) checkTags() (field, msg string) {
	seen := map[string]string{} // text to field
	for _, tag := range h.tags() {
		if tag.text == "" {
			continue
		}
		if !escapable(tag.text) {
			return tag.field, "a tag needs two characters or more, none of them " + string(Mark)
		}
		if strings.TrimSpace(tag.text) == "" {
			return tag.field, "a tag of white space alone"
		}
		if other, ok := seen[tag.text]; ok {
			return tag.field, "the same text as " + other
		}
		seen[tag.text] = tag.field
	}
	return "", ""
}

// checkKeys checks the keys or labels of calls.
func (h *Head) checkKeys() (field, msg string) {
	c, seen := h.Call, map[string]string{}
	for _, tag := range h.tags() {
		seen[tag.text] = tag.field
	}
	for i, key := range append(slices.Clip(c.Name), c.Arguments...) {
		field := fmt.Sprintf("call.name[%d]", i)
		if i >= len(c.Name) {
			field = fmt.Sprintf("call.arguments[%d]", i-len(c.Name))
		}
		if strings.TrimSpace(key) == "" || c.Kind != JSONCalls && !escapable(key) {
			return field, "an empty or too short name"
		}
		if other, ok := seen[key]; ok && c.Kind != JSONCalls {
			return field, "the same text as " + other
		}
		seen[key] = field
	}
	return "", ""
}

func (h *Head) checkNumbers() (field, msg string) {
	if h.MaxTokens < 0 {
		return "max_tokens", "a negative number"
	}
	if h.MaxCalls < 0 {
		return "max_calls", "a negative number"
	}
	if t := h.Sampling.Temperature; t != nil && !(*t >= 0 && *t <= math.MaxFloat64) {
		return "sampling.temperature", "not a number from zero on"
	}
	return "", ""
}
