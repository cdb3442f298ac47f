package endtoend

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMemory: questions that fill the built-in model's context, one after the
// other in one process, each another one, so that nothing of their caches can
// be shared. The process stays under 100 MB.
func TestMemory(t *testing.T) {
	bin, dir := command(t), t.TempDir()
	var rows strings.Builder
	const questions = 5
	for i := range questions {
		words := strings.Repeat(string(rune('a'+i))+" long question ", 740)
		row, err := json.Marshal(map[string]any{"id": string(rune('a' + i)), "question": words})
		if err != nil {
			t.Fatal(err)
		}
		rows.Write(append(row, '\n'))
	}
	data := filepath.Join(dir, "long.jsonl")
	if err := os.WriteFile(data, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "batch", "--data", data, "--model", "builtin", "--parallel", "1", "--turn-tokens", "200", "--out", filepath.Join(dir, "out"), "--quiet")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	results, err := os.ReadFile(filepath.Join(dir, "out", "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var read int
	for line := range strings.Lines(string(results)) {
		var r struct {
			Usage struct {
				Prompt int `json:"prompt"`
			} `json:"usage"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		read += r.Usage.Prompt
	}
	if least := questions * 3000; read < least {
		t.Fatalf("prompts of %d tokens in all, which is less than %d\n%s", read, least, said)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss // KiB
	t.Logf("%d prompts of %d tokens in all: at most %d MB", questions, read, peak/1000)
	if peak*1024 > 100e6 {
		t.Errorf("the process took %d MB", peak*1024/1e6)
	}
}
