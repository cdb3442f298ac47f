package bfcl

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// rowID is how rows are numbered: "simple_python_12", "live_multiple_3-1-0".
var rowID = regexp.MustCompile(`^(\w+?)_[0-9]+(-[0-9]+)*$`)

// ParseRow reads a row that stands alone, with its right answers as they stand
// in the file beside it (ground_truth), empty for none. Its category is the one
// that its id begins with. A row that Check cannot judge gives ErrCategory, one
// whose answers are missing ErrTruth; both come with the item, which can be
// asked.
func ParseRow(row, truth json.RawMessage) (*Item, error) {
	v, err := read(row)
	d, ok := v.(*dict)
	if err == nil && !ok {
		err = errors.New("it is not a JSON object")
	}
	if err != nil {
		return nil, err
	}
	it, err := newItem(d)
	if err != nil {
		return nil, err
	}
	m := rowID.FindStringSubmatch(it.ID)
	if m == nil || !known.MatchString(m[1]) {
		return it, ErrCategory
	}
	it.Category = strings.TrimSuffix(m[1], "_python")
	if strings.HasSuffix(it.Category, "relevance") {
		return it, nil
	}
	if len(truth) == 0 {
		return it, ErrTruth
	}
	ground, err := read(truth)
	if err != nil {
		return nil, err
	}
	if _, it.truth, err = newTruth(&dict{keys: []string{"ground_truth"}, values: map[string]value{"ground_truth": ground}}); err != nil {
		return nil, err
	}
	if len(it.truth) == 0 {
		return it, ErrTruth
	}
	return it, nil
}

// ErrTruth says that nobody knows which calls are right.
var ErrTruth = errors.New("its right calls are missing")
