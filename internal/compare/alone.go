package compare

import (
	"encoding/json"
	"errors"
	"io/fs"

	"stopgap/internal/batch"
)

// alone is the plan of a folder that is no comparison's but a batch's own: one
// configuration, with the items up to the last that has a result. Without a
// ledger, or where nothing is on it yet, the error is ErrNone.
func alone(dir string) (*Plan, error) {
	c, err := batch.ReadFolder(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &FolderError{dir, ErrNone}
	case err != nil:
		return nil, err
	case c.Configuration == nil: // it has not begun
		return nil, &FolderError{dir, ErrNone}
	}
	p := &Plan{Version: planVersion, Data: c.Data, Digest: digest(c.Items), Date: c.Date, Seeds: c.Configuration.Hash(), Rollouts: 1}
	m := Member{Folder: ".", Hash: c.Configuration.Hash()}
	for name, text := range map[string]*string{"format": &m.Format, "model": &m.Model} {
		_ = json.Unmarshal(c.Configuration[name], text) // a name that cannot be read is none
	}
	p.Members = []Member{m}
	place := make(map[string]int, len(c.Items))
	for i := range c.Items {
		place[c.Items[i].ID] = i
	}
	for _, r := range c.Results {
		p.Rollouts, p.First = max(p.Rollouts, r.Rollout), max(p.First, place[r.Item]+1)
	}
	return p, nil
}
