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

// bare reads the list that begins the turn.
func (k pythonCalls) bare(p *tagParser, i int) int {
	if !pythonList.MatchString(p.text[i:]) {
		return i
	}
	end, closed := pythonExtent(p.text[i:])
	if !closed {
		p.bad(Problem{UnclosedCall, i, len(p.text), "the list of calls has no end"})
		return len(p.text)
	}
	calls, err := p.python(p.text[i : i+end])
	problem := Problem{}
	if err != nil {
		problem = Problem{Kind: BadJSON, Message: "the list is not one of Python calls"}
	}
	p.complete(calls, problem, i, i+end)
	return i + end
}

// dotted reads Llama's "tool.call(key="value")" at text[at:], behind a tag that
// begins at text[i:].
func (k pythonCalls) dotted(p *tagParser, i, at int) int {
	m := pythonCall.FindString(p.text[at:])
	if m == "" {
		return at
	}
	end, closed := pythonExtent(p.text[at:])
	if !closed {
		p.bad(Problem{UnclosedCall, i, len(p.text), "the call has no end"})
		return len(p.text)
	}
	calls, err := p.python(p.text[at : at+end])
	if err != nil {
		return at
	}
	p.complete(calls, Problem{}, i, at+end)
	return at + end
}

var (
	// pythonList finds a list whose first element is a call, pythonCall a call.
	pythonList = regexp.MustCompile(`^\[\s*[A-Za-z_][\w.]*\s*\(`)
	pythonCall = regexp.MustCompile(`^[A-Za-z_][\w.]*\s*\(`)
)

// pythonExtent gives the length of the expression that text begins with: up to
// the bracket that closes its first one. Strings are between quotes of either kind.
func pythonExtent(text string) (end int, closed bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			n, ok := pythonStringEnd(text[i:])
			if !ok {
				return len(text), false
			}
			i += n - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}

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

// python reads a call or a list of calls.
func (r *reader) python(text string) ([]Call, error) {
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

func (r *reader) pythonCall(e syntax.Expr) (Call, error) {
	c, ok := e.(*syntax.CallExpr)
	if !ok {
		return Call{}, fmt.Errorf("not a call")
	}
	call := Call{Name: strings.TrimSuffix(dottedName(c.Fn), ".call")}
	if call.Name == "" {
		return Call{}, fmt.Errorf("a call without a name")
	}
	tool, known := r.tool(call.Name)
	if !known {
		tool, _ = r.nearTool(call.Name)
	}
	order := tool.order()
	var keys []string
	values := map[string]json.RawMessage{}
	for i, a := range c.Args {
		var key string
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			id, _ := b.X.(*syntax.Ident)
			key, a = id.Name, b.Y
		} else if i < len(order) && !r.Strict {
			key, call.Repairs = order[i], withRepair(call.Repairs, RepairArguments)
		} else {
			return Call{}, fmt.Errorf("an argument without a name")
		}
		value, err := pythonValue(a)
		if err != nil {
			return Call{}, err
		}
		if _, twice := values[key]; !twice {
			keys = append(keys, key)
		}
		values[key] = value
	}
	call.Arguments = ordered(keys, values)
	return call, nil
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

// pythonValue spells a literal as JSON.
func pythonValue(e syntax.Expr) (json.RawMessage, error) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return pythonValue(e.X)
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
	case *syntax.UnaryExpr:
		value, err := pythonValue(e.X)
		if kind := kindOf(value); err == nil && e.Op == syntax.MINUS && (kind == "integer" || kind == "number") {
			return json.RawMessage("-" + string(value)), nil
		}
	case *syntax.ListExpr:
		return pythonElements(e.List)
	case *syntax.TupleExpr:
		return pythonElements(e.List)
	case *syntax.DictExpr:
		return pythonDict(e)
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
		return encode(v)
	}
	return nil, fmt.Errorf("not a literal")
}

func pythonElements(list []syntax.Expr) (json.RawMessage, error) {
	values := make([]json.RawMessage, len(list))
	for i, e := range list {
		var err error
		if values[i], err = pythonValue(e); err != nil {
			return nil, err
		}
	}
	return encode(values)
}

func pythonDict(e *syntax.DictExpr) (json.RawMessage, error) {
	var keys []string
	values := map[string]json.RawMessage{}
	for _, item := range e.List {
		entry, ok := item.(*syntax.DictEntry)
		if !ok {
			return nil, fmt.Errorf("not a dictionary")
		}
		raw, err := pythonValue(entry.Key)
		if err != nil {
			return nil, err
		}
		var key string
		if json.Unmarshal(raw, &key) != nil {
			key = string(raw)
		}
		value, err := pythonValue(entry.Value)
		if err != nil {
			return nil, err
		}
		if _, twice := values[key]; !twice {
			keys = append(keys, key)
		}
		values[key] = value
	}
	return ordered(keys, values), nil
}

// order gives the names of the tool's parameters as the schema lists them.
func (t Tool) order() []string {
	var schema struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil || kindOf(schema.Properties) != "object" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(string(schema.Properties)))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	var names []string
	for dec.More() {
		key, err := dec.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return names
		}
		names = append(names, name)
	}
	return names
}
