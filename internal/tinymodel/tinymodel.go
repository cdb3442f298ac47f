// Package tinymodel writes model files with random weights, for tests of what
// runs them: the sizes, the architecture and the type of the weights are free,
// and what such a model writes is nonsense, but always the same.
package tinymodel

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"github.com/ollama/ollama/fs/ggml"
)

// Options are the sizes of a model. Zero values are replaced by small ones.
type Options struct {
	Architecture   string // "qwen3", or "qwen2", which has biases
	Layers         int
	Width          int // a multiple of 32
	Heads, KVHeads int
	Head           int // width of a head
	FeedForward    int
	Context        int
	Tokens         int             // of the vocabulary: 265 at least, fewer than asked where the text gives no more
	Output         bool            // a matrix of its own for the output, not the embedding
	Type           ggml.TensorType // of the matrices: f32, f16 or q8_0
	Pooling        uint32          // makes it an embedding model: 1 is the mean over the tokens, 3 the last one
	Seed           uint64
}

func (o *Options) defaults() {
	or := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	or(&o.Layers, 2)
	or(&o.Width, 64)
	or(&o.Heads, 4)
	or(&o.KVHeads, 2)
	or(&o.Head, 32)
	or(&o.FeedForward, 96)
	or(&o.Context, 2048)
	or(&o.Tokens, 320)
	if o.Architecture == "" {
		o.Architecture = "qwen3"
	}
}

// Write writes a file. The vocabulary is learned from the text.
func Write(path, text string, o Options) (err error) {
	o.defaults()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	v := learn(text, o.Tokens)
	return ggml.WriteGGUF(f, o.metadata(v), o.tensors(len(v.tokens)))
}

func (o Options) metadata(v vocabulary) ggml.KV {
	kv := ggml.KV{
		"general.architecture":             o.Architecture,
		"general.name":                     "tiny",
		"general.file_type":                uint32(o.Type), // the numbers agree for f32 and f16
		"tokenizer.ggml.model":             "gpt2",
		"tokenizer.ggml.pre":               "qwen2",
		"tokenizer.ggml.tokens":            v.tokens,
		"tokenizer.ggml.token_type":        v.types,
		"tokenizer.ggml.merges":            v.merges,
		"tokenizer.ggml.bos_token_id":      uint32(0), // <|endoftext|>
		"tokenizer.ggml.eos_token_id":      uint32(2), // <|im_end|>
		"tokenizer.ggml.padding_token_id":  uint32(0),
		"tokenizer.ggml.add_bos_token":     false,
		"tokenizer.ggml.add_eos_token":     false,
		"tokenizer.ggml.unknown_token_id":  uint32(0),
		"general.quantization_version":     uint32(2),
		o.Architecture + ".context_length": uint32(o.Context),
	}
	for key, value := range map[string]int{
		"block_count": o.Layers, "embedding_length": o.Width, "feed_forward_length": o.FeedForward,
		"attention.head_count": o.Heads, "attention.head_count_kv": o.KVHeads,
		"attention.key_length": o.Head, "attention.value_length": o.Head, "rope.dimension_count": o.Head,
	} {
		kv[o.Architecture+"."+key] = uint32(value)
	}
	if o.Pooling != 0 {
		kv[o.Architecture+".pooling_type"] = o.Pooling
	}
	kv[o.Architecture+".attention.layer_norm_rms_epsilon"] = float32(1e-6)
	kv[o.Architecture+".rope.freq_base"] = float32(1e6)
	return kv
}

func (o Options) tensors(tokens int) []*ggml.Tensor {
	r := rand.New(rand.NewPCG(o.Seed, 1))
	var all []*ggml.Tensor
	add := func(name string, kind ggml.TensorType, mean, spread float64, shape ...int) {
		t := &ggml.Tensor{Name: name, Kind: uint32(kind)}
		n := 1
		for _, s := range shape {
			t.Shape = append(t.Shape, uint64(s))
			n *= s
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(mean + spread*r.NormFloat64())
		}
		t.WriterTo = data(encode(values, kind))
		all = append(all, t)
	}
	matrix := func(name string, in, out int) {
		add(name, o.Type, 0, 1/math.Sqrt(float64(in)), in, out)
	}
	vector := func(name string, mean float64, n int) { add(name, ggml.TensorTypeF32, mean, 0.2, n) }
	matrix("token_embd.weight", o.Width, tokens)
	vector("output_norm.weight", 3, o.Width) // some tokens are likelier than others
	if o.Output {
		matrix("output.weight", o.Width, tokens)
	}
	queries, keys := o.Heads*o.Head, o.KVHeads*o.Head
	for i := range o.Layers {
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
		vector(name("attn_norm.weight"), 1, o.Width)
		vector(name("ffn_norm.weight"), 1, o.Width)
		matrix(name("attn_q.weight"), o.Width, queries)
		matrix(name("attn_k.weight"), o.Width, keys)
		matrix(name("attn_v.weight"), o.Width, keys)
		matrix(name("attn_output.weight"), queries, o.Width)
		matrix(name("ffn_gate.weight"), o.Width, o.FeedForward)
		matrix(name("ffn_up.weight"), o.Width, o.FeedForward)
		matrix(name("ffn_down.weight"), o.FeedForward, o.Width)
		if o.Architecture == "qwen2" {
			vector(name("attn_q.bias"), 0, queries)
			vector(name("attn_k.bias"), 0, keys)
			vector(name("attn_v.bias"), 0, keys)
		} else {
			vector(name("attn_q_norm.weight"), 2, o.Head)
			vector(name("attn_k_norm.weight"), 2, o.Head)
		}
	}
	return all
}

// encode writes values as a tensor of this type holds them.
func encode(values []float32, kind ggml.TensorType) []byte {
	var b []byte
	switch kind {
	case ggml.TensorTypeF32:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	case ggml.TensorTypeF16:
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, half(v))
		}
	case ggml.TensorTypeQ8_0:
		for ; len(values) > 0; values = values[32:] {
			var largest float64
			for _, v := range values[:32] {
				largest = max(largest, math.Abs(float64(v)))
			}
			b = binary.LittleEndian.AppendUint16(b, half(float32(largest/127)))
			for _, v := range values[:32] {
				b = append(b, byte(int8(math.Round(float64(v)/largest*127))))
			}
		}
	}
	return b
}

// half gives the bits of a 16-bit float, cut to its ten bits of fraction. What
// is smaller than 2^-14 becomes zero.
func half(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	if exponent := int(b>>23&0xff) - 112; exponent > 0 {
		return sign | uint16(exponent)<<10 | uint16(b>>13&0x3ff)
	}
	return sign
}

// data are the bytes of a tensor.
type data []byte

// WriteTo implements io.WriterTo.
func (d data) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(d)
	return int64(n), err
}
