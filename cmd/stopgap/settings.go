package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stopgap/internal/batch"
	"stopgap/internal/config"
	"stopgap/models"
	"stopgap/tools/corpus"
	"stopgap/tools/web"
)

const defaultFormat = "qwen"

// Settings are everything that a flag, a variable STOPGAP_… or the
// configuration file can say.
type settings struct {
	model      string
	context    int
	firstToken time.Duration
	between    time.Duration
	apiKeyEnv  string

	format      string
	system      string
	date        string
	values      []string
	maxQuestion uint64

	corpus string
	index  string
	embed  string
	tools  []string
	allow  []string
	folder string
	// toolFile declares more tools; configPath is the configuration file, beside
	// which such a file is looked for.
	toolFile     string
	configPath   string
	searchEngine string
	searchURL    string
	searchKeyEnv string
	allowHosts   []string
	converters   []string
	python       string
	// pythonEndpoints run code elsewhere; unsafePython runs it here unprotected.
	pythonEndpoints []string
	unsafePython    bool
	yes             bool // tools with side effects need not ask; never a setting
	// functions is the first question of a dataset whose questions bring functions
	// of their own: there are no other tools. It is never a setting.
	functions *batch.Item

	toolChoice   string
	constrain    bool
	strict       bool
	callsInThink string

	prefill     bool
	maxTurns    int
	maxTokens   int
	turnTokens  int
	thinkTokens int
	maxCalls    int
	callLimits  []string
	timeout     time.Duration
	resumes     int
	singleCall  bool
	stops       []string
	stopRegex   []string
	stopFile    string

	sampling models.Sampling

	trace string
	quiet bool
	color string

	// origins tell where each setting came from, by name.
	origins map[string]config.Origin
	// found is the model that was discovered, where none is named.
	found models.Finding
}

func newSettings() *settings {
	return &settings{
		firstToken: 5 * time.Minute, between: time.Minute, apiKeyEnv: "STOPGAP_API_KEY",
		format: defaultFormat, maxQuestion: 1 << 20, maxTurns: 20, resumes: 2, color: "auto",
		toolChoice: "auto", searchEngine: "auto", callsInThink: "auto", folder: ".", python: "python3",
	}
}

// A group is a few flags under one heading of the help. The names of all
// groups but groupThis are settings.
type group string

const (
	groupModel    group = "Model"
	groupPrompt   group = "Prompt"
	groupTools    group = "Tools"
	groupCalls    group = "Calls"
	groupLimits   group = "Limits"
	groupStopping group = "Stopping"
	groupSampling group = "Sampling"
	groupOutput   group = "Output"
	groupThis     group = "This command" // never from the environment or the file
)

// groups is the order of the headings.
var groups = [...]group{
	groupModel, groupPrompt, groupTools, groupCalls, groupLimits, groupStopping, groupSampling, groupOutput, groupThis,
}

// flags makes the flags of one group.
func (s *settings) flags(g group) *pflag.FlagSet {
	f := pflag.NewFlagSet(string(g), pflag.ContinueOnError)
	f.SortFlags = false
	switch g {
	case groupModel:
		f.StringVarP(&s.model, "model", "m", s.model, "the model, as `REF`: "+kinds())
		f.Var(count{&s.context, 0}, "context", "context size in tokens, for Ollama (num_ctx); 0 keeps what the server has")
		f.Var(span{&s.firstToken}, "first-token-timeout", "longest wait for the first token, loading included; 0 for no limit")
		f.Var(span{&s.between}, "token-timeout", "longest wait between two tokens; 0 for no limit")
		f.Var(variable{&s.apiKeyEnv}, "api-key-env", "the environment variable that has the server's key")
		f.BoolVar(&s.prefill, "prefill", s.prefill, "let the server read the words before a result while the tool runs")
	case groupPrompt:
		f.StringVarP(&s.format, "format", "f", s.format, "the prompt format: a `NAME` or a format file")
		f.StringVar(&s.system, "system", s.system, "the system message: `TEXT`, or @FILE")
		f.Var(date{&s.date}, "date", "the date that the prompt tells (default today)")
		f.Var(list{&s.values, "KEY=VALUE", checkPair}, "set", "a value for the format's blocks (repeatable)")
		f.Var(size{&s.maxQuestion}, "max-question", "the longest question that is taken")
	case groupTools:
		f.StringVar(&s.corpus, "corpus", s.corpus, "search and read the documents of a `DIR`, of a .jsonl file or of a server (http://…); sample for those that come along")
		f.StringVar(&s.index, "index", s.index, "the `FILE` of the corpus's index (default in the cache folder)")
		f.StringVar(&s.embed, "embed", s.embed, "search by vectors too, from this embedding model, as `REF`: "+corpus.EmbedForms)
		f.Var(words{&s.tools, "NAME,…", checkStop}, "tools", "give the model these tools: names of tools, families or MCP servers")
		f.Var(words{&s.allow, "net,files,code", checkCapability}, "allow", "what the tools may reach: the network, files below --folder, programs")
		f.StringVar(&s.toolFile, "tool-file", s.toolFile, "the YAML `FILE` that declares your own tools and MCP servers (default tools.yaml beside the configuration)")
		f.StringVar(&s.folder, "folder", s.folder, "the `DIR` that tools which reach files see")
		f.Var(list{&s.converters, "EXT=COMMAND", checkConverter}, "converter", "read files of a type with a command, as in 'doc=catdoc {file}' (repeatable)")
		f.Var(choice{&s.searchEngine, append([]string{"auto"}, web.Engines()...)}, "search-engine", "the `ENGINE` that web_search asks: "+strings.Join(web.Engines(), ", ")+"; auto is the first that is set up")
		f.StringVar(&s.searchURL, "search-url", s.searchURL, "the `URL` where the search engine answers; SearXNG needs it")
		f.Var(variable{&s.searchKeyEnv}, "search-key-env", "the environment variable that has the search engine's key")
		f.Var(list{&s.allowHosts, "HOST[:PORT]", checkStop}, "allow-host", "let web tools reach this host, also on this machine or in a private network (repeatable)")
		f.StringVar(&s.python, "python", s.python, "the Python `PROGRAM` that PythonInterpreter runs code with")
		f.Var(list{&s.pythonEndpoints, "URL", checkEndpoint}, "python-endpoint", "run code on this SandboxFusion server instead (repeatable)")
		f.BoolVar(&s.unsafePython, "unsafe-python", false, "run code that a model writes without a sandbox; only as a flag")
		f.Var(count{&s.maxCalls, 0}, "max-calls", "how often each tool may be called; 0 leaves it to the format")
		f.Var(list{&s.callLimits, "TOOL=N", checkLimit}, "call-limit", "how often one tool may be called (repeatable)")
	case groupCalls:
		f.StringVar(&s.toolChoice, "tool-choice", s.toolChoice, "auto, none, required, or the `NAME` of the tool that the first turn calls")
		f.BoolVar(&s.constrain, "constrain", s.constrain, "hold calls to the names and the schemas of the tools, on servers that can")
		f.BoolVar(&s.strict, "strict", s.strict, "take only calls that are spelled as the format asks, and repair none")
		f.Var(choice{&s.callsInThink, []string{"auto", "yes", "no"}}, "calls-in-think", "whether calls inside the thinking part count; auto is as the format says")
	case groupLimits:
		f.Var(count{&s.maxTurns, 1}, "max-turns", "how often the model may write before an answer is forced")
		f.Var(count{&s.maxTokens, 0}, "max-tokens", "how long the whole prompt may become; 0 for the model's context")
		f.Var(count{&s.turnTokens, 0}, "turn-tokens", "how much the model may write in a turn; 0 leaves it to the format")
		f.Var(count{&s.thinkTokens, 0}, "think-tokens", "how much of a turn may be thinking, before that is closed; 0 for no limit")
		f.Var(span{&s.timeout}, "timeout", "time for the whole run; 0 for no limit")
		f.Var(count{&s.resumes, 0}, "resumes", "how often a run goes on with a stream that was cut")
	case groupStopping:
		f.BoolVar(&s.singleCall, "single-call", s.singleCall, "halt after the first call of a turn")
		f.Var(list{&s.stops, "TEXT", checkStop}, "stop", "end a turn at this text and cut it off (repeatable)")
		f.Var(list{&s.stopRegex, "REGEX", checkStop}, "stop-regex", "end a turn where this matches and keep the match (repeatable)")
		f.StringVar(&s.stopFile, "stops", s.stopFile, "more criteria, of every kind: a YAML `FILE`, see \"stopgap stop --help\"")
	case groupSampling:
		f.Var(decimal{&s.sampling.Temperature, 0, 100}, "temperature", "0 is the most likely token each time")
		f.Var(decimal{&s.sampling.TopP, 0, 1}, "top-p", "take the likeliest tokens up to this probability")
		f.Var(integer{&s.sampling.TopK, 0}, "top-k", "take the N likeliest tokens")
		f.Var(decimal{&s.sampling.MinP, 0, 1}, "min-p", "drop tokens below this share of the likeliest")
		f.Var(decimal{&s.sampling.PresencePenalty, -2, 2}, "presence-penalty", "against tokens that were there already")
		f.Var(decimal{&s.sampling.RepeatPenalty, 0, 10}, "repeat-penalty", "against repetition")
		f.Var(integer{&s.sampling.Seed, -1}, "seed", "of the random numbers")
	case groupOutput:
		f.StringVar(&s.trace, "trace", s.trace, "append the journal of the run to `FILE`")
		f.BoolVarP(&s.quiet, "quiet", "q", s.quiet, "print only the answer and errors")
		f.Var(choice{&s.color, []string{"auto", "always", "never"}}, "color", "colours; NO_COLOR is honoured by auto")
	}
	return f
}

const groupKey = "stopgap_group"

// addFlags gives a command the flags of some groups.
func addFlags(cmd *cobra.Command, s *settings, wanted ...group) {
	for _, g := range wanted {
		s.flags(g).VisitAll(func(f *pflag.Flag) { addFlag(cmd, g, f) })
	}
}

// addSome gives a command some flags of a group.
func addSome(cmd *cobra.Command, s *settings, g group, names ...string) {
	all := s.flags(g)
	for _, name := range names {
		addFlag(cmd, g, all.Lookup(name))
	}
}

func addFlag(cmd *cobra.Command, g group, f *pflag.Flag) {
	cmd.Flags().SortFlags = false
	f.Annotations = map[string][]string{groupKey: {string(g)}}
	cmd.Flags().AddFlag(f)
}

// ownFlags puts flags that are no settings under the last heading.
func ownFlags(cmd *cobra.Command, add func(*pflag.FlagSet)) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	add(f)
	f.VisitAll(func(f *pflag.Flag) { addFlag(cmd, groupThis, f) })
}

// settingNames lists all settings, in the order of the help.
func settingNames() []string {
	var names []string
	for _, g := range groups {
		newSettings().flags(g).VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	return names
}

// settle fills the settings from the environment and the configuration file
// where the command line is silent.
func (a *app) settle(cmd *cobra.Command, s *settings) error {
	s.configPath, _ = a.configPath(cmd)
	file, err := a.configFile(cmd)
	if err != nil {
		return err
	}
	s.origins, err = config.Apply(cmd.Flags(), settingNames(), a.lookup, file)
	if err != nil {
		return err
	}
	if s.date == "" {
		s.date = a.now().Format(time.DateOnly)
	}
	return nil
}

// configFile reads the configuration file, if there is one. Only one that was
// asked for must exist.
func (a *app) configFile(cmd *cobra.Command) (*config.File, error) {
	path, asked := a.configPath(cmd)
	if path == "" {
		return nil, nil
	}
	file, err := config.Read(path, settingNames())
	// A home that is no folder has no configuration either.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if !asked {
			return nil, nil
		}
		return nil, &usageError{err: &config.Error{Path: path, Reason: "there is no such configuration file"}}
	}
	return file, err
}

// configPath is where the configuration file is, and whether somebody said so.
// An empty --config or STOPGAP_CONFIG means none.
func (a *app) configPath(cmd *cobra.Command) (path string, asked bool) {
	if f := cmd.Flag("config"); f != nil && f.Changed {
		return f.Value.String(), true
	}
	if v, ok := a.lookup("STOPGAP_CONFIG"); ok {
		return v, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false // no home folder, no file
	}
	return filepath.Join(dir, "stopgap", "config.yaml"), false
}
