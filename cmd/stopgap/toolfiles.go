package main

import (
	"context"
	"errors"
	"strings"

	"stopgap/tools"
	"stopgap/tools/document"
	"stopgap/tools/files"
)

// openFilesTools gives parse_file.
func openFilesTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	return []tools.Tool{files.New(files.Options{
		Folder: w.folder, Document: w.documents(), Goal: w.reader(),
	})}, nil
}

// documents are how files are read.
func (s *settings) documents() document.Options {
	o := document.Options{Converters: map[string][]string{}}
	for _, c := range s.converters {
		ext, command, _ := strings.Cut(c, "=") // the flag has checked it
		o.Converters[strings.ToLower(strings.TrimPrefix(ext, "."))] = strings.Fields(command)
	}
	return o
}

// checkConverter wants ext=command. The command is parted at its spaces;
// whoever needs more writes a script.
func checkConverter(s string) error {
	ext, command, ok := strings.Cut(s, "=")
	switch {
	case !ok || strings.Trim(ext, ".") == "" || strings.TrimSpace(command) == "":
		return errors.New("not of the form ext=command {file}")
	case !strings.Contains(command, "{file}"):
		return errors.New("the command has no {file} in it, which stands for the file's path")
	}
	return nil
}
