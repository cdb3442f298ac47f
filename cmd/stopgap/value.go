package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"stopgap/internal/config"
)

// The values that flags, variables and the configuration file share. Each
// checks what it is given, so that all three give the same errors.

// A count is a whole number that is not below least.
type count struct {
	n     *int
	least int
}

func (c count) String() string { return strconv.Itoa(*c.n) }
func (c count) Type() string   { return "N" }
func (c count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("not a whole number")
	}
	if n < c.least {
		return fmt.Errorf("less than %d", c.least)
	}
	*c.n = n
	return nil
}

// A span is a duration that is not negative.
type span struct{ d *time.Duration }

func (v span) Type() string { return "TIME" }
func (v span) String() string {
	s := v.d.String()
	switch {
	case *v.d == 0:
		return "0"
	case strings.HasSuffix(s, "h0m0s"):
		return strings.TrimSuffix(s, "0m0s")
	case strings.HasSuffix(s, "m0s"):
		return strings.TrimSuffix(s, "0s")
	}
	return s
}
func (v span) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("not a time such as 30s, 5m or 1h30m")
	}
	if d < 0 {
		return errors.New("negative")
	}
	*v.d = d
	return nil
}

// A size is a number of bytes, also written as 4MB or 1MiB.
type size struct{ n *uint64 }

func (v size) Type() string   { return "SIZE" }
func (v size) String() string { return bytesWords(*v.n) }
func (v size) Set(s string) error {
	n, err := humanize.ParseBytes(s)
	if err != nil || n > math.MaxInt32 {
		return errors.New("not a size such as 4MiB, below 2GiB")
	}
	*v.n = n
	return nil
}

// bytesWords writes a number of bytes, for example 1MiB.
func bytesWords(n uint64) string {
	return strings.NewReplacer(".0 ", "", " ", "").Replace(humanize.IBytes(n))
}

// A choice is one of a few words.
type choice struct {
	s     *string
	among []string
}

func (v choice) Type() string   { return strings.Join(v.among, "|") }
func (v choice) String() string { return *v.s }
func (v choice) Set(s string) error {
	if !slices.Contains(v.among, s) {
		return errors.New("not one of " + strings.Join(v.among, ", "))
	}
	*v.s = s
	return nil
}

// A date is a day, written as 2026-01-31.
type date struct{ s *string }

func (v date) Type() string   { return "YYYY-MM-DD" }
func (v date) String() string { return *v.s }
func (v date) Set(s string) error {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return errors.New("not a day such as 2026-01-31")
	}
	*v.s = s
	return nil
}

// A decimal is an optional number between least and most.
type decimal struct {
	p           **float64
	least, most float64
}

func (v decimal) Type() string { return "X" }
func (v decimal) String() string {
	if *v.p == nil {
		return ""
	}
	return strconv.FormatFloat(**v.p, 'g', -1, 64)
}
func (v decimal) Set(s string) error {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return errors.New("not a number")
	}
	if !(x >= v.least && x <= v.most) { // also refuses NaN
		return fmt.Errorf("not between %g and %g", v.least, v.most)
	}
	*v.p = &x
	return nil
}

// An integer is an optional whole number that is not below least.
type integer struct {
	p     **int
	least int
}

func (v integer) Type() string { return "N" }
func (v integer) String() string {
	if *v.p == nil {
		return ""
	}
	return strconv.Itoa(**v.p)
}
func (v integer) Set(s string) error {
	var n int
	if err := (count{&n, v.least}).Set(s); err != nil {
		return err
	}
	*v.p = &n
	return nil
}

// A list is a flag that may be repeated. Commas are part of a value.
type list struct {
	values *[]string
	kind   string
	check  func(string) error // nil for anything
}

func (v list) Type() string       { return v.kind }
func (v list) String() string     { return strings.Join(*v.values, "\n") }
func (v list) GetSlice() []string { return *v.values }
func (v list) Set(s string) error { return v.Append(s) }
func (v list) Append(s string) error {
	if v.check != nil {
		if err := v.check(s); err != nil {
			return err
		}
	}
	*v.values = append(*v.values, s)
	return nil
}
func (v list) Replace(all []string) error {
	*v.values = nil
	for _, s := range all {
		if err := v.Append(s); err != nil {
			return err
		}
	}
	return nil
}

// Words are values that have no commas, for a flag that takes several of them
// at once.
type words struct {
	values *[]string
	kind   string
	check  func(string) error
}

// Type has three dots for an ellipsis: pflag counts the columns of the help in bytes.
func (v words) Type() string       { return strings.ReplaceAll(v.kind, "…", "...") }
func (v words) String() string     { return strings.Join(*v.values, ",") }
func (v words) GetSlice() []string { return *v.values }
func (v words) Set(s string) error { return v.Append(s) }
func (v words) Append(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		word = strings.TrimSpace(word)
		if err := v.check(word); err != nil {
			return err
		}
		if !slices.Contains(*v.values, word) {
			*v.values = append(*v.values, word)
		}
	}
	return nil
}
func (v words) Replace(all []string) error {
	*v.values = nil
	return v.Append(strings.Join(all, ","))
}

// checkCapability wants something that a tool can need.
func checkCapability(s string) error {
	if !slices.Contains(capabilities, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(capabilities, ", "))
	}
	return nil
}

// checkPair wants key=value.
func checkPair(s string) error {
	if key, _, ok := strings.Cut(s, "="); !ok || key == "" {
		return errors.New("not of the form key=value")
	}
	return nil
}

// checkLimit wants tool=N.
func checkLimit(s string) error {
	tool, n, ok := strings.Cut(s, "=")
	if !ok || tool == "" {
		return errors.New("not of the form tool=N")
	}
	var limit int
	return count{&limit, 1}.Set(n)
}

// checkStop wants a text.
func checkStop(s string) error {
	if s == "" {
		return errors.New("empty")
	}
	return nil
}

// checkVariable wants the name of an environment variable, and not, by
// mistake, a key.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// A variable is the name of an environment variable.
type variable struct{ s *string }

func (v variable) Type() string   { return "NAME" }
func (v variable) String() string { return *v.s }
func (v variable) Set(s string) error {
	if !variableName.MatchString(s) {
		return errors.New("not the name of an environment variable")
	}
	*v.s = s
	return nil
}

// Keys are a mapping inside a file, as the pairs key=value that it is read as.
type keys struct {
	kind string
	set  func() *pflag.FlagSet
}

func (v keys) Type() string       { return v.kind }
func (v keys) String() string     { return "" }
func (v keys) GetSlice() []string { return nil }
func (v keys) Set(s string) error { return v.Append(s) }
func (v keys) Append(s string) error {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("not a mapping")
	}
	set := v.set()
	f := set.Lookup(key)
	if f == nil {
		var names []string
		set.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return fmt.Errorf("it takes the keys %s", strings.Join(names, ", "))
	}
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s: %s", key, config.Reason(err))
	}
	return nil
}
func (v keys) Replace(all []string) error {
	for _, s := range all {
		if err := v.Append(s); err != nil {
			return err
		}
	}
	return nil
}
