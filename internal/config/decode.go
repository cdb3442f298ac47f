package config

import (
	"fmt"

	"github.com/goccy/go-yaml"
)

// Decode reads a YAML file into a value that is a pointer to a struct. A key that
// the struct does not have is an error. Errors are those of Read.
func Decode(path string, into any) (err error) {
	docs, err := parse(path)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil { // as in parse
			err = &Error{Path: path, Reason: fmt.Sprintf("not as it should be: %v", r)}
		}
	}()
	for _, d := range docs {
		if pairs, ok := mapping(d.Body); !ok || len(pairs) == 0 {
			if ok {
				continue // an empty document
			}
			return (&File{Path: path}).fault(d.Body, "not a mapping")
		}
		if err := yaml.NodeToValue(d.Body, into, yaml.Strict()); err != nil {
			return syntaxError(path, err)
		}
	}
	return nil
}
