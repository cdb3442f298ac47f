package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"stopgap/internal/eval/probe"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
)

// A halfDown model answers the first worker never, and the others not at all.
type halfDown struct{ asking *atomic.Int32 }

func (m halfDown) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	return func(yield func(models.Chunk, error) bool) {
		m.asking.Add(1)
		defer m.asking.Add(-1)
		if strings.HasSuffix(req.Session, "/0") {
			<-ctx.Done()
			yield(models.Chunk{}, ctx.Err())
			return
		}
		yield(models.Chunk{}, &models.UnreachableError{Server: "ollama", URL: "http://a", Err: errors.New("connection refused")})
	}
}

// TestProbeServerGone: a server that goes away under several cases at once is
// told as that, and not as an interruption of the case that was shown.
func TestProbeServerGone(t *testing.T) {
	format, err := template.Load("qwen")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := probe.Suite()
	if err != nil {
		t.Fatal(err)
	}
	var asking atomic.Int32
	a := &app{stdout: &output{w: io.Discard}, stderr: io.Discard, lookup: func(string) (string, bool) { return "", false }}
	k := &kit{runner: &runner.Runner{Model: halfDown{&asking}, Format: format}}
	board := a.newProbeBoard(newSettings(), true, len(cases))
	defer board.close()
	err = a.ask(t.Context(), k, probeFlags{parallel: math.MaxInt}, cases[:3], board)
	if !is[*models.UnreachableError](err) || exitCode(err) != exitServer {
		t.Errorf("exit code %d, %v", exitCode(err), err)
	}
	if n := asking.Load(); n != 0 {
		t.Errorf("%d cases are still asked", n)
	}
}
