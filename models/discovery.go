package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// A Finding is what was found at one address where a server may listen.
type Finding struct {
	Server string   // "ollama", "llama-server", "openai-style server", or "builtin"
	URL    string   // empty for the built-in model
	Ref    string   // the model to use there, empty where there is none
	Why    string   // why this model: "it is loaded", …
	Models []Listed // the models that the server has
	Err    error    // why there is no model here
}

// Reason is why there is no model here, in a few words: what listens there may
// be anything, and its pages say nothing.
func (f Finding) Reason() string {
	var (
		un *UnreachableError
		se *ServerError
		pe *ProtocolError
	)
	switch {
	case f.Err == nil:
		return "it has no model that writes text"
	case errors.As(f.Err, &un):
		return un.Reason()
	case errors.Is(f.Err, context.DeadlineExceeded):
		return "no answer within " + probeLimit.String()
	case errors.As(f.Err, &se):
		return fmt.Sprintf("what listens there answers with status %d", se.Status)
	case errors.As(f.Err, &pe):
		return "what listens there is no " + f.Server
	}
	return f.Err.Error()
}

const (
	probeLimit = 1500 * time.Millisecond
	// llamaAddress is where llama-server listens by default.
	llamaAddress = "http://127.0.0.1:8080"
	// showLimit bounds the models that are asked what they can do.
	showLimit = 8
)

// openaiAddresses are where vLLM, SGLang and LM Studio listen by default.
var openaiAddresses = [...]string{"http://127.0.0.1:8000", "http://127.0.0.1:30000", "http://127.0.0.1:1234"}

// Discover looks for a model on this machine, at Ollama's address and at
// llama-server's at the same time, and takes Ollama's if both have one. It takes
// no longer than two seconds. Where neither has one it is the built-in model.
// The finding says what was chosen and why; the error is the context's.
func Discover(ctx context.Context, opts Options) (Finding, error) {
	opts = opts.withDefaults()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	second := make(chan Finding, 1)
	go func() { second <- probeLlama(inner, opts) }()
	for _, probe := range []func() Finding{
		func() Finding { return probeOllama(inner, opts) },
		func() Finding { return <-second },
	} {
		f := probe()
		if err := ctx.Err(); err != nil {
			return Finding{}, err
		}
		if f.Ref != "" {
			return f, nil
		}
	}
	return findBuiltin(), nil
}

// Probe asks all the addresses where local servers listen by default, at the
// same time, and returns one finding for each, Ollama first and the built-in
// model last.
func Probe(ctx context.Context, opts Options) []Finding {
	opts = opts.withDefaults()
	probes := []func() Finding{
		func() Finding { return probeOllama(ctx, opts) },
		func() Finding { return probeLlama(ctx, opts) },
	}
	for _, a := range openaiAddresses {
		probes = append(probes, func() Finding { return probeOpenAI(ctx, opts, a) })
	}
	probes = append(probes, findBuiltin)
	findings := make([]Finding, len(probes))
	var wg sync.WaitGroup
	for i, p := range probes {
		wg.Go(func() { findings[i] = p() })
	}
	wg.Wait()
	return findings
}

// probeOllama chooses among Ollama's models: one that is loaded, else the one
// that was changed last. Models that do not write text (embeddings) and models
// that run elsewhere (the prompt would leave the machine) are left out.
func probeOllama(ctx context.Context, opts Options) Finding {
	f := Finding{Server: "ollama"}
	m, err := openOllama("any", opts)
	if err != nil {
		f.URL, f.Err = opts.OllamaHost, err
		return f
	}
	s := m.(*ollama)
	f.URL = s.url()
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var tags api.ListResponse
	if f.Err = s.call(ctx, http.MethodGet, "/api/tags", nil, &tags); f.Err != nil {
		return f
	}
	if tags.Models == nil {
		f.Err = &ProtocolError{Server: s.kind, Reason: "the server there is not Ollama"}
		return f
	}
	f.Models = listOllama(tags)
	var ps api.ProcessResponse
	if s.call(ctx, http.MethodGet, "/api/ps", nil, &ps) != nil {
		ps.Models = nil // then none is known to be loaded
	}
	loaded := func(name string) bool {
		return slices.ContainsFunc(ps.Models, func(p api.ProcessModelResponse) bool { return p.Name == name })
	}
	local := slices.DeleteFunc(slices.Clone(tags.Models), func(t api.ListModelResponse) bool { return t.RemoteHost != "" })
	slices.SortStableFunc(local, func(a, b api.ListModelResponse) int {
		if la, lb := loaded(a.Name), loaded(b.Name); la != lb {
			if la {
				return -1
			}
			return 1
		}
		return b.ModifiedAt.Compare(a.ModifiedAt)
	})
	for _, t := range local[:min(len(local), showLimit)] {
		writes, err := s.writesText(ctx, t.Name)
		if err != nil {
			f.Err = err
			return f
		}
		if !writes {
			continue
		}
		f.Ref, f.Why = "ollama:"+t.Name, "it was changed last"
		if loaded(t.Name) {
			f.Why = "it is loaded"
		}
		return f
	}
	return f
}

// writesText asks whether a model generates text.
func (m *ollama) writesText(ctx context.Context, name string) (bool, error) {
	var show api.ShowResponse
	if err := m.call(ctx, http.MethodPost, "/api/show", &api.ShowRequest{Model: name}, &show); err != nil {
		return false, err
	}
	// Servers that do not tell capabilities are old; then all models qualify.
	return len(show.Capabilities) == 0 || slices.Contains(show.Capabilities, model.CapabilityCompletion), nil
}

// probeLlama checks that what listens at 8080 is a llama-server: many others
// use that port.
func probeLlama(ctx context.Context, opts Options) Finding {
	return probeLlamaAt(ctx, opts, llamaAddress)
}

func probeLlamaAt(ctx context.Context, opts Options, address string) Finding {
	f := Finding{Server: "llama-server", URL: address}
	opts.APIKey = "" // not for whoever happens to listen there
	m, err := openLlama(address, opts)
	if err != nil {
		f.Err = err
		return f
	}
	s := m.(*llama)
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var props llamaProps
	err = s.call(ctx, http.MethodGet, "/props", nil, &props)
	var loading *LoadingError
	switch {
	case errors.As(err, &loading):
		f.Ref, f.Why = "llamacpp:"+address, "it is loading its model"
	case err != nil:
		f.Err = err
	case props.Slots == nil || props.Settings.Context == 0:
		f.Err = &ProtocolError{Server: s.kind, Reason: "the server there is not llama-server"}
	default:
		f.Ref, f.Why = "llamacpp:"+address, "it answers at its default address"
		name := cmp.Or(props.Alias, props.Path)
		f.Models = []Listed{{Name: name[strings.LastIndexAny(name, `/\`)+1:]}}
	}
	return f
}

func probeOpenAI(ctx context.Context, opts Options, address string) Finding {
	f := Finding{Server: "openai-style server", URL: address}
	opts.APIKey = ""
	m, err := openOpenAI(address, opts)
	if err != nil {
		f.Err = err
		return f
	}
	s := m.(*openai)
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	f.Models, f.Err = s.List(ctx)
	if f.Err == nil && len(f.Models) > 0 {
		f.Ref = "openai:" + address + "#" + f.Models[0].Name
		f.Why = "it is the first in the list"
	}
	return f
}
