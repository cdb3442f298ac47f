//go:build !hftokenizers

package tokenizer

import (
	"errors"
	"testing"
)

// Without the library, other kinds are refused, each with what helps.
func TestUnknownKinds(t *testing.T) {
	for want, data := range unknownKinds(t) {
		_, err := FromJSON(data)
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.What != want || unsupported.Hint != libraryHint {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err := FromMetadata(with(small(), "model", "llama"))
	if err == nil || err.Error() != `tokenizer: model "llama" (SentencePiece) is not supported` {
		t.Error(err)
	}
}
