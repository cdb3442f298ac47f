// Command cmd writes a model file that says what a script tells it:
//
//	go run ./internal/automaton/cmd SCRIPT.yaml MODEL.gguf
package main

import (
	"fmt"
	"io"
	"os"

	"stopgap/internal/automaton"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(stderr, "usage: automaton SCRIPT.yaml MODEL.gguf")
		return 2
	}
	size, err := write(args[0], args[1])
	if err != nil {
		fmt.Fprintln(stderr, "automaton:", err)
		return 1
	}
	fmt.Fprintf(stdout, "wrote %s: %d tokens\n", args[1], size)
	return 0
}

func write(script, model string) (tokens int, err error) {
	s, err := automaton.ReadScript(script)
	if err != nil {
		return 0, err
	}
	a, err := automaton.Compile(s)
	if err != nil {
		return 0, err
	}
	return a.Size(), a.WriteFile(model, automaton.Options{})
}
