package builtin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ollama/ollama/fs/ggml"
)

// A file is a parsed GGUF file.
type file struct {
	kv      ggml.KV
	tensors map[string]*ggml.Tensor // those that are not read yet
	data    []byte                  // what the tensors' offsets count in
	values  int                     // that were expanded
}

// maxValues is the largest number of weights, which take four bytes each.
const maxValues = 64 << 20

// maxLength bounds each dimension, so that products of three do not overflow.
const maxLength = 1 << 20

// parse reads a header whose lengths the tokenizer has checked: Ollama's reader
// allocates what they say.
func parse(b []byte) (*file, error) {
	if !bytes.HasPrefix(b, []byte("GGUF")) {
		return nil, errors.New("a GGUF file in big-endian order")
	}
	g, err := ggml.Decode(bytes.NewReader(b), -1)
	if err != nil {
		return nil, err
	}
	f := &file{kv: g.KV(), tensors: map[string]*ggml.Tensor{}}
	for _, t := range g.Tensors().Items() {
		if f.tensors[t.Name] != nil {
			return nil, fmt.Errorf("two tensors %q", t.Name)
		}
		f.tensors[t.Name] = t
	}
	if start := g.Tensors().Offset; start <= uint64(len(b)) {
		f.data = b[start:]
	}
	return f, nil
}

// tensor gives the bytes of a tensor that has this shape, row after row. A
// tensor of one dimension has one row.
func (f *file) tensor(name string, columns, rows int) ([]byte, ggml.TensorType, error) {
	t := f.tensors[name]
	if t == nil {
		return nil, 0, fmt.Errorf("no tensor %s", name)
	}
	delete(f.tensors, name)
	kind := ggml.TensorType(t.Kind)
	shape := []uint64{uint64(columns), uint64(rows)}
	if rows == 1 {
		shape = shape[:1]
	}
	switch {
	case !slices.Equal(t.Shape, shape):
		return nil, 0, fmt.Errorf("tensor %s has the shape %d, not %d", name, t.Shape, shape)
	case kind != ggml.TensorTypeF32 && kind != ggml.TensorTypeF16 && kind != ggml.TensorTypeQ8_0:
		return nil, 0, fmt.Errorf("tensor %s has the type %s; the built-in engine knows f32, f16 and q8_0", name, kind)
	case uint64(columns)%kind.BlockSize() != 0:
		return nil, 0, fmt.Errorf("tensor %s has rows that are no whole blocks", name)
	}
	if f.values += columns * rows; f.values > maxValues {
		return nil, 0, fmt.Errorf("more than %d million weights: the built-in engine is for small models", maxValues>>20)
	}
	size := uint64(columns*rows) / kind.BlockSize() * kind.TypeSize()
	if t.Offset > uint64(len(f.data)) || size > uint64(len(f.data))-t.Offset {
		return nil, 0, fmt.Errorf("tensor %s reaches past the end of the file", name)
	}
	return f.data[t.Offset:][:size], kind, nil
}

// matrix reads a tensor of out rows of in values and turns it over, so that
// the weights of one input stand together.
func (f *file) matrix(name string, in, out int) (matrix, error) {
	b, kind, err := f.tensor(name, in, out)
	if err != nil {
		return matrix{}, err
	}
	m := matrix{in: in, out: out, weights: make([]float32, in*out), kind: kind}
	row := make([]float32, in)
	for o := range out {
		if !expand(row, b[o*len(b)/out:], kind) {
			return matrix{}, fmt.Errorf("tensor %s holds what is no number", name)
		}
		for i, v := range row {
			m.weights[i*out+o] = v
		}
	}
	return m, nil
}

// vector reads a tensor of one dimension.
func (f *file) vector(name string, n int) ([]float32, error) {
	b, kind, err := f.tensor(name, n, 1)
	if err != nil {
		return nil, err
	}
	v := make([]float32, n)
	if !expand(v, b, kind) {
		return nil, fmt.Errorf("tensor %s holds what is no number", name)
	}
	return v, nil
}

// expand turns weights into floats and reports whether all of them are finite.
func expand(dst []float32, b []byte, kind ggml.TensorType) (finite bool) {
	switch kind {
	case ggml.TensorTypeF32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case ggml.TensorTypeF16:
		for i := range dst {
			dst[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case ggml.TensorTypeQ8_0: // blocks of a 16-bit scale and 32 signed bytes
		for i := range dst {
			block := b[i/32*34:]
			dst[i] = fromHalf(binary.LittleEndian.Uint16(block)) * float32(int8(block[2+i%32]))
		}
	}
	for _, v := range dst {
		if v-v != 0 {
			return false
		}
	}
	return true
}
