package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// A Place is where a setting came from.
type Place string

// The places, from the strongest to the weakest.
const (
	Flag        Place = "flag"
	Environment Place = "environment"
	InFile      Place = "file"
	Default     Place = "default"
)

// An Origin is where a setting came from, and where exactly.
type Origin struct {
	Place Place
	// Detail is the flag, the variable, or the file and its line; empty for
	// a default.
	Detail string
}

// String gives the origin in words, for example "environment STOPGAP_MODEL".
func (o Origin) String() string {
	if o.Detail == "" {
		return string(o.Place)
	}
	return string(o.Place) + " " + o.Detail
}

// A ValueError says that a setting has a value that it cannot have.
type ValueError struct {
	Name   string
	Value  string
	Origin Origin
	Err    error
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s: %q is not a value for %s: %s", e.Origin.Detail, e.Value, e.Name, Reason(e.Err))
}

func (e *ValueError) Unwrap() error { return e.Err }

// Reason says why a value could not be read, without the names of Go's functions.
func Reason(err error) string {
	var num *strconv.NumError
	if !errors.As(err, &num) {
		return strings.TrimPrefix(err.Error(), "time: ")
	}
	if errors.Is(num.Err, strconv.ErrRange) {
		return "out of range"
	}
	switch num.Func {
	case "ParseFloat":
		return "not a number"
	case "ParseBool":
		return "neither true nor false"
	}
	return "not a whole number"
}

// Variable is the environment variable of a setting.
func Variable(name string) string {
	return "STOPGAP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Apply sets every flag of that name that the command line did not set from
// the environment, else from the file, and reports the origin of each. An
// empty variable counts as not set. A variable for a flag that may be repeated
// holds one value a line. Names that flags does not have are left alone.
func Apply(flags *pflag.FlagSet, names []string, lookup func(string) (string, bool), file *File) (map[string]Origin, error) {
	origins := map[string]Origin{}
	for _, name := range names {
		f := flags.Lookup(name)
		if f == nil {
			continue
		}
		values, origin := find(f, lookup, file)
		origins[name] = origin
		if err := assign(f, values); err != nil {
			return nil, &ValueError{Name: name, Value: err.value, Origin: origin, Err: err.err}
		}
	}
	return origins, nil
}

// Set sets every flag that the file names. An error is a *ValueError.
func (f *File) Set(flags *pflag.FlagSet) error {
	var first error
	flags.VisitAll(func(flag *pflag.Flag) {
		e, ok := f.entries[flag.Name]
		if !ok || first != nil {
			return
		}
		if err := assign(flag, e.values); err != nil {
			first = &ValueError{flag.Name, err.value, Origin{InFile, fmt.Sprintf("%s:%d", f.Path, e.line)}, err.err}
		}
	})
	return first
}

// find gives the values of a setting and where they stand. There are none
// where the flag has its value already.
func find(f *pflag.Flag, lookup func(string) (string, bool), file *File) ([]string, Origin) {
	if f.Changed {
		return nil, Origin{Flag, "--" + f.Name}
	}
	variable := Variable(f.Name)
	if v, ok := lookup(variable); ok && v != "" {
		if _, many := f.Value.(pflag.SliceValue); many {
			return strings.Split(strings.TrimRight(v, "\n"), "\n"), Origin{Environment, variable}
		}
		return []string{v}, Origin{Environment, variable}
	}
	if file != nil {
		if e, ok := file.entries[f.Name]; ok {
			return e.values, Origin{InFile, fmt.Sprintf("%s:%d", file.Path, e.line)}
		}
	}
	return nil, Origin{Place: Default}
}

// A refusal is a value that a flag did not take.
type refusal struct {
	value string
	err   error
}

func assign(f *pflag.Flag, values []string) *refusal {
	if values == nil {
		return nil
	}
	if many, ok := f.Value.(pflag.SliceValue); ok {
		for _, v := range values { // Append checks each, so that the error names the one
			if err := many.Append(v); err != nil {
				return &refusal{v, err}
			}
		}
		return nil
	}
	if len(values) != 1 {
		return &refusal{strings.Join(values, ", "), errors.New("one value is wanted")}
	}
	if err := f.Value.Set(values[0]); err != nil {
		return &refusal{values[0], err}
	}
	return nil
}
