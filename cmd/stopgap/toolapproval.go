package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"stopgap/tools"
)

// An approver asks the user before a tool changes something, one call at a time.
type approver struct {
	app     *app
	yes     bool     // all calls are allowed
	silent  bool     // nobody is asked
	spinner *spinner // that must not draw over the question; nil for none

	mu     sync.Mutex
	always map[string]bool // tools that may from now on
}

// What the model is told.
var (
	errNobody = errors.New("it changes things, and there is nobody who could allow that; go on without it")
	errDenied = errors.New("the user did not allow this call; go on without it")
)

// approve implements tools.Options.Approve.
func (p *approver) approve(ctx context.Context, call tools.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.yes, p.always[call.Name]:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	answer, err := p.ask(ctx, call)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.app.note("%s was not run: it changes things, and there is no terminal to ask on; --yes allows it", call.Name)
		return errNobody
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	case "a", "always":
		if p.always == nil {
			p.always = map[string]bool{}
		}
		p.always[call.Name] = true
		return nil
	}
	return errDenied
}

// askedBytes is how much of a call's arguments a question shows. What is longer
// is not hidden in the dark: the question says so.
const askedBytes = 4000

// ask asks on the terminal, whatever standard input is.
func (p *approver) ask(ctx context.Context, call tools.Call) (string, error) {
	if p.silent || !isTerminal(p.app.stderr) {
		return "", errNobody
	}
	tty, closeTTY, err := p.terminal()
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, closeTTY) // ends the reading
	defer func() { stop(); closeTTY() }()
	defer p.spinner.hold()()
	var line bytes.Buffer // of one line: white space between the arguments could push them out of sight
	if json.Compact(&line, call.Arguments) != nil {
		return "no", nil // a set checks them before it asks
	}
	words := printable(line.String())
	if n := len(words) - askedBytes; n > 0 {
		words = strings.ToValidUTF8(words[:askedBytes], "") + fmt.Sprintf("… and %d bytes more", n)
	}
	fmt.Fprintf(p.app.stderr, "%s wants to run with\n%s\nallow it? (y)es, (n)o, (a)lways in this run: ", printable(call.Name), words)
	answer, err := bufio.NewReader(tty).ReadString('\n')
	if answer == "" && err != nil {
		fmt.Fprintln(p.app.stderr)
		return "no", nil // Ctrl-D, or the end of the run
	}
	return answer, nil
}

// terminal opens the terminal of the process.
func (p *approver) terminal() (*os.File, func(), error) {
	name := "/dev/tty"
	if runtime.GOOS == "windows" {
		name = "CONIN$"
	}
	if tty, err := os.OpenFile(name, os.O_RDWR, 0); err == nil {
		return tty, func() { _ = tty.Close() }, nil // nothing was written to it
	}
	if in, ok := p.app.stdin.(*os.File); ok && isTerminal(in) {
		return in, func() {}, nil
	}
	return nil, nil, errNobody
}
