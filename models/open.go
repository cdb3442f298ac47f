package models

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say how a model is reached. The zero value is useful. The package
// reads no environment variable: what comes from there is passed in here.
type Options struct {
	// OllamaHost is where Ollama listens, written as OLLAMA_HOST is: scheme,
	// port and host may each be missing. Empty means 127.0.0.1:11434.
	OllamaHost string
	// APIKey is sent as a bearer token to llama-server and OpenAI-style servers.
	APIKey string
	// ContextSize is the context in tokens that Ollama is asked for. Zero keeps
	// what a loaded model has, and otherwise what the server would choose; the
	// same value goes with every request, because another one reloads the model.
	// The built-in model takes it where it is less than its own.
	ContextSize int

	// FirstToken limits the silence before the first token, the loading of a
	// model by Ollama included; progress that the server reports starts it
	// anew. Zero means 5 minutes, negative none.
	FirstToken time.Duration
	// BetweenTokens limits the silence after that. Zero means 60 seconds,
	// negative none.
	BetweenTokens time.Duration
	// LoadWait limits the wait for a server that says it is loading. Zero means
	// 10 minutes.
	LoadWait time.Duration
	// Retries is how often a request is sent again before its first token.
	// Zero means 3, negative none.
	Retries int

	// Slots says whether llama-server is told which slot a session uses.
	Slots SlotChoice

	// Client sends the requests. Nil means a client that follows no redirect
	// and uses no proxy. It must have no Timeout: streams are long.
	Client *http.Client
}

// A SlotChoice says when requests to llama-server name a slot. With an explicit
// number of slots a session keeps its slot and thereby its cache; with the
// server's own default, where all slots share one cache, a named slot is
// cleared between turns, and every turn pays for the whole prompt.
type SlotChoice int

const (
	// SlotsAuto names slots where the server's slot count cannot be its default.
	SlotsAuto SlotChoice = iota
	// SlotsPinned always names a slot.
	SlotsPinned
	// SlotsFree never does.
	SlotsFree
)

// A Kind is one kind of model reference.
type Kind struct {
	Name string // the word before the colon
	Form string // for example "ollama:NAME"; what is in brackets may be left out
	Help string // one line
}

// A protocol is a kind of reference and how it is opened. rest is what stands
// after the colon, empty only where the form says so and there is no colon.
type protocol struct {
	Kind
	open func(rest string, opts Options) (Model, error)
}

// alone reports whether the name is a reference by itself.
func (k Kind) alone() bool { return strings.HasSuffix(k.Form, "]") }

// protocols is the list: a new protocol is a new file and a line here.
func protocols() []protocol {
	return []protocol{
		{Kind{"ollama", "ollama:NAME", "a model of Ollama"}, openOllama},
		{Kind{"llamacpp", "llamacpp:URL", "a llama-server"}, openLlama},
		{Kind{"openai", "openai:URL#MODEL", "a server with /v1/completions: vLLM, SGLang, LM Studio"}, openOpenAI},
		{Kind{builtinKind, builtinKind + "[:FILE]", "the model inside, or a small GGUF file like it"}, openBuiltin},
		{Kind{"script", "script:FILE", "a scripted model, for tests and examples"}, openScript},
	}
}

// Kinds lists the kinds of references that Open understands.
func Kinds() []Kind {
	var kinds []Kind
	for _, p := range protocols() {
		kinds = append(kinds, p.Kind)
	}
	return kinds
}

// Open returns the model that ref names, without asking its server yet (a
// script and a model file are read). A reference that cannot be read gives a
// *RefError.
func Open(ref string, opts Options) (Model, error) {
	name, rest, found := strings.Cut(ref, ":")
	for _, p := range protocols() {
		if p.Name != name || !found && !p.alone() {
			continue
		}
		if rest == "" && found {
			return nil, &RefError{Ref: ref, Reason: "nothing follows the colon", Kinds: []Kind{p.Kind}}
		}
		m, err := p.open(rest, opts.withDefaults())
		if bad, ok := err.(badRef); ok {
			return nil, &RefError{Ref: ref, Reason: string(bad), Kinds: []Kind{p.Kind}}
		}
		if err != nil {
			return nil, err
		}
		return m, nil
	}
	if !found {
		return nil, &RefError{Ref: ref, Reason: "the kind of server is missing", Kinds: Kinds()}
	}
	return nil, &RefError{Ref: ref, Reason: "unknown kind of server " + quoted(name), Kinds: Kinds()}
}

// A badRef is what an opener returns where Open makes a RefError of it.
type badRef string

func (b badRef) Error() string { return string(b) }

func quoted(s string) string { return `"` + excerpt(s, 40) + `"` }

// notAddress says that s is no address. It may hold a password, which is not
// repeated.
func notAddress(s string) error {
	return badRef("not an address: " + quoted(s[strings.LastIndexByte(s, '@')+1:]))
}

// withDefaults fills in what the zero values mean.
func (o Options) withDefaults() Options {
	or := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	or(&o.FirstToken, 5*time.Minute)
	or(&o.BetweenTokens, time.Minute)
	or(&o.LoadWait, 10*time.Minute)
	if o.Retries == 0 {
		o.Retries = 3
	}
	if o.Client == nil {
		o.Client = &http.Client{
			// A prompt goes to the address that the user named and nowhere else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DisableCompression:  true, // a compressed stream is a delayed stream
				MaxIdleConnsPerHost: 16,
				IdleConnTimeout:     30 * time.Second,
			},
		}
	}
	return o
}

// parseURL reads the address of a server; a missing scheme means http. Query,
// fragment and trailing slashes are dropped.
func parseURL(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return nil, notAddress(s)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, badRef("the scheme must be http or https, not " + quoted(u.Scheme))
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}, nil
}
