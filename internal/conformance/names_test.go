package conformance

import (
	"encoding/json"
	"testing"

	"stopgap/template"
)

// TestNamesOfServers: tools of MCP servers have a dot in their names. A call of
// one is spelled and read like any other.
func TestNamesOfServers(t *testing.T) {
	played := 0
	for _, name := range template.Names() {
		f, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if Unplayable(f) != "" || len(f.Call.Tags) > 0 { // tags are tools of their own
			continue
		}
		for _, tool := range []string{"files.read", "files.get_time", "a_b.c.d", "Files2._7z", "files.import_"} {
			described := []template.Tool{
				{Name: "files.other", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
				{Name: tool, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			}
			call := template.Call{Name: tool, Arguments: json.RawMessage(`{"path":"a b"}`)}
			text, err := f.Write(template.Turn{Calls: []template.Call{call}}, f.Think.Opened)
			if err != nil {
				t.Errorf("%s: %s: %v", name, tool, err)
				continue
			}
			turn := f.Parse(text, template.Reading{InThink: f.Think.Opened, Tools: described, Ended: true})
			if len(turn.Calls) != 1 || turn.Calls[0].Name != tool || string(turn.Calls[0].Arguments) != `{"path":"a b"}` && string(turn.Calls[0].Arguments) != `{"path": "a b"}` || len(turn.Calls[0].Repairs) > 0 {
				t.Errorf("%s: %q is read as %+v, problems %+v", name, text, turn.Calls, turn.Problems)
			}
			played++
		}
	}
	if played < 20 {
		t.Errorf("only %d", played)
	}
}
