// Package sandbox runs a command that nobody vouches for: code that a model
// wrote, a tool that somebody declared.
//
// On Linux it uses bubblewrap where that is installed, and otherwise namespaces
// of its own. The command sees the system's programs read-only, a directory of
// its own in memory, and nothing else: no home folder, no other process, no
// network, no descriptor, no environment. Landlock and a filter of system calls
// lie under both. Where neither way works, and on other systems, Run refuses; it
// never runs a command with less protection than it was asked for.
package sandbox

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// WorkDir is the private directory inside the sandbox. It is the only place
// where a command may write, but for Command.Write, and gone when it has ended.
const WorkDir = "/tmp"

// A Method is a way to run a command.
type Method string

const (
	// Bubblewrap has the program bwrap make the namespaces. It must be version
	// 0.8 or newer.
	Bubblewrap Method = "bubblewrap"
	// Namespaces makes them by re-executing the own binary, see Child.
	Namespaces Method = "namespaces"
	// Unprotected is no sandbox: the command may do what the user may. Only
	// output and time are limited. It is used where it is named and never else.
	Unprotected Method = "unprotected"
)

// methods are tried in this order where a command names none.
var methods = []Method{Bubblewrap, Namespaces}

// A Command is what to run, and within which bounds. Only Args is needed.
type Command struct {
	// Args is the program and its arguments. A name without a slash is looked for
	// in the PATH of the sandbox.
	Args []string
	// Env is added to the minimal environment as KEY=value. Nothing comes from
	// the environment of this process.
	Env []string
	// Dir is where the command starts; empty means WorkDir.
	Dir string
	// Files are written to WorkDir before the start, by relative path.
	Files map[string][]byte
	// Stdin is what the command reads; nil means nothing.
	Stdin io.Reader
	// Read and Write are absolute paths of folders and files of the host that the
	// command sees at the same place. A writable folder that holds the home folder
	// or a system's folder is refused, and a repository's .git in it stays read-only;
	// so does what Read names below it. What both name is writable.
	Read, Write []string
	// Protect are absolute paths that stay as they are although a writable folder
	// holds them. What does not exist there cannot be made.
	Protect []string
	// Network lets the command use the network of the host, all of it: also
	// what listens on loopback and on abstract sockets.
	Network bool
	// Limits bound the command; zero fields mean the defaults.
	Limits Limits
	// Method is the way to run it; empty means the first that works.
	Method Method
}

// Limits bound a command and all processes that it starts. Zero means the
// default; memory, processes and the two sizes of files have no meaning for
// Unprotected.
type Limits struct {
	Time      time.Duration // on the wall clock, start-up included; 60 s
	Memory    int64         // bytes of all processes together; 1 GiB
	Processes int           // processes and threads at a time; 128
	FileSize  int64         // bytes of one file; as Disk
	Disk      int64         // bytes in WorkDir, which lies in memory; 256 MiB
	Output    int64         // bytes of each of stdout and stderr; 1 MiB
}

// WithDefaults gives the limits with the defaults in place of what is zero.
func (l Limits) WithDefaults() Limits {
	l.Time = positive(l.Time, time.Minute)
	l.Memory = positive(l.Memory, 1<<30)
	l.Processes = positive(l.Processes, 128)
	l.Disk = positive(l.Disk, 256<<20)
	l.FileSize = positive(l.FileSize, l.Disk)
	l.Output = positive(l.Output, 1<<20)
	return l
}

func positive[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// A Result is what became of a command that was started.
type Result struct {
	Stdout, Stderr []byte // as far as the limit goes
	End            End
	// ExitCode is what the command returned, and 128 and the signal where one
	// ended it.
	ExitCode int
	Method   Method
	Duration time.Duration // start-up included
	CPU      time.Duration // of the first process and those it waited for
}

// An End is why a command is over.
type End string

const (
	Exited       End = "exited"    // by itself, or by a signal that it sent or earned
	TimeLimit    End = "time"      // all others: it was killed, and all that it started
	MemoryLimit  End = "memory"    //
	ProcessLimit End = "processes" //
	FilesLimit   End = "files"     // too many files in WorkDir
	OutputLimit  End = "output"    //
	Cancelled    End = "cancelled" // the context was done
)

// An UnavailableError says that there is no way to run the command safely.
type UnavailableError struct {
	// Reasons say what each method lacks, in the order in which they were tried.
	Reasons []Reason
}

// A Reason is why a method does not work here.
type Reason struct {
	Method Method
	Err    error
}

func (e *UnavailableError) Error() string {
	var parts []string
	for _, r := range e.Reasons {
		parts = append(parts, fmt.Sprintf("%s: %v", r.Method, r.Err))
	}
	return "this machine has no working sandbox (" + strings.Join(parts, "; ") + ")"
}

// A ProgramError says that the sandbox works but the program cannot be started
// in it: it is not there, or it is no program.
type ProgramError struct {
	Program string
	Err     error
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("cannot start %s in the sandbox: %v", e.Program, e.Err)
}

func (e *ProgramError) Unwrap() error { return e.Err }

// A PathError says that a folder or file cannot be given to the command.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string { return e.Path + " " + e.Reason }

// setupError says that a method does not work here: the next one is tried.
type setupError struct{ err error }

func (e *setupError) Error() string { return e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// Run runs a command and waits for it and for all that it started: when Run
// returns, none of it is left. The result says how it went, whatever the command
// did; an error says that it was not started: an *UnavailableError, a
// *ProgramError, a *PathError. When ctx is done, the command is killed, and what
// it wrote until then comes with the error of ctx.
func Run(ctx context.Context, c Command) (Result, error) {
	c.Limits = c.Limits.WithDefaults()
	if len(c.Args) == 0 {
		return Result{}, fmt.Errorf("sandbox: no command")
	}
	return run(ctx, c)
}
