package endtoend

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
)

// pages are the documents whose console blocks are run, in order, from a
// folder that has docs/demo.
var pages = []string{"README.md", "docs/run.md", "docs/servers.md"}

// offline are the documents whose commands need no server.
var offline = []string{"docs/stopping.md", "docs/formats.md", "docs/tokenizers.md", "docs/retrieval.md", "docs/tools.md", "docs/traces.md", "docs/export.md", "docs/batch.md", "docs/probe.md", "docs/compare.md", "docs/report.md", "docs/research.md"}

// A step is one command of a page and the output that the page shows. Lines
// after "> " continue the command. A "..." at the end of a line or inside it
// stands for anything; alone on a line, for any number of lines.
type step struct {
	line    int
	command string
	want    []string
}

// steps reads the ```console blocks of a page.
func steps(t *testing.T, page string) []step {
	t.Helper()
	f, err := os.Open(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []step
	inside := false
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		n++
		switch line := sc.Text(); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && strings.HasPrefix(line, "$ "):
			out = append(out, step{line: n, command: line[2:]})
		case inside && len(out) > 0:
			last := &out[len(out)-1]
			if strings.HasPrefix(line, "> ") && last.want == nil {
				last.command += "\n" + line[2:]
				continue
			}
			last.want = append(last.want, line)
		}
	}
	return out
}

// pattern turns shown output into an expression for the real one.
func pattern(want []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for _, line := range want {
		if line == "..." {
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		for i, part := range strings.Split(line, "...") {
			if i > 0 {
				b.WriteString(`[^\n]*`)
			}
			b.WriteString(regexp.QuoteMeta(part))
		}
		b.WriteString(`\n`)
	}
	// The last line may have no end, as the end of a prompt has none.
	return regexp.MustCompile(strings.TrimSuffix(b.String(), `\n`) + `\n?\z`)
}

// command builds stopgap and gives its path.
func command(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "stopgap")
	build := exec.Command("go", "build", "-o", binary, "./cmd/stopgap")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// Every command of the documentation, on a real Ollama.
func TestDocumentation(t *testing.T) {
	s := ollamatest.Start(t) // the pages show which models it has
	script, err := automaton.ReadScript(filepath.Join(root, "docs/demo/model.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	model(t, s, "qwen3", script.Turns, automaton.Options{})

	bin := filepath.Dir(command(t))
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			follow(t, page, bin, "OLLAMA_HOST="+s.URL, "STOPGAP_MODEL=ollama:qwen3", "STOPGAP_CONTEXT=8192")
		})
	}
}

// Every command of the pages that need no server.
func TestOfflineDocumentation(t *testing.T) {
	bin := filepath.Dir(command(t))
	for _, page := range offline {
		t.Run(page, func(t *testing.T) { follow(t, page, bin) })
	}
}

// follow runs the commands of a page, with the stopgap in the folder bin, and
// compares what they print with what the page shows.
func follow(t *testing.T, page, bin string, env ...string) {
	dir, home := t.TempDir(), t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs/demo"), os.DirFS(filepath.Join(root, "docs/demo"))); err != nil {
		t.Fatal(err)
	}
	all := steps(t, page)
	if len(all) == 0 {
		t.Fatal("no commands")
	}
	for _, st := range all {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", "{ "+st.command+"\n} 2>&1")
		cmd.Dir = dir
		cmd.Env = append([]string{
			"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8",
		}, env...)
		out, err := cmd.Output()
		cancel()
		if err != nil {
			t.Errorf("%s:%d: %s: %v\n%s", page, st.line, st.command, err, out)
			continue
		}
		if !pattern(st.want).Match(out) {
			t.Errorf("%s:%d: %s\nprints\n%s\nthe page shows\n%s", page, st.line, st.command, out, strings.Join(st.want, "\n"))
		}
	}
}

// The Go code of a page stands in an example, which is run.
func TestGoOfDocumentation(t *testing.T) {
	for page, file := range map[string]string{
		"docs/stopping.md": "stopping/example_test.go", "docs/tokenizers.md": "models/tokenizer/example_test.go",
	} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		examples, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n```go\n")
		code, _, ok := strings.Cut(rest, "```\n")
		if !ok {
			t.Fatalf("%s: no Go code", page)
		}
		indented := regexp.MustCompile(`(?m)^.`).ReplaceAllString(code, "\t$0")
		if !strings.Contains(string(examples), indented) {
			t.Errorf("%s does not have\n%s", file, indented)
		}
	}
}
