package batch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"stopgap/runner"
	"stopgap/tools"
)

// A Configuration is all that decides about a result, beside the question and
// the seed, as JSON by name. Where a server listens and how many run at once is
// no part of it.
type Configuration map[string]json.RawMessage

// apart are the fields of a Runner that are no data, or of the place where it
// runs: what the model is called stands in "model".
var apart = map[string]bool{
	"Model": true, "Format": true, "Tools": true, "CountTokens": true, "WithTimeout": true,
	"Session": true, "Name": true, "Context": true, "Prefill": true,
}

// NewConfiguration describes the runs of a Runner. model is the model's name,
// format the text of the format's file.
func NewConfiguration(model string, format []byte, r *runner.Runner, task runner.Task) (Configuration, error) {
	sum := sha256.Sum256(format)
	c := Configuration{}
	values := map[string]any{
		"model": model, "format": r.Format.Name, "format_sha256": hex.EncodeToString(sum[:]), "single_call": r.Format.SingleCall,
		"system": task.System, "date": task.Date, "values": task.Values,
	}
	if r.Tools != nil {
		o := r.Tools.Options()
		values["tools"] = r.Tools.Specs()
		values["tool_bounds"] = tools.Options{Timeout: o.Timeout, MaxTokens: o.MaxTokens, Limit: o.Limit, Limits: o.Limits}
	}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; !apart[name] {
			values["runner."+name] = v.Field(i).Interface()
		}
	}
	for name, value := range values {
		if v := reflect.ValueOf(value); v.IsZero() {
			continue // a field that is new and not used changes nothing
		}
		b, err := marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c[name] = b
	}
	return c, nil
}

// marshal gives JSON. Functions, which tools.Options has, are left out.
func marshal(value any) (json.RawMessage, error) {
	if o, ok := value.(tools.Options); ok {
		value = map[string]any{"timeout_ns": o.Timeout, "max_tokens": o.MaxTokens, "limit": o.Limit, "limits": o.Limits}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}

// Hash is the same for the same configuration, and for no other.
func (c Configuration) Hash() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(h, "%s=%s\n", name, c[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Changes tells what differs between two configurations, a line each.
func (c Configuration) Changes(before Configuration) []string {
	names := maps.Clone(c)
	maps.Copy(names, before)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if was, is := before[name], c[name]; !bytes.Equal(was, is) {
			out = append(out, fmt.Sprintf("%s was %s and is %s", name, brief(was), brief(is)))
		}
	}
	return out
}

func brief(v json.RawMessage) string {
	switch {
	case len(v) == 0:
		return "nothing"
	case len(v) > 80:
		return string(v[:77]) + "…"
	}
	return string(v)
}

// Seed gives the seed of a rollout of an item, from 0 on: the same wherever and
// whenever it runs. source is what else it follows from; for a batch that is the
// hash of its configuration.
func Seed(source, item string, rollout int) int {
	sum := sha256.Sum256([]byte(source + "\x00" + item + "\x00" + strconv.Itoa(rollout)))
	return int(binary.BigEndian.Uint32(sum[:4]) >> 1) // servers take 31 bits
}
