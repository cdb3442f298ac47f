//go:build !hftokenizers

package tokenizer

const libraryHint = "Hugging Face's library reads it, linked with the build tag hftokenizers (docs/tokenizers.md); or ask a server that has the model"

// fromLibrary says what reads the file.
func fromLibrary(_ []byte, _ *jsonFile, why *UnsupportedError) (*Tokenizer, error) {
	why.Hint = libraryHint
	return nil, why
}

// other says what reads a GGUF file that is no byte-level BPE.
func (m metadata) other(model string) (*Tokenizer, error) {
	return nil, unsupportedModel(model, libraryHint)
}
