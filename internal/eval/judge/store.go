package judge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// StoreName is the file of verdicts in a folder.
const StoreName = "verdicts.jsonl"

// A Store keeps verdicts in a file of JSON lines, which only grows. One process
// writes it at a time; the store is safe for concurrent use.
type Store struct {
	mu   sync.Mutex
	path string
	file *os.File // nil until something is written
	kept map[string]Verdict
	torn bool // the file's last line has no end
}

// A record is a line of the file. What was judged stands beside the verdict for
// people who read it.
type record struct {
	Key      string   `json:"key"`
	Model    string   `json:"model"`
	Question string   `json:"question"`
	Gold     []string `json:"gold"`
	Answer   string   `json:"answer"`
	Verdict
}

// OpenStore reads the verdicts of a file; there need be none. Lines that are no
// verdicts are passed over: the last one may have been cut off. Nothing is
// written before there is a new verdict.
func OpenStore(path string) (*Store, error) {
	s := &Store{path: path, kept: map[string]Verdict{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		var r record
		if json.Unmarshal(line, &r) == nil && r.Key != "" && (r.Grade.given() || r.Grade == None) {
			r.Reason = inLine(r.Reason)
			s.kept[r.Key] = r.Verdict
		}
		s.torn = len(line) > 0 && !bytes.HasSuffix(line, []byte("\n"))
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Verdict gives the verdict of a judge on an answer, where it is kept or nobody
// has to be asked.
func (s *Store) Verdict(model string, c Case) (Verdict, bool) {
	if v, ok := c.plain(); ok {
		return v, true
	}
	return s.get(c.key(model))
}

func (s *Store) get(key string) (Verdict, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kept[key]
	return v, ok
}

// put keeps a verdict.
func (s *Store) put(key, model string, c Case, v Verdict) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record{key, model, c.Question, c.Gold, c.Answer, v}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		s.file = f
	}
	line := b.Bytes()
	if s.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := s.file.Write(line)
	if s.torn = err != nil && (s.torn || n > 0); err != nil {
		return fmt.Errorf("a verdict cannot be kept: %w", err)
	}
	s.kept[key] = v
	return nil
}

// Close closes the file. The verdicts can still be read.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
