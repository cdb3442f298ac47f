//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeCorpus: the server answers a run, and a signal ends it gracefully: it
// says nothing more, and its exit code is 0.
func TestServeCorpus(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tide.md"), []byte("# Tide\n\nThe moon makes the tide."), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "stopgap", "serve-corpus", dir, "--listen", "127.0.0.1:0", "--index", filepath.Join(t.TempDir(), "i.db"), "--quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(first)
	code, answer, errs := stopgap(t, strings.NewReader(""), "tool", "call", "search", `{"query":"moon"}`, "--corpus", address)
	if code != 0 || !strings.HasPrefix(answer, "Tide. The moon makes the tide. [tide.md] (score ") {
		t.Errorf("%d: %s%s", code, answer, errs)
	}
	// A request that is half sent when the signal comes is answered. Its client
	// sends the body once the server has begun to read it.
	body, more := io.Pipe()
	done := make(chan error)
	go func() {
		client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/access", body)
		if err != nil {
			done <- err
			return
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Expect": {"100-continue"}}
		resp, err := client.Do(req)
		if err == nil {
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		done <- err
	}()
	if _, err := more.Write([]byte(`{"urls":`)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := more.Write([]byte(`["tide.md"]}`)); err != nil {
		t.Fatal(err)
	}
	more.Close()
	if err := <-done; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if err := cmd.Wait(); err != nil || said.Len() > 0 {
		t.Errorf("%v\n%s", err, said.String())
	}
}
