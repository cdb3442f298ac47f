// Command stopbench measures what the check for a stop costs for each token,
// beside what it costs to search the whole text again. It prints the table of
// docs/stopping.md.
//
//	go run ./internal/stopbench [--rounds N] [--json] [--page FILE]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code: 1 when something could not be measured, 2 for
// wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("stopbench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 5, "take the median of `N` rounds")
	asJSON := flags.Bool("json", false, "print one JSON object")
	page := flags.String("page", "", "put the tables between the marks of this Markdown `FILE`")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 0 || *rounds < 1 {
		fmt.Fprintln(stderr, "stopbench: wants no arguments and at least one round")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := measure(ctx, full(*rounds), stderr)
	if err == nil && *page != "" {
		err = report.update(*page)
	}
	if err == nil && *asJSON {
		err = json.NewEncoder(stdout).Encode(report)
	} else if err == nil {
		err = report.print(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "stopbench:", err)
		return 1
	}
	return 0
}
