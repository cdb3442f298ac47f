package trace

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A Header has what it takes to make the run again, but for the model and the
// work of the tools.
type Header struct {
	// ID tells the run from all others.
	ID string `json:"id"`
	// Key is the hash of the configuration, question included, and the seed:
	// runs with the same key were asked the same in the same way.
	Key     string `json:"key"`
	Version string `json:"version"` // of stopgap
	Model   string `json:"model"`   // the reference that opened it
	Server  string `json:"server,omitempty"`
	Format  Format `json:"format"`
	Task    Task   `json:"task"`
	// Runner are the plain fields of the runner.Runner that are not zero, by
	// their names in Go.
	Runner map[string]json.RawMessage `json:"runner"`
	// Counts says that the run had a Runner.CountTokens. Its function is not in
	// the journal; what it gave is.
	Counts bool   `json:"counts,omitempty"`
	Tools  []Tool `json:"tools,omitempty"`
	Bounds Bounds `json:"bounds"`
	// Settings are those that differ from their defaults, as they were given.
	Settings map[string]string `json:"settings,omitempty"`
	// Continues is the hash of the ledger that the question continues, see
	// Ledger; empty for a first question.
	Continues string `json:"continues,omitempty"`
	// Forked says of which run and turn this run is another way on.
	Forked *Forked `json:"forked,omitempty"`
}

// A Format is a prompt format as it was.
type Format struct {
	Name string `json:"name"` // its name or its file
	// Text is the whole file, without the shipped format that it may extend.
	Text       string `json:"text"`
	SHA256     string `json:"sha256"`                // of Text, in hex
	SingleCall bool   `json:"single_call,omitempty"` // set beside the file
}

// A Task is the question and what goes with it.
type Task struct {
	Question string            `json:"question"`
	System   string            `json:"system,omitempty"`
	Date     string            `json:"date,omitempty"`
	Values   map[string]string `json:"values,omitempty"`
	Texts    map[string]string `json:"texts,omitempty"`
}

// A Tool is what the model was told of a tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	SideEffects bool            `json:"side_effects,omitempty"`
	// Capabilities are what the tool could reach.
	Capabilities []tools.Capability `json:"capabilities,omitempty"`
}

// Bounds are the tools.Options of the run.
type Bounds struct {
	Timeout   time.Duration  `json:"timeout_ns,omitempty"`
	MaxTokens int            `json:"max_tokens,omitempty"`
	Parallel  int            `json:"parallel,omitempty"`
	Limit     int            `json:"limit,omitempty"`
	Limits    map[string]int `json:"limits,omitempty"`
}

// Forked names a run and how many of its turns were played.
type Forked struct {
	Run string `json:"run"`
	At  int    `json:"at"`
}

// About is what a header says beside the Runner and the Task.
type About struct {
	Version, Model, Server string
	Format                 string // its name or its file
	Text                   []byte // of the format's file
	Settings               map[string]string
	Forked                 *Forked
}

// newHeader describes a run.
func newHeader(a About, r *runner.Runner, task runner.Task) (Header, error) {
	sum := sha256.Sum256(a.Text)
	h := Header{
		ID: rand.Text(), Version: a.Version, Model: a.Model, Server: a.Server, Settings: a.Settings, Forked: a.Forked,
		Format: Format{Name: a.Format, Text: string(a.Text), SHA256: hex.EncodeToString(sum[:]), SingleCall: r.Format.SingleCall},
		Task:   Task{Question: task.Question, System: task.System, Date: task.Date, Values: task.Values, Texts: task.Texts},
		Counts: r.CountTokens != nil,
	}
	if task.Ledger != nil && len(task.Ledger.Segments()) > 0 {
		h.Continues = Ledger(task.Ledger)
	}
	if r.Tools != nil {
		for _, s := range r.Tools.Specs() {
			h.Tools = append(h.Tools, Tool(s))
		}
		o := r.Tools.Options()
		h.Bounds = Bounds{o.Timeout, o.MaxTokens, o.Parallel, o.Limit, o.Limits}
	}
	var err error
	if h.Runner, err = plainFields(r); err != nil {
		return h, err
	}
	h.Key, err = h.key(r)
	return h, err
}

// key hashes what decides about the run, without the seed, which stands beside
// it, and the name of the server's slot.
func (h Header) key(r *runner.Runner) (string, error) {
	seed := "-"
	if s := r.Sampling.Seed; s != nil {
		seed = strconv.Itoa(*s)
	}
	bare := *r
	bare.Sampling.Seed, bare.Session = nil, ""
	fields, err := plainFields(&bare)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal([]any{h.Model, h.Format.SHA256, h.Format.SingleCall, h.Task, h.Tools, h.Bounds, h.Continues, fields})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]) + "-" + seed, nil
}

// Parts of a Runner that are no data; each is made anew where a run is played.
var parts = map[string]bool{"Model": true, "Format": true, "Tools": true, "CountTokens": true, "WithTimeout": true}

// plainFields are the fields of a Runner that are data.
func plainFields(r *runner.Runner) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; !parts[name] && !v.Field(i).IsZero() {
			b, err := json.Marshal(v.Field(i).Interface())
			if err != nil {
				return nil, fmt.Errorf("runner.%s: %w", name, err)
			}
			out[name] = b
		}
	}
	return out, nil
}

// A HeaderError says that a run cannot be made again from its header.
type HeaderError struct {
	What string
	Err  error
}

func (e *HeaderError) Error() string { return "the header's " + e.What + ": " + e.Err.Error() }
func (e *HeaderError) Unwrap() error { return e.Err }

// Revive gives the Runner and the Task of the header, without a model and without
// a CountTokens. Its tools have their specs and their bounds, and do nothing. The
// error is a *HeaderError.
func (h *Header) Revive() (*runner.Runner, runner.Task, error) { return h.revive((*Format).compile) }

// revive is Revive with formats that may have been compiled before.
func (h *Header) revive(compile func(*Format) (*template.Format, error)) (*runner.Runner, runner.Task, error) {
	fail := func(what string, err error) (*runner.Runner, runner.Task, error) {
		return nil, runner.Task{}, &HeaderError{what, err}
	}
	r := &runner.Runner{}
	v := reflect.ValueOf(r).Elem()
	for name, value := range h.Runner {
		f := v.FieldByName(name)
		if !f.IsValid() || parts[name] {
			return fail("field "+name, fmt.Errorf("this version does not know it"))
		}
		if err := json.Unmarshal(value, f.Addr().Interface()); err != nil {
			return fail("field "+name, err)
		}
	}
	var err error
	if r.Format, err = compile(&h.Format); err != nil {
		return fail("format", err)
	}
	if r.Tools, err = h.tools(Live{}); err != nil {
		return fail("tools", err)
	}
	t := h.Task
	return r, runner.Task{Question: t.Question, System: t.System, Date: t.Date, Values: t.Values, Texts: t.Texts}, nil
}

// compile gives the format as the run had it.
func (f *Format) compile() (*template.Format, error) {
	compiled, err := template.Compile(f.Name, []byte(f.Text))
	if err != nil || compiled.SingleCall == f.SingleCall {
		return compiled, err
	}
	single := *compiled
	single.SingleCall = f.SingleCall
	return &single, nil
}

// tools are those of the header, within its bounds; live has those that do
// something.
func (h *Header) tools(live Live) (*tools.Set, error) {
	if len(h.Tools) == 0 {
		return nil, nil
	}
	var list []tools.Tool
	for _, t := range h.Tools {
		list = append(list, described{tools.Spec(t)})
		for _, w := range live.Tools {
			if w.Spec().Name == t.Name {
				list[len(list)-1] = w
			}
		}
	}
	b := h.Bounds
	return tools.NewSet(list, tools.Options{
		Timeout: b.Timeout, MaxTokens: b.MaxTokens, Parallel: b.Parallel, Limit: b.Limit, Limits: b.Limits,
		Approve: live.Approve,
	})
}
