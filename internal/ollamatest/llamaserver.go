package ollamatest

import (
	"bytes"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// LlamaServer runs llama-server with a model file and further flags until the
// test ends, and gives its URL. The binary is the one that
// STOPGAP_LLAMA_SERVER names, else the one on the PATH; without either the
// test is skipped.
func LlamaServer(t testing.TB, gguf string, flags ...string) string {
	t.Helper()
	binary := os.Getenv("STOPGAP_LLAMA_SERVER")
	if binary == "" {
		var err error
		if binary, err = exec.LookPath("llama-server"); err != nil {
			t.Skip("needs llama-server: there is none on the PATH and STOPGAP_LLAMA_SERVER is not set")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	var log bytes.Buffer
	c := newProcess(binary, append([]string{"-m", gguf, "--host", "127.0.0.1", "--port", port, "-t", "1"}, flags...)...)
	c.Stdout, c.Stderr = &log, &log
	if err := c.launch(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = c.Wait(); close(exited) }() // it is stopped by a signal
	t.Cleanup(func() {
		c.kill()
		<-exited
		if t.Failed() {
			t.Logf("the log of llama-server:\n%s", log.String())
		}
	})
	url := "http://127.0.0.1:" + port
	for deadline := time.Now().Add(startLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case <-exited:
			t.Fatalf("llama-server ended before it answered:\n%s", log.String())
		default:
		}
		if r, err := http.Get(url + "/health"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return url
			}
		}
	}
	t.Fatalf("llama-server does not answer within %v", startLimit)
	return ""
}
