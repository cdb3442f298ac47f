package tokenizer

import "fmt"

// An UnsupportedError says that a tokenizer is whole, but of a kind that the
// package does not read: its ids would not be exact.
type UnsupportedError struct {
	What string // for example: model "llama" (SentencePiece)
	Hint string // what helps, empty where nothing does
}

func (e *UnsupportedError) Error() string { return "tokenizer: " + e.What + " is not supported" }

// A FormatError says that a description of a tokenizer is broken.
type FormatError struct {
	Reason string
	Err    error // nil where the reason says it all
}

func (e *FormatError) Error() string {
	if e.Err != nil {
		return "tokenizer: " + e.Reason + ": " + e.Err.Error()
	}
	return "tokenizer: " + e.Reason
}

func (e *FormatError) Unwrap() error { return e.Err }

// broken is a FormatError with a text like fmt.Sprintf's.
func broken(format string, args ...any) error {
	return &FormatError{Reason: fmt.Sprintf(format, args...)}
}
