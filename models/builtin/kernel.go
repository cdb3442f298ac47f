package builtin

import (
	"math"

	"github.com/ollama/ollama/fs/ggml"
	"github.com/viterin/vek"
	"github.com/viterin/vek/vek32"
)

// A matrix multiplies rows of in values and gives rows of out values.
type matrix struct {
	in, out int
	weights []float32 // those of an input stand together
	kind    ggml.TensorType
}

// round makes inputs what ggml multiplies weights of this type with, in place.
func (m *matrix) round(x []float32) {
	switch m.kind {
	case ggml.TensorTypeF16:
		roundHalf(x)
	case ggml.TensorTypeQ8_0:
		roundBytes(x)
	}
}

// accelerated says that vek has vector instructions for this processor, which
// it detects when the program starts.
var accelerated = vek.Info().Acceleration

// multiply sets dst to the rows of x times m. Each output is a sum over the
// inputs in their order, however many rows there are.
func (m *matrix) multiply(dst, x []float32) { multiply(dst, x, m.weights, m.in) }

func multiply(dst, x, weights []float32, in int) {
	if accelerated {
		vek32.MatMul_Into(dst, x, weights, in)
	} else {
		multiplyPlain(dst, x, weights, in)
	}
}

// multiplyPlain is multiply without vector instructions: eight sums at a time,
// which stay in registers.
func multiplyPlain(dst, x, weights []float32, in int) {
	out := len(weights) / in
	for ; len(x) > 0; x, dst = x[in:], dst[out:] {
		j := 0
		for ; j+8 <= out; j += 8 {
			var s0, s1, s2, s3, s4, s5, s6, s7 float32
			at := j
			for _, v := range x[:in] {
				w := weights[at : at+8 : at+8]
				s0 += v * w[0]
				s1 += v * w[1]
				s2 += v * w[2]
				s3 += v * w[3]
				s4 += v * w[4]
				s5 += v * w[5]
				s6 += v * w[6]
				s7 += v * w[7]
				at += out
			}
			copy(dst[j:], []float32{s0, s1, s2, s3, s4, s5, s6, s7})
		}
		for ; j < out; j++ {
			var s float32
			for i, v := range x[:in] {
				s += v * weights[i*out+j]
			}
			dst[j] = s
		}
	}
}

// leastExponent is the smallest exponent whose power of e is computed: vek's
// function is wrong below about -88, where the result is nothing next to 1.
const leastExponent = -87

// exponential replaces each value with e to its power. Those below
// leastExponent count as that.
func exponential(x []float32) {
	vek32.MaximumNumber_Inplace(x, leastExponent)
	vek32.Exp_Inplace(x)
}

// normalize writes x divided by the root of its mean square, times the weights,
// into dst, which may be x.
func normalize(dst, x, weights []float32, epsilon float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v * v)
	}
	scale := 1 / float32(math.Sqrt(float64(float32(sum/float64(len(x)))+epsilon)))
	for i, v := range x {
		dst[i] = v * scale * weights[i]
	}
}

// roundHalf rounds to 16-bit floats.
func roundHalf(x []float32) {
	for i, v := range x {
		x[i] = half(v)
	}
}

// half is the 16-bit float nearest to v, ties to even: ten bits of fraction,
// steps of 2^-24 below 2^-14, infinity from 65520 on.
func half(v float32) float32 {
	b := math.Float32bits(v)
	sign := b & (1 << 31)
	switch b ^= sign; {
	case b < math.Float32bits(0x1p-14):
		// At 1/2 the steps of a 32-bit float are as wide.
		b = math.Float32bits(math.Float32frombits(b)+0.5) - math.Float32bits(0.5)
		return math.Float32frombits(sign | math.Float32bits(float32(b)*0x1p-24))
	case b >= math.Float32bits(65520):
		if b > math.Float32bits(float32(math.Inf(1))) {
			return v // no number
		}
		return math.Float32frombits(sign | math.Float32bits(float32(math.Inf(1))))
	}
	b += 0xfff + b>>13&1
	return math.Float32frombits(sign | b&^0x1fff)
}

// fromHalf is the value of a 16-bit float.
func fromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f:
		exponent = 0xff - 112
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// roundBytes rounds to ggml's q8_0: for 32 values a scale, of 16 bits, and a
// signed byte each.
func roundBytes(x []float32) {
	for ; len(x) > 0; x = x[32:] {
		var largest float32
		for _, v := range x[:32] {
			largest = max(largest, v, -v)
		}
		if largest == 0 {
			continue
		}
		inverse, scale := 1/(largest/127), half(largest/127)
		for i, v := range x[:32] {
			x[i] = float32(math.Round(float64(v*inverse))) * scale
		}
	}
}
