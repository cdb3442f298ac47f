//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Inside, everybody is this user. nobody is who runs the command for root.
const (
	insideID = 1000
	nobodyID = 65534
)

func run(ctx context.Context, c Command) (Result, error) {
	if c.Method == Unprotected {
		return runUnprotected(ctx, c)
	}
	try := methods
	if c.Method != "" {
		try = []Method{c.Method}
	}
	var unavailable UnavailableError
	for _, m := range try {
		c.Method = m
		res, err := start(ctx, c)
		var setup *setupError
		if !errors.As(err, &setup) {
			return res, err
		}
		unavailable.Reasons = append(unavailable.Reasons, Reason{m, setup.err})
	}
	return Result{}, &unavailable
}

// start runs a command with one method. A *setupError says that the method does
// not work here; the command was not started then.
func start(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	// The kernel kills the sandbox when the thread that made it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keepDescriptors()

	b := &box{command: c}
	defer b.close()
	cmd, err := b.prepare()
	if err != nil {
		return Result{}, err
	}
	b.process = cmd
	res, err := supervise(ctx, cmd, c, b.begun)
	var setup *setupError
	switch {
	case errors.As(err, &setup) && c.Method == Namespaces:
		return res, &setupError{noNamespaces(setup.err)}
	case err != nil && ctx.Err() == nil:
		return res, err
	}
	return b.judge(res, err)
}

// keepDescriptors makes sure that descriptors which this process inherited go
// to no sandbox, not even to the processes of bubblewrap that stay in it.
var keepDescriptors = sync.OnceFunc(func() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // the stage closes what it sees
	}
	for _, e := range entries {
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
})

// A box is one sandbox while it is made and while it runs.
type box struct {
	command Command
	extra   []*os.File // descriptors of the first process inside, from 3 on
	ours    []*os.File // our ends
	held    []*os.File // empty folders in the place of what must not be made
	settle  sync.WaitGroup
	status  bytes.Buffer // what the stage reports
	blind   error        // why the sandbox cannot be watched
	info    *os.File     // where bubblewrap tells its first process inside
	process *exec.Cmd
	isRoot  bool
	owner   int // who the command is outside
	group   int
}

// The first descriptors of the stage.
const (
	configFD = 3 + iota // what to do, as JSON
	statusFD            // how it went
	binaryFD            // the own binary, for bubblewrap to start
)

// ready is what the stage reports before it becomes the command. What follows
// it says why that failed.
const ready = "ready\n"

// prepare makes the command line of the first process.
func (b *box) prepare() (*exec.Cmd, error) {
	if err := b.pipes(); err != nil {
		return nil, err
	}
	b.identify()
	mounts, err := b.mounts()
	if err != nil {
		return nil, err
	}
	plan := b.stage(mounts)
	var cmd *exec.Cmd
	if b.command.Method == Bubblewrap {
		cmd, err = b.bubblewrap(mounts)
	} else {
		plan.Mounts = mounts
		cmd, err = b.namespaces()
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	b.feed(b.ours[0], text)
	cmd.ExtraFiles = b.extra
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=off"} // of the stage, which lives for a moment
	ownGroup(cmd)
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd, nil
}

// pipes opens the first descriptors.
func (b *box) pipes() error {
	configRead, configWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	b.extra, b.ours = []*os.File{configRead}, []*os.File{configWrite}
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	b.extra, b.ours = append(b.extra, statusWrite), append(b.ours, statusRead)
	binary, err := os.Open("/proc/self/exe")
	if err != nil {
		return &setupError{err}
	}
	b.extra = append(b.extra, binary)
	return nil
}

// pass gives a file to the first process and tells its number there.
func (b *box) pass(f *os.File) int {
	b.extra = append(b.extra, f)
	return 2 + len(b.extra)
}

// content gives a text to the first process as a descriptor.
func (b *box) content(text string) (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	b.feed(w, []byte(text))
	return b.pass(r), nil
}

// report gives the first process a descriptor to write to, which info reads.
func (b *box) report() (int, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	b.ours, b.info = append(b.ours, r), r
	return b.pass(w), nil
}

// feed writes into a pipe beside everything else. It ends when all is read, or
// nobody is left to read.
func (b *box) feed(w *os.File, text []byte) {
	b.settle.Go(func() {
		_, _ = w.Write(text)
		_ = w.Close()
	})
}

// identify chooses who the command is for the kernel outside: the user, but
// nobody in the place of root, or the owner of what it may write.
func (b *box) identify() {
	b.owner, b.group = os.Getuid(), os.Getgid()
	if b.isRoot = b.owner == 0; !b.isRoot {
		return
	}
	b.owner, b.group = nobodyID, nobodyID
	if len(b.command.Write) > 0 {
		var st unix.Stat_t
		if unix.Stat(b.command.Write[0], &st) == nil {
			b.owner, b.group = int(st.Uid), int(st.Gid)
		}
	}
}

// begun runs when the first process has started: nobody else needs its ends. It
// reads what the stage reports, and watches the sandbox once that is ready.
func (b *box) begun(s *supervisor) func() {
	for _, f := range b.extra {
		_ = f.Close()
	}
	done := make(chan struct{})
	b.settle.Go(func() {
		_, _ = io.Copy(&b.status, io.LimitReader(b.ours[1], 64<<10))
		pid, err := b.insider()
		if b.status.String() != ready || err != nil {
			return // it is over already
		}
		w, err := newWatch(pid, b.command.Limits)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH):
			return // as above
		case err != nil:
			b.blind = err
			s.stop(Cancelled)
			return
		}
		defer w.close()
		w.run(done, s.stop)
	})
	return func() { close(done) }
}

// insider is a process in the sandbox, the first one.
func (b *box) insider() (int, error) {
	if b.info == nil {
		return b.process.Process.Pid, nil
	}
	var info struct {
		PID int `json:"child-pid"`
	}
	err := json.NewDecoder(b.info).Decode(&info)
	return info.PID, err
}

// close ends what is still open.
func (b *box) close() {
	for _, f := range append(b.extra, b.ours...) {
		_ = f.Close() // most are closed already
	}
	b.settle.Wait()
	b.release()
}

// judge reads how the stage fared.
func (b *box) judge(res Result, err error) (Result, error) {
	b.settle.Wait()
	report := b.status.String()
	after, isReady := strings.CutPrefix(report, ready)
	switch {
	case b.blind != nil:
		return Result{}, fmt.Errorf("the sandbox cannot be watched: %w", b.blind)
	case isReady && after == "":
		return res, err
	case isReady:
		return Result{}, &ProgramError{b.command.Args[0], errors.New(after)}
	case res.End != Exited: // killed before it had started
		return res, err
	case report != "":
		return Result{}, &setupError{errors.New(report)}
	}
	words := strings.TrimSpace(string(res.Stderr))
	if words == "" {
		words = fmt.Sprintf("it ended with exit code %d before it began", res.ExitCode)
	}
	return Result{}, &setupError{errors.New(firstLine(words))}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
