package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is stopgap in a pseudo-terminal of its own.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	before unix.Termios // how the terminal was found

	mu   sync.Mutex
	seen strings.Builder
	news chan struct{} // something was read
	gone chan struct{} // the process has ended, and all of it is read
}

// hangLimit ends a test that waits for something that never comes. A machine that
// is busy is far from it.
const hangLimit = 5 * time.Minute

// startTerminal runs stopgap in a terminal of some columns, with a home folder
// of its own and no server.
func startTerminal(t *testing.T, width int, environment []string, args ...string) *terminal {
	t.Helper()
	return startTerminalTo(t, nil, width, environment, args...)
}

// startTerminalTo is startTerminal with standard output elsewhere.
func startTerminalTo(t *testing.T, stdout *os.File, width int, environment []string, args ...string) *terminal {
	t.Helper()
	master, slave := openPTY(t, width)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.Command(self)
	cmd.Args = append([]string{"stopgap"}, args...) // the test binary runs as what it is called
	cmd.Env = append([]string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "XDG_CACHE_HOME=" + home, "XDG_STATE_HOME=" + home,
		"TERM=xterm", "OLLAMA_HOST=127.0.0.1:1", "PATH=" + os.Getenv("PATH"),
	}, environment...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p := &terminal{t: t, cmd: cmd, master: master, news: make(chan struct{}, 1), gone: make(chan struct{})}
	p.before = p.state()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go p.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test has failed
		master.Close()
	})
	return p
}

// openPTY opens a pseudo-terminal, see ptmx(4).
func openPTY(t *testing.T, width int) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(width)}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func (p *terminal) read() {
	defer close(p.gone)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if err != nil { // EIO once the process has closed its side
			return
		}
	}
}

func (p *terminal) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// wait waits until the output matches n times in all.
func (p *terminal) wait(n int, pattern string) {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	limit := time.After(hangLimit)
	for len(re.FindAllString(p.output(), -1)) < n {
		select {
		case <-p.news:
		case <-p.gone:
			if len(re.FindAllString(p.output(), -1)) < n {
				p.t.Fatalf("ended without %q:\n%q", pattern, p.output())
			}
		case <-limit:
			p.t.Fatalf("no %q in:\n%q", pattern, p.output())
		}
	}
}

func (p *terminal) write(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// pressUntilGone presses a key again and again until the process has ended:
// two signals that come too close to each other are one.
func (p *terminal) pressUntilGone(key string) {
	p.t.Helper()
	limit := time.After(hangLimit)
	for {
		p.write(key)
		select {
		case <-p.gone:
			return
		case <-limit:
			p.t.Fatalf("it does not end:\n%q", p.output())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// state is the terminal's line discipline.
func (p *terminal) state() unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal(err)
	}
	return *s
}

// exit waits for the end and gives the exit code. However a command ends, it
// leaves the terminal as it found it.
func (p *terminal) exit() int {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.t.Fatal(err)
		}
	case <-time.After(hangLimit):
		p.t.Fatalf("it does not end:\n%q", p.output())
	}
	<-p.gone
	if after := p.state(); after != p.before {
		p.t.Errorf("the terminal was left as %+v, not as %+v", after, p.before)
	}
	return p.cmd.ProcessState.ExitCode()
}

// lines is what stands on the screen: the effects of carriage return, of
// clearing the line and of colours are carried out, anything else that begins
// with ESC is a fault.
func (p *terminal) lines() []string {
	p.t.Helper()
	var lines []string
	for raw := range strings.SplitSeq(p.output(), "\n") {
		var line []rune
		at := 0
		for rest := raw; rest != ""; {
			if code := regexp.MustCompile(`^\x1b\[[0-9;]*[mKJ]`).FindString(rest); code != "" {
				if strings.HasSuffix(code, "K") || strings.HasSuffix(code, "J") {
					line = line[:min(at, len(line))]
				}
				rest = rest[len(code):]
				continue
			}
			r := []rune(rest)[0]
			rest = rest[len(string(r)):]
			switch {
			case r == '\r':
				at = 0
			case r == '\x1b':
				p.t.Errorf("an escape that is not known in %q", raw)
			case at < len(line):
				line[at] = r
				at++
			default:
				line = append(line, r)
				at++
			}
		}
		lines = append(lines, string(line))
	}
	return lines
}

func modelFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "script:" + path
}

func TestTerminalRun(t *testing.T) {
	model := modelFile(t, `turns: [{text: "<think>\nhm\n</think>\n\nYes, it is.", delay: 20ms}]`)
	for _, width := range []int{80, 20} {
		p := startTerminal(t, width, nil, "run", "--model", model, "Well?")
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen := strings.Join(p.lines(), "\n")
		if !strings.Contains(p.output(), frames[0]) {
			t.Errorf("there never was a spinner: %q", p.output())
		}
		if strings.ContainsAny(screen, strings.Join(frames[:], "")) {
			t.Errorf("the spinner is still there:\n%s", screen)
		}
		if !strings.Contains(screen, "\nhm\nYes, it is.\nanswered") {
			t.Errorf("the screen is:\n%s", screen)
		}
		if !strings.Contains(p.output(), "\x1b[2mhm") || strings.Contains(p.output(), "<think>") {
			t.Errorf("the thought is not dim, or its tag is shown: %q", p.output())
		}
	}
}

func TestTerminalWithoutColoursOrKeys(t *testing.T) {
	model := modelFile(t, `turns: [{text: "<think>hm</think>Yes."}]`)
	p := startTerminal(t, 80, []string{"TERM=dumb"}, "run", "--model", model, "Well?")
	if code := p.exit(); code != 0 || strings.Contains(p.output(), "\x1b") {
		t.Errorf("dumb: exit code %d, %q", code, p.output())
	}
	p = startTerminal(t, 80, []string{"NO_COLOR=1"}, "run", "--model", model, "Well?")
	if code := p.exit(); code != 0 || regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(p.output()) && strings.Contains(p.output(), "\x1b[2m") {
		t.Errorf("NO_COLOR: exit code %d, %q", code, p.output())
	}
	p = startTerminal(t, 80, []string{"TERM=dumb"}, "run", "--model", model)
	p.wait(1, `> $`)
	p.write("Well?\n")
	p.wait(1, `answered ·`)
	p.wait(2, `> `)
	p.write("\x04")
	if code := p.exit(); code != 0 || strings.Contains(p.output(), "\x1b") {
		t.Errorf("dumb conversation: exit code %d, %q", code, p.output())
	}
}

// TestTerminalInterrupt: Ctrl-C ends the generation, tells what is known,
// closes the journal and gives 130.
func TestTerminalInterrupt(t *testing.T) {
	model := modelFile(t, `turns: [{text: "one two", error: stall}]`)
	journal := filepath.Join(t.TempDir(), "runs.jsonl")
	p := startTerminal(t, 80, nil, "run", "--trace", journal, "--model", model, "Count")
	p.wait(1, `one`)
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	screen := strings.Join(p.lines(), "\n")
	if !regexp.MustCompile(`\none.*\ninterrupted · 1 turn, 0 calls · tokens: ~?\d+ generated, `).MatchString(screen) {
		t.Errorf("the screen is:\n%s", screen)
	}
	b, err := os.ReadFile(journal)
	if err != nil || !strings.Contains(string(b), `"event":"ended","termination":"cancelled"`) {
		t.Errorf("%v, the journal is:\n%s", err, b)
	}
}

// TestTerminalWaiting: Ctrl-C while nothing has come takes the spinner away.
func TestTerminalWaiting(t *testing.T) {
	model := modelFile(t, `turns: [{text: "", error: stall}]`)
	p := startTerminal(t, 40, nil, "run", "--model", model, "Well?")
	p.wait(1, "waiting for the model")
	p.write("\x03")
	if code := p.exit(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if screen := strings.Join(p.lines(), "\n"); strings.Contains(screen, "waiting") {
		t.Errorf("the screen is:\n%s", screen)
	}
}

// TestTerminalConversation: a second question continues the first one's
// prompt, Ctrl-C ends an answer and leads back to the prompt, Ctrl-D leaves.
func TestTerminalConversation(t *testing.T) {
	model := modelFile(t, `turns:
  - {text: "First."}
  - {after: "in short?<|im_end|>\n<|im_start|>assistant\n", text: "slow and slower", error: stall}
  - {text: "Second."}
`)
	journal := filepath.Join(t.TempDir(), "runs.jsonl")
	p := startTerminal(t, 80, nil, "run", "--trace", journal, "--model", model)
	p.wait(1, `Ctrl-D leaves`)
	p.write("Why?\r")
	p.wait(1, `First\.`)
	p.wait(1, `answered ·`)
	p.write("And then?\r")
	p.wait(1, `Second\.`)
	p.wait(2, `answered ·`)
	p.write("And in short?\r")
	p.wait(1, `slow`)
	p.write("\x03")
	p.wait(1, `interrupted ·`)
	p.write("\x04")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d:\n%q", code, p.output())
	}
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	// "Second." itself shows that the prompt went on: the script starts anew
	// for a prompt that does not begin with the first one.
	if n := strings.Count(string(b), `"event":"header"`); n != 3 {
		t.Errorf("%d runs in the journal:\n%s", n, b)
	}
	if !strings.Contains(string(b), `"termination":"cancelled"`) {
		t.Errorf("the journal is:\n%s", b)
	}
}

// TestTerminalSuggestions: a conversation about the sample documents begins
// with three questions, unless it is to be quiet.
func TestTerminalSuggestions(t *testing.T) {
	model := modelFile(t, `turns: [{text: "Yes."}]`)
	p := startTerminal(t, 80, nil, "run", "--model", model, "--corpus", "sample")
	p.wait(1, `for example:\r\n(  [A-Z][a-zA-Z ]+\?\r\n){3}`)
	p.write("Well?\r")
	p.wait(1, `answered ·`)
	p.write("\x04")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, other := range [][]string{{"--corpus", "sample", "--quiet"}, nil} {
		p := startTerminal(t, 80, nil, append([]string{"run", "--model", model}, other...)...)
		p.wait(1, `> `)
		p.write("Well?\r")
		p.wait(1, `Yes\.`)
		p.write("\x04")
		if code := p.exit(); code != 0 || strings.Contains(p.output(), "example") {
			t.Errorf("%q: exit code %d:\n%s", other, code, p.output())
		}
	}
}

// TestTerminalConversationErrors: a fault of the server does not end a
// conversation, and does not stay in its prompt.
func TestTerminalConversationErrors(t *testing.T) {
	model := modelFile(t, "context: 60\nturns:\n  - {text: First.}\n  - {text: Second.}\n")
	p := startTerminal(t, 80, nil, "run", "--model", model)
	p.wait(1, `Ctrl-D leaves`)
	p.write("Why?\r")
	p.wait(1, `answered ·`)
	p.write(strings.Repeat("word ", 70) + "?\r")
	p.wait(1, `hint: ask for a larger context`)
	p.write("And then?\r")
	p.wait(1, `Second\.`)
	p.write("\x04")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestTerminalTerminated: SIGTERM ends a conversation that waits for a line,
// and so does a SIGINT that is no key.
func TestTerminalTerminated(t *testing.T) {
	model := modelFile(t, `turns: [{text: "Yes."}]`)
	for _, term := range []string{"xterm", "dumb"} {
		for _, s := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
			p := startTerminal(t, 80, []string{"TERM=" + term}, "run", "--model", model)
			p.wait(1, `> `)
			if err := p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(); code != exitInterrupted {
				t.Errorf("%s, %v: exit code %d", term, s, code)
			}
		}
	}
}

// TestSecondInterrupt: the first Ctrl-C asks for an orderly end; the second
// ends a command that cannot come to one, here because nobody reads its output.
func TestSecondInterrupt(t *testing.T) {
	model := modelFile(t, "turns: [{text: '"+strings.Repeat("word ", 1<<16)+"'}]")
	for _, args := range [][]string{{"run", "--json", "--model", model, "Well?"}, {"run", "--json", "--model", model}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		capacity, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize())
		if err != nil {
			t.Fatal(err)
		}
		p := startTerminalTo(t, w, 80, nil, args...)
		w.Close()
		if len(args) == 4 { // a conversation
			p.wait(1, `> `)
			p.write("Well?\r")
		}
		const event = 256 // bytes, more than the longest line of a text event
		limit := time.Now().Add(hangLimit)
		for n := 0; n < capacity-event; time.Sleep(time.Millisecond) {
			if n, err = unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ); err != nil || time.Now().After(limit) {
				t.Fatalf("%d bytes in the pipe: %v", n, err)
			}
		}
		p.pressUntilGone("\x03")
		p.exit()
		if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT {
			t.Errorf("%v: it ended with %v", args, p.cmd.ProcessState)
		}
	}
}

// TestTerminalRender: segments are coloured by source, with a legend.
func TestTerminalRender(t *testing.T) {
	p := startTerminal(t, 80, nil, "render", "Why is \x1b[31mthe sky blue?")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"\x1b[32mWhy is ␛[31mthe sky blue?\x1b[0m", "from: \x1b[2mtemplate\x1b[0m \x1b[32muser\x1b[0m"} {
		if !strings.Contains(p.output(), want) {
			t.Errorf("no %q in %q", want, p.output())
		}
	}
}
