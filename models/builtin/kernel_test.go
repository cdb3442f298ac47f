package builtin

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func random(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// TestMultiply: both ways to multiply give the sums of products, whatever the
// sizes are, and write nothing else.
func TestMultiply(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, f := range map[string]func(dst, x, weights []float32, in int){"chosen": multiply, "plain": multiplyPlain} {
		for _, rows := range []int{1, 2, 3, 8, 65} {
			for _, in := range []int{1, 7, 32, 100} {
				for _, out := range []int{1, 2, 5, 8, 31, 64, 77} {
					x, w := random(r, rows*in), random(r, in*out)
					dst := random(r, rows*out+1)
					last := dst[rows*out]
					f(dst[:rows*out], x, w, in)
					for i := range rows * out {
						want := 0.0
						for j := range in {
							want += float64(x[i/out*in+j]) * float64(w[j*out+i%out])
						}
						if math.Abs(float64(dst[i])-want) > 1e-4 {
							t.Fatalf("%s: %d rows of %d by %d: value %d is %g, not %g", name, rows, in, out, i, dst[i], want)
						}
					}
					if dst[rows*out] != last {
						t.Fatalf("%s: %d rows of %d by %d: it writes too far", name, rows, in, out)
					}
				}
			}
		}
	}
}

// TestHalf: every 16-bit float is its own rounding, and what lies between two
// goes to the nearer one, from the middle to the even one.
func TestHalf(t *testing.T) {
	for h := range uint16(0x7c00) {
		low, high := fromHalf(h), fromHalf(h+1)
		top := float64(high)
		if h+1 == 0x7c00 {
			top = 65536 // where the next one would be
		}
		middle := float32((float64(low) + top) / 2)
		even := low
		if h%2 == 1 {
			even = high
		}
		for _, sign := range []float32{1, -1} {
			for _, c := range []struct{ value, want float32 }{
				{low, low}, {middle, even}, {math.Nextafter32(middle, 0), low}, {math.Nextafter32(middle, 1e9), high},
			} {
				if got := half(sign * c.value); got != sign*c.want || math.Signbit(float64(got)) != (sign < 0) {
					t.Fatalf("%g becomes %g, not %g", sign*c.value, got, sign*c.want)
				}
			}
		}
	}
	if !math.IsNaN(float64(half(float32(math.NaN())))) || !math.IsInf(float64(half(1e30)), 1) || !math.IsInf(float64(fromHalf(0xfc00)), -1) {
		t.Error("no number, or infinity, becomes something else")
	}
	for bits, want := range map[uint16]float32{0x3c00: 1, 0xc000: -2, 0x0001: 0x1p-24, 0x0400: 0x1p-14, 0x7bff: 65504, 0x3555: 0.33325195} {
		if got := fromHalf(bits); got != want {
			t.Errorf("%#04x is %g, not %g", bits, got, want)
		}
	}
}

func TestExponential(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 70; n++ {
		x := random(r, n)
		for i := range x {
			x[i] = min(30*x[i], 88)
		}
		got := append(slices.Clone(x), 5)
		exponential(got[:n])
		for i, v := range x {
			want := math.Exp(max(float64(v), leastExponent))
			if limit := 2e-7 * (1 + math.Abs(float64(v))); math.Abs(float64(got[i])-want) > limit*want+1e-42 {
				t.Fatalf("e to the power of %g is %g, not %g", v, got[i], want)
			}
		}
		if got[n] != 5 {
			t.Fatal("it writes too far")
		}
	}
	far := []float32{-100, float32(math.Inf(-1)), -1e30, 0}
	exponential(far)
	if far[0] > 1e-37 || far[1] > 1e-37 || far[2] > 1e-37 || far[0] < 0 || far[3] != 1 {
		t.Errorf("far below zero: %g", far)
	}
}

// TestRoundBytes: each value becomes a multiple of the scale of its 32, no
// further away than half of it.
func TestRoundBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x := random(r, 96)
	clear(x[32:64])
	before := slices.Clone(x)
	roundBytes(x)
	for b := range 3 {
		block, was := x[32*b:][:32], before[32*b:][:32]
		largest := max(slices.Max(was), -slices.Min(was))
		scale := half(largest / 127)
		for i, v := range block {
			if largest == 0 {
				if v != 0 {
					t.Fatalf("zero becomes %g", v)
				}
				continue
			}
			steps := float64(v / scale)
			if math.Abs(steps-math.Round(steps)) > 1e-4 || math.Abs(steps) > 127.01 || math.Abs(float64(v-was[i])) > float64(scale)*0.51+float64(largest)*1e-3 {
				t.Fatalf("%g becomes %g, scale %g", was[i], v, scale)
			}
		}
	}
}
