package template

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"go.starlark.net/syntax"
)

// pythonCalls reads a turn that is a Python list of calls:
//
//	[search(query=["owl"]), read(id="7")]
//
// The expression is parsed by Starlark's parser, whose calls and literals are
// Python's.
type pythonCalls struct{}

func (pythonCalls) opens(Spelling) []string { return nil }

func (pythonCalls) read(_ *tagParser, tag string, i int) int { return i + len(tag) }

// bare reads the lists that begin the turn or, as models write them too, calls
// without a list.
func (k pythonCalls) bare(p *tagParser, i int) int {
	at := i
	for k.begins(p, at) && p.budget.step() {
		next, ok := k.one(p, at)
		if !ok {
			return next
		}
		if i, at = next, skipSeparator(p.text, next); p.Strict {
			break
		}
	}
	return i
}

// begins reports whether a list of calls, or the call of an offered tool, stands
// at text[at:].
func (pythonCalls) begins(p *tagParser, at int) bool {
	rest := p.text[at:min(len(p.text), at+maxName)]
	if pythonList.MatchString(rest) {
		return true
	}
	m := pythonCall.FindStringSubmatch(rest)
	return !p.Strict && m != nil && p.known(m[1])
}

// one reads the list or the call at text[at:].
func (pythonCalls) one(p *tagParser, at int) (end int, ok bool) {
	if m := pythonEmpty.FindString(p.text[at:]); m != "" { // neither a call nor an answer
		p.tried = true
		return at + len(m), true
	}
	limit := len(p.text)
	for _, t := range p.ends {
		limit = min(limit, p.tags.index(t, at))
	}
	e := p.budget.measurePython(p.text[at:limit])
	if e.quoted && !p.Strict { // by an apostrophe, perhaps
		if plain, _ := respellQuotes(p.text[at:min(limit, at+maxRepair)], true); p.budget.measurePython(plain).closed {
			e.closed = true
		}
	}
	text := p.text[at : at+e.end]
	calls, ok := p.pythonMended(text)
	last := e.open == "[" && !e.quoted && strings.HasSuffix(strings.TrimRight(text, blanks), ")")
	if last && !ok && !p.Strict { // all of the list's calls are there
		calls, ok = p.pythonMended(text + "]")
		repaired(calls, RepairBrackets)
	}
	switch {
	case ok && (e.closed || limit < len(p.text) || last):
		p.complete(calls, Problem{}, at, at+e.end)
		return at + e.end, true
	case e.closed:
		p.bad(Problem{BadJSON, at, at + e.end, "the list is not one of Python calls"})
		return at + e.end, true
	}
	p.bad(Problem{UnclosedCall, at, limit, "the list of calls has no end"})
	return limit, false
}

// closedPython reports whether a text is one expression with its brackets.
func (r *reader) closedPython(text string) bool {
	e := r.budget.measurePython(text)
	return e.closed && e.end == len(text)
}

// dotted reads Llama's "tool.call(key="value")" at text[at:], behind a tag that
// begins at text[i:].
func (k pythonCalls) dotted(p *tagParser, i, at int) int {
	if !pythonCall.MatchString(p.text[at:min(len(p.text), at+maxName)]) {
		return at
	}
	limit := p.limit(p.Call.Open, at)
	e := p.budget.measurePython(p.text[at:limit])
	if !e.closed {
		p.bad(Problem{UnclosedCall, i, limit, "the call has no end"})
		return limit
	}
	calls, ok := p.pythonMended(p.text[at : at+e.end])
	if !ok {
		return at
	}
	p.complete(calls, Problem{}, i, at+e.end)
	return at + e.end
}

var (
	// pythonList finds a list whose first element is a call, also in quotes or
	// with its name in quotes, pythonCall a call, perhaps printed or given to a
	// variable, pythonEmpty an empty list.
	pythonList  = regexp.MustCompile(`^\[\s*[A-Za-z_][\w.]*\s*[(（]|^\[\s*["'][A-Za-z_][\w.]*(?:["']\s*)?[(（]|^\[\s*\]\s*$`)
	pythonCall  = regexp.MustCompile(`^(?:[A-Za-z_]\w*\s*=\s*)?(?:print\()?([A-Za-z_][\w.]*)\s*[(（]`)
	pythonName  = regexp.MustCompile(`^[A-Za-z_]\w*\s*=\s*`)
	pythonEmpty = regexp.MustCompile(`^\[\s*\]\s*$`)
)

// pythonStringEnd gives the length of the string literal that text begins with.
func pythonStringEnd(text string) (int, bool) {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote), true
		}
	}
	return len(text), false
}

// pythonMended reads calls, with other strings and punctuation where it must.
func (r *reader) pythonMended(text string) ([]Call, bool) {
	b := r.budget
	b.work += len(text)
	calls, err := r.python(text)
	if err == nil || r.Strict {
		return calls, err == nil
	}
	if parsable(text) != nil || b.mends > maxMends {
		return nil, false
	}
	b.mends++
	b.work += 2 * len(text)
	plain, repairs := respellQuotes(text, true)
	for _, again := range []string{plain, mendBrackets(plain)} {
		if again != text {
			if calls, err = r.python(again); err == nil && len(calls) > 0 {
				return repaired(calls, repairs...), true
			}
		}
		repairs = appendOnce(repairs, RepairBrackets)
	}
	return nil, false
}

// python reads a call or a list of calls.
func (r *reader) python(text string) ([]Call, error) {
	if !r.Strict {
		text = text[len(pythonName.FindString(text)):]
	}
	if err := parsable(text); err != nil {
		return nil, err
	}
	expr, err := pythonExpr(text)
	if err != nil {
		return nil, err
	}
	elements := []syntax.Expr{expr}
	if list, ok := expr.(*syntax.ListExpr); ok {
		elements = list.List
	}
	var out []Call
	for _, e := range elements {
		if text, ok := pythonText(e); ok && !r.Strict { // ["search(…)"]
			if e, err = pythonExpr(text); err != nil {
				return nil, err
			}
		}
		call, err := r.pythonCall(e)
		if err != nil {
			return nil, err
		}
		out = append(out, r.fitted(call))
	}
	return out, nil
}

// parsable bounds what the parser gets: it descends for each bracket and sign.
func parsable(text string) error {
	if len(text) > maxRepair {
		return errTooLarge
	}
	if nesting(strings.NewReplacer("(", "[", ")", "]").Replace(text)) > maxRepairDepth {
		return errTooDeep
	}
	return nil
}

// pythonExpr parses an expression. A fault of the parser is an error.
func pythonExpr(text string) (expr syntax.Expr, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the expression cannot be read: %v", r)
		}
	}()
	return (&syntax.FileOptions{}).ParseExpr("", text, 0)
}

// pythonText gives the text of a string literal.
func pythonText(e syntax.Expr) (string, bool) {
	l, ok := e.(*syntax.Literal)
	if !ok {
		return "", false
	}
	text, ok := l.Value.(string)
	return text, ok && parsable(text) == nil
}

func (r *reader) pythonCall(e syntax.Expr) (Call, error) {
	c, ok := e.(*syntax.CallExpr)
	if !ok {
		return Call{}, fmt.Errorf("not a call")
	}
	if inner, ok := printed(c); ok && !r.Strict && !r.known("print") {
		c = inner
	}
	call := Call{Name: strings.TrimSuffix(dottedName(c.Fn), ".call")}
	if call.Name == "" {
		return Call{}, fmt.Errorf("a call without a name")
	}
	tool, _ := r.anyTool(call.Name)
	order := tool.order()
	arguments := dict{}
	for i, a := range c.Args {
		key := ""
		switch b := a.(type) {
		case *syntax.BinaryExpr:
			if id, ok := b.X.(*syntax.Ident); ok && b.Op == syntax.EQ {
				key, a = id.Name, b.Y
			}
		case *syntax.UnaryExpr: // **{…}
			if b.Op == syntax.STARSTAR {
				a = b.X
			}
		}
		value, err := r.pythonValue(a)
		if err != nil {
			return Call{}, err
		}
		switch {
		case key != "":
		case r.Strict:
			return Call{}, fmt.Errorf("an argument without a name")
		case kindOf(value) == "object" && len(c.Args) == 1: // f({…})
			call.Arguments, call.Repairs = value, appendOnce(call.Repairs, RepairArguments)
			return call, nil
		case i < len(order):
			key, call.Repairs = order[i], appendOnce(call.Repairs, RepairArguments)
		default:
			return Call{}, fmt.Errorf("more arguments than the tool has")
		}
		if _, ok := a.(*syntax.Ident); ok && kindOf(value) == "string" { // city=Oslo
			call.Repairs = appendOnce(call.Repairs, RepairStrings)
		}
		arguments.set(key, value)
	}
	call.Arguments = arguments.encode()
	return call, nil
}

// printed gives the call inside of print(…).
func printed(c *syntax.CallExpr) (*syntax.CallExpr, bool) {
	if dottedName(c.Fn) != "print" || len(c.Args) != 1 {
		return nil, false
	}
	inner, ok := c.Args[0].(*syntax.CallExpr)
	return inner, ok
}

func dottedName(e syntax.Expr) string {
	switch e := e.(type) {
	case *syntax.Ident:
		return e.Name
	case *syntax.DotExpr:
		if x := dottedName(e.X); x != "" {
			return x + "." + e.Name.Name
		}
	}
	return ""
}

// pythonValue spells a literal as JSON. Unless the reading is strict, a word is
// a text without its quotes.
func (r *reader) pythonValue(e syntax.Expr) (json.RawMessage, error) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return r.pythonValue(e.X)
	case *syntax.Literal:
		return pythonLiteral(e)
	case *syntax.Ident:
		switch e.Name {
		case "True", "true":
			return json.RawMessage("true"), nil
		case "False", "false":
			return json.RawMessage("false"), nil
		case "None", "null":
			return json.RawMessage("null"), nil
		}
		if !r.Strict {
			return encode(e.Name)
		}
	case *syntax.UnaryExpr:
		value, err := r.pythonValue(e.X)
		if kind := kindOf(value); err == nil && e.Op == syntax.MINUS && (kind == "integer" || kind == "number") && value[0] != '-' {
			return json.RawMessage("-" + string(value)), nil
		}
	case *syntax.ListExpr:
		return r.pythonElements(e.List)
	case *syntax.TupleExpr:
		return r.pythonElements(e.List)
	case *syntax.DictExpr:
		return r.pythonDict(e)
	}
	return nil, fmt.Errorf("not a literal")
}

func pythonLiteral(e *syntax.Literal) (json.RawMessage, error) {
	switch v := e.Value.(type) {
	case string:
		return encode(v)
	case int64, *big.Int:
		return json.RawMessage(fmt.Sprint(v)), nil
	case float64:
		if raw := json.RawMessage(e.Raw); json.Valid(raw) { // no digit is lost
			return raw, nil
		}
		return encode(v)
	}
	return nil, fmt.Errorf("not a literal")
}

func (r *reader) pythonElements(list []syntax.Expr) (json.RawMessage, error) {
	values := make([]json.RawMessage, len(list))
	for i, e := range list {
		var err error
		if values[i], err = r.pythonValue(e); err != nil {
			return nil, err
		}
	}
	return encode(values)
}

func (r *reader) pythonDict(e *syntax.DictExpr) (json.RawMessage, error) {
	d := dict{}
	for _, item := range e.List {
		entry, ok := item.(*syntax.DictEntry)
		if !ok {
			return nil, fmt.Errorf("not a dictionary")
		}
		raw, err := r.pythonValue(entry.Key)
		if err != nil {
			return nil, err
		}
		var key string
		if json.Unmarshal(raw, &key) != nil {
			key = string(raw)
		}
		value, err := r.pythonValue(entry.Value)
		if err != nil {
			return nil, err
		}
		d.set(key, value)
	}
	return d.encode(), nil
}

// order gives the names of the tool's parameters as the schema lists them.
func (t Tool) order() []string {
	var schema struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil || kindOf(schema.Properties) != "object" {
		return nil
	}
	return keyOrder(schema.Properties)
}
