//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An attempt is code that tries to get out. It is run in a function: what that
// returns is an escape, and what it raises is what it ran into.
type attempt struct {
	name string
	code string
	// refused is what the attempt must have run into; it tells a wall from a typing
	// error.
	refused string
	// outside says that the attempt works without a sandbox, where it is tried
	// too: what always fails shows nothing.
	outside bool
}

// frame runs attempts, each in a process of its own.
const frame = `
import ctypes, errno, json, os, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def syscall(n, *args):
    r = libc.syscall(n, *args)
    if r < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return r
def must(r):
    if r < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
for name, code in json.load(open("attempts.json")):
    if os.fork() == 0:
        names = dict(globals())
        try:
            exec("def attempt():\n" + code, names)
            text = "ESCAPED %s" % (names["attempt"](),)
        except BaseException as e:
            text = "refused: %s: %s" % (type(e).__name__, e)
        print(json.dumps([name, text]), flush=True)
        os._exit(0)
    os.wait()
`

// tryAll runs attempts in one sandbox and gives what each ran into.
func (w *world) tryAll(t *testing.T, m Method, list []attempt) map[string]string {
	t.Helper()
	replace := strings.NewReplacer(w.values...)
	var tries [][2]string
	for _, a := range list {
		code := strings.TrimSpace(replace.Replace(a.code))
		tries = append(tries, [2]string{a.name, "    " + strings.ReplaceAll(code, "\n", "\n    ")})
	}
	text, err := json.Marshal(tries)
	if err != nil {
		t.Fatal(err)
	}
	c := Command{
		Args: []string{systemPython, "-c", frame}, Files: map[string][]byte{"attempts.json": text},
		Write: []string{w.project}, Method: m,
		Protect: []string{w.config, filepath.Join(w.project, ".config/stopgap/tools.yaml"), w.start, w.project + "/deep/one", w.project + "/deep/two"},
	}
	if m == Unprotected {
		c.Env = []string{"STOPGAP_TEST_SECRET=" + secret}
	}
	res, err := Run(t.Context(), c)
	if err != nil || res.End != Exited || len(res.Stderr) > 0 {
		t.Fatalf("%v, %s: %s", err, res.End, res.Stderr)
	}
	verdicts := map[string]string{}
	for line := range strings.Lines(string(res.Stdout)) {
		var v [2]string
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		verdicts[v[0]] = v[1]
	}
	return verdicts
}

const systemPython = "/usr/bin/python3"

// secret stands in everything that must not be read.
const secret = "7f3a-not-for-models"

// A world is what there is to be attacked.
type world struct {
	home, project string            // the project is writable in the sandbox
	config, start string            // our configuration and a start file, in the project
	before        map[string]string // the home folder
	connections   atomic.Int64
	values        []string
}

// newWorld makes files with secrets, servers that nobody may reach, and an
// inherited descriptor.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	dir := t.TempDir()
	w.home, w.project = filepath.Join(dir, "home"), filepath.Join(dir, "project")
	w.config, w.start = filepath.Join(w.project, ".config/stopgap/config.yaml"), filepath.Join(w.project, ".bashrc")
	for path, text := range map[string]string{
		"home/.ssh/id_ed25519": secret, "home/.aws/credentials": secret, "home/.bashrc": "# start", "home/notes": "before",
		"project/code.go": "package p", "project/.git/config": "[core]", "project/.git/hooks/sample": "#!/bin/sh",
		"project/deep/one": "before", "project/deep/two": "before",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(w.home, filepath.Join(w.project, "link")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STOPGAP_TEST_SECRET", secret)
	w.before = tree(t, w.home)
	w.values = append(w.values, "{HOME}", w.home, "{PROJECT}", w.project, "{PID}", fmt.Sprint(os.Getpid()), "{SECRET}", secret)
	for name, n := range map[string]int{
		"SYSLOG": unix.SYS_SYSLOG, "PTRACE": unix.SYS_PTRACE, "KEYCTL": unix.SYS_KEYCTL, "BPF": unix.SYS_BPF, "IO_URING_SETUP": unix.SYS_IO_URING_SETUP,
	} {
		w.values = append(w.values, "{"+name+"}", fmt.Sprint(n))
	}
	w.listen(t, dir)
	w.inherit(t)
	return w
}

// listen opens every kind of listener and counts who comes.
func (w *world) listen(t *testing.T, dir string) {
	t.Helper()
	count := func(l net.Listener, err error) net.Listener {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.connections.Add(1)
				_, _ = c.Write([]byte(secret))
				_ = c.Close()
			}
		}()
		return l
	}
	_, port, _ := net.SplitHostPort(count(net.Listen("tcp4", "127.0.0.1:0")).Addr().String())
	w.values = append(w.values, "{TCP}", port)
	six := "9"
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		_, six, _ = net.SplitHostPort(count(l, nil).Addr().String())
	}
	w.values = append(w.values, "{TCP6}", six)
	name := fmt.Sprintf("stopgap-test-%d", time.Now().UnixNano())
	count(net.Listen("unix", "@"+name))
	path := filepath.Join(dir, "container.sock")
	count(net.Listen("unix", path))
	w.values = append(w.values, "{ABSTRACT}", name, "{SOCKET}", path)
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		var b [16]byte
		for {
			_, from, err := udp.ReadFrom(b[:])
			if err != nil {
				return
			}
			w.connections.Add(1)
			_, _ = udp.WriteTo([]byte(secret), from)
		}
	}()
	_, port, _ = net.SplitHostPort(udp.LocalAddr().String())
	w.values = append(w.values, "{UDP}", port)
}

// inherit opens a secret under a number that processes inherit, as a shell may
// hand one to this program.
func (w *world) inherit(t *testing.T) {
	t.Helper()
	f, err := os.Open(filepath.Join(w.home, ".ssh/id_ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const fd = 77
	if err := syscall.Dup3(int(f.Fd()), fd, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	w.values = append(w.values, "{FD}", fmt.Sprint(fd))
}

// tree is every file below a folder with its contents.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.Walk(folder, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			files[path] = "folder"
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = info.Mode().String() + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// attempts are those of the security page, and more.
var attempts = []attempt{
	// Reading.
	{"read ssh keys", `return open("{HOME}/.ssh/id_ed25519").read()`, "No such file", true},
	{"read cloud keys", `return open("{HOME}/.aws/credentials").read()`, "No such file", true},
	{"see home folders", `return os.listdir("/home") + os.listdir("/root")`, "No such file", false},
	{"read the environment", `return os.environ["STOPGAP_TEST_SECRET"]`, "KeyError", false},
	{"read the first process's environment", `return open("/proc/1/environ").read().index("{SECRET}")`, "", false},
	{"read this program's environment", `return open("/proc/{PID}/environ").read()`, "No such file", true},
	{"read every environment", `
found = []
for p in os.listdir("/proc"):
    if p.isdigit():
        try: found.append(open("/proc/%s/environ" % p).read())
        except OSError: pass
return "".join(found).index("{SECRET}")`, "substring not found", true},
	{"use inherited descriptors", `
text = ""
for fd in range(3, 1024):
    try: text += os.pread(fd, 100, 0).decode()
    except OSError: pass
return text.index("{SECRET}")`, "substring not found", true},
	{"use descriptors of the first process", `
found = []
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) != os.getpid():
        for fd in [f for f in os.listdir("/proc/%s/fd" % p) if int(f) > 2]: # what was printed and nobody has read yet may come back
            try: found.append(os.read(os.open("/proc/%s/fd/%s" % (p, fd), os.O_RDONLY | os.O_NONBLOCK), 99).decode())
            except OSError: pass
return "".join(found).index("{SECRET}")`, "", false},
	{"see other processes", `
pids = [p for p in os.listdir("/proc") if p.isdigit()]
assert len(pids) > 4, "only %s" % pids
return pids`, "only", true},
	{"read system secrets", `return [open(p).read() for p in ["/etc/shadow", "/etc/sudoers", "/etc/machine-id"]]`, "No such file", false},
	{"leave through the root of the first process", `return os.listdir("/proc/1/root/home")`, "", false},
	{"open this program's binary", `return open("/proc/1/exe", "r+b")`, "", false},
	{"see devices", `return [open("/dev/" + d) for d in os.listdir("/dev") if d.startswith(("sd", "vd", "nvme", "mem", "kmsg", "tty", "fuse", "kvm"))][0]`, "IndexError", false},
	{"see sysfs", `return os.listdir("/sys")`, "No such file", true},
	{"see the runtime folder", `return os.listdir("/run")`, "No such file", true},
	{"read the kernel's log", `return syscall({SYSLOG}, 3, ctypes.create_string_buffer(10), 10)`, "not permitted", false},
	{"read physical memory", `return open("/proc/kcore", "rb").read(10)`, "", false},

	// Writing.
	{"write outside", `return open("{HOME}/new", "w").write("x")`, "No such file", false},
	{"write to the system", `return open("/usr/local/bin/ls", "w").write("x")`, "", false},
	{"write to the root", `return os.mkdir("/new")`, "", false},
	{"write to devices' folder", `return os.mkdir("/dev/new")`, "", false},
	{"write to settings", `return open("/etc/hosts", "w").write("x")`, "", false},
	{"write a hook", `return open("{PROJECT}/.git/hooks/pre-commit", "w").write("x")`, "", false},
	{"replace the repository", `os.rename("{PROJECT}/.git", "{PROJECT}/.old"); os.makedirs("{PROJECT}/.git/hooks"); return open("{PROJECT}/.git/hooks/pre-commit", "w").write("x")`, "busy", false},
	{"set the repository's monitor", `return open("{PROJECT}/.git/config", "a").write("x")`, "", false},
	{"write our configuration, which does not exist", `os.makedirs("{PROJECT}/.config/stopgap", exist_ok=True); return open("{PROJECT}/.config/stopgap/config.yaml", "w").write("x")`, "", false},
	{"put a folder with our configuration in its place", `os.makedirs("{PROJECT}/new/stopgap"); open("{PROJECT}/new/stopgap/config.yaml", "w").write("x"); return os.rename("{PROJECT}/new", "{PROJECT}/.config")`, "busy", false},
	{"remove what holds the place", `os.rmdir("{PROJECT}/.config"); return os.mkdir("{PROJECT}/.config")`, "busy", false},
	{"write the first of two", `return open("{PROJECT}/deep/one", "w").write("x")`, "Read-only", false},
	{"write the second of two", `return open("{PROJECT}/deep/two", "w").write("x")`, "Read-only", false},
	{"replace the folder of two", `os.rename("{PROJECT}/deep", "{PROJECT}/shallow"); return os.mkdir("{PROJECT}/deep")`, "busy", false},
	{"write a start file", `return open("{PROJECT}/.bashrc", "w").write("x")`, "directory", false},
	{"write through a link", `return open("{PROJECT}/link/notes", "w").write("x")`, "No such file", true},
	{"write through a new link", `os.symlink("{HOME}/notes", "{PROJECT}/mine"); return open("{PROJECT}/mine", "w").write("x")`, "No such file", true},
	{"write through a swapped link", `
os.makedirs("{PROJECT}/real", exist_ok=True)
os.symlink("{PROJECT}/real", "{PROJECT}/swapped")
state, last, end = [0], None, time.time() + 5
def swap():
    while state[0] < 20:
        for target in ("{HOME}", "{PROJECT}/real"):
            os.symlink(target, "{PROJECT}/next"); os.rename("{PROJECT}/next", "{PROJECT}/swapped")
swapping = threading.Thread(target=swap)
swapping.start()
while state[0] < 20:
    try: open("{PROJECT}/swapped/forged", "w").close()
    except OSError as e:  last = e; state[0] += 1
    if os.path.exists("{HOME}/forged") or time.time() > end: state[0] = 20
swapping.join()
if os.path.exists("{HOME}/forged"): return os.remove("{HOME}/forged")
raise last`, "No such file", true},
	{"write through a hard link", `os.link("/usr/bin/env", "{PROJECT}/env"); return open("{PROJECT}/env", "r+b").write(b"x")`, "", false},
	{"hard link a secret", `return os.link("{HOME}/notes", "{PROJECT}/hard")`, "No such file", true},
	{"make a device node", `os.mknod("/tmp/disk", 0o600 | 0o060000, os.makedev(254, 0)); return open("/tmp/disk", "rb").read(1)`, "", false},
	{"make a device node in the project", `os.mknod("{PROJECT}/null", 0o600 | 0o020000, os.makedev(1, 1)); return open("{PROJECT}/null", "rb").read(1)`, "", false},
	{"leave a program with the owner's rights", `open("{PROJECT}/evil", "w").close(); os.chmod("{PROJECT}/evil", 0o4755); return os.stat("{PROJECT}/evil").st_mode & 0o4000`, "not permitted", true},
	{"make one at once", `fd = os.open("{PROJECT}/evil2", os.O_CREAT | os.O_WRONLY, 0o4755); return os.fstat(fd).st_mode & 0o4000`, "not permitted", true},
	{"make one by a newer call", `import struct; return syscall(437, -100, b"{PROJECT}/evil3", struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24)`, "not implemented", true},
	{"make one as a node", `return os.mknod("{PROJECT}/evil4", 0o104755)`, "not permitted", true},
	{"set the kernel's settings", `return open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/x")`, "", false},
	{"use the magic key", `return open("/proc/sysrq-trigger", "w").write("h")`, "", false},

	// The network.
	{"tcp", `return socket.create_connection(("127.0.0.1", {TCP}), 2).recv(100)`, "Connection refused", true},
	{"tcp elsewhere", `return socket.create_connection(("192.0.2.1", 80), 2)`, "unreachable", false},
	{"udp", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1); s.connect(("127.0.0.1", {UDP})); s.send(b"x"); return s.recv(100)`, "refused", true},
	{"udp elsewhere", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return s.sendto(b"x", ("192.0.2.1", 53))`, "unreachable", false},
	{"ipv6", `return socket.create_connection(("::1", {TCP6}), 2).recv(100)`, "", false},
	{"raw sockets", `return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)`, "not permitted", false},
	{"packets", `return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)`, "not supported", false},
	{"/dev/tcp", `return subprocess.run(["bash", "-c", "cat < /dev/tcp/127.0.0.1/{TCP}"], check=True, capture_output=True).stdout`, "non-zero exit", true},
	{"names", `return socket.getaddrinfo("example.org", 80)`, "", false},
	{"abstract sockets", `s = socket.socket(socket.AF_UNIX); s.connect("\0{ABSTRACT}"); return s.recv(100)`, "refused", true},
	{"a container's socket", `s = socket.socket(socket.AF_UNIX); s.connect("{SOCKET}"); return s.recv(100)`, "No such file", true},
	{"the host of a virtual machine", `return socket.socket(40, socket.SOCK_STREAM)`, "not supported", false},
	{"the kernel's ciphers", `return socket.socket(38, socket.SOCK_SEQPACKET)`, "not supported", false},
	{"set up the network", `return subprocess.run(["ip", "link", "add", "x", "type", "dummy"], check=True, capture_output=True)`, "", false},

	// Processes.
	{"signal the parent", `return os.kill({PID}, 0)`, "No such process", true},
	{"signal everybody", `
pids = []
for p in range(2, 70000):
    try: os.kill(p, 0); pids.append(p)
    except OSError: pass
others = [p for p in pids if p not in (os.getpid(), os.getppid())]
assert others, "nobody else"
return others`, "AssertionError", true},
	{"trace the parent", `return syscall({PTRACE}, 16, {PID}, 0, 0)`, "", false},
	{"trace the first process", `return syscall({PTRACE}, 16, 1, 0, 0)`, "", false},
	{"write into the first process", `return open("/proc/1/mem", "r+b")`, "", false},
	{"become root", `return os.setuid(0)`, "", false},
	{"run as root", `return subprocess.run(["su", "-c", "id"], check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout`, "non-zero exit", false},
	{"keep privileges of a program", `return [l for l in open("/proc/self/status") if l.startswith("NoNewPrivs") and l.strip().endswith("0")][0]`, "IndexError", true},
	{"have capabilities", `return [l for l in open("/proc/self/status") if l.startswith("Cap") and int(l.split()[1], 16)][0]`, "IndexError", false},
	{"new namespaces", `return must(libc.unshare(0x10000000))`, "not permitted", false},
	{"mount", `return must(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))`, "not permitted", false},
	{"raise limits", `import resource; return resource.setrlimit(resource.RLIMIT_NPROC, (99999, 99999))`, "", false},
	{"use the session's keys", `return syscall({KEYCTL}, 0, -3, 1)`, "not permitted", false},
	{"io_uring", `return syscall({IO_URING_SETUP}, 8, ctypes.create_string_buffer(200))`, "not implemented", false},
	{"memory that no limit counts", `return os.memfd_create("x")`, "not implemented", true},
	{"the kernel's tracing", `return syscall({BPF}, 0, ctypes.create_string_buffer(200), 120)`, "not permitted", false},
	{"calls for 32 bits", `return subprocess.run([sys.executable, "-c", "import ctypes, mmap; code = mmap.mmap(-1, 4096, prot=7); ` +
		`code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])); ` + // getpid by int 0x80
		`print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())"], check=True)`, "died with", false},
	{"outlive this program", `return must(libc.prctl(1, 0))`, "not permitted", false},
	{"type into the terminal", `import fcntl; return fcntl.ioctl(0, 0x5412, b"x")`, "", false},
	{"have a terminal", `return open("/dev/tty")`, "", false},
}

func TestAttempts(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		w := newWorld(t)
		verdicts := w.tryAll(t, m, attempts)
		for _, a := range attempts {
			v := verdicts[a.name]
			t.Logf("%s: %s", a.name, v)
			if !strings.HasPrefix(v, "refused") || !strings.Contains(v, a.refused) || strings.Contains(v, secret) {
				t.Errorf("%s: %s; it must be refused with %q", a.name, v, a.refused)
			}
		}
		if n := w.connections.Load(); n > 0 {
			t.Errorf("%d connections arrived", n)
		}
		w.unchanged(t)
		if _, err := os.Stat(filepath.Join(w.project, "real")); err != nil {
			t.Errorf("the project could not be written: %v", err)
		}
	})
}

// unchanged checks that nothing outside of the project is another, and nothing
// in it that is protected.
func (w *world) unchanged(t *testing.T) {
	t.Helper()
	now := tree(t, w.home)
	if fmt.Sprint(now) != fmt.Sprint(w.before) {
		t.Errorf("the home folder is now %v", now)
	}
	hooks, _ := os.ReadDir(filepath.Join(w.project, ".git/hooks"))
	config, _ := os.ReadFile(filepath.Join(w.project, ".git/config"))
	if len(hooks) != 1 || string(config) != "[core]" {
		t.Errorf("the repository has hooks %v and the configuration %q", hooks, config)
	}
	for _, path := range []string{w.config, filepath.Join(w.project, ".config"), w.start} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
}

// TestAttemptsOutside shows that the attempts try something: without a sandbox
// they succeed.
func TestAttemptsOutside(t *testing.T) {
	w := newWorld(t)
	var list []attempt
	for _, a := range attempts {
		if a.outside {
			list = append(list, a)
		}
	}
	verdicts := w.tryAll(t, Unprotected, list)
	for _, a := range list {
		if v := verdicts[a.name]; !strings.HasPrefix(v, "ESCAPED") {
			t.Errorf("%s: %s; without a sandbox it must succeed", a.name, v)
		}
	}
	if len(list) < 15 || w.connections.Load() < 4 {
		t.Errorf("%d attempts, %d connections", len(list), w.connections.Load())
	}
}
