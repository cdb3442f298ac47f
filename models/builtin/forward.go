package builtin

import (
	"context"
	"math"
	"slices"

	"github.com/viterin/vek/vek32"
)

// batch is how many tokens go through the layers together.
const batch = 64

// A pass computes the layers for tokens of one sequence. It keeps the room
// that it works in.
type pass struct {
	*Model
	sequence
	hidden, normed, added []float32 // rows of the width
	query, key, value     []float32
	cosine, sine          []float32 // of the angles by which the rows are turned
	mixed                 []float32 // what attention gives, heads side by side
	gate, up, power       []float32
	logits                []float32
	grouped               []float32 // queries of the heads that share keys, and what attention gives them
	scores                []float32 // by page, row of grouped, position
}

func (m *Model) newPass(q sequence) *pass {
	p := &pass{Model: m, sequence: q}
	rows := func(n int) []float32 { return make([]float32, batch*n) }
	p.hidden, p.normed, p.added = rows(m.width), rows(m.width), rows(m.width)
	p.query, p.mixed, p.grouped = rows(m.heads*m.head), rows(m.heads*m.head), rows(2*m.heads/m.kvHeads*m.head)
	p.key, p.value = rows(m.kvHeads*m.head), rows(m.kvHeads*m.head)
	p.gate, p.up, p.power = rows(m.feedForward), rows(m.feedForward), rows(m.feedForward)
	p.cosine, p.sine = rows(m.head/2), rows(m.head/2)
	return p
}

// read appends tokens, at most batch many, to the sequence and gives the
// logits that follow each of the last n of them, row by row. They are good
// until the next call. After an error, which is the context's, the sequence is
// as it was.
func (p *pass) read(ctx context.Context, tokens []int, n int) ([]float32, error) {
	p.prefixes.extend(&p.sequence, &p.shape, len(tokens))
	rows := len(tokens)
	for r, id := range tokens {
		for i := range p.width {
			p.hidden[r*p.width+i] = p.embedding.weights[i*p.vocabulary+id]
		}
	}
	p.turns(len(tokens))
	for i := range p.blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i == len(p.blocks)-1 {
			rows = n // the others are needed no further than for their keys
		}
		p.attend(i, len(tokens), rows)
		p.feed(i, rows)
	}
	p.tokens = append(p.tokens, tokens...)
	if n == 0 {
		return nil, nil
	}
	p.logits = room(p.logits, n*p.vocabulary)
	p.norm(p.outputNorm, n)
	p.output.multiply(p.logits, p.rounded(p.normed, &p.output, n))
	return p.logits, nil
}

// norm puts the first rows of hidden, normalized, into normed.
func (p *pass) norm(weights []float32, rows int) {
	for r := range rows {
		row := p.hidden[r*p.width:][:p.width]
		normalize(p.normed[r*p.width:], row, weights, p.epsilon)
	}
}

// rounded gives the first rows of x as m multiplies them.
func (p *pass) rounded(x []float32, m *matrix, rows int) []float32 {
	x = x[:rows*m.in]
	m.round(x)
	return x
}

// apply sets dst to the first rows of x times l, and its bias. x must be
// rounded already.
func (l *linear) apply(dst, x []float32, rows int) []float32 {
	dst = dst[:rows*l.out]
	l.multiply(dst, x[:rows*l.in])
	for r := 0; l.bias != nil && r < rows; r++ {
		vek32.Add_Inplace(dst[r*l.out:][:l.out], l.bias)
	}
	return dst
}

// attend adds the attention of a layer to hidden. It stores the keys and values
// of all the rows, and goes on with the last keep of them, which it moves to
// the front.
func (p *pass) attend(layer, rows, keep int) {
	b := &p.blocks[layer]
	p.norm(b.attentionNorm, rows)
	x := p.rounded(p.normed, &b.key.matrix, rows)
	key, value := b.key.apply(p.key, x, rows), b.value.apply(p.value, x, rows)
	p.place(key, b.keyNorm, 0, p.kvHeads)
	p.store(layer, key, value)

	left := rows - keep
	copy(p.hidden, p.hidden[left*p.width:rows*p.width])
	query := b.query.apply(p.query, x[left*p.width:], keep)
	p.place(query, b.queryNorm, left, p.heads)
	roundHalf(query) // as the keys are
	for head := range p.kvHeads {
		p.mix(layer, head, len(p.tokens)+left, keep)
	}
	mixed := p.rounded(p.mixed, &b.attention.matrix, keep)
	vek32.Add_Inplace(p.hidden[:keep*p.width], b.attention.apply(p.added, mixed, keep))
}

// turns works out the angles for the next rows: the position times the base to
// the power of -2i through the width of a head, for number i.
func (p *pass) turns(rows int) {
	half := p.head / 2
	step := float32(math.Pow(float64(p.ropeBase), float64(-2/float32(p.head))))
	for r := range rows {
		angle := float32(len(p.tokens) + r)
		for i := range half {
			s, c := math.Sincos(float64(angle))
			p.cosine[r*half+i], p.sine[r*half+i] = float32(c), float32(s)
			angle *= step // in 32 bits, as ggml has it
		}
	}
}

// place normalizes the heads, where the architecture does, and tells them their
// positions: number i and number i of the second half are turned by an angle.
// The first of x is the row with this number.
func (p *pass) place(x, norm []float32, row, heads int) {
	half := p.head / 2
	for ; len(x) > 0; row++ {
		cosine, sine := p.cosine[row*half:][:half], p.sine[row*half:][:half]
		for range heads {
			h := x[:p.head]
			if norm != nil {
				normalize(h, h, norm, p.epsilon)
			}
			for i, c := range cosine {
				a, b, s := h[i], h[half+i], sine[i]
				h[i], h[half+i] = a*c-b*s, a*s+b*c
			}
			x = x[p.head:]
		}
	}
}

// store puts keys and values into the pages.
func (p *pass) store(layer int, key, value []float32) {
	roundHalf(key)
	roundHalf(value)
	for position := len(p.tokens); len(key) > 0; position++ {
		for head := range p.kvHeads {
			keys, values := p.at(p.pages[position/pageLength], layer, head)
			slot := position % pageLength
			for i := range p.head {
				keys[i*pageLength+slot] = key[i]
			}
			copy(values[slot*p.head:], value[:p.head])
			key, value = key[p.head:], value[p.head:]
		}
	}
}

// mix computes the attention of the heads that share the keys of one, for rows
// from a position on: the values, weighted by the softmax of queries times keys.
func (p *pass) mix(layer, shared, start, rows int) {
	group := p.heads / p.kvHeads
	n := rows * group
	query, sum := p.grouped[:n*p.head], p.grouped[len(p.grouped)/2:][:n*p.head]
	for r := range rows {
		copy(query[r*group*p.head:], p.query[(r*p.heads+shared*group)*p.head:][:group*p.head])
	}
	pages := p.pages[:(start+rows+pageLength-1)/pageLength]
	p.scores = room(p.scores, len(pages)*n*pageLength)
	for i, pg := range pages {
		keys, _ := p.at(pg, layer, shared)
		multiply(p.scores[i*n*pageLength:][:n*pageLength], query, keys, p.head)
	}
	clear(sum)
	part := query // which is used up
	totals := make([]float32, n)
	for r := range n {
		totals[r] = p.softmax(r, n, start+r/group+1)
	}
	for i, pg := range pages {
		_, values := p.at(pg, layer, shared)
		multiply(part, p.scores[i*n*pageLength:][:n*pageLength], values, pageLength)
		vek32.Add_Inplace(sum, part)
	}
	for r := range n {
		out := p.mixed[(r/group*p.heads+shared*group+r%group)*p.head:][:p.head]
		copy(out, sum[r*p.head:])
		vek32.MulNumber_Inplace(out, 1/totals[r])
	}
}

// softmax makes the scores of row r of n the exponentials of what they are
// above the largest, the first seen positions counted and the others zero, and
// gives their sum.
func (p *pass) softmax(r, n, seen int) (total float32) {
	scale := float32(1 / math.Sqrt(float64(p.head)))
	page := func(i int) []float32 { return p.scores[(i*n+r)*pageLength:][:pageLength] }
	largest := float32(math.Inf(-1))
	for i := 0; i*pageLength < seen; i++ {
		largest = max(largest, vek32.Max(page(i)[:min(pageLength, seen-i*pageLength)]))
	}
	for i := 0; i*n*pageLength < len(p.scores); i++ {
		s := page(i)
		counted := s[:max(0, min(pageLength, seen-i*pageLength))]
		clear(s[len(counted):])
		if len(counted) == 0 {
			continue
		}
		vek32.SubNumber_Inplace(counted, largest)
		vek32.MulNumber_Inplace(counted, scale)
		exponential(counted)
		total += vek32.Sum(counted)
	}
	return total
}

// feed adds the feed-forward layer to hidden: down(silu(gate(x)) * up(x)).
func (p *pass) feed(layer, rows int) {
	b := &p.blocks[layer]
	p.norm(b.feedForwardNorm, rows)
	x := p.rounded(p.normed, &b.gate.matrix, rows)
	gate, up := b.gate.apply(p.gate, x, rows), b.up.apply(p.up, x, rows)
	power := p.power[:len(gate)]
	copy(power, gate)
	vek32.Neg_Inplace(power)
	exponential(power)
	vek32.AddNumber_Inplace(power, 1)
	vek32.Div_Inplace(gate, power)
	vek32.Mul_Inplace(up, gate)
	vek32.Add_Inplace(p.hidden[:rows*p.width], b.down.apply(p.added, p.rounded(up, &b.down.matrix, rows), rows))
}

// room gives n values of a slice, which grows where it is too short.
func room(s []float32, n int) []float32 { return slices.Grow(s[:0], n)[:n] }
