package stopgap_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// rules are the dependency directions of ARCHITECTURE.md: what each package
// may import beside the standard library. A pattern that ends in "/..." covers
// everything below. The longest matching package pattern decides.
var rules = []struct {
	pkg   string
	allow []string
}{
	{"stopgap/stopping", []string{"github.com/dlclark/regexp2/v2/..."}},
	{"stopgap/template", []string{
		"github.com/titanous/json5", "github.com/kaptinlin/jsonrepair", "go.starlark.net/syntax", "github.com/goccy/go-yaml/...", "github.com/dlclark/regexp2/v2/..."}},
	{"stopgap/models", []string{
		"github.com/ollama/ollama/api", "github.com/ollama/ollama/envconfig", "github.com/tmaxmax/go-sse",
		"github.com/cenkalti/backoff/v5", "github.com/goccy/go-yaml/...", "github.com/ollama/ollama/types/model",
		"github.com/santhosh-tekuri/jsonschema/v6", "stopgap/models/builtin", "stopgap/models/tokenizer",
	}},
	{"stopgap/models/builtin", []string{"stopgap/models/tokenizer", "github.com/ollama/ollama/fs/ggml", "github.com/viterin/vek/..."}},
	{"stopgap/models/tokenizer", []string{"github.com/ollama/ollama/fs/...", "github.com/dlclark/regexp2/v2/...", "golang.org/x/text/...", "github.com/daulet/tokenizers"}},
	{"stopgap/tools", []string{
		"github.com/santhosh-tekuri/jsonschema/v6/...", "github.com/agnivade/levenshtein", "golang.org/x/text/...", "golang.org/x/sync/...",
	}},
	{"stopgap/tools/corpus", []string{
		"stopgap/tools", "modernc.org/sqlite/...", "github.com/goccy/go-yaml/...", "golang.org/x/text/...", "golang.org/x/sync/...", "github.com/agnivade/levenshtein", "github.com/viterin/vek/...",
	}},
	{"stopgap/tools/goal", []string{"stopgap/tools"}},
	{"stopgap/tools/document", []string{
		"codeberg.org/readeck/go-readability/v2", "github.com/JohannesKaufmann/html-to-markdown/v2/...", "github.com/ledongthuc/pdf",
		"github.com/gogs/chardet", "golang.org/x/net/html/...", "golang.org/x/text/...", "golang.org/x/sys/..."}},
	{"stopgap/tools/files", []string{"stopgap/tools", "stopgap/tools/document", "stopgap/tools/goal"}},
	{"stopgap/tools/fetch", []string{"golang.org/x/text/..."}},
	{"stopgap/tools/browser", []string{"stopgap/tools/fetch"}},
	{"stopgap/tools/web", []string{
		"stopgap/tools", "stopgap/tools/fetch", "stopgap/tools/browser", "stopgap/tools/document", "stopgap/tools/goal",
		"github.com/cenkalti/backoff/v5", "golang.org/x/net/html",
	}},
	{"stopgap/tools/mcp", []string{"stopgap/tools", "github.com/modelcontextprotocol/go-sdk/..."}},
	{"stopgap/tools/own", []string{"stopgap/tools", "stopgap/tools/sandbox", "github.com/goccy/go-yaml"}},
	{"stopgap/tools/project", []string{"stopgap/tools"}},
	{"stopgap/tools/shell", []string{"stopgap/tools", "stopgap/tools/sandbox"}},
	{"stopgap/tools/sandbox", []string{"golang.org/x/sys/unix"}},
	{"stopgap/tools/python", []string{"stopgap/tools", "stopgap/tools/sandbox", "github.com/dustin/go-humanize"}},
	{"stopgap/runner", []string{"stopgap/models", "stopgap/stopping", "stopgap/template", "stopgap/tools"}},
	{"stopgap/internal/conformance", []string{"stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools"}},
	{"stopgap/internal/export", []string{"stopgap/internal/trace", "stopgap/models", "stopgap/runner", "stopgap/template"}},
	{"stopgap/internal/config", []string{"github.com/spf13/pflag", "github.com/goccy/go-yaml/...", "github.com/agnivade/levenshtein"}},
	{"stopgap/internal/trace", []string{"stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools"}},
	{"stopgap/internal/batch", []string{
		"stopgap/internal/eval/bfcl", "stopgap/internal/trace", "stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools", "modernc.org/sqlite", "github.com/klauspost/compress/zstd"}},
	{"stopgap/internal/research", []string{
		"stopgap/internal/research/bank", "stopgap/internal/research/outline", "stopgap/internal/research/cite", "stopgap/internal/research/article",
		"stopgap/internal/trace", "stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools", "stopgap/tools/goal"}},
	{"stopgap/internal/compare", []string{
		"stopgap/internal/batch", "stopgap/internal/eval/...", "stopgap/internal/trace", "stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools"}},
	{"stopgap/internal/report", []string{"stopgap/internal/compare", "stopgap/runner", "stopgap/template", "github.com/mattn/go-runewidth"}},
	{"stopgap/internal/automaton/...", []string{"stopgap/internal/automaton", "github.com/ollama/ollama/fs/...", "github.com/goccy/go-yaml/..."}},
	{"stopgap/internal/tinymodel", []string{"stopgap/internal/automaton", "github.com/ollama/ollama/fs/ggml"}},
	{"stopgap/internal/ollamatest", []string{"github.com/ollama/ollama/api"}},
	{"stopgap/internal/chromiumtest", nil},
	{"stopgap/internal/sample", nil},
	{"stopgap/internal/faultproxy", nil},
	{"stopgap/internal/eval/pystr", []string{"golang.org/x/text/..."}},
	{"stopgap/internal/eval/match", []string{"stopgap/internal/eval/pystr"}},
	{"stopgap/internal/eval/stats", nil},
	{"stopgap/internal/eval/cite", nil},
	{"stopgap/internal/eval/judge", nil},
	{"stopgap/internal/eval/bfcl", []string{"stopgap/internal/eval/pystr"}},
	{"stopgap/internal/eval/probe", []string{
		"stopgap/internal/eval/bfcl", "stopgap/internal/eval/stats", "stopgap/models", "stopgap/runner", "stopgap/template", "stopgap/tools"}},
	{"stopgap/internal/research/researchtest", []string{"stopgap/internal/automaton", "stopgap/models"}},
	{"stopgap/internal/research/bank", []string{"modernc.org/sqlite/..."}},
	{"stopgap/internal/research/cite", []string{"golang.org/x/text/..."}},
	{"stopgap/internal/research/outline", []string{"stopgap/internal/research/cite"}},
	{"stopgap/internal/research/article", []string{
		"stopgap/internal/research/bank", "stopgap/internal/research/cite", "stopgap/internal/research/outline", "github.com/yuin/goldmark/..."}},
	{"stopgap/internal/stopbench", []string{"stopgap/stopping", "github.com/dlclark/regexp2/..."}},
	// How the built-in model is trained and examined: it plays the whole loop.
	{"stopgap/models/builtin/train/...", []string{
		"stopgap/models", "stopgap/models/builtin/train", "stopgap/runner", "stopgap/template", "stopgap/tools/..."}},
	{"stopgap/cmd/...", []string{"..."}},
}

// leaves never import each other: they meet in runner, as strings and structs.
var leaves = []string{"stopgap/stopping", "stopgap/template", "stopgap/models", "stopgap/tools"}

// printers are packages that may print, log or exit. Nothing else does.
var printers = []string{"stopgap/cmd/", "stopgap/internal/automaton/", "stopgap/internal/stopbench", "stopgap/docs", "stopgap/models/builtin/train/"}

type listed struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Name       string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Name", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// covers reports whether a pattern matches an import path.
func covers(pattern, importPath string) bool {
	if base, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(importPath+"/", base)
	}
	return pattern == importPath
}

func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && first != "stopgap"
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	seen := 0
	for _, p := range packages(t) {
		best := -1
		for i, r := range rules {
			if covers(r.pkg, p.ImportPath) && (best < 0 || len(r.pkg) > len(rules[best].pkg)) {
				best = i
			}
		}
		if best < 0 {
			if len(p.Imports) > 0 {
				t.Errorf("%s has no rule: say in layout_test.go and ARCHITECTURE.md what it may import", p.ImportPath)
			}
			continue
		}
		for _, imp := range p.Imports {
			seen++
			if standard(imp) || slices.ContainsFunc(rules[best].allow, func(a string) bool { return a == "..." || covers(a, imp) }) {
				continue
			}
			t.Errorf("%s imports %s, which ARCHITECTURE.md does not allow", p.ImportPath, imp)
		}
	}
	if seen < 50 {
		t.Fatalf("only %d imports were looked at: the test reads nothing", seen)
	}
}

// TestStoppingStandsAlone: whoever imports the package gets regexp2 with it and
// nothing else.
func TestStoppingStandsAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./stopping").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	for _, d := range deps {
		if d != "stopgap/stopping" && !covers("github.com/dlclark/regexp2/v2/...", d) {
			t.Errorf("stopping needs %s", d)
		}
	}
	if len(deps) < 3 {
		t.Errorf("only %v", deps)
	}
}

func TestLeavesNeverImportEachOther(t *testing.T) {
	for _, p := range packages(t) {
		for _, leaf := range leaves {
			if !covers(leaf+"/...", p.ImportPath) || covers("stopgap/models/builtin/train/...", p.ImportPath) {
				continue // the training is no part of what is shipped
			}
			for _, other := range leaves {
				if other == leaf {
					continue
				}
				for _, imp := range p.Imports {
					if covers(other+"/...", imp) {
						t.Errorf("%s imports %s", p.ImportPath, imp)
					}
				}
			}
		}
	}
}

func TestOnlyCommandsPrint(t *testing.T) {
	for _, p := range packages(t) {
		if slices.ContainsFunc(printers, func(prefix string) bool { return strings.HasPrefix(p.ImportPath, prefix) }) {
			continue
		}
		for _, imp := range p.Imports {
			if imp == "log" || imp == "log/slog" || path.Base(imp) == "cobra" {
				t.Errorf("%s imports %s: only cmd prints, logs and exits", p.ImportPath, imp)
			}
		}
		if p.Name == "main" {
			t.Errorf("%s is a command outside cmd", p.ImportPath)
		}
	}
}
