package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is set by the build; without it the build information tells.
var version string

// A release says what was built.
type release struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where known
	Modified bool   `json:"modified,omitempty"` // the source had changes beside it
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (r release) String() string {
	s := r.Version
	if len(r.Revision) >= 12 {
		s += " (" + r.Revision[:12]
		if r.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return s + " " + r.Go + " " + r.Platform
}

// readVersion reads it from the binary.
func readVersion() release {
	r := release{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if r.Version == "" {
		r.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version",
		Example: "  stopgap version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(readVersion())
			}
			_, err := fmt.Fprintln(a.stdout, "stopgap "+readVersion().String())
			return err
		},
	}
	ownFlags(cmd, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") })
	return cmd
}

// printJSON prints a value for other programs, on one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
