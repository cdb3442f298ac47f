package models

import (
	"bytes"
	"encoding/json"
	"slices"
)

// A callPiece is a part of a call in an event of /v1/chat/completions. The
// first of a call has its ID and its name, those after it more of the
// arguments; index says which call it is of.
type callPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a string; some servers send the object
	} `json:"function"`
}

// A partialCall is what has come of a call.
type partialCall struct {
	index    int
	id, name string
	// body is the inside of the JSON string of the arguments, escapes and all:
	// a character that is cut between two events, as two halves of \ud83d\ude00,
	// is whole only when they are read together.
	body []byte
}

// add appends a fragment of the arguments and gives what was added.
func (c *partialCall) add(fragment json.RawMessage) string {
	fragment = trimJSON(fragment)
	if len(fragment) == 0 || string(fragment) == "null" {
		return ""
	}
	if fragment[0] != '"' {
		quoted, _ := encode(string(fragment)) // a string always has a JSON form
		fragment = trimJSON(quoted)
	}
	inside := fragment[1 : len(fragment)-1]
	c.body = append(c.body, inside...)
	return string(inside)
}

// arguments are the arguments so far, as the model wrote them.
func (c *partialCall) arguments() json.RawMessage {
	var s string
	_ = json.Unmarshal(slices.Concat([]byte{'"'}, c.body, []byte{'"'}), &s) // each fragment was read as JSON
	return json.RawMessage(s)
}

// whole makes the call.
func (c *partialCall) whole(kind string, ids *callIDs) (ToolCall, error) {
	if c.name == "" {
		return ToolCall{}, &ProtocolError{Server: kind, Reason: "a call without a name"}
	}
	return ToolCall{ID: ids.unique(c.id), Name: c.name, Arguments: c.arguments()}, nil
}

// callPieces puts calls together.
type callPieces []*partialCall

// add takes a piece and gives the text in it.
func (p *callPieces) add(piece callPiece) string {
	c := p.call(piece)
	if c == nil {
		c = &partialCall{}
		if n := len(*p); n > 0 {
			c.index = (*p)[n-1].index
		}
		if piece.Index != nil {
			c.index = *piece.Index
		}
		*p = append(*p, c)
	}
	if c.id == "" {
		c.id = piece.ID
	}
	if c.name == "" {
		c.name = piece.Function.Name
	}
	return piece.Function.Name + c.add(piece.Function.Arguments)
}

// call finds the call that a piece belongs to, nil for a new one. The index
// says it, and not alone: some servers leave it out, and some send it as 0 for
// every call. There another ID or name begins another call, and so does a name
// before further arguments where those that came are whole.
func (p callPieces) call(piece callPiece) *partialCall {
	name := piece.Function.Name
	for _, c := range slices.Backward(p) {
		if piece.Index != nil && c.index != *piece.Index || piece.ID != "" && c.id != "" && c.id != piece.ID {
			continue
		}
		if name != "" && c.name != "" &&
			(name != c.name || piece.ID == "" && startsObject(piece.Function.Arguments) && isObject(c.arguments())) {
			return nil
		}
		return c
	}
	return nil
}

// startsObject reports whether a fragment begins the object of a call.
func startsObject(fragment json.RawMessage) bool {
	var c partialCall
	c.add(fragment)
	return bytes.HasPrefix(trimJSON(c.arguments()), []byte("{"))
}

// list gives the calls in order. Where the answer was cut by a limit, those
// whose arguments are whole.
func (p callPieces) list(kind string, ids *callIDs, cut bool) ([]ToolCall, error) {
	p = slices.Clone(p)
	slices.SortStableFunc(p, func(a, b *partialCall) int { return a.index - b.index })
	var calls []ToolCall
	for _, c := range p {
		if cut && !isObject(c.arguments()) {
			continue
		}
		call, err := c.whole(kind, ids)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}
