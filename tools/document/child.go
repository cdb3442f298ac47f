package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// childName is what a child is called, in lists of processes and in its own
// arguments.
const childName = "stopgap-document"

// jobVariable has the job of a child. Only the same user can read it there,
// unlike an argument.
const jobVariable = "STOPGAP_DOCUMENT_JOB"

// A job is what a child is asked to do with its standard input.
type job struct {
	Name        string        `json:"name"`
	ContentType string        `json:"content_type,omitempty"`
	BaseURL     string        `json:"base_url,omitempty"`
	MaxText     int           `json:"max_text"`
	Memory      int64         `json:"memory"`
	Timeout     time.Duration `json:"timeout"`
	PDFToText   string        `json:"pdftotext,omitempty"` // its path, where there is one
}

// An answer is what a child prints.
type answer struct {
	Document Document `json:"document"`
	// Reason and Cause are those of an *Error.
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause,omitempty"`
}

// How a child ends that has no answer.
const (
	exitMemory  = 81
	exitTimeout = 82
)

// Child does the work of a parsing process and never comes back, if this is
// one: Parse starts the running program again. Call it first in the main
// function of every program that parses, and in TestMain.
func Child() {
	text := os.Getenv(jobVariable)
	if text == "" || len(os.Args) != 1 || os.Args[0] != childName {
		return
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fmt.Fprintln(os.Stderr, "bad job:", err)
		os.Exit(2)
	}
	limit(j)
	d, err := read(j, os.Stdin)
	a := answer{Document: d}
	if err != nil {
		a = answer{Reason: "is damaged: " + line(err.Error()), Cause: ErrDamaged.Error()}
		if e, ok := errors.AsType[*Error](err); ok {
			a = answer{Reason: e.Reason, Cause: e.Cause.Error()}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// limit holds the process to its limits: the kernel does where it can, and
// the process itself looks at its memory and its clock everywhere, so that it
// ends even if its parent is gone.
func limit(j job) {
	debug.SetMemoryLimit(j.Memory * 5 / 8) // collect before the limit is near
	debug.SetMaxStack(int(j.Memory / 4))
	debug.SetTraceback("none")
	limitProcess(j.Memory, j.Timeout)
	time.AfterFunc(j.Timeout, func() { exitGroup(exitTimeout) })
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(sample)
			if int64(sample[0].Value.Uint64()-sample[1].Value.Uint64()) > j.Memory-reserve {
				exitGroup(exitMemory)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

// grandchild is the command that a child runs, if it does.
var grandchild struct {
	sync.Mutex
	process *os.Process
}

// exitGroup ends a child, and before it what it has started.
func exitGroup(code int) {
	grandchild.Lock() // for good: nothing is started any more
	if grandchild.process != nil {
		_ = grandchild.process.Kill() // it may be gone
	}
	os.Exit(code)
}

// reserve is what of the memory is not data: the pages of the program itself.
const reserve = 32 << 20

// read gives the text of a file.
func read(j job, file *os.File) (Document, error) {
	info, err := file.Stat()
	if err != nil {
		return Document{}, err
	}
	return guarded(input{job: j, name: label(j.Name), data: io.NewSectionReader(file, 0, info.Size()), quota: newQuota()}, &writer{max: j.MaxText})
}

// guarded parses a file. A panic of a library is a damaged file.
func guarded(in input, w *writer) (d Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			d, err = Document{}, fail(ErrDamaged, "is damaged: its parser failed (%.200s)", line(fmt.Sprint(r)))
		}
	}()
	return w.document(in.parse(w))
}

// An input is a file that is parsed, or one inside of it.
type input struct {
	job
	name   string
	data   *io.SectionReader
	quota  *quota // shared with the files inside
	inside bool   // of an archive
}

// parse writes the text of a file.
func (in input) parse(w *writer) error {
	head := make([]byte, min(in.data.Size(), headBytes))
	if _, err := in.data.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	}
	k := sniff(in.name, in.ContentType, head)
	if k == kindZip {
		return in.archive(w)
	}
	w.doc.Type = string(k)
	switch k {
	case kindPDF:
		return in.pdf(w)
	case kindHTML:
		return in.html(w, head)
	case kindCSV, kindTSV:
		return in.table(w, head, k)
	case kindMD, kindJSON, kindJSONL, kindText:
		return in.text(w, head, k)
	}
	return unconverted(k, in.name, head)
}
