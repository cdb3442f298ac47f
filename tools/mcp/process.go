package mcp

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// grace is how long a program may take to end by itself.
const grace = 500 * time.Millisecond

// noiseBytes is how much of what a program says on its standard error is kept.
const noiseBytes = 2 << 10

// A process is a server that is a program.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	noise  tail
	done   chan struct{}
	err    error // of the end, once done is closed
	once   sync.Once
}

// inherited are the variables of our environment that a program gets. None
// holds a secret.
var inherited = map[string][]string{
	"windows": {
		"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
	},
	"": {"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"},
}

// environment is what a program gets.
func environment(own map[string]string) []string {
	names, ok := inherited[runtime.GOOS]
	if !ok {
		names = inherited[""]
	}
	var out []string
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	for name, v := range own {
		out = append(out, name+"="+v)
	}
	slices.Sort(out)
	return out
}

// start starts the program of a server.
func start(c *Config) (*process, error) {
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command(c.Command[0], c.Command[1:]...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = c.Dir, environment(c.Env), &p.noise
	p.cmd.WaitDelay = grace // a child of it may hold its standard error
	apart(p.cmd)
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, ours, err := os.Pipe()
	if err != nil {
		theirs.Close()
		in.Close()
		return nil, err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.stdin, p.stdout = theirs, ours, in, out
	err = p.cmd.Start()
	theirs.Close()
	ours.Close()
	if err != nil {
		in.Close()
		out.Close()
		return nil, fmt.Errorf("%s cannot be started: %w", c.Command[0], err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// wait reports whether the program has ended, or ends within a time.
func (p *process) wait(limit time.Duration) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	if limit <= 0 {
		return false
	}
	select {
	case <-p.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// stop ends the program and all that it has started: at first its input, then
// politely, then at once.
func (p *process) stop() {
	p.once.Do(func() {
		p.stdin.Close()
		if !p.wait(grace) {
			terminate(p.cmd)
			p.wait(grace)
		}
		kill(p.cmd) // also what it leaves behind
		<-p.done
		p.stdout.Close()
	})
}

// says is how the program ended and what it said last, after a colon, without the
// secrets of its configuration.
func (p *process) says(c *Config) string {
	var words []string
	if p.wait(0) && p.err != nil {
		words = append(words, p.err.Error())
	}
	if text := cut(mute(c.hide(p.noise.String())), 500); text != "" {
		words = append(words, text)
	}
	if len(words) == 0 {
		return ""
	}
	return ": " + strings.Join(words, ": ")
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-noiseBytes):]...)
	t.b = t.b[max(0, len(t.b)-noiseBytes):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "")
}
