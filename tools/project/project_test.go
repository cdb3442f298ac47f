package project

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stopgap/tools"
)

func write(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func show(t *testing.T, folder, args string) tools.Result {
	t.Helper()
	set, err := tools.NewSet([]tools.Tool{New(folder)}, tools.Options{MaxTokens: -1})
	if err != nil {
		t.Fatal(err)
	}
	return set.Session().Run(t.Context(), []tools.Call{{Name: "project_structure", Arguments: json.RawMessage(args)}})[0]
}

func TestTree(t *testing.T) {
	root := t.TempDir()
	write(t, root, "p/go.mod", "p/cmd/main.go", "p/cmd/deep/a/b.go", "p/.git/config", "p/vendor/x.go", "p/bad\nname")
	if err := os.Symlink("/etc", filepath.Join(root, "p", "etc")); err != nil {
		t.Fatal(err)
	}
	want := `p/
├── cmd/
│   ├── deep/
│   │   └── a/
│   │       └── b.go (1 B)
│   └── main.go (1 B)
├── bad?name (1 B)
├── etc (link)
└── go.mod (1 B)
Left out: .git, vendor.
`
	for _, dir := range []string{"p", "./p/", "p/cmd/..", filepath.Join(root, "p")} {
		args, _ := json.Marshal(map[string]any{"root_dir": dir, "exclude_dirs": []string{"vendor"}})
		if res := show(t, root, string(args)); res.Status != tools.OK || res.Content != want {
			t.Errorf("%s:\n%s\n%s", dir, res.Status, res.Content)
		}
	}
}

func TestLongFolders(t *testing.T) {
	root := t.TempDir()
	for i := range 13 {
		write(t, root, fmt.Sprintf("f%02d.txt", i))
	}
	write(t, root, "a/x", "b/x", "c/x")
	res := show(t, root, `{"root_dir":"."}`)
	if !strings.Contains(res.Content, "├── f06.txt (1 B)\n└── … 6 more: folders: 0, files: 6\n") || strings.Contains(res.Content, "f07") {
		t.Errorf("%s", res.Content)
	}
	for i := range 9 {
		for j := range 9 {
			for k := range 9 {
				write(t, root, fmt.Sprintf("many/%d/%d/%d", i, j, k))
			}
		}
	}
	res = show(t, root, `{"root_dir":"many"}`)
	if n := strings.Count(res.Content, "\n"); n != lines+1 || !strings.Contains(res.Content, "cut after 500 lines") {
		t.Errorf("%d lines", n)
	}
	if err := os.MkdirAll(filepath.Join(root, strings.Repeat("d/", 200)), 0o755); err != nil {
		t.Fatal(err)
	}
	if res := show(t, root, `{"root_dir":"d"}`); strings.Count(res.Content, "\n") != depth+2 {
		t.Errorf("%s", res.Content)
	}
}

// Nothing outside of the folder is shown, whichever way it is asked for.
func TestOutside(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	write(t, top, "root/a", "secret/password")
	for link, to := range map[string]string{"up": "..", "abs": filepath.Join(top, "secret"), "chain": "up/secret"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"..", "../secret", "up", "up/secret", "abs", "chain", "/", "/etc", filepath.Join(top, "secret"), "a/../../secret", "", "none", "a", "root\x00"} {
		args, _ := json.Marshal(map[string]string{"root_dir": dir})
		res := show(t, root, string(args))
		if dir == "" { // the folder itself
			if res.Status != tools.OK {
				t.Errorf("%+v", res)
			}
			continue
		}
		if res.Status != tools.Failed || strings.Contains(res.Content, "password") || strings.Contains(strings.ReplaceAll(res.Content, dir, ""), top) {
			t.Errorf("%q: %+v", dir, res)
		}
	}
	if res := show(t, filepath.Join(top, "nowhere"), `{"root_dir":"."}`); res.Status != tools.Failed || strings.Contains(res.Content, top) {
		t.Errorf("%+v", res)
	}
}

// A folder may be reached by a link, and asked for in full in both ways; what is
// outside is told as it was asked for.
func TestInFull(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, top, "root/sub/file")
	link := filepath.Join(top, "link")
	if err := os.Symlink("root", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link + "/sub", top + "/root/sub", top + "/root/sub/"} {
		if res := show(t, link, `{"root_dir":"`+dir+`"}`); res.Status != tools.OK || !strings.Contains(res.Content, "file") {
			t.Errorf("%s: %+v", dir, res)
		}
	}
	if res := show(t, link, `{"root_dir":"`+top+`"}`); res.Content != `Error: project_structure failed: "`+top+`" is outside of the working folder; use a path below it, or . for the folder itself` {
		t.Errorf("%+v", res)
	}
}
