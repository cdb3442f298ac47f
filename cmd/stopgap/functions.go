package main

import (
	"fmt"

	"stopgap/internal/batch"
	"stopgap/internal/config"
	"stopgap/runner"
	"stopgap/template"
)

// functionsOf gives the first item of a dataset whose items bring functions of
// their own, nil for others.
func functionsOf(data *batch.Dataset) *batch.Item {
	if data.Shape != batch.BFCL {
		return nil
	}
	return &data.Items[0]
}

// equipByItem refuses what cannot be said where each item has tools of its own.
func (k *kit) equipByItem(s *settings) error {
	if format := k.runner.Format; format.Call.Kind == template.TagCalls {
		return &usageError{
			fmt.Errorf("format %s has words for its own tools only, so that the functions of the dataset cannot be called in it", format.Name),
			"take a format that can call any tool, such as qwen or react",
		}
	}
	for _, name := range []string{"corpus", "tools", "call-limit"} {
		if s.origins[name].Place == config.Flag {
			return &usageError{fmt.Errorf("--%s means nothing here: each question of the dataset has functions of its own, and no others", name), "leave it out"}
		}
	}
	if s.choice().Mode == runner.Named {
		return &usageError{fmt.Errorf("--tool-choice names %s, but each question of the dataset has functions of its own", s.toolChoice), "it takes auto, none or required"}
	}
	return nil
}
