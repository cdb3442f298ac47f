package endtoend

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	var said strings.Builder
	cmd := exec.Command(bin, "batch", "--data", data, "--model", "builtin", "--parallel", "1", "--turn-tokens", "200", "--out", filepath.Join(dir, "out"), "--quiet")
	cmd.Stdout, cmd.Stderr = &said, &said
	peak := peakOf(t, cmd)
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
		t.Fatalf("prompts of %d tokens in all, which is less than %d\n%s", read, least, said.String())
	}
	t.Logf("%d questions, prompts of %d tokens in all: at most %d MB", questions, read, peak/1e6)
	if peak > 100e6 {
		t.Errorf("the process took %d MB", peak/1e6)
	}
}

// peakOf runs a command and gives the most memory that it had, in bytes. It asks
// now and then: what the system tells afterwards counts the process that began it.
func peakOf(t *testing.T, cmd *exec.Cmd) (peak int) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil || peak == 0 {
				t.Fatalf("%v, %d bytes\n%v", err, peak, cmd.Stdout)
			}
			return peak
		case <-time.After(5 * time.Millisecond):
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			continue // it has just ended
		}
		if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok && !strings.Contains(string(status), "endtoend.test") {
			var kilobytes int
			if _, err := fmt.Sscan(after, &kilobytes); err == nil {
				peak = max(peak, kilobytes*1024)
			}
		}
	}
}
