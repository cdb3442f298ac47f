package models

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// local is a fake that answers fixed paths and 404 to others.
func local(t *testing.T, answers map[string]string) string {
	return httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(answer))
	})
}

const localTags = `{"models":[
	{"name":"old:1b","modified_at":"2024-01-01T00:00:00Z"},
	{"name":"new:8b","modified_at":"2025-06-01T00:00:00Z"},
	{"name":"cloud:1t","modified_at":"2026-01-01T00:00:00Z","remote_host":"https://elsewhere"}]}`

func TestOllamaIsFound(t *testing.T) {
	writes := `{"capabilities":["completion","tools"]}`
	for _, c := range []struct {
		name     string
		answers  map[string]string
		ref, why string
	}{
		{"the loaded model", map[string]string{
			"/api/tags": localTags, "/api/ps": `{"models":[{"name":"old:1b"}]}`, "/api/show": writes,
		}, "ollama:old:1b", "it is loaded"},
		{"the model changed last, on this machine", map[string]string{
			"/api/tags": localTags, "/api/ps": `{"models":[]}`, "/api/show": writes,
		}, "ollama:new:8b", "it was changed last"},
		{"an old server that does not tell what models can do", map[string]string{
			"/api/tags": localTags, "/api/show": `{}`,
		}, "ollama:new:8b", "it was changed last"},
		{"only embedding models", map[string]string{
			"/api/tags": localTags, "/api/show": `{"capabilities":["embedding"]}`,
		}, "", ""},
		{"no models", map[string]string{"/api/tags": `{"models":[]}`}, "", ""},
		{"another server", map[string]string{"/api/tags": `{"hello":"world"}`}, "", ""},
		{"a page", map[string]string{"/api/tags": `<html>`}, "", ""},
		{"nothing", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := probeOllama(t.Context(), Options{OllamaHost: local(t, c.answers), Retries: -1}.withDefaults())
			check(t, "reference", f.Ref, c.ref)
			check(t, "reason", f.Why, c.why)
			if f.Ref == "" && f.Err == nil && len(f.Models) > 0 && c.name != "only embedding models" {
				t.Errorf("finding is %+v", f)
			}
		})
	}
}

func TestLlamaServerIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		found   bool
	}{
		"llama-server":   {map[string]string{"/props": `{"default_generation_settings":{"n_ctx":4096},"total_slots":4,"model_path":"/models/a.gguf"}`}, true},
		"another server": {map[string]string{"/props": `{"some":"thing"}`}, false},
		"a page":         {map[string]string{"/props": `<html>`}, false},
		"nothing":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := probeLlamaAt(t.Context(), Options{}.withDefaults(), local(t, c.answers))
			check(t, "found", f.Ref != "", c.found)
			check(t, "error", f.Err != nil, !c.found)
			if c.found {
				check(t, "model", f.Models[0].Name, "a.gguf")
			}
		})
	}
	loading := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`))
	})
	f := probeLlamaAt(t.Context(), Options{}.withDefaults(), loading)
	check(t, "reason", f.Why, "it is loading its model")
}

func TestDiscoveryEndsAtTheBuiltinModel(t *testing.T) {
	found, err := Discover(t.Context(), Options{OllamaHost: refusedURL})
	if err != nil {
		t.Fatal(err)
	}
	if found.URL != "" {
		t.Skipf("a llama-server runs at %s", found.URL)
	}
	check(t, "reference", found.Ref, "builtin")
	if !strings.Contains(found.Why, "M parameters") || len(found.Models) != 1 || found.Err != nil {
		t.Errorf("finding is %+v", found)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := Discover(ctx, Options{}); !errors.Is(err, context.Canceled) || found.Ref != "" {
		t.Errorf("after its context: %+v, %v", found, err)
	}
}

func TestDiscoveryPrefersOllama(t *testing.T) {
	host := local(t, map[string]string{"/api/tags": localTags, "/api/show": `{}`})
	found, err := Discover(t.Context(), Options{OllamaHost: host})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "reference", found.Ref, "ollama:new:8b")
}

func TestProbeAsksAllServers(t *testing.T) {
	host := local(t, map[string]string{"/api/tags": localTags, "/api/show": `{}`})
	findings := Probe(t.Context(), Options{OllamaHost: host})
	check(t, "findings", len(findings), 6)
	check(t, "the first", findings[0].Ref, "ollama:new:8b")
	check(t, "the last", findings[5].Ref, "builtin")
	for i, f := range findings {
		if (f.URL == "") != (i == 5) || f.Server == "" || f.Ref == "" && f.Err == nil && len(f.Models) > 0 {
			t.Errorf("finding is %+v", f)
		}
	}
}

func TestKeysAreNotSentToWhoeverListens(t *testing.T) {
	address := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a probe sent the key")
		}
		_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
	})
	opts := Options{APIKey: "k", OllamaHost: address}.withDefaults()
	probeOllama(t.Context(), opts)
	probeLlamaAt(t.Context(), opts, address)
	f := probeOpenAI(t.Context(), opts, address)
	check(t, "reference", f.Ref, "openai:"+address+"#m")
}

// TestDiscoverySaysLittleOfOthers: what else listens there may be anything.
func TestDiscoverySaysLittleOfOthers(t *testing.T) {
	const page = "<!doctype html>\n<p>\x1b[31mhello"
	for want, handler := range map[string]http.HandlerFunc{
		"answers with status 404":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, page, http.StatusNotFound) },
		"what listens there is no": func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(page)) },
		"no answer within 1.5s":    func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		address := httpServer(t, handler)
		opts := Options{OllamaHost: address}.withDefaults()
		for _, f := range []Finding{probeOllama(t.Context(), opts), probeLlamaAt(t.Context(), opts, address), probeOpenAI(t.Context(), opts, address)} {
			if words := f.Reason(); !strings.Contains(words, want) || strings.Contains(words, "hello") {
				t.Errorf("%s: reason is %q, want %q", f.Server, words, want)
			}
		}
	}
}
