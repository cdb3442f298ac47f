// Package builtin runs a small transformer in pure Go, so that there is a
// language model where no server is: it reads a GGUF file of the Qwen2 or
// Qwen3 architecture, keeps a key-value cache and samples. One such file is
// embedded.
//
// It is no general inference engine. It knows these two architectures with
// weights of the types f32, f16 and q8_0, which it expands to 32-bit floats,
// and it refuses large files: those belong to Ollama or llama-server.
//
// Numbers are rounded where ggml rounds them on a CPU (activations to the type
// that the weights are multiplied in, keys and values to 16-bit floats), so
// that greedy generations are those of the servers for the same file. Sums are
// 32-bit floats, added up in another order, those of attention too, for which
// ggml takes 16 bits: a near-tie can show it.
package builtin

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"sync"

	"stopgap/models/tokenizer"
)

// A Model is a loaded file. It is safe for concurrent use: generations share
// the weights and the beginnings of prompts that were read before.
type Model struct {
	shape
	weights
	size      int64 // of the file
	tokenizer *tokenizer.Tokenizer
	prefixes  prefixes
}

// A FileError says why a file cannot be used.
type FileError struct {
	Path   string // empty for what is not read from a path
	Reason string
}

func (e *FileError) Error() string {
	if e.Path == "" {
		return "model file: " + e.Reason
	}
	return e.Path + ": " + e.Reason
}

//go:embed model.gguf
var embedded []byte

// Embedded gives the model that is part of the program. It is loaded once, when
// it is first asked for.
var Embedded = sync.OnceValues(func() (*Model, error) { return Load(embedded) })

// maxFile is the size of the largest file that is read, in bytes.
const maxFile = 512 << 20

// Open loads a file. One that is no model for this engine gives a *FileError.
func Open(path string) (*Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile || !info.Mode().IsRegular() {
		return nil, &FileError{path, fmt.Sprintf("no file of at most %d MiB: the built-in engine is for small models", maxFile>>20)}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Load(file)
	if e, ok := err.(*FileError); ok {
		e.Path = path
	}
	return m, err
}

// Load reads a model from the bytes of a GGUF file, which it does not keep.
// The error is a *FileError.
func Load(file []byte) (*Model, error) {
	m, err := load(file)
	if err != nil {
		return nil, &FileError{Reason: err.Error()}
	}
	return m, nil
}

func load(b []byte) (*Model, error) {
	t, err := tokenizer.FromGGUF(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	f, err := parse(b)
	if err != nil {
		return nil, err
	}
	m := &Model{tokenizer: t, size: int64(len(b))}
	if m.shape, err = f.shape(t.Len()); err != nil {
		return nil, err
	}
	m.weights, err = f.weights(&m.shape)
	return m, err
}

// About is what a file says of its model.
type About struct {
	Name         string
	Architecture string
	Context      int // tokens, in training
	Parameters   int
	Size         int64 // of the file, in bytes
}

// About tells what the model is.
func (m *Model) About() About {
	return About{m.name, m.architecture, m.context, m.parameters, m.size}
}

// Tokenizer is the file's tokenizer.
func (m *Model) Tokenizer() *tokenizer.Tokenizer { return m.tokenizer }
