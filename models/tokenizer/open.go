package tokenizer

import (
	"bytes"
	"io"
	"os"
)

// largestJSON is more than any tokenizer.json has; a file of a model's weights
// is not read whole to find out what it is.
const largestJSON = 256 << 20 // bytes

// Open reads the tokenizer of a file: a GGUF file, which begins with "GGUF", or
// else a tokenizer.json.
func Open(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err == nil && (string(magic) == "GGUF" || string(magic) == "FUGG") {
		return FromGGUF(f)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, largestJSON+1))
	if err != nil {
		return nil, err
	}
	if len(data) > largestJSON || !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, broken("%s is neither a GGUF file nor a tokenizer.json", path)
	}
	return FromJSON(data)
}
