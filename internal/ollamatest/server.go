// Package ollamatest runs a real Ollama for tests: its own process, on its own
// loopback port, with its own home and models in a temporary folder. It never
// touches an Ollama that runs already, and never downloads a model.
package ollamatest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// The environment variables that say which Ollama is used, and that a test
// must fail rather than skip without one.
const (
	BinaryVariable  = "STOPGAP_OLLAMA"
	RequireVariable = "STOPGAP_REQUIRE_OLLAMA"
)

// startLimit is how long a server may take to answer.
const startLimit = 60 * time.Second

// A Server is a running Ollama.
type Server struct {
	URL    string
	Client *api.Client

	process *process
	folder  string // removed when the server stops
	exited  chan struct{}

	mu  sync.Mutex
	log strings.Builder
}

// Binary finds Ollama: the file that STOPGAP_OLLAMA names, else build/ollama
// at the root of the module around the working directory.
func Binary() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", BinaryVariable, err)
		}
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is in no Go module")
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "build", "ollama")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("there is no build/ollama (make ollama puts it there) and %s is not set", BinaryVariable)
	}
	return path, nil
}

// Required reports whether a real Ollama must be there, as in make test: then
// tests also do what takes long.
func Required() bool { return os.Getenv(RequireVariable) == "1" }

// need gives the binary, or ends the test.
func need(t testing.TB) string {
	t.Helper()
	path, err := Binary()
	if err != nil {
		if Required() {
			t.Fatalf("a real Ollama is required: %v", err)
		}
		t.Skipf("needs a real Ollama: %v", err)
	}
	return path
}

// Start runs a server of the test's own, with further environment variables
// (KEY=VALUE), until the test ends. Without an Ollama the test is skipped, or
// fails when STOPGAP_REQUIRE_OLLAMA is 1.
func Start(t testing.TB, env ...string) *Server {
	t.Helper()
	s, err := start(need(t), env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

var shared struct {
	sync.Mutex
	allowed bool // Main runs and will stop it
	server  *Server
	err     error
}

// Main runs the tests of a package and stops the shared server after them:
//
//	func TestMain(m *testing.M) { os.Exit(ollamatest.Main(m)) }
func Main(m *testing.M) int {
	shared.Lock()
	shared.allowed = true
	shared.Unlock()
	defer func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.server != nil {
			shared.server.stop()
			shared.server = nil
		}
		shared.allowed = false
	}()
	return m.Run()
}

// Shared gives the one server of the test binary and starts it when it is
// first asked for. The package's TestMain must call Main. Otherwise as Start.
func Shared(t testing.TB) *Server {
	t.Helper()
	path := need(t)
	shared.Lock()
	defer shared.Unlock()
	if !shared.allowed {
		t.Fatal("ollamatest.Shared needs a TestMain that calls ollamatest.Main")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start(path, nil)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func start(binary string, env []string) (*Server, error) {
	folder, err := os.MkdirTemp("", "stopgap-ollama-")
	if err != nil {
		return nil, err
	}
	s := &Server{folder: folder, exited: make(chan struct{})}
	s.process = newProcess(binary, "serve")
	s.process.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + folder,
		"OLLAMA_MODELS=" + filepath.Join(folder, "models"),
		"OLLAMA_HOST=127.0.0.1:0", // the log tells the port
		"OLLAMA_DEBUG=1",          // the log tells what is in the cache
		"OLLAMA_KEEP_ALIVE=1h",
		// Making room for a model waits for a request on another one to end, and
		// has been seen to wait for ever.
		"OLLAMA_MAX_LOADED_MODELS=64",
		"OLLAMA_LLM_LIBRARY=cpu",
		"OLLAMA_NO_CLOUD=1",
	}, env...)
	pipe, err := s.process.StderrPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if err := s.process.launch(); err != nil {
		return nil, errors.Join(fmt.Errorf("start Ollama: %w", err), os.RemoveAll(folder))
	}
	addresses := make(chan string, 1)
	go s.read(pipe, addresses)
	select {
	case address := <-addresses:
		s.URL = "http://" + address
	case <-s.exited:
		s.stop()
		return nil, fmt.Errorf("ollama ended before it answered; its log:\n%s", s.Log())
	case <-time.After(startLimit):
		s.stop()
		return nil, fmt.Errorf("ollama did not listen within %v; its log:\n%s", startLimit, s.Log())
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.Client = api.NewClient(base, http.DefaultClient)
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if err := s.Client.Heartbeat(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("ollama does not answer: %w; its log:\n%s", err, s.Log())
	}
	return s, nil
}

// listening is how Ollama's log tells its address.
var listening = regexp.MustCompile(`Listening on ([0-9.]+:[0-9]+)`)

// read keeps the log, tells the first address in it, and reaps the process.
func (s *Server) read(pipe io.Reader, addresses chan<- string) {
	defer close(s.exited)
	lines := bufio.NewReader(pipe)
	told := false
	for {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		s.log.WriteString(line)
		s.mu.Unlock()
		if m := listening.FindStringSubmatch(line); m != nil && !told {
			told = true
			addresses <- m[1]
		}
		if err != nil {
			break
		}
	}
	_ = s.process.Wait() // it is stopped by a signal: that error says nothing
}

// stop ends the server and the processes it started, and removes its files.
func (s *Server) stop() {
	s.process.end()
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
	}
	s.process.kill()
	<-s.exited
	_ = os.RemoveAll(s.folder) // a temporary folder: nothing depends on it
}

// Log is everything that the server has logged so far.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Create makes a model from a GGUF file, with a Modelfile's parameters (nil
// for none). Without a num_thread among them it is 1: a test's model needs no
// more, and on a busy machine several threads spend their time waiting for one
// another.
func (s *Server) Create(t testing.TB, name, gguf string, parameters map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	f, err := os.Open(gguf)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", hash.Sum(nil))
	if err := s.Client.CreateBlob(ctx, digest, f); err != nil {
		t.Fatalf("upload %s: %v", gguf, err)
	}
	all := map[string]any{"num_thread": 1}
	maps.Copy(all, parameters)
	request := &api.CreateRequest{
		Model:      name,
		Files:      map[string]string{filepath.Base(gguf): digest},
		Parameters: all,
	}
	if err := s.Client.Create(ctx, request, func(api.ProgressResponse) error { return nil }); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
}

// A Slot is what Ollama found when it began to work on a request, in tokens.
type Slot struct {
	Cached int // what the request before left: its prompt and what it generated
	Prompt int // the whole prompt of this request
	Reused int // the start of the prompt that was found in the cache
}

// slotLine is how the log tells what a slot holds.
var slotLine = regexp.MustCompile(`msg="loading cache slot".* cache=(\d+) prompt=(\d+) used=(\d+)`)

// Slots lists what the server found for each request so far, in order. The
// tokens that the server generated for request i, whether its client read them
// or not, are Slots()[i+1].Cached - Slots()[i].Prompt, as long as one model
// with one slot answers; the end-of-generation token is not among them, nor is
// the last token of a generation that ran into its limit.
func (s *Server) Slots() []Slot {
	var slots []Slot
	for _, m := range slotLine.FindAllStringSubmatch(s.Log(), -1) {
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+1]) // digits
		}
		slots = append(slots, Slot{Cached: n[0], Prompt: n[1], Reused: n[2]})
	}
	return slots
}
