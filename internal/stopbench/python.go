package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

//go:embed rescan.py
var rescanScript string

// A pythonAnswer is what rescan.py prints.
type pythonAnswer struct {
	Version string                 // "Python 3.11.7"
	Samples map[string][][]float64 // by the name of the text: nanoseconds, for each size one a round
}

// rescanPython has Python's re search the texts. The error says why it could
// not; the answer is never nil.
func rescanPython(ctx context.Context, texts []sample, e effort) (*pythonAnswer, error) {
	answer := &pythonAnswer{}
	python, err := exec.LookPath("python3")
	if err != nil {
		return answer, errors.New("there is no python3 on the PATH")
	}
	byName := map[string]string{}
	for _, s := range texts {
		byName[s.name] = s.text
	}
	job, err := json.Marshal(map[string]any{
		"pattern": call, "texts": byName, "sizes": e.sizes, "width": width, "rounds": e.rounds,
		"least": e.least.Seconds(), "costly": costly.Seconds(), "patient": patient.Seconds(),
	})
	if err != nil {
		return answer, err
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", rescanScript)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(job), &out, &complaint
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return answer, fmt.Errorf("python3: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return &pythonAnswer{}, fmt.Errorf("python3 printed no result: %w", err)
	}
	for _, s := range texts {
		if len(answer.Samples[s.name]) != len(e.sizes) {
			return &pythonAnswer{}, fmt.Errorf("python3 printed no samples of %s", s.name)
		}
	}
	return answer, nil
}
