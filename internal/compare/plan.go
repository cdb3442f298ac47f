package compare

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stopgap/internal/batch"
)

// PlanName is the file that says what a folder compares.
const PlanName = "compare.json"

// planNew begins the names of plans that are being written.
const planNew = PlanName + "."

const planVersion = 1

// A Plan is what a comparison is of. The folder keeps the last one that was
// asked for; batches of configurations that it does not name any more stay.
type Plan struct {
	Version int    `json:"version"`
	Data    string `json:"data"` // the file, without its folder
	// Digest is the hash of all items of the dataset.
	Digest string `json:"digest"`
	Shape  string `json:"shape"`
	// First is how many items are asked, zero for all.
	First    int    `json:"first,omitempty"`
	Rollouts int    `json:"rollouts"`
	Date     string `json:"date"`
	Seeds    string `json:"seeds"`
	// Primary is the metric that the comparison is about; empty leaves it to the
	// data.
	Primary string `json:"primary,omitempty"`
	// Judge names the format and the model that judge answers; empty for none.
	Judge   string   `json:"judge,omitempty"`
	Members []Member `json:"configurations"`
}

// A Member is a configuration of a Plan.
type Member struct {
	Format string `json:"format"` // as it was named
	Model  string `json:"model"`
	Folder string `json:"folder"`
	Hash   string `json:"hash"` // of its batch.Configuration
}

// A FolderError says that a folder is no comparison's, or another one's.
type FolderError struct {
	Dir string
	Err error
}

func (e *FolderError) Error() string { return e.Dir + ": " + e.Err.Error() }
func (e *FolderError) Unwrap() error { return e.Err }

// ErrNone says that there is no comparison in a folder.
var ErrNone = errors.New("there is no comparison in it")

// A ChangedError says that a folder's comparison was begun in another way.
type ChangedError struct{ Change string }

func (e *ChangedError) Error() string { return "its comparison was begun with another " + e.Change }

// ReadPlan reads what a folder compares. The error is a *FolderError, with
// ErrNone in it where nothing is compared there.
func ReadPlan(dir string) (*Plan, error) {
	p, err := readPlan(dir)
	if err != nil {
		return nil, &FolderError{dir, err}
	}
	return p, nil
}

func readPlan(dir string) (*Plan, error) {
	b, err := os.ReadFile(filepath.Join(dir, PlanName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, pathless(err)
	}
	var p Plan
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", PlanName, err)
	}
	if p.Version != planVersion {
		return nil, fmt.Errorf("%s is of another version (%d, not %d)", PlanName, p.Version, planVersion)
	}
	return &p, p.check()
}

// check refuses what nobody has written: paths that lead out of the folder, and
// places that do not exist.
func (p *Plan) check() error {
	seen := map[string]bool{}
	for _, m := range p.Members {
		if !fs.ValidPath(m.Folder) || !strings.HasPrefix(m.Folder, runsFolder+"/") || strings.Contains(m.Folder, `\`) || seen[m.Folder] {
			return fmt.Errorf("%s is damaged: the folder %q", PlanName, m.Folder)
		}
		seen[m.Folder] = true
	}
	if len(p.Members) == 0 || p.Rollouts < 1 || p.First < 0 ||
		p.Primary != "" && !slices.Contains(Primaries(), p.Primary) {
		return fmt.Errorf("%s is damaged", PlanName)
	}
	return nil
}

// follows makes sure that a plan is more of the one before, and not another.
func (p *Plan) follows(before *Plan) error {
	switch {
	case before == nil:
		return nil
	case p.Digest != before.Digest:
		return &ChangedError{fmt.Sprintf("dataset (%s, which had other questions)", before.Data)}
	case p.Date != before.Date:
		return &ChangedError{fmt.Sprintf("date: it was %s and is %s", before.Date, p.Date)}
	case p.Seeds != before.Seeds:
		return &ChangedError{fmt.Sprintf("seed: it was %q and is %q", before.Seeds, p.Seeds)}
	}
	return nil
}

// write puts the plan into a folder, whole or not at all.
func (p *Plan) write(dir string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(p); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, planNew+"*")
	if err != nil {
		return pathless(err)
	}
	_, err = f.Write(b.Bytes())
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, PlanName))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is not whole
	}
	return pathless(err)
}

// digest is the hash of a dataset's items.
func digest(items []batch.Item) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for i := range items {
		_ = enc.Encode(&items[i]) // strings, and JSON that was read
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// runsFolder has the batches of a comparison.
const runsFolder = "runs"

// folderOf is where the batch of a format and a model is: a name that people
// recognise, that every file system takes and that no other has.
func folderOf(format, model string) string {
	const most = 40 // bytes
	whole := format + "\x00" + model
	plain := func(s string) string {
		s = strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' {
				return c
			}
			return '_'
		}, strings.ToLower(s))
		return strings.Trim(s[:min(len(s), most)], ".")
	}
	name := plain(base(format)) + "@" + plain(model)
	if name != format+"@"+model {
		sum := sha256.Sum256([]byte(whole))
		name += "~" + hex.EncodeToString(sum[:4])
	}
	return path.Join(runsFolder, name)
}

// base is the name of a format: its own, or its file's.
func base(format string) string {
	return strings.TrimSuffix(path.Base(filepath.ToSlash(format)), ".tmpl")
}

// pathless leaves the path out of an error that stands behind it already.
func pathless(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
