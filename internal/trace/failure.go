package trace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"syscall"

	"stopgap/models"
)

// A failure is an error on paper: enough of it to come back as an error of the
// same type, with the same text, for whoever branches on it.
type failure struct {
	// Type is the name of one of the types below, or of a sentinel; empty for
	// any other error, which has only a text.
	Type   string                     `json:"type,omitempty"`
	Text   string                     `json:"text"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"` // those that are not errors
	Wraps  *failure                   `json:"wraps,omitempty"`
}

// typed are the errors that a model gives, as pointers to structs.
var typed = map[string]reflect.Type{}

func init() {
	for _, e := range []error{
		&models.RefError{}, &models.PromptError{}, &models.UnsupportedError{}, &models.SchemaError{}, &models.UnreachableError{},
		&models.NotFoundError{}, &models.LoadingError{}, &models.OverflowError{}, &models.CutError{}, &models.StallError{},
		&models.ServerError{}, &models.ProtocolError{},
	} {
		t := reflect.TypeOf(e).Elem()
		typed[t.Name()] = t
	}
}

// sentinels are errors that somebody compares with.
var sentinels = map[string]error{
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded, "eof": io.EOF, "unexpected_eof": io.ErrUnexpectedEOF,
	"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET,
}

var errorType = reflect.TypeFor[error]()

// newFailure writes an error down; nil stays nil.
func newFailure(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for name, s := range sentinels {
		if err == s {
			f.Type = name
			return f
		}
	}
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer && !v.IsNil() && typed[v.Type().Elem().Name()] == v.Type().Elem() {
		f.write(v.Elem())
		return f
	}
	f.Wraps = newFailure(errors.Unwrap(err))
	return f
}

// write keeps the fields of a typed error. What it wraps is the error in its
// last field of that kind.
func (f *failure) write(v reflect.Value) {
	f.Type, f.Fields = v.Type().Name(), map[string]json.RawMessage{}
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		if field.Type() == errorType {
			wrapped, _ := field.Interface().(error)
			f.Wraps = newFailure(wrapped)
			if e, ok := v.Addr().Interface().(*models.UnreachableError); ok && f.Wraps != nil {
				f.Wraps.Text = e.Reason() // what it says of the types below
			}
			continue
		}
		if b, err := json.Marshal(field.Interface()); err == nil && !field.IsZero() {
			f.Fields[name] = b
		}
	}
}

// err gives the error back.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	if s := sentinels[f.Type]; s != nil {
		return s
	}
	t := typed[f.Type]
	if t == nil {
		return &recalled{f.Text, f.Wraps.err()}
	}
	v := reflect.New(t)
	for i := range t.NumField() {
		field := v.Elem().Field(i)
		if t.Field(i).Type == errorType {
			if w := f.Wraps.err(); w != nil {
				field.Set(reflect.ValueOf(w))
			}
		} else if b := f.Fields[t.Field(i).Name]; b != nil {
			_ = json.Unmarshal(b, field.Addr().Interface()) // a field that became another kind stays zero
		}
	}
	return v.Interface().(error)
}

// recalled is an error of a type that is not kept.
type recalled struct {
	text  string
	wraps error
}

func (e *recalled) Error() string { return e.text }
func (e *recalled) Unwrap() error { return e.wraps }
