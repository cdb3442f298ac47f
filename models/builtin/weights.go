package builtin

import (
	"errors"
	"fmt"
	"math"
)

// A shape is the sizes of a model.
type shape struct {
	name, architecture string
	context            int // tokens, as in training
	vocabulary         int
	layers             int
	width              int // of what goes from layer to layer
	heads, kvHeads     int // heads of queries; of keys and values
	head               int // width of a head
	feedForward        int // width of the feed-forward layer
	epsilon            float32
	ropeBase           float32
	parameters         int
}

// weights are the numbers of a model.
type weights struct {
	embedding  matrix // from the width to the vocabulary: its columns are the embeddings
	blocks     []block
	outputNorm []float32
	output     matrix // the embedding again where the file has no other
}

// A block is one layer.
type block struct {
	attentionNorm, feedForwardNorm []float32
	query, key, value, attention   linear
	queryNorm, keyNorm             []float32 // Qwen3
	gate, up, down                 linear
}

// A linear is a matrix, and a bias where the architecture has one.
type linear struct {
	matrix
	bias []float32 // Qwen2
}

// The architectures, by the names of general.architecture.
const (
	qwen2 = "qwen2"
	qwen3 = "qwen3"
)

// shape reads the sizes from the metadata.
func (f *file) shape(vocabulary int) (shape, error) {
	s := shape{name: f.kv.String("general.name"), architecture: f.kv.Architecture(), vocabulary: vocabulary}
	if s.architecture != qwen2 && s.architecture != qwen3 {
		return s, fmt.Errorf("the architecture %q; the built-in engine knows qwen2 and qwen3", s.architecture)
	}
	for _, size := range []struct {
		key  string
		into *int
	}{
		{"context_length", &s.context}, {"block_count", &s.layers}, {"embedding_length", &s.width},
		{"attention.head_count", &s.heads}, {"attention.head_count_kv", &s.kvHeads}, {"feed_forward_length", &s.feedForward},
	} {
		*size.into = int(f.kv.Uint(size.key))
		if *size.into < 1 || *size.into > maxLength && size.into != &s.context {
			return s, fmt.Errorf("%s.%s is missing or out of range", s.architecture, size.key)
		}
	}
	s.head = int(f.kv.Uint("attention.key_length", uint32(s.width/s.heads)))
	s.epsilon = f.kv.Float("attention.layer_norm_rms_epsilon")
	s.ropeBase = f.kv.Float("rope.freq_base", 10000)
	scaling, factor := f.kv.String("rope.scaling.type", "none"), f.kv.Float("rope.scaling.factor", 1)
	switch {
	case s.head < 2 || s.head%2 != 0 || s.head > maxLength,
		int(f.kv.Uint("attention.value_length", uint32(s.head))) != s.head,
		int(f.kv.Uint("rope.dimension_count", uint32(s.head))) != s.head:
		return s, errors.New("heads whose width is odd, or not the same for keys, values and positions")
	case s.heads%s.kvHeads != 0:
		return s, fmt.Errorf("%d heads cannot share %d keys", s.heads, s.kvHeads)
	case !(s.epsilon > 0) || math.IsInf(float64(s.epsilon), 0):
		return s, fmt.Errorf("%s.attention.layer_norm_rms_epsilon is missing or out of range", s.architecture)
	case !(s.ropeBase > 0) || math.IsInf(float64(s.ropeBase), 0):
		return s, fmt.Errorf("%s.rope.freq_base is out of range", s.architecture)
	case scaling != "none" || factor != 1:
		return s, errors.New("scaled positions (rope.scaling), which the built-in engine does not know")
	}
	return s, nil
}

// weights reads the tensors. One that is left over is an error: a model that
// has more than these architectures would say something else without it.
func (f *file) weights(s *shape) (w weights, err error) {
	// The readers do nothing after the first error.
	matrix := func(name string, in, out int) (m matrix) {
		if err == nil {
			m, err = f.matrix(name, in, out)
		}
		return m
	}
	vector := func(name string, n int) (v []float32) {
		if err == nil {
			v, err = f.vector(name, n)
		}
		return v
	}
	w.embedding = matrix("token_embd.weight", s.width, s.vocabulary)
	w.outputNorm = vector("output_norm.weight", s.width)
	w.output = w.embedding
	if f.tensors["output.weight"] != nil {
		w.output = matrix("output.weight", s.width, s.vocabulary)
	}
	queries, keys := s.heads*s.head, s.kvHeads*s.head
	for i := 0; i < s.layers && err == nil; i++ {
		name := func(rest string) string { return fmt.Sprintf("blk.%d.%s", i, rest) }
		b := block{
			attentionNorm:   vector(name("attn_norm.weight"), s.width),
			feedForwardNorm: vector(name("ffn_norm.weight"), s.width),
			query:           linear{matrix: matrix(name("attn_q.weight"), s.width, queries)},
			key:             linear{matrix: matrix(name("attn_k.weight"), s.width, keys)},
			value:           linear{matrix: matrix(name("attn_v.weight"), s.width, keys)},
			attention:       linear{matrix: matrix(name("attn_output.weight"), queries, s.width)},
			gate:            linear{matrix: matrix(name("ffn_gate.weight"), s.width, s.feedForward)},
			up:              linear{matrix: matrix(name("ffn_up.weight"), s.width, s.feedForward)},
			down:            linear{matrix: matrix(name("ffn_down.weight"), s.feedForward, s.width)},
		}
		switch {
		case s.architecture == qwen3:
			b.queryNorm, b.keyNorm = vector(name("attn_q_norm.weight"), s.head), vector(name("attn_k_norm.weight"), s.head)
		case f.tensors[name("attn_q.bias")] != nil:
			b.query.bias, b.key.bias = vector(name("attn_q.bias"), queries), vector(name("attn_k.bias"), keys)
			b.value.bias = vector(name("attn_v.bias"), keys)
		}
		if err == nil && (b.query.kind != b.key.kind || b.key.kind != b.value.kind || b.gate.kind != b.up.kind) {
			err = fmt.Errorf("query, key and value of layer %d, or gate and up, have not one type", i) // they get the same rounded input
		}
		w.blocks = append(w.blocks, b)
	}
	for name := range f.tensors {
		if err == nil {
			err = fmt.Errorf("tensor %q is not part of the architecture %s", name, s.architecture)
		}
	}
	s.parameters = f.values
	return w, err
}
