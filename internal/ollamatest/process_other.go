//go:build !unix

package ollamatest

import "os/exec"

// A process is a command; there is no group to end with it.
type process struct{ *exec.Cmd }

func newProcess(name string, args ...string) *process { return &process{exec.Command(name, args...)} }

func (p *process) launch() error { return p.Start() }

func (p *process) end() { p.kill() }

func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended by itself
}
