package endtoend

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stopgap/internal/automaton"
	"stopgap/internal/ollamatest"
	"stopgap/models"
)

// endlessModel is a model that writes slowly and never ends by itself.
func endlessModel(t *testing.T, s *ollamatest.Server) {
	t.Helper()
	turn := automaton.Turn{After: "Go.", Text: " " + prose(2000), Finish: automaton.FinishLength}
	s.Create(t, "endless", modelFile(t, []automaton.Turn{turn}, automaton.Options{FeedForward: 8192}), nil)
}

// signalled streams until some tokens have come, lets the signal go off and
// gives how long it took after that, and the error.
func signalled(t *testing.T, s *ollamatest.Server, limit time.Duration, signal func()) (time.Duration, error) {
	t.Helper()
	m, err := models.Open("ollama:endless", models.Options{OllamaHost: s.URL, ContextSize: 8192, BetweenTokens: limit, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	var began time.Time
	chunks := 0
	for c, err := range m.Stream(t.Context(), models.Request{Prompt: []models.Segment{{Text: "Go."}}, MaxTokens: 6000}) {
		switch {
		case c.Final != nil:
			t.Fatal("the stream is called complete")
		case err != nil:
			return time.Since(began), err
		case c.Text == "":
			continue
		}
		if chunks++; chunks == 20 {
			began = time.Now()
			signal()
		}
	}
	t.Fatal("the stream just ends")
	return 0, nil
}

// A real Ollama that is killed or stopped in the middle of a stream: an error
// of its own type, and no wait beyond the limit.
func TestSignalsToOllama(t *testing.T) {
	const limit, slack = 10 * time.Second, time.Minute // a machine that is busy is late
	t.Run("killed", func(t *testing.T) {
		s := ollamatest.Start(t)
		endlessModel(t, s)
		took, err := signalled(t, s, limit, func() { s.Signal(syscall.SIGKILL) })
		var cut *models.CutError
		if !errors.As(err, &cut) || cut.Tokens < 20 || took > limit+slack {
			t.Errorf("%v after %v", err, took)
		}
		t.Logf("%v after %v", err, took)
	})
	t.Run("stopped", func(t *testing.T) {
		s := ollamatest.Start(t)
		endlessModel(t, s)
		defer s.Signal(syscall.SIGCONT)
		took, err := signalled(t, s, limit, func() { s.Signal(syscall.SIGSTOP) })
		var stall *models.StallError
		if !errors.As(err, &stall) || stall.Phase != models.StallBetweenTokens || took < limit-time.Second || took > limit+slack {
			t.Errorf("%v after %v", err, took)
		}
		t.Logf("%v after %v", err, took)
	})
	t.Run("its runner killed", func(t *testing.T) {
		s := ollamatest.Start(t)
		endlessModel(t, s)
		took, err := signalled(t, s, limit, func() {
			if !signalRunner(t, s, syscall.SIGKILL) {
				t.Fatal("no process runs the model")
			}
		})
		var (
			cut      *models.CutError
			reported *models.ServerError
		)
		if !errors.As(err, &cut) && !errors.As(err, &reported) || took > limit+slack {
			t.Errorf("%v after %v", err, took)
		}
		t.Logf("%v after %v", err, took)
	})
}

// signalRunner sends a signal to the process in which Ollama runs the model.
func signalRunner(t *testing.T, s *ollamatest.Server, sig syscall.Signal) bool {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range processes {
		command, err := os.ReadFile(dir + "/cmdline")
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err != nil || !bytes.Contains(command, []byte("\x00runner\x00")) || !s.Owns(pid) {
			continue
		}
		if strings.Contains(string(command), "--port") {
			return syscall.Kill(pid, sig) == nil
		}
	}
	return false
}
