package builtin

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"stopgap/internal/tinymodel"
)

// someText teaches the vocabulary of tiny models, and is what they read.
const someText = "The Lantern is a telescope in a herring shed. Anneke Voss found the comet with the Lantern in 1947, " +
	"and the comet comes back every 61 years. Ilse Marrow ground the mirror of the telescope. 彗星每六十一年回来一次。"

// tinyFile writes a model with random weights.
func tinyFile(t testing.TB, o tinymodel.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := tinymodel.Write(path, someText, o); err != nil {
		t.Fatal(err)
	}
	return path
}

func tiny(t testing.TB, o tinymodel.Options) *Model {
	t.Helper()
	m, err := Open(tinyFile(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// kinds are models of each architecture, each type of weights and several
// shapes.
var kinds = []struct {
	name string
	tinymodel.Options
}{
	{"qwen3 f16", tinymodel.Options{Type: ggml.TensorTypeF16}},
	{"qwen3 f32 output", tinymodel.Options{Output: true}},
	{"qwen3 q8_0", tinymodel.Options{Type: ggml.TensorTypeQ8_0}},
	{"qwen2 f16", tinymodel.Options{Architecture: "qwen2", Type: ggml.TensorTypeF16, Output: true}},
	{"one head", tinymodel.Options{Layers: 1, Heads: 1, KVHeads: 1, Head: 10, FeedForward: 33}},
	{"wide heads", tinymodel.Options{Layers: 3, Width: 32, Heads: 6, KVHeads: 2, Head: 64, Type: ggml.TensorTypeF16}},
}

// some gives n tokens that repeat no pattern.
func some(m *Model, n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = (i*i*7 + i*3 + 11) % m.vocabulary
	}
	return ids
}

// A definition is the architecture once more, straight from the papers: every
// position for itself, in 64-bit floats, without a cache. It rounds where the
// engine does and shares nothing with it but the weights.
type definition struct{ *Model }

func (d definition) logits(tokens []int) [][]float64 {
	rows := make([][]float64, len(tokens))
	for i, id := range tokens {
		for j := range d.width {
			rows[i] = append(rows[i], float64(d.embedding.weights[j*d.vocabulary+id]))
		}
	}
	for l := range d.blocks {
		b := &d.blocks[l]
		var queries, keys, values [][]float64
		for p, x := range rows {
			h := d.norm(x, b.attentionNorm)
			queries = append(queries, d.heads(d.linear(&b.query, h), b.queryNorm, p))
			keys = append(keys, d.heads(d.linear(&b.key, h), b.keyNorm, p))
			values = append(values, halves(d.linear(&b.value, h)))
		}
		for p, x := range rows {
			add(x, d.linear(&b.attention, d.attention(queries[p], keys[:p+1], values)))
			h := d.norm(x, b.feedForwardNorm)
			gate, up := d.linear(&b.gate, h), d.linear(&b.up, h)
			for i, g := range gate {
				up[i] *= g / (1 + math.Exp(-g))
			}
			add(x, d.linear(&b.down, up))
		}
	}
	for p, x := range rows {
		rows[p] = d.linear(&linear{matrix: d.output}, d.norm(x, d.outputNorm))
	}
	return rows
}

func (d definition) linear(l *linear, x []float64) []float64 {
	in := make([]float32, len(x))
	for i, v := range x {
		in[i] = float32(v)
	}
	l.round(in)
	out := make([]float64, l.out)
	for o := range out {
		for i, v := range in {
			out[o] += float64(v) * float64(l.matrix.weights[i*l.out+o])
		}
		if l.bias != nil {
			out[o] += float64(l.bias[o])
		}
	}
	return out
}

func (d definition) norm(x []float64, weights []float32) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(sum/float64(len(x))+float64(d.epsilon)) * float64(weights[i])
	}
	return out
}

// heads normalizes each head, if there is a norm, and turns it.
func (d definition) heads(x []float64, norm []float32, position int) []float64 {
	var out []float64
	for h := range slices.Chunk(x, d.head) {
		if norm != nil {
			h = d.norm(h, norm)
		}
		turned := make([]float64, d.head)
		for i := range d.head / 2 {
			angle := float64(position) * math.Pow(float64(d.ropeBase), -2*float64(i)/float64(d.head))
			a, b := h[i], h[i+d.head/2]
			turned[i] = a*math.Cos(angle) - b*math.Sin(angle)
			turned[i+d.head/2] = a*math.Sin(angle) + b*math.Cos(angle)
		}
		out = append(out, turned...)
	}
	return halves(out)
}

func (d definition) attention(query []float64, keys, values [][]float64) []float64 {
	var out []float64
	for h := range d.Model.heads {
		shared := h / (d.Model.heads / d.kvHeads) * d.head
		var weights []float64
		sum := 0.0
		for _, k := range keys {
			dot := 0.0
			for i := range d.head {
				dot += query[h*d.head+i] * k[shared+i]
			}
			w := math.Exp(dot / math.Sqrt(float64(d.head)))
			weights, sum = append(weights, w), sum+w
		}
		mixed := make([]float64, d.head)
		for p, w := range weights {
			for i := range mixed {
				mixed[i] += w / sum * values[p][shared+i]
			}
		}
		out = append(out, mixed...)
	}
	return out
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

func halves(x []float64) []float64 {
	for i, v := range x {
		x[i] = float64(half(float32(v)))
	}
	return x
}

// TestForward: the logits of every position are those of the definition.
func TestForward(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			m := tiny(t, k.Options)
			tokens := some(m, 150) // over pages and batches
			want := definition{m}.logits(tokens)
			var worst, spread float64
			p := m.newPass(sequence{})
			for len(p.tokens) < len(tokens) {
				at := len(p.tokens)
				n := min(batch, len(tokens)-at)
				logits, err := p.read(t.Context(), tokens[at:at+n], n)
				if err != nil {
					t.Fatal(err)
				}
				for i, l := range logits {
					w := want[at+i/m.vocabulary][i%m.vocabulary]
					worst, spread = max(worst, math.Abs(float64(l)-w)), max(spread, math.Abs(w))
				}
			}
			// A sum that differs in its last bit may be rounded to another
			// 16-bit float, or byte, which is what the weights allow for.
			limit := map[ggml.TensorType]float64{ggml.TensorTypeF32: 1e-3, ggml.TensorTypeF16: 5e-3, ggml.TensorTypeQ8_0: 5e-2}[k.Type]
			t.Logf("worst difference %.2g of logits up to %.3g", worst, spread)
			if worst > limit*spread || spread < 1 {
				t.Errorf("logits differ by up to %g, they are up to %g", worst, spread)
			}
		})
	}
}

// TestParts: what is read together, and what was known before, never changes a
// bit of the logits.
func TestParts(t *testing.T) {
	for _, fast := range []bool{accelerated, false} {
		for _, k := range kinds[:4] {
			t.Run(fmt.Sprint(k.name, " accelerated ", fast), func(t *testing.T) {
				defer func(was bool) { accelerated = was }(accelerated)
				accelerated = fast
				m := tiny(t, k.Options)
				tokens := some(m, 140)
				read := func(p *pass, sizes ...int) (logits []float32) {
					for _, n := range sizes {
						at := len(p.tokens)
						var err error
						if logits, err = p.read(t.Context(), tokens[at:at+n], 1); err != nil {
							t.Fatal(err)
						}
					}
					if len(p.tokens) != len(tokens) {
						t.Fatalf("%d tokens are read", len(p.tokens))
					}
					return logits
				}
				whole := m.newPass(sequence{})
				want := slices.Clone(read(whole, 64, 64, 12))
				check := func(what string, got []float32) {
					t.Helper()
					if !slices.Equal(got, want) {
						t.Errorf("%s: the logits are others", what)
					}
				}
				check("one by one", read(m.newPass(sequence{}), slices.Repeat([]int{1}, 140)...))
				check("odd parts", read(m.newPass(sequence{}), 1, 2, 61, 3, 33, 40))
				check("after a fork inside a page", read(m.newPass(whole.fork(100)), 40))
				check("after a fork between pages", read(m.newPass(whole.fork(64)), 12, 64))
				check("after a fork of the last", read(m.newPass(whole.fork(139)), 1))
				check("the first again", func() []float32 { p := m.newPass(whole.fork(139)); return read(p, 1) }())
			})
		}
	}
}

// TestForksAreApart: sequences that begin alike do not write into each other.
func TestForksAreApart(t *testing.T) {
	m := tiny(t, tinymodel.Options{})
	p := m.newPass(sequence{})
	tokens := some(m, 130)
	for _, part := range [][]int{tokens[:64], tokens[64:128], tokens[128:]} {
		if _, err := p.read(t.Context(), part, 1); err != nil {
			t.Fatal(err)
		}
	}
	before := make([]page, len(p.pages))
	for i, pg := range p.pages {
		before[i].keys, before[i].values = slices.Clone(pg.keys), slices.Clone(pg.values)
	}
	for _, n := range []int{1, 63, 64, 65, 100, 128, 129} {
		fork := m.newPass(p.fork(n))
		if _, err := fork.read(t.Context(), some(m, 60), 1); err != nil {
			t.Fatal(err)
		}
		if fork.pages[n/pageLength] == p.pages[n/pageLength] {
			t.Errorf("a fork at %d writes into the page of the other", n)
		}
	}
	for i, pg := range p.pages {
		if !slices.Equal(pg.keys, before[i].keys) || !slices.Equal(pg.values, before[i].values) {
			t.Errorf("page %d changed", i)
		}
	}
}

// TestWeights: what each type of tensor holds is read back.
func TestWeights(t *testing.T) {
	if _, err := os.Stat("model.gguf"); err != nil {
		t.Fatal(err)
	}
	m, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if m.architecture != qwen3 || len(embedded) > 8<<20 || m.parameters < 1e6 || m.parameters > 4e6 {
		t.Errorf("the embedded model: %+v of %d bytes", m.About(), len(embedded))
	}
	for _, name := range []string{"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"} {
		if _, ok := m.Tokenizer().Lookup(name); !ok {
			t.Errorf("it has no token %s", name)
		}
	}
}
