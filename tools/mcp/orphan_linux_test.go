package mcp

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A server that is closed leaves no process behind, whatever it has started.
func TestNothingIsLeft(t *testing.T) {
	c := program(t, "orphans")
	c.Env["PID_FILE"] = filepath.Join(t.TempDir(), "pid")
	s := open(t, c)
	pid := s.link.process.cmd.Process.Pid
	child := 0
	if b, err := os.ReadFile(c.Env["PID_FILE"]); err == nil {
		child, _ = strconv.Atoi(string(b))
	}
	if child == 0 || !runs(pid) || !runs(child) {
		t.Fatalf("the server %d and its child %d do not run", pid, child)
	}
	s.Close()
	for end := time.Now().Add(time.Minute); runs(pid) || runs(child); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server %v, its child %v", runs(pid), runs(child))
		}
	}
}

// runs reports whether a process is there and no zombie.
func runs(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(after, "Z")
}
