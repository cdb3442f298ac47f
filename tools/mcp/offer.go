package mcp

import (
	"context"
	"encoding/json"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stopgap/tools"
)

// Offer offers tools to one client over a pair of streams, until the client
// leaves or ctx is done. Calls go through the set like those of a model:
// arguments are checked, deadlines hold, results are cut.
func Offer(ctx context.Context, set *tools.Set, version string, in io.ReadCloser, out io.WriteCloser) error {
	server := sdk.NewServer(&sdk.Implementation{Name: "stopgap", Version: version}, nil)
	session := set.Session()
	for _, spec := range set.Specs() {
		parameters := spec.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		network := false
		for _, c := range spec.Capabilities {
			network = network || c == tools.Net
		}
		server.AddTool(&sdk.Tool{
			Name: spec.Name, Description: spec.Description, InputSchema: parameters,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: !spec.SideEffects, OpenWorldHint: &network},
		}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			res := session.Run(ctx, []tools.Call{{Name: spec.Name, Arguments: req.Params.Arguments}})[0]
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: res.Content}}, IsError: res.Status != tools.OK,
			}, nil
		})
	}
	err := server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: mostBytes})
	if ctx.Err() != nil {
		return nil // whoever ended it knows
	}
	return err
}
