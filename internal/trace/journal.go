package trace

import (
	"errors"
	"os"
)

// A Journal is a file that one run is made in. A run that was made again stands
// behind those before it, and the last one counts. The runs are those that the
// file had when it was opened.
type Journal struct {
	*Writer
	Runs []Run
}

// OpenJournal opens a journal to read what it has and to write on. One that is
// damaged is put aside, as path with ".damaged" behind it, and begun anew. The
// errors are those of Open, and of the file system.
func OpenJournal(path string) (*Journal, error) {
	w, err := Open(path)
	if err != nil {
		return nil, err
	}
	j := &Journal{Writer: w}
	info, err := os.Stat(path)
	if err == nil && info.Size() > 0 && info.Mode().IsRegular() {
		j.Runs, err = ReadFile(path)
	}
	if !errors.As(err, new(*FormatError)) {
		return j, err
	}
	j.Runs = nil
	_ = w.Close() // nothing was written
	if err := os.Rename(path, path+".damaged"); err != nil {
		return nil, err
	}
	j.Writer, err = Open(path)
	return j, err
}

// Last is the number of the run that counts, -1 for none: the last one that has
// a header, which a kill may have cut off.
func Last(runs []Run) int {
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i].Header.ID != "" {
			return i
		}
	}
	return -1
}

// Unfinished is the number of the run that may be gone on with, -1 for none.
func (j *Journal) Unfinished() int {
	if i := Last(j.Runs); i >= 0 && !j.Runs[i].Ended() {
		return i
	}
	return -1
}

// Unplayable reports whether an error of a run that is gone on with says that it
// cannot be: another version wrote its journal, or it is not whole.
func Unplayable(err error) bool {
	return errors.As(err, new(*DivergedError)) || errors.As(err, new(*HeaderError)) || errors.As(err, new(*RecordError)) ||
		errors.As(err, new(*ToolError)) || errors.As(err, new(*ContinuesError)) || errors.Is(err, ErrCounter)
}
