package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var (
	errNoEnd      = errors.New("the JSON has no end")
	errAfterValue = errors.New("text after the JSON value")
	errTooLarge   = fmt.Errorf("larger than %d bytes", maxCall)
	errTooDeep    = fmt.Errorf("nested more than %d deep", maxDepth)
)

// readJSON reads one JSON value from the beginning of a text. size is the length
// of the value and the white space before it. The error is errNoEnd where the
// text ends too early.
func (b *budget) readJSON(text string) (value json.RawMessage, size int, err error) {
	cut := text[:min(len(text), maxCall)]
	if b.read > maxRead {
		return nil, 0, errTooLarge
	}
	defer func(before int) { b.work += b.read - before }(b.read)
	dec := json.NewDecoder(strings.NewReader(cut))
	err = dec.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		b.read += int(syntax.Offset)
		return nil, 0, fmt.Errorf("%w at byte %d", err, syntax.Offset)
	case err != nil: // the end of the text
		b.read += len(cut)
		if len(cut) < len(text) {
			return nil, 0, errTooLarge
		}
		return nil, 0, errNoEnd
	}
	size = int(dec.InputOffset())
	b.read += size
	if depth(value) > maxDepth {
		return nil, 0, errTooDeep
	}
	return value, size, nil
}

// depth gives how deep a valid JSON value nests.
func depth(value []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// decode reads a call from its JSON. The problem has no kind if there is none,
// and never an offset.
func (s Spelling) decode(value json.RawMessage) (Call, Problem) {
	keys, ok := object(value)
	if !ok {
		return Call{}, Problem{Kind: BadJSON, Message: "the call is not a JSON object"}
	}
	call := Call{Arguments: json.RawMessage("{}")}
	if raw, ok := first(keys, s.Name); ok {
		_ = json.Unmarshal(raw, &call.Name) // what is not a string is no name
	}
	if call.Name = strings.TrimSpace(call.Name); call.Name == "" {
		return Call{}, Problem{Kind: MissingName, Message: fmt.Sprintf("the key %q is missing or not a text", s.Name[0])}
	}
	if raw, ok := first(keys, s.Arguments); ok {
		if _, ok := object(raw); !ok {
			return Call{}, Problem{Kind: BadJSON, Message: fmt.Sprintf("%q is not a JSON object", s.Arguments[0])}
		}
		call.Arguments = raw
	}
	return call, Problem{}
}

// object reads valid JSON as an object.
func object(value json.RawMessage) (keys map[string]json.RawMessage, ok bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")) {
		return nil, false
	}
	return keys, json.Unmarshal(value, &keys) == nil
}

// first gives the value of the first of the names that is a key.
func first(keys map[string]json.RawMessage, names []string) (json.RawMessage, bool) {
	for _, n := range names {
		if raw, ok := keys[n]; ok {
			return raw, true
		}
	}
	return nil, false
}
