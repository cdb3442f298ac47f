//go:build unix

package ollamatest

import (
	"os"
	"os/exec"
	"syscall"
)

// guard runs a command and kills its whole process group when the other end of
// descriptor 3 closes: a test binary that panics or is killed leaves no server
// behind. Ollama runs each model in a process of its own.
const guard = `"$@" 3<&- &
command=$!
{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 &
wait $command`

// A process is a command with everything that it starts.
type process struct {
	*exec.Cmd
	alive *os.File // open as long as the processes may live
}

func newProcess(name string, args ...string) *process {
	c := exec.Command("/bin/sh", append([]string{"-c", guard, "guard", name}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &process{Cmd: c}
}

// launch starts the process.
func (p *process) launch() error {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirs.Close()
	p.alive = ours
	p.ExtraFiles = []*os.File{theirs}
	if err := p.Start(); err != nil {
		ours.Close()
		return err
	}
	return nil
}

// Signal sends a signal to the server and all that it has started. A server
// that was stopped so goes on before it ends with its test.
func (s *Server) Signal(sig syscall.Signal) { _ = syscall.Kill(-s.process.Process.Pid, sig) }

// Owns reports whether a process is one that the server has started.
func (s *Server) Owns(pid int) bool {
	group, err := syscall.Getpgid(pid)
	return err == nil && group == s.process.Process.Pid
}

// end asks the whole group to end.
func (p *process) end() {
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGTERM) // it may have ended by itself
}

// kill makes the whole group end.
func (p *process) kill() {
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) // it may have ended by itself
	p.alive.Close()
}
