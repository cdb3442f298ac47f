// Command stopgap asks a local model a question: it streams raw completions
// from the model's server, halts them where a tool is called, runs the tool,
// and lets the model go on with the answer.
//
// It is the only place of the project that prints, gives hints and exits.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"stopgap/tools/document"
	"stopgap/tools/sandbox"
)

func main() {
	document.Child()          // comes back unless this process parses a file
	sandbox.Child()           // comes back unless this process begins a sandbox
	log.SetOutput(io.Discard) // net/http logs what a server sends past the end of an answer
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command. It gives the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	// A reader that has gone away is an error of a write, not the end of the process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	a := &app{stdin: stdin, stdout: &output{w: stdout}, stderr: stderr, lookup: os.LookupEnv, now: time.Now}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = a.stdout.err
	}
	a.explain(err)
	return exitCode(err)
}

// An app is what the commands share: the outside world.
type app struct {
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	lookup func(string) (string, bool) // environment variables
	now    func() time.Time
}

// env gives an environment variable, empty where it is not set.
func (a *app) env(name string) string {
	v, _ := a.lookup(name)
	return v
}

// An output remembers the first error of its writer: nothing may be lost
// without a word.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = &outputError{err}
	}
	return n, o.err
}

// An outputError says that standard output does not take what is written.
type outputError struct{ err error }

func (e *outputError) Error() string { return "cannot write to standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }
