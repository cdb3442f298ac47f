package template

import "slices"

// Limits of what Parse does for one turn. They are far above what models write:
// a text that reaches one was made to. Its rest is a problem.
const (
	maxCall  = 1 << 20 // bytes of the JSON of a call, or of a tool's parameters
	maxDepth = 200     // brackets in brackets
	// maxRead bounds the bytes read as JSON, because a value that turns out to
	// be none is looked at again from the next opening tag on.
	maxRead = 4 * maxCall
	// maxSteps bounds the tags, labels and calls that are looked at.
	maxSteps = 500
	// maxMends bounds how often texts are mended.
	maxMends = 32
	// maxRepair bounds a text that is repaired or read in another spelling than
	// the format's, in bytes.
	maxRepair = 128 << 10
	// maxRepairDepth is how deep what is repaired may nest.
	maxRepairDepth = 64
	// maxGuess bounds what the repair of last resort may cost. Its time grows
	// with the length times the number of brackets and quotes.
	maxGuess = 4 << 20
)

// A budget is what one turn has cost so far, in all readings of it.
type budget struct {
	read, steps, mends, guess int
	json5                     bool // a text that is no JSON5 was measured
	// work is the bytes that were looked at, all told, for tests.
	work int
	// schemas are the parameters of the tools, by name, that were asked for.
	schemas map[string]map[string]parameter
}

// step counts a tag, a label or a call, and reports whether there were too many.
func (b *budget) step() (ok bool) {
	b.steps++
	return b.steps <= maxSteps
}

// parameters gives what the tool's schema says of its arguments, in no order.
func (b *budget) parameters(t Tool) map[string]parameter {
	known, ok := b.schemas[t.Name]
	if !ok {
		if b.schemas == nil {
			b.schemas = map[string]map[string]parameter{}
		}
		known = t.parameters()
		required := t.required()
		for name, p := range known {
			p.budget, p.Required = b, slices.Contains(required, name)
			known[name] = p
		}
		b.schemas[t.Name] = known
	}
	return known
}
