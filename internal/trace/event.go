package trace

import (
	"encoding/json"
	"reflect"

	"stopgap/runner"
)

// events are the runner's, by their kinds.
var events = map[string]reflect.Type{}

func init() {
	for _, ev := range []runner.Event{
		runner.Started{}, runner.Waiting{}, runner.Text{}, runner.Noticed{}, runner.Resumed{}, runner.Stopped{}, runner.Called{},
		runner.Returned{}, runner.Nudged{}, runner.Answered{}, runner.Ended{},
	} {
		events[ev.Kind()] = reflect.TypeOf(ev)
	}
}

// RunnerEvent gives the event of the runner that a record is, or nil where it
// is something else. The error is a *RecordError.
func (r Record) RunnerEvent() (runner.Event, error) {
	t := events[r.Kind]
	if t == nil {
		return nil, nil
	}
	v := reflect.New(t)
	if err := json.Unmarshal(r.Event, v.Interface()); err != nil {
		return nil, &RecordError{r.Seq, r.Kind, err.Error()}
	}
	return v.Elem().Interface().(runner.Event), nil
}
