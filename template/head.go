package template

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
)

// Head is what a format file says before its blocks, key by key.
type Head struct {
	// Extends names a shipped format whose head and blocks are the starting
	// point: a key replaces the one of the same path (lists as a whole), a
	// block replaces the block of the same name.
	Extends     string `yaml:"extends"`
	Description string `yaml:"description"` // one line for lists of formats
	System      string `yaml:"system"`      // the default system message

	// Opening says who renders the beginning of the prompt.
	Opening OpeningMode `yaml:"opening"`
	// Recognise are strings that all stand in an opening that a server has
	// rendered for a model of this format; see [Recognise].
	Recognise []string `yaml:"recognise"`

	Think    Think    `yaml:"think"`
	Call     Spelling `yaml:"call"`
	Response Response `yaml:"response"`
	Answer   Answer   `yaml:"answer"`

	Stops []Stop `yaml:"stops"`
	// Reserved are strings that untrusted text must not contain. What think,
	// call, response and answer name is added by Compile.
	Reserved Reserved `yaml:"reserved"`
	// Preserve are special tokens that must be visible in the generated text
	// where a server would hide them.
	Preserve []string `yaml:"preserve"`

	Sampling  Sampling `yaml:"sampling"`
	MaxTokens int      `yaml:"max_tokens"` // of one turn; zero leaves it to the caller
	MaxCalls  int      `yaml:"max_calls"`  // of one run; zero means no limit
	// SingleCall says that the model makes one call a turn.
	SingleCall bool `yaml:"single_call"`
}

// An OpeningMode says who renders the beginning of the prompt.
type OpeningMode string

const (
	OpenOwn OpeningMode = "" // the format's block "prompt"
	// OpenServer: the model's own chat template, by its server. The rendered
	// text tells which format goes on; a format with this opening has no
	// blocks and no calls of its own.
	OpenServer OpeningMode = "server"
	// OpenChat: the server's chat endpoint, which renders all of the
	// conversation and reads the calls. The format has only the blocks force,
	// nudge and problem.
	OpenChat OpeningMode = "chat"
)

// Think is how the thinking part is spelled.
type Think struct {
	// Open and Close are tags, for example <think> and </think>. In a format
	// whose calls are lines, Open is a label such as "Thought:" and there is
	// no Close.
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
	// Opened says that the prompt has already written Open.
	Opened bool `yaml:"opened"`
	// Calls says that calls inside the thinking part count.
	Calls bool `yaml:"calls"`
	// Continues says that results stand inside the model's turn, so that
	// thinking that was open before them is open after them.
	Continues bool `yaml:"continues"`
}

// Response is how a tool's response begins and ends in the prompt. A model
// that writes Open itself has invented a response.
type Response struct {
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
}

// Answer is how the answer is spelled: by a marker that it follows, or by two
// tags around it. Without either it is the text outside the thinking part of a
// turn that makes no call.
type Answer struct {
	After string `yaml:"after"` // for example "Final Answer:"
	// Open and Close are tags, for example <answer> and </answer>; the last
	// pair counts.
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
	// Optional says that a turn with neither a call nor the marker or the tags
	// is an answer as a whole.
	Optional bool `yaml:"optional"`
}

// Sampling are the sampler's options that suit the format. A nil field is left
// to the caller.
type Sampling struct {
	Temperature     *float64 `yaml:"temperature"`
	TopP            *float64 `yaml:"top_p"`
	TopK            *int     `yaml:"top_k"`
	MinP            *float64 `yaml:"min_p"`
	PresencePenalty *float64 `yaml:"presence_penalty"`
	RepeatPenalty   *float64 `yaml:"repeat_penalty"`
}

// decode reads the head into h, over what h has.
func (s source) decode(h *Head) (err error) {
	defer func() {
		if r := recover(); r != nil { // the head is any file; the library's parser is large
			err = &FormatError{Name: s.name, Msg: fmt.Sprintf("the head is not YAML: %v", r)}
		}
	}()
	err = yaml.UnmarshalWithOptions([]byte(s.head), h, yaml.Strict())
	if err == nil {
		return nil
	}
	fe := &FormatError{Name: s.name, Msg: err.Error(), Err: err}
	var ye yaml.Error
	if errors.As(err, &ye) {
		fe.Msg = ye.GetMessage()
		if t := ye.GetToken(); t != nil && t.Position != nil {
			fe.Line = t.Position.Line
		}
	}
	var te *yaml.TypeError
	var ne *yaml.UnexpectedNodeTypeError
	switch {
	case errors.As(err, &te):
		fe.Msg = fmt.Sprintf("%s expected, found %s", kindWord(te.DstType), kindWord(te.SrcType))
	case errors.As(err, &ne):
		fe.Msg = fmt.Sprintf("a %s where a %s is expected", ne.Actual.YAMLName(), ne.Expected.YAMLName())
	}
	return fe
}

// kindWord names a Go type in the words of someone who writes YAML.
func kindWord(t reflect.Type) string {
	if t == nil {
		return "nothing"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a group of keys"
	}
	return t.String()
}

// check refuses a head that contradicts itself.
func (s source) check(h *Head) error {
	fail := func(field, msg string) error {
		return &FormatError{Name: s.name, Line: s.line(field), Field: field, Msg: msg}
	}
	if field, msg := h.checkOpening(); msg != "" {
		return fail(field, msg)
	}
	if h.Opening == OpenOwn {
		if field, msg := h.checkCalls(); msg != "" {
			return fail(field, msg)
		}
	}
	seen := map[string]bool{}
	for i, stop := range h.Stops {
		field := fmt.Sprintf("stops[%d]", i)
		if key, msg := stop.check(h); msg != "" {
			return fail(strings.TrimSuffix(field+"."+key, "."), msg)
		}
		if seen[stop.Name] {
			return fail(field+".name", fmt.Sprintf("two stops are called %q", stop.Name))
		}
		seen[stop.Name] = true
	}
	for i, r := range h.Reserved.Strings {
		if !escapable(r) {
			return fail(fmt.Sprintf("reserved.strings[%d]", i), "a reserved string needs two characters or more, none of them "+string(Mark))
		}
	}
	for i, r := range h.Reserved.Lines {
		if !escapable(r) || strings.Contains(r, "\n") {
			return fail(fmt.Sprintf("reserved.lines[%d]", i), "a line marker needs two characters or more, none of them a line end or "+string(Mark))
		}
	}
	return nil
}

// checkOpening refuses keys that mean nothing where the server renders.
func (h *Head) checkOpening() (field, msg string) {
	switch h.Opening {
	case OpenOwn:
		for i, r := range h.Recognise {
			if strings.TrimSpace(r) == "" {
				return fmt.Sprintf("recognise[%d]", i), "an empty text"
			}
		}
		return "", ""
	case OpenServer, OpenChat:
	default:
		return "opening", "the opening is server or chat, or is left out"
	}
	switch {
	case h.Call.Kind != "":
		return "call", "the server's template says how calls are spelled"
	case h.Think != Think{}:
		return "think", "the server's template says how thinking is spelled"
	case len(h.Stops) > 0:
		return "stops", "the server's template says where a turn ends"
	case len(h.Recognise) > 0:
		return "recognise", "only a format with an opening of its own is recognised"
	}
	return "", ""
}
