package builtin

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"stopgap/internal/tinymodel"
)

// An altered model file: the metadata and tensors of a good one, changed.
type alteration struct {
	name   string
	change func(kv ggml.KV, tensors map[string]*ggml.Tensor)
	want   string // a part of the error
}

var alterations = []alteration{
	{"another architecture", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["general.architecture"] = "llama" }, `the architecture "llama"`},
	{"no layers", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.block_count"] = uint32(0) }, "qwen3.block_count is missing"},
	{"very many layers", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.block_count"] = uint32(1 << 20) }, "no tensor blk.2."},
	{"too many layers", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.block_count"] = uint32(math.MaxUint32) }, "out of range"},
	{"no width", func(kv ggml.KV, _ map[string]*ggml.Tensor) { delete(kv, "qwen3.embedding_length") }, "qwen3.embedding_length is missing"},
	{"another width", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.embedding_length"] = uint32(96) }, "tensor token_embd.weight has the shape [64 320], not [96 320]"},
	{"a width of another type", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.embedding_length"] = "64" }, "qwen3.embedding_length is missing"},
	{"an odd head", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.attention.key_length"] = uint32(33) }, "heads whose width is odd"},
	{"heads of two widths", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.attention.value_length"] = uint32(64) }, "not the same"},
	{"positions in a part of a head", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.rope.dimension_count"] = uint32(16) }, "not the same"},
	{"heads that do not share", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.attention.head_count_kv"] = uint32(3) }, "4 heads cannot share 3"},
	{"no epsilon", func(kv ggml.KV, _ map[string]*ggml.Tensor) { delete(kv, "qwen3.attention.layer_norm_rms_epsilon") }, "rms_epsilon is missing"},
	{"an epsilon that is no number", func(kv ggml.KV, _ map[string]*ggml.Tensor) {
		kv["qwen3.attention.layer_norm_rms_epsilon"] = float32(math.NaN())
	}, "rms_epsilon is missing"},
	{"a negative base", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.rope.freq_base"] = float32(-1) }, "freq_base is out of range"},
	{"scaled positions", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["qwen3.rope.scaling.type"] = "yarn" }, "scaled positions"},
	{"a missing tensor", func(_ ggml.KV, ts map[string]*ggml.Tensor) { delete(ts, "blk.1.ffn_down.weight") }, "no tensor blk.1.ffn_down.weight"},
	{"no embedding", func(_ ggml.KV, ts map[string]*ggml.Tensor) { delete(ts, "token_embd.weight") }, "no tensor token_embd.weight"},
	{"a tensor too many", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		extra := *ts["output_norm.weight"]
		extra.Name = "rope_freqs.weight"
		ts[extra.Name] = &extra
	}, `tensor "rope_freqs.weight" is not part of the architecture qwen3`},
	{"an unknown type", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		ts["blk.0.ffn_up.weight"] = raw("blk.0.ffn_up.weight", ggml.TensorTypeBF16, make([]byte, 2*64*96), 64, 96)
	}, "tensor blk.0.ffn_up.weight has the type BF16"},
	{"a vector that is a matrix", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		ts["output_norm.weight"] = raw("output_norm.weight", ggml.TensorTypeF32, make([]byte, 4*64), 32, 2)
	}, "has the shape [32 2], not [64]"},
	{"a weight that is no number", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		b := make([]byte, 4*64*96)
		binary.LittleEndian.PutUint32(b[400:], math.Float32bits(float32(math.NaN())))
		ts["blk.0.ffn_up.weight"] = raw("blk.0.ffn_up.weight", ggml.TensorTypeF32, b, 64, 96)
	}, "tensor blk.0.ffn_up.weight holds what is no number"},
	{"an infinite norm", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		b := make([]byte, 4*64)
		binary.LittleEndian.PutUint32(b[40:], math.Float32bits(float32(math.Inf(-1))))
		ts["blk.0.attn_norm.weight"] = raw("blk.0.attn_norm.weight", ggml.TensorTypeF32, b, 64)
	}, "tensor blk.0.attn_norm.weight holds what is no number"},
	{"weights of two types", func(_ ggml.KV, ts map[string]*ggml.Tensor) {
		ts["blk.0.attn_k.weight"] = raw("blk.0.attn_k.weight", ggml.TensorTypeF16, make([]byte, 2*64*64), 64, 64)
	}, "have not one type"},
	{"another tokenizer", func(kv ggml.KV, _ map[string]*ggml.Tensor) { kv["tokenizer.ggml.model"] = "llama" }, "tokenizer"},
	{"fewer tokens", func(kv ggml.KV, _ map[string]*ggml.Tensor) {
		kv["tokenizer.ggml.tokens"] = kv["tokenizer.ggml.tokens"].([]string)[:300]
		kv["tokenizer.ggml.token_type"] = kv["tokenizer.ggml.token_type"].([]int32)[:300]
		kv["tokenizer.ggml.merges"] = kv["tokenizer.ggml.merges"].([]string)[:20]
	}, "tensor token_embd.weight has the shape [64 320], not [64 300]"},
}

func raw(name string, kind ggml.TensorType, b []byte, shape ...uint64) *ggml.Tensor {
	return &ggml.Tensor{Name: name, Kind: uint32(kind), Shape: shape, WriterTo: content(b)}
}

// altered writes a copy of a file with something changed.
func altered(t *testing.T, path string, change func(ggml.KV, map[string]*ggml.Tensor)) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	kv := ggml.KV{}
	for k, v := range f.kv {
		switch k {
		case "tokenizer.ggml.tokens", "tokenizer.ggml.merges":
			v = f.kv.Strings(k)
		case "tokenizer.ggml.token_type":
			v = f.kv.Ints(k)
		}
		kv[k] = v
	}
	for _, tensor := range f.tensors {
		tensor.WriterTo = content(f.data[tensor.Offset:][:tensor.Size()])
	}
	change(kv, f.tensors)
	out := filepath.Join(t.TempDir(), "altered.gguf")
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var tensors []*ggml.Tensor
	for tensor := range maps.Values(f.tensors) {
		tensors = append(tensors, tensor)
	}
	if err := ggml.WriteGGUF(w, kv, tensors); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBadFiles(t *testing.T) {
	path := tinyFile(t, tinymodel.Options{})
	if _, err := Open(altered(t, path, func(ggml.KV, map[string]*ggml.Tensor) {})); err != nil {
		t.Fatalf("a copy: %v", err)
	}
	for _, a := range alterations {
		t.Run(a.name, func(t *testing.T) {
			bad := altered(t, path, a.change)
			_, err := Open(bad)
			var f *FileError
			if !errors.As(err, &f) || f.Path != bad || !strings.Contains(f.Reason, a.want) {
				t.Errorf("error is %v, want one with %q", err, a.want)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var f *FileError
	if _, err := Open(t.TempDir()); !errors.As(err, &f) {
		t.Error(err)
	}
}

// TestCutFiles: a file that is cut anywhere is refused, without a panic.
func TestCutFiles(t *testing.T) {
	b, err := os.ReadFile(tinyFile(t, tinymodel.Options{Layers: 1, Width: 32, Heads: 1, KVHeads: 1, FeedForward: 32, Tokens: 270}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(b); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(b); n += 1 + n/40 {
		var f *FileError
		if m, err := Load(b[:n]); !errors.As(err, &f) {
			t.Fatalf("the first %d of %d bytes: %v, %v", n, len(b), m, err)
		}
	}
}

// FuzzLoad changes bytes of a file: it is refused, or it is a model that can
// generate, or says that its numbers overflow.
func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, someText, tinymodel.Options{Layers: 1, Width: 32, Heads: 1, KVHeads: 1, FeedForward: 32, Tokens: 270, Context: 20}); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), uint64(0), uint32(0), uint64(0))
	for _, at := range []uint32{4, 8, 16, 24, 32, 100, 500, 1000, 20000} {
		f.Add(at, uint64(1), at+8, uint64(math.MaxUint64))
		f.Add(at, uint64(1)<<40, at+4, uint64(1)<<63)
	}
	f.Fuzz(func(t *testing.T, at1 uint32, value1 uint64, at2 uint32, value2 uint64) {
		b := append([]byte(nil), good...)
		for at, v := range map[uint32]uint64{at1: value1, at2: value2} {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], v)
			copy(b[int(at)%len(b):], word[:])
		}
		m, err := Load(b)
		var e *FileError
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		for _, err := range m.Generate(t.Context(), Request{Prompt: []int{1, 2, 3}, MaxTokens: 2}) {
			var over *OverflowError
			if err != nil && !errors.Is(err, errNumbers) && !errors.As(err, &over) {
				t.Fatal(err)
			}
		}
	})
}

// content is the bytes of a tensor.
type content []byte

// WriteTo implements io.WriterTo.
func (c content) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(c)
	return int64(n), err
}
