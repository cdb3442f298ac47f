package tokenizer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/ollama/ollama/fs/ggml"
)

// FromGGUF reads the tokenizer of a model file, from its beginning. The tensors
// are not read. A tokenizer of another kind than byte-level BPE gives an
// *UnsupportedError, a broken file a *FormatError.
func FromGGUF(r io.ReadSeeker) (t *Tokenizer, err error) {
	if err := checkGGUF(r); err != nil {
		return nil, &FormatError{"not a whole GGUF file", err}
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	info, err := readMetadata(r)
	if err != nil {
		return nil, &FormatError{"not a whole GGUF file", err}
	}
	return FromMetadata(info)
}

// readMetadata reads what the tokenizer needs. Ollama's reader panics on some
// broken files, for example on an alignment of zero.
func readMetadata(r io.ReadSeeker) (info map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	file, err := ggml.Decode(r, -1)
	if err != nil {
		return nil, err
	}
	kv := file.KV()
	info = make(map[string]any)
	for key, value := range kv {
		if reflect.ValueOf(value).Kind() != reflect.Pointer { // an array
			info[key] = value
		}
	}
	for _, key := range []string{"tokens", "merges"} {
		info[prefix+key] = kv.Strings(prefix + key)
	}
	for _, key := range []string{"token_type", "eos_token_ids"} {
		info[prefix+key] = kv.Ints(prefix + key)
		if len(kv.Ints(prefix+key)) == 0 {
			info[prefix+key] = kv.Uints(prefix + key)
		}
	}
	info[prefix+"scores"] = kv.Floats(prefix + "scores")
	return info, nil
}

// checkGGUF makes sure that every count and every length in the header of a
// GGUF file fits into the file: Ollama's reader allocates what they say.
func checkGGUF(r io.ReadSeeker) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	h := &header{r: bufio.NewReaderSize(r, 64<<10), left: uint64(size), order: binary.LittleEndian}
	switch magic := h.uint32(); magic {
	case ggml.FILE_MAGIC_GGUF_LE:
	case ggml.FILE_MAGIC_GGUF_BE: // the whole file has its bytes the other way round
		h.order = binary.BigEndian
	default:
		return fmt.Errorf("it begins with %#08x", magic)
	}
	if version := h.uint32(); version != 2 && version != 3 {
		return fmt.Errorf("it has version %d", version)
	}
	tensors, values := h.uint64(), h.uint64()
	for i := uint64(0); i < values && h.err == nil; i++ {
		h.skip(h.uint64(), 1) // the key
		h.value(h.uint32())
	}
	for i := uint64(0); i < tensors && h.err == nil; i++ {
		h.skip(h.uint64(), 1)         // the name
		h.skip(uint64(h.uint32()), 8) // the dimensions
		h.skip(1, 4+8)                // the type and the place
	}
	return h.err
}

// A header walks over the beginning of a GGUF file. After an error it stands
// still, and numbers are zero.
type header struct {
	r     *bufio.Reader
	order binary.ByteOrder
	left  uint64 // bytes of the file
	err   error
}

const (
	ggufString = 8
	ggufArray  = 9
)

// widths are the bytes of GGUF's types, zero where they vary.
var widths = [...]uint64{1, 1, 2, 2, 4, 4, 4, 1, ggufString: 0, ggufArray: 0, 8, 8, 8}

// value walks over a value.
func (h *header) value(typ uint32) {
	if typ != ggufArray {
		h.values(typ, 1)
		return
	}
	element := h.uint32()
	if element == ggufArray {
		h.fail("it has an array of arrays")
		return
	}
	h.values(element, h.uint64())
}

// values walks over n values of one type that is no array.
func (h *header) values(typ uint32, n uint64) {
	switch {
	case h.err != nil:
	case typ == ggufString && n <= h.left/8:
		for ; n > 0 && h.err == nil; n-- {
			h.skip(h.uint64(), 1)
		}
	case int(typ) < len(widths) && widths[typ] > 0:
		h.skip(n, widths[typ])
	case typ == ggufString:
		h.fail("it has %d texts, more than its bytes allow", n)
	default:
		h.fail("it has a value of the type %d", typ)
	}
}

// skip walks over n times width bytes.
func (h *header) skip(n, width uint64) {
	if h.err != nil {
		return
	}
	if n > h.left/width {
		h.fail("a length of %d is more than is left of it", n)
		return
	}
	h.left -= n * width
	if _, err := io.CopyN(io.Discard, h.r, int64(n*width)); err != nil {
		h.err = err
	}
}

func (h *header) uint32() uint32 {
	b := h.bytes(4)
	return h.order.Uint32(b[:])
}

func (h *header) uint64() uint64 {
	b := h.bytes(8)
	return h.order.Uint64(b[:])
}

func (h *header) bytes(n uint64) (b [8]byte) {
	if h.err != nil {
		return b
	}
	if n > h.left {
		h.fail("it ends in its header")
		return b
	}
	h.left -= n
	_, h.err = io.ReadFull(h.r, b[:n])
	return b
}

func (h *header) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf(format, args...)
	}
}
