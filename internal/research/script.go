package research

import (
	"os"

	"stopgap/template"
)

// A Script is the format of a phase.
type Script struct {
	Name   string // of a shipped format, or a file
	Format *template.Format
	Text   []byte // of the file
}

// Scripts are the formats of the phases. The tools that a format must be able
// to call are those of the shipped one.
type Scripts struct {
	Plan, Outline, Write Script
	// Read is what pages are read with, in a prompt of its own.
	Read Script
}

// The shipped formats of the phases.
const (
	PlanFormat    = "weaver-plan"
	OutlineFormat = "weaver-outline"
	WriteFormat   = "weaver-write"
	ReadFormat    = "qwen"
)

// LoadScripts loads the formats of the phases by their names or files; an empty
// one means the shipped one. The errors are those of template.Load.
func LoadScripts(plan, outline, write, read string) (Scripts, error) {
	var s Scripts
	for _, l := range []struct {
		to            *Script
		name, shipped string
	}{
		{&s.Plan, plan, PlanFormat}, {&s.Outline, outline, OutlineFormat}, {&s.Write, write, WriteFormat}, {&s.Read, read, ReadFormat},
	} {
		if l.name == "" {
			l.name = l.shipped
		}
		format, err := template.Load(l.name)
		if err != nil {
			return Scripts{}, err
		}
		text, err := template.Shipped(l.name)
		if err != nil {
			if text, err = os.ReadFile(l.name); err != nil {
				return Scripts{}, err
			}
		}
		*l.to = Script{l.name, format, text}
	}
	return s, nil
}
