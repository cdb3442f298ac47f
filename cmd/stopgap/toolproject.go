package main

import (
	"context"

	"stopgap/tools"
	"stopgap/tools/project"
)

// openProjectTools gives project_structure.
func openProjectTools(_ context.Context, w *workshop) ([]tools.Tool, error) {
	return []tools.Tool{project.New(w.folder)}, nil
}
