package models

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccy/go-yaml"
)

// A Script says what a scripted model writes. As a file it is YAML:
//
//	name: weather          # optional; else the file names it
//	context: 4096          # pieces that fit; optional, then there is no limit
//	turns:
//	  - text: "<think>I should look it up.</think>\n<tool_call>…</tool_call>"
//	  - after: "</tool_response>\n"   # only where the prompt ends in this
//	    text: It rains.
//	    finish: stop       # stop (default), length, context
//	    chunk: 3           # bytes a chunk; default: one word a chunk
//	    delay: 10ms        # before each chunk
//	    error: cut         # after the text: cut, stall, server
//
// Which turn is next depends only on the prompt: the turn with the longest after
// that the prompt ends in; otherwise, of the turns without after, the one that
// follows the turn that was served for the longest beginning of this prompt.
// The same prompt gets the same turn again. Under a JSON schema a turn is said
// where its text is a value that the schema allows, and refused otherwise.
type Script struct {
	Name    string       `yaml:"name"`
	Context int          `yaml:"context"`
	Turns   []ScriptTurn `yaml:"turns"`
}

// A ScriptTurn is one generation of a Script.
type ScriptTurn struct {
	After  string   `yaml:"after"`
	Text   string   `yaml:"text"`
	Finish Finish   `yaml:"finish"`
	Chunk  int      `yaml:"chunk"`
	Delay  Duration `yaml:"delay"`
	Error  string   `yaml:"error"`
}

// A Duration is written as in Go: 10ms, 1.5s.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(b []byte) error {
	var s string
	if err := yaml.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	if err == nil && v < 0 {
		err = errors.New("a delay is not negative")
	}
	*d = Duration(v)
	return err
}

// The faults that a turn may end in.
const (
	scriptCut    = "cut"    // the stream ends without a reason
	scriptStall  = "stall"  // nothing more comes
	scriptServer = "server" // the server reports an error
)

const scriptLimit = 16 << 20 // bytes of a script file

// ParseScript reads a script. Unknown fields are errors.
func ParseScript(b []byte) (*Script, error) {
	var s Script
	if err := yaml.UnmarshalWithOptions(b, &s, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("script: %w", err)
	}
	if len(s.Turns) == 0 {
		return nil, errors.New("script: it has no turns")
	}
	if s.Context < 0 {
		return nil, errors.New("script: context is negative")
	}
	for i, t := range s.Turns {
		bad := ""
		switch {
		case t.Finish != "" && t.Finish != FinishStop && t.Finish != FinishLength && t.Finish != FinishContext:
			bad = "finish must be stop, length or context"
		case t.Error != "" && t.Error != scriptCut && t.Error != scriptStall && t.Error != scriptServer:
			bad = "error must be cut, stall or server"
		case t.Error != "" && t.Finish != "":
			bad = "a turn that ends in an error has no finish"
		case t.Chunk < 0:
			bad = "chunk is negative"
		}
		if bad != "" {
			return nil, fmt.Errorf("script: turn %d: %s", i+1, bad)
		}
	}
	return &s, nil
}

// LoadScript reads a script file.
func LoadScript(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, scriptLimit+1))
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if len(b) > scriptLimit {
		return nil, fmt.Errorf("script: %s is longer than %d bytes", path, scriptLimit)
	}
	s, err := ParseScript(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}
