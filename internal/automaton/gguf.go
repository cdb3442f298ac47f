package automaton

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/ollama/ollama/fs/ggml"
)

// Options are the sizes of a model file. The zero value is good for tests.
type Options struct {
	// Name is general.name, "automaton" when empty.
	Name string
	// Context is the context length that the file claims, 32768 when zero.
	Context int
	// FeedForward is the width of the feed-forward layer, whose weights are
	// all zero, 32 when zero. A wide one takes time: it gives a model whose
	// tokens come at the pace of a real one.
	FeedForward int
	// Logit is the least logit of the token that follows, 100 when zero: no
	// doubt at any temperature. The others have 0, so that with a small one the
	// model is unsure, in a way that can be computed: see Logit.
	Logit float64
	// Narrow gives the attention one head instead of as many as the width has
	// room for: a long prompt is read many times faster. Such a file is of
	// architecture qwen3, and for Ollama.
	Narrow bool
}

const (
	headWidth = 32 // also makes every row a multiple of ggml's alignment
	// logit is the least value of the token that follows; all others have 0.
	// It leaves no doubt at any temperature and under any usual penalty.
	logit = 100
	// epsilon of the norm.
	epsilon = 1e-6
)

// WriteFile writes the automaton as a GGUF file of architecture qwen2, or as
// Options.Narrow says.
func (a *Automaton) WriteFile(path string, o Options) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	o = o.withDefaults()
	if err := ggml.WriteGGUF(f, a.metadata(a.width(), o), a.tensors(a.width(), o)); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// width is the length of an embedding.
func (a *Automaton) width() int {
	return (len(a.tokens) + headWidth - 1) / headWidth * headWidth
}

// Logit is the logit l that a file written with these options gives the token
// that follows: its probability is e^l / (e^l + n - 1) with n = Size, and that
// of each other token 1 / (e^l + n - 1). Servers multiply 16-bit floats, with
// 10 bits of fraction.
func (a *Automaton) Logit(o Options) float64 {
	fraction, exponent := math.Frexp(1 / math.Sqrt(1/float64(a.width())+epsilon))
	normed := math.Ldexp(math.RoundToEven(math.Ldexp(fraction, 11)), exponent-11)
	return normed * math.Exp2(float64(a.peak(o.withDefaults())))
}

// peak is the exponent of the entry of the output matrix that, times the square
// root of the width, is the asked logit or more.
func (a *Automaton) peak(o Options) int {
	return int(math.Ceil(math.Log2(o.Logit / math.Sqrt(float64(a.width())))))
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "automaton"
	}
	if o.Context == 0 {
		o.Context = 32768
	}
	if o.FeedForward == 0 {
		o.FeedForward = headWidth
	}
	if o.Logit == 0 {
		o.Logit = logit
	}
	return o
}

func (a *Automaton) metadata(width int, o Options) ggml.KV {
	texts := make([]string, len(a.tokens))
	types := make([]int32, len(a.tokens))
	ids := make(map[string]int, len(a.tokens))
	for id, t := range a.tokens {
		texts[id], types[id], ids[t.text] = t.text, int32(t.typ), id
		if t.typ == typeNormal {
			texts[id] = Spell(t.text)
		}
	}
	arch := "qwen2"
	if o.Narrow {
		arch = "qwen3" // whose heads need not fill the width
	}
	kv := ggml.KV{
		"general.architecture":                     arch,
		"general.name":                             o.Name,
		"general.file_type":                        uint32(1), // mostly F16
		arch + ".block_count":                      uint32(1),
		arch + ".context_length":                   uint32(o.Context),
		arch + ".embedding_length":                 uint32(width),
		arch + ".feed_forward_length":              uint32(o.FeedForward),
		arch + ".attention.head_count":             uint32(width / headWidth),
		arch + ".attention.head_count_kv":          uint32(1),
		arch + ".attention.layer_norm_rms_epsilon": float32(epsilon),
		arch + ".rope.freq_base":                   float32(1e6),
		arch + ".rope.dimension_count":             uint32(headWidth),
		"tokenizer.ggml.model":                     "gpt2",
		"tokenizer.ggml.pre":                       "qwen2",
		"tokenizer.ggml.tokens":                    texts,
		"tokenizer.ggml.token_type":                types,
		"tokenizer.ggml.merges":                    []string{Spell(mergeLeft) + " " + Spell(mergeRight)},
		"tokenizer.ggml.bos_token_id":              uint32(ids[endOfText]),
		"tokenizer.ggml.eos_token_id":              uint32(a.end),
		"tokenizer.ggml.padding_token_id":          uint32(ids[endOfText]),
		"tokenizer.ggml.add_bos_token":             false,
	}
	if o.Narrow {
		kv[arch+".attention.head_count"] = uint32(1)
		kv[arch+".attention.key_length"] = uint32(headWidth)
		kv[arch+".attention.value_length"] = uint32(headWidth)
		// Ollama's engine looks a word up whole before it merges, as by this name
		// everybody does.
		kv["tokenizer.ggml.pre"] = "llama-bpe"
	}
	return kv
}

// tensors are the weights. A token's embedding is one 1 at its own place. The
// block adds zero to it, and the norm makes it the square root of width, so
// that the entry of the output matrix is logit divided by that, rounded up to
// a power of two.
func (a *Automaton) tensors(width int, o Options) []*ggml.Tensor {
	tokens, feedForward, peak := len(a.tokens), o.FeedForward, a.peak(o)
	heads := width // of all heads together
	if o.Narrow {
		heads = headWidth
	}
	embedding := newMatrix(width, tokens)
	output := newMatrix(width, tokens)
	for t, u := range a.next {
		embedding.set(t, t, 0)
		output.set(t, u, peak)
	}
	all := []*ggml.Tensor{
		embedding.tensor("token_embd.weight"),
		output.tensor("output.weight"),
		ones(width).tensor("output_norm.weight"),
		ones(width).tensor("blk.0.attn_norm.weight"),
		ones(width).tensor("blk.0.ffn_norm.weight"),
		zeros("blk.0.attn_q.weight", width, heads),
		zeros("blk.0.attn_k.weight", width, headWidth),
		zeros("blk.0.attn_v.weight", width, headWidth),
		zeros("blk.0.attn_output.weight", heads, width),
		zeros("blk.0.ffn_gate.weight", width, feedForward),
		zeros("blk.0.ffn_up.weight", width, feedForward),
		zeros("blk.0.ffn_down.weight", feedForward, width),
	}
	if o.Narrow {
		all = append(all, ones(headWidth).tensor("blk.0.attn_q_norm.weight"), ones(headWidth).tensor("blk.0.attn_k_norm.weight"))
	}
	return all
}

// GGUF's numbers for the types of tensors.
const (
	kindF32 = 0
	kindF16 = 1
)

// A matrix of 16-bit floats, row by row, columns wide.
type matrix struct {
	columns, rows int
	data          []byte
}

func newMatrix(columns, rows int) *matrix {
	return &matrix{columns, rows, make([]byte, 2*columns*rows)}
}

// set makes an entry a power of two: its exponent is all that a 16-bit float
// then holds, with a bias of 15 and above 10 bits of fraction.
func (m *matrix) set(column, row, exponent int) {
	binary.LittleEndian.PutUint16(m.data[2*(row*m.columns+column):], uint16(exponent+15)<<10)
}

func (m *matrix) tensor(name string) *ggml.Tensor {
	return &ggml.Tensor{Name: name, Kind: kindF16, Shape: []uint64{uint64(m.columns), uint64(m.rows)}, WriterTo: m}
}

// WriteTo implements io.WriterTo.
func (m *matrix) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(m.data)
	return int64(n), err
}

// ones is a vector of 32-bit ones of this length.
type ones int

func (v ones) tensor(name string) *ggml.Tensor {
	return &ggml.Tensor{Name: name, Kind: kindF32, Shape: []uint64{uint64(v)}, WriterTo: v}
}

// WriteTo implements io.WriterTo.
func (v ones) WriteTo(w io.Writer) (int64, error) {
	data := make([]byte, 0, 4*int(v))
	for range int(v) {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(1))
	}
	n, err := w.Write(data)
	return int64(n), err
}

// zeros is a matrix of 16-bit zeros.
func zeros(name string, columns, rows int) *ggml.Tensor {
	return &ggml.Tensor{
		Name: name, Kind: kindF16, Shape: []uint64{uint64(columns), uint64(rows)},
		WriterTo: zeroBytes(2 * columns * rows),
	}
}

// zeroBytes is that many zero bytes.
type zeroBytes int

// WriteTo implements io.WriterTo.
func (z zeroBytes) WriteTo(w io.Writer) (int64, error) {
	block := make([]byte, 64<<10)
	var done int64
	for left := int(z); left > 0; {
		n, err := w.Write(block[:min(left, len(block))])
		done += int64(n)
		if err != nil {
			return done, err
		}
		left -= n
	}
	return done, nil
}
