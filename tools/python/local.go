package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"stopgap/tools/sandbox"
)

// script is the name of the code, as it stands in tracebacks.
const script = "main.py"

// local runs code on this machine.
func (p *Interpreter) local(ctx context.Context, code string) (string, error) {
	executable, folders, err := p.program.find(ctx, p.options.Python)
	if err != nil {
		return "", err
	}
	command := sandbox.Command{
		// Unbuffered, so that nothing is lost where the code has to be killed.
		Args:   []string{executable, "-u", "-B", script},
		Env:    []string{"MPLBACKEND=Agg", "PYTHONIOENCODING=utf-8:backslashreplace"},
		Files:  map[string][]byte{script: []byte(code)},
		Read:   folders,
		Limits: p.options.Limits,
		Method: p.options.Method,
	}
	command.Limits.Time = p.options.Timeout
	if p.options.Unsafe {
		command.Method, command.Read = sandbox.Unprotected, nil
	}
	res, err := sandbox.Run(ctx, command)
	stdout, stderr := string(res.Stdout), string(res.Stderr)
	if err != nil {
		return partial(stdout, stderr), err
	}
	return report(stdout, stderr, p.problem(res)), nil
}

// partial is the output of a run that was given up.
func partial(stdout, stderr string) string {
	if stdout == "" && stderr == "" {
		return ""
	}
	return report(stdout, stderr, "")
}

// problem says why code was ended, empty where it ended by itself and said why.
func (p *Interpreter) problem(res sandbox.Result) string {
	limits := p.options.Limits.WithDefaults()
	of := func(bytes int64) string { return humanize.IBytes(uint64(bytes)) }
	switch res.End {
	case sandbox.TimeLimit:
		return timedOut
	case sandbox.MemoryLimit:
		return "[PythonInterpreter Error] MemoryError: The code used more than " + of(limits.Memory) + " of memory."
	case sandbox.OutputLimit:
		return "[PythonInterpreter Error] OutputError: The code wrote more than " + of(limits.Output) + "; print less."
	case sandbox.ProcessLimit:
		return fmt.Sprintf("[PythonInterpreter Error] ProcessError: The code started more than %d processes and threads.", limits.Processes)
	case sandbox.FilesLimit:
		return "[PythonInterpreter Error] FileError: The code made too many files."
	}
	if res.ExitCode != 0 && len(res.Stderr) == 0 {
		return fmt.Sprintf("[PythonInterpreter Error] The code ended with exit code %d.", res.ExitCode)
	}
	return ""
}

// A program is a Python and the folders that it needs to be seen.
type program struct {
	mu         sync.Mutex
	executable string
	folders    []string
}

// find looks for a Python, once, by asking it where it and its libraries are. A
// name in the PATH may be a script that chooses among several.
func (p *program) find(ctx context.Context, name string) (string, []string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.executable != "" {
		return p.executable, p.folders, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", nil, fmt.Errorf("there is no Python here: %w", err)
	}
	ask := exec.CommandContext(ctx, path, "-I", "-c", "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')")
	ask.WaitDelay = time.Second // a script may leave a child that holds its output
	out, err := ask.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err == nil && len(lines) != 3 {
		err = errors.New("it does not say where its libraries are")
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s does not work as Python: %w", name, errors.Join(err, ctx.Err()))
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	folders, err := beside(lines)
	if err != nil {
		return "", nil, err
	}
	p.executable, p.folders = lines[0], folders
	return p.executable, p.folders, nil
}

// beside gives the folders of a Python that are not the system's: its prefix and
// that of the one it was made from. A folder that holds a home is never shown.
func beside(paths []string) ([]string, error) {
	home, _ := os.UserHomeDir()
	var folders []string
	for _, prefix := range paths[1:] {
		switch rel, err := filepath.Rel(prefix, home); {
		case prefix == "/usr" || strings.HasPrefix(prefix, "/usr/"):
			continue
		case home != "" && err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)):
			return nil, fmt.Errorf("the Python at %s is not used: its folder holds the home folder", paths[0])
		}
		if len(folders) == 0 || folders[0] != prefix {
			folders = append(folders, prefix)
		}
	}
	return folders, nil
}
