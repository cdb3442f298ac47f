package trace

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"stopgap/runner"
	"stopgap/template"
)

// A turn is what the events tell of one.
type turn struct {
	text    strings.Builder
	calls   []runner.Called
	stopped runner.Stopped
	note    string
}

// turnEvents gives the turns of a run, in their order.
func (t *tape) turnEvents() ([]*turn, error) {
	out := []*turn{{}}
	for _, rec := range t.comparable {
		ev, err := rec.RunnerEvent()
		if err != nil {
			return nil, err
		}
		last := out[len(out)-1]
		switch ev := ev.(type) {
		case runner.Text:
			if last.stopped.Turn != 0 {
				last = &turn{}
				out = append(out, last)
			}
			last.text.WriteString(ev.Text)
		case runner.Stopped:
			if last.stopped.Turn != 0 { // a turn without text
				last = &turn{}
				out = append(out, last)
			}
			last.stopped = ev
		case runner.Called:
			last.calls = append(last.calls, ev)
		case runner.Nudged:
			last.note = ev.Note
		}
	}
	return out, nil
}

// calls are those of a turn.
func (t *tape) calls(n int) []runner.Called {
	turns, err := t.turnEvents()
	if err != nil || n < 1 || n > len(turns) {
		return nil
	}
	return turns[n-1].calls
}

// translate spells the turns that are played in the fork's format.
func (f *Fork) translate(t *tape, r *runner.Runner) ([]string, error) {
	turns, err := t.turnEvents()
	if err != nil {
		return nil, err
	}
	old, own := r.Format, f.Format
	switch {
	case f.At == 0:
		return nil, nil
	case old.Opening == template.OpenChat || own.Opening == template.OpenChat:
		return nil, &ForkError{1, "the turns of a chat endpoint are its server's, and no format spells them"}
	case own.Opening == template.OpenServer:
		return nil, &ForkError{1, "format server is only known once the server has written the opening; name the format itself"}
	case r.Constrain:
		return nil, &ForkError{1, "its calls were held to a schema in several requests, which another format would cut in other places"}
	case r.Limits.Think > 0:
		return nil, &ForkError{1, "its thinking had a limit, at which another format would close it in other places"}
	case r.Choice.Mode != runner.Auto && r.Choice.Mode != runner.None:
		return nil, &ForkError{1, "its first words were put into the model's mouth, which another format would spell otherwise"}
	}
	if old, err = t.settled(old); err != nil {
		return nil, err
	}
	var out []string
	offered := offered(r)
	from, to := old.Think.Opened, own.Think.Opened
	for n, turn := range turns[:f.At] {
		read := old.Parse(turn.text.String(), template.Reading{
			InThink: from, Tools: offered, Strict: r.Strict, Ended: turn.stopped.Means == template.MeansCall,
			Cut: turn.stopped.Finish != "" && turn.stopped.Finish != "stop",
		})
		spelled, again, err := f.respell(read, to, offered, r.SingleCall)
		if err != nil {
			return nil, &ForkError{n + 1, err.Error()}
		}
		out = append(out, spelled)
		from = old.StartsInThink(template.Continuation{InThink: read.InThink, Note: turn.note})
		to = own.StartsInThink(template.Continuation{InThink: again.InThink, Note: turn.note})
	}
	return out, nil
}

// settled is the format that a run of the format server turned out to have.
func (t *tape) settled(f *template.Format) (*template.Format, error) {
	if f.Opening != template.OpenServer {
		return f, nil
	}
	for _, rec := range t.comparable {
		if ev, err := rec.RunnerEvent(); err == nil {
			if started, ok := ev.(runner.Started); ok {
				return template.Load(started.Format)
			}
		}
	}
	return f, nil
}

// offered are the tools of a run as formats know them.
func offered(r *runner.Runner) []template.Tool {
	var out []template.Tool
	if r.Tools == nil || r.Choice.Mode == runner.None {
		return nil
	}
	for _, s := range r.Tools.Specs() {
		out = append(out, template.Tool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return out
}

// respell spells a turn, and makes sure that it reads as the same one.
func (f *Fork) respell(t template.Turn, inThink bool, offered []template.Tool, single bool) (string, template.Turn, error) {
	for _, p := range t.Problems {
		if p.Kind != template.UnknownTool {
			return "", t, fmt.Errorf("the model did not keep to its format there (%s), and only what could be read can be spelled in another", p.Kind)
		}
	}
	if len(t.Calls) > 1 && (single || f.Format.SingleCall) {
		return "", t, fmt.Errorf("it has %d calls, and format %s makes one call a turn", len(t.Calls), f.Format.Name)
	}
	text, err := f.Format.Write(t, inThink)
	if err != nil {
		return "", t, err
	}
	back := f.Format.Parse(text, template.Reading{InThink: inThink, Tools: offered, Ended: true})
	if f.Format.Think.Open == "" { // the thought is lost, which is the format's way
		back.Think = t.Think
	}
	if !sameTurn(t, back) {
		return "", t, fmt.Errorf("in format %s it would not read as the same turn", f.Format.Name)
	}
	return text, back, nil
}

// sameTurn compares what two turns say.
func sameTurn(a, b template.Turn) bool {
	if len(a.Calls) != len(b.Calls) || a.Think != b.Think || a.Text != b.Text || a.Answer != b.Answer {
		return false
	}
	for i := range a.Calls {
		var x, y any
		if json.Unmarshal(a.Calls[i].Arguments, &x) != nil || json.Unmarshal(b.Calls[i].Arguments, &y) != nil ||
			a.Calls[i].Name != b.Calls[i].Name || !reflect.DeepEqual(x, y) {
			return false
		}
	}
	return true
}
