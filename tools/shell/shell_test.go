package shell

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stopgap/tools"
	"stopgap/tools/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Child()
	os.Exit(m.Run())
}

func try(t *testing.T, o Options, name string, args any) tools.Result {
	t.Helper()
	set, err := tools.NewSet(Tools(o), tools.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return set.Session().Run(t.Context(), []tools.Call{{Name: name, Arguments: b}})[0]
}

// folders gives a working folder that the sandbox takes, and one beside it.
func folders(t *testing.T) (folder, beside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work", "beside"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	folder, beside = filepath.Join(top, "work"), filepath.Join(top, "beside")
	if err := os.WriteFile(filepath.Join(beside, "secret"), []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder, beside
}

func TestShell(t *testing.T) {
	_, err := sandbox.Run(t.Context(), sandbox.Command{Args: []string{"true"}})
	if none := (*sandbox.UnavailableError)(nil); errors.As(err, &none) && os.Getenv("STOPGAP_REQUIRE_BWRAP") == "" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	folder, beside := folders(t)
	protected := filepath.Join(folder, "config.yaml")
	o := Options{Folder: folder, Protect: []string{protected}}
	for _, c := range []struct {
		command string
		status  tools.Status
		want    string
	}{
		{"echo a; echo b", tools.OK, "a\nb"},
		{"true", tools.OK, "The command printed nothing."},
		{"echo a; echo b >&2", tools.OK, "stdout:\na\nstderr:\nb"},
		{"echo a > made; pwd", tools.OK, folder},
		{"echo no; exit 4", tools.Failed, "exit code 4\nOutput so far:\nno"},
		{"cat " + beside + "/secret", tools.Failed, "No such file"},
		{"echo x > " + beside + "/new", tools.Failed, "exit code"},
		{"echo x > " + protected, tools.Failed, "exit code"},
		{"echo $HOME $STOPGAP_API_KEY; ls /home /root 2>/dev/null | head -1", tools.OK, "/tmp"},
		{"exec 3<>/dev/tcp/127.0.0.1/1", tools.Failed, ""},
	} {
		if res := try(t, o, "shell", map[string]string{"command": c.command}); res.Status != c.status || !strings.Contains(res.Content, c.want) || strings.Contains(res.Content, "hunter2") {
			t.Errorf("%s: %s %q", c.command, res.Status, res.Content)
		}
	}
	if b, err := os.ReadFile(filepath.Join(folder, "made")); err != nil || string(b) != "a\n" {
		t.Errorf("%q %v", b, err)
	}
}

func TestWriteFile(t *testing.T) {
	folder, beside := folders(t)
	protected := filepath.Join(folder, "own")
	o := Options{Folder: folder, Protect: []string{protected}}
	for _, dir := range []string{".git/hooks", "own", "plain"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"out": "../beside/secret", "outside": beside, "dir": "plain", "hook": ".git/hooks/pre-commit", "hooks": ".git", "round": "round", "toown": "own",
	} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(beside, "secret"), filepath.Join(folder, "hard")); err != nil {
		t.Fatal(err)
	}
	write := func(path string) tools.Result {
		return try(t, o, "write_file", map[string]string{"path": path, "content": "new"})
	}
	for _, path := range []string{"a.txt", "./b/c.txt", "dir/d.txt", "plain/../e.txt"} {
		if res := write(path); res.Status != tools.OK || !strings.HasPrefix(res.Content, "Wrote ") {
			t.Errorf("%s: %+v", path, res)
		}
	}
	for _, name := range []string{"a.txt", "b/c.txt", "plain/d.txt", "e.txt"} {
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(b) != "new" {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
	if res := write("a.txt"); res.Content != "Replaced a.txt: 3 bytes." {
		t.Errorf("%+v", res)
	}
	for _, path := range []string{
		"../x", "/tmp/x", "out", "outside/x", "hard", "dir/../../x", ".git/hooks/pre-commit", ".git/config", ".GIT/config", ".git./config", "GIT~1/config", "hook", "hooks/config",
		"sub/.bashrc", ".envrc", "round", "own/config.yaml", "own/new", "toown/x", ".", "plain", "a\x00b",
	} {
		if res := write(path); res.Status != tools.Failed || strings.Contains(strings.ReplaceAll(res.Content, path, ""), folder) {
			t.Errorf("%q: %+v", path, res)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(beside, "secret")); string(b) != "hunter2" {
		t.Errorf("the file beside is %q", b)
	}
	if list, _ := os.ReadDir(filepath.Join(folder, ".git/hooks")); len(list) > 0 {
		t.Errorf("%v", list)
	}
	if list, _ := os.ReadDir(beside); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if res := try(t, o, "write_file", map[string]string{"path": "l", "content": strings.Repeat("x", mostContent+1)}); res.Status != tools.Failed {
		t.Errorf("%+v", res)
	}
}

// What commands can reach is told.
func TestCapabilities(t *testing.T) {
	for network, want := range map[bool][]tools.Capability{false: {tools.Code, tools.Files}, true: {tools.Code, tools.Files, tools.Net}} {
		if got := Tools(Options{Network: network})[0].Spec().Capabilities; !slices.Equal(got, want) {
			t.Errorf("with network %v: %v", network, got)
		}
	}
}

// A path that becomes a link while it is written leads nowhere: a command of the
// same turn may make one.
func TestWriteFileRace(t *testing.T) {
	folder, _ := folders(t)
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, dir := range []string{".git", "real"} {
		if err := os.Mkdir(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(dir+"/config"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	done, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-done:
				return
			default:
			}
			_ = os.Symlink(".git/config", at("next")) // what fails is tried again
			_ = os.Rename(at("next"), at("file"))
			_ = os.WriteFile(at("next"), nil, 0o644)
			_ = os.Rename(at("next"), at("file"))
			_ = os.Rename(at("real"), at("dir"))
			_ = os.Rename(at("dir"), at("real"))
			_ = os.Symlink(".git", at("dir"))
			_ = os.Remove(at("dir"))
		}
	}()
	wrote, w := 0, writer{Options{Folder: folder}}
	for range 600 {
		for _, path := range []string{"file", "dir/config"} {
			if _, err := w.Run(t.Context(), json.RawMessage(`{"path":"`+path+`","content":"new"}`)); err == nil {
				wrote++
			}
		}
	}
	close(done)
	<-swapped
	if b, err := os.ReadFile(at(".git/config")); err != nil || string(b) != "old" || wrote == 0 {
		t.Errorf("after %d writes the repository's configuration is %q, %v", wrote, b, err)
	}
	for _, dir := range []string{"", "real", ".git"} {
		if left, _ := filepath.Glob(at(dir + "/.write_file-*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// The working folder may be written with a link in it, and so may what is
// protected in it.
func TestWriteFileProtectsBehindLinks(t *testing.T) {
	folder, beside := folders(t)
	link := filepath.Join(beside, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{
		{Folder: folder, Protect: []string{filepath.Join(link, "tools.yaml")}}, {Folder: link, Protect: []string{filepath.Join(link, "tools.yaml")}},
	} {
		for _, path := range []string{"tools.yaml", "Tools.YAML"} {
			if res := try(t, o, "write_file", map[string]string{"path": path, "content": "new"}); res.Status != tools.Failed {
				t.Errorf("%+v: %s: %+v", o, path, res)
			}
		}
	}
}

// What is replaced stays as executable as it was.
func TestWriteFileKeepsTheMode(t *testing.T) {
	folder, _ := folders(t)
	script := filepath.Join(folder, "script")
	if err := os.WriteFile(script, []byte("old"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(script, 0o777); err != nil { // more than a new file would get
		t.Fatal(err)
	}
	res := try(t, Options{Folder: folder}, "write_file", map[string]string{"path": "script", "content": "new"})
	if info, err := os.Stat(script); err != nil || info.Mode().Perm() != 0o777 || info.Size() != 3 || res.Status != tools.OK {
		t.Errorf("%+v, %v, %v", res, info, err)
	}
}
