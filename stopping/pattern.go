package stopping

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/dlclark/regexp2/v2/syntax"
)

// stackSlots limits the backtracking stack of one match to 16 MiB. The
// library's own limit of 100 000 slots is reached by loops over groups in
// texts of some ten thousand characters.
const stackSlots = 1 << 21

// A pattern is a compiled regex. It is immutable and shared by all matchers.
type pattern struct {
	groups    []string          // names given by the user
	root      *syntax.RegexNode // of the pattern tied to the end of the text
	written   *syntax.RegexNode // of the plain pattern, see tree.go
	atomic    bool              // the user wrote atomic groups
	anchored  string            // the pattern tied to the end of the text
	looksBack bool              // further than one character
	longest   int               // characters of the longest match, or unbounded
	missing   []string          // what the automaton does not know of it

	// What regexp2 runs; nil where it is not needed.
	forward *regexp2.Regexp // the pattern, ending at the end of the text
	here    *regexp2.Regexp // the same, starting where the search starts
	reverse *regexp2.Regexp // the same from the end backwards; nil also where it would mean something else or take longer
}

// maxRegex bounds the time that compiling takes: the work on deeply nested
// groups and on long lists of alternatives grows with the square.
const maxRegex = 8 << 10

// newPattern parses a regex. build compiles it, when more is known.
func newPattern(c *Criterion) (*pattern, *CompileError) {
	if len(c.Regex) > maxRegex {
		return nil, &CompileError{Criterion: c.Name, Field: "Regex", Position: -1,
			Problem: fmt.Sprintf("the pattern is larger than %d bytes", maxRegex), Hint: "divide it into several criteria"}
	}
	if at := invalidUTF8(c.Regex); at >= 0 {
		return nil, regexError(c, at, "not valid UTF-8", `write the character as \x{…} or \uXXXX`)
	}
	plain, err := regexp2.Compile(c.Regex, regexp2.Singleline)
	if err != nil {
		return nil, parseError(c, err)
	}
	tree, err := syntax.Parse(c.Regex, syntax.ParseOptions{RegexOptions: syntax.Singleline | syntax.RightToLeft})
	if err != nil {
		return nil, parseError(c, err)
	}
	if contains(tree.Root, syntax.NtStart) {
		return nil, regexError(c, strings.Index(c.Regex, `\G`), `\G has no meaning in a stream`, `use \A for the start of the text`)
	}
	plain.MatchTimeout = timeout(c)
	switch empty, err := plain.MatchString(""); {
	case err != nil:
		return nil, regexError(c, -1, "the empty text alone takes longer than the budget", "do not repeat what may be empty")
	case empty:
		return nil, regexError(c, -1, "the pattern matches the empty string, so it would stop before the first character",
			"make at least one character mandatory, for example + in place of *")
	}
	p := &pattern{written: tree.Root, atomic: hasAtomic(tree.Root) && mayBeAtomic(c.Regex)}
	for _, name := range plain.GetGroupNames() {
		if strings.Trim(name, "0123456789") != "" {
			p.groups = append(p.groups, name)
		}
	}
	var ok bool
	if p.anchored, ok = anchor(c.Regex, tree); !ok {
		return nil, regexError(c, len(c.Regex), "the end of the pattern cannot be found",
			`end a comment with a line break and a \Q with \E`)
	}
	run, err := syntax.Parse(p.anchored, syntax.ParseOptions{RegexOptions: syntax.Singleline})
	if err != nil {
		return nil, parseError(c, err)
	}
	p.root = run.Root
	p.looksBack = syntax.AnalyzeLeftContext(run.Root) < 0
	p.longest = longest(run.Root)
	return p, nil
}

// build compiles what the matchers need of regexp2, when it is known what the
// automaton does not know.
func (p *pattern) build(c *Criterion) *CompileError {
	var err error
	compile := func(pattern string, wanted bool, options ...regexp2.CompileOption) *regexp2.Regexp {
		if !wanted || err != nil {
			return nil
		}
		var re *regexp2.Regexp
		options = append(options, regexp2.Singleline, regexp2.OptionMaxBacktrackingStackSize(stackSlots))
		if re, err = regexp2.Compile(pattern, options...); err == nil {
			re.MatchTimeout = timeout(c)
		}
		return re
	}
	gated := len(p.missing) > 0
	p.forward = compile(p.anchored, gated)
	p.here = compile(`\G`+p.anchored, gated && c.Captures == Nearest || !gated && len(p.groups) > 0)
	p.reverse = compile(p.anchored, gated && reversible(p.written) && !looksFar(p.root), regexp2.RightToLeft)
	if err != nil {
		return parseError(c, err)
	}
	return nil
}

// timeout is the budget as regexp2 takes it: its clock overflows close to the
// largest one, which stands for no limit.
func timeout(c *Criterion) time.Duration {
	if c.Budget > math.MaxInt64/2 {
		return math.MaxInt64
	}
	return c.Budget
}

// anchor ties a pattern to the end of the text. A pattern may end inside a
// comment or a \Q quotation, which would swallow what is added; the ending that
// closes it is the one after which a bracket too many is an error again.
func anchor(regex string, tree *syntax.RegexTree) (string, bool) {
	options := syntax.ParseOptions{RegexOptions: tree.Options}
	for _, ending := range []string{"", "\n", `\E`} {
		closed, err := syntax.Parse(regex+ending, options)
		if err != nil || closed.Dump() != tree.Dump() {
			continue
		}
		var e *syntax.Error
		_, err = syntax.Parse(regex+ending+")", options)
		if errors.As(err, &e) && e.Code == syntax.ErrUnexpectedParen {
			return "(?:" + regex + ending + `)\z`, true
		}
	}
	return "", false
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

func regexError(c *Criterion, position int, problem, hint string) *CompileError {
	return &CompileError{Criterion: c.Name, Field: "Regex", Pattern: c.Regex, Position: position, Problem: problem, Hint: hint}
}

// parseError says in the library's words what is wrong, and finds the place.
func parseError(c *Criterion, err error) *CompileError {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return regexError(c, -1, "the pattern cannot be compiled", "")
	}
	problem := strings.TrimSuffix(strings.TrimPrefix(e.Error(), "error parsing regexp: "), " in `"+e.Expr+"`")
	hint := "see regexp2 for the syntax; escape characters that are meant literally with a backslash"
	switch {
	case strings.Contains(c.Regex, "(?P<"):
		hint = "write a named group as (?<name>…), without the P"
	case e.Code == syntax.ErrMissingParen || e.Code == syntax.ErrUnexpectedParen:
		hint = `write a bracket that is meant literally as \( or \)`
	}
	return regexError(c, errorPosition(c.Regex, e.Code), problem, hint)
}

// errorPosition is the byte after which every longer beginning of the pattern
// fails in the same way, because the parser reads from left to right. A bracket
// that is never closed is the one behind the longest beginning that is valid.
func errorPosition(regex string, code syntax.ErrorCode) int {
	if len(regex) > 1024 {
		return -1 // it takes one parse a character
	}
	position := -1
	for end := len(regex); end > 0; {
		_, size := utf8.DecodeLastRuneInString(regex[:end])
		_, err := syntax.Parse(regex[:end], syntax.ParseOptions{RegexOptions: syntax.Singleline})
		var e *syntax.Error
		same := errors.As(err, &e) && e.Code == code
		if !same && (err == nil || code != syntax.ErrMissingParen) {
			break
		}
		end -= size
		position = end
	}
	return position
}
