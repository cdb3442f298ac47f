package template

// Head is what a format file says before its blocks, key by key.
type Head struct {
	// Extends names a shipped format whose head and blocks are the starting
	// point: a key replaces the one of the same path (lists as a whole), a
	// block replaces the block of the same name.
	Extends     string `yaml:"extends"`
	Description string `yaml:"description"` // one line for lists of formats
	System      string `yaml:"system"`      // the default system message

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

// A Spelling is how calls are spelled.
type Spelling struct {
	Kind CallKind `yaml:"kind"`
	// Open and Close are the tags around a JSON call.
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
	// Name and Arguments are the keys of a JSON call, the canonical one first;
	// where several are present the first of this list counts. For lines they
	// are the labels, exactly one each, for example "Action:".
	Name      []string `yaml:"name"`
	Arguments []string `yaml:"arguments"`
}

// A CallKind is a family of spellings.
type CallKind string

const (
	// JSONCalls are JSON objects between two tags, any number a turn.
	JSONCalls CallKind = "json"
	// LineCalls are a line with the tool's name and then the arguments as a
	// JSON object, one call a turn, as in ReAct.
	LineCalls CallKind = "lines"
)

// Response is how a tool's response begins and ends in the prompt. A model
// that writes Open itself has invented a response.
type Response struct {
	Open  string `yaml:"open"`
	Close string `yaml:"close"`
}

// Answer is how the answer is spelled.
type Answer struct {
	// After is the marker that the answer follows, for example "Final Answer:".
	// Without one the answer is the text outside the thinking part of a turn
	// that makes no call.
	After string `yaml:"after"`
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
