//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A mount is one thing that the sandbox sees. Both methods make the same list,
// in order, on an empty root that is read-only afterwards.
type mount struct {
	Kind   kind
	Target string
	Source string // a path of the host, or where a link points to
	Size   int64  // of a temporary file system, in bytes
	Text   string // of a file
}

type kind string

const (
	readOnly  kind = "read-only" // a folder or file of the host
	writable  kind = "writable"
	device    kind = "device"
	link      kind = "link"
	file      kind = "file"
	temporary kind = "temporary"
	processes kind = "proc"
)

// systemFolders are what programs consist of. Nothing in them belongs to a user.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles are what programs and their libraries look up and that tells
// nothing about the machine's users.
var systemFiles = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/mime.types", "/etc/pki/tls/certs", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
}

// networkFiles are needed where there is a network.
var networkFiles = []string{"/etc/gai.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/protocols", "/etc/resolv.conf", "/etc/services"}

var deviceFiles = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"}

// mounts lists what the command sees.
func (b *box) mounts() ([]mount, error) {
	list := []mount{
		{Kind: processes, Target: "/proc"},
		{Kind: temporary, Target: WorkDir, Size: b.command.Limits.Disk},
		{Kind: link, Target: "/dev/shm", Source: ".." + WorkDir},
		{Kind: link, Target: "/dev/fd", Source: "/proc/self/fd"},
		{Kind: link, Target: "/dev/stdin", Source: "/proc/self/fd/0"},
		{Kind: link, Target: "/dev/stdout", Source: "/proc/self/fd/1"},
		{Kind: link, Target: "/dev/stderr", Source: "/proc/self/fd/2"},
		{Kind: file, Target: "/etc/passwd", Text: fmt.Sprintf("sandbox:x:%d:%d::%s:/bin/sh\n", insideID, insideID, WorkDir)},
		{Kind: file, Target: "/etc/group", Text: fmt.Sprintf("sandbox:x:%d:\n", insideID)},
	}
	for _, path := range systemFolders {
		target, err := os.Readlink(path)
		if err == nil {
			list = append(list, mount{Kind: link, Target: path, Source: target})
		} else {
			list = appendPresent(list, readOnly, path)
		}
	}
	for _, path := range systemFiles {
		list = appendPresent(list, readOnly, path)
	}
	if b.command.Network {
		for _, path := range networkFiles {
			list = appendPresent(list, readOnly, path)
		}
	} else {
		list = append(list, mount{Kind: file, Target: "/etc/hosts", Text: "127.0.0.1 localhost\n::1 localhost\n"})
	}
	for _, path := range deviceFiles {
		list = appendPresent(list, device, path)
	}
	return b.appendFolders(list)
}

// appendPresent adds what there is, under its name though it may be a link.
func appendPresent(list []mount, k kind, path string) []mount {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		list = append(list, mount{Kind: k, Target: path, Source: real})
	}
	return list
}

// appendFolders adds the folders of the command, and what stays read-only in them.
func (b *box) appendFolders(list []mount) ([]mount, error) {
	var seen []string // in the sandbox, of Read
	for _, path := range b.command.Read {
		m, err := b.hosted(readOnly, path)
		if err != nil {
			return nil, err
		}
		list, seen = append(list, m), append(seen, m.Target)
	}
	for _, path := range b.command.Write {
		if err := checkWritable(path); err != nil {
			return nil, err
		}
		m, err := b.hosted(writable, path)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	for _, folder := range b.command.Write {
		guarded := map[string]bool{".git": true}
		for _, path := range b.command.Protect {
			for _, rel := range below(folder, path) {
				guarded[rel] = true
			}
		}
		for _, path := range seen { // the mount of the folder lies over it
			for _, rel := range below(folder, path) {
				if rel != "." {
					guarded[rel] = true
				}
			}
		}
		guards := map[string]kind{}
		for rel := range guarded {
			if err := b.guard(guards, filepath.Clean(folder), rel); err != nil {
				return nil, err
			}
		}
		// What a folder is mounted over is out of sight, so folders come first; below
		// what is read-only nothing is needed.
		fixed := ""
		for _, path := range slices.Sorted(maps.Keys(guards)) {
			if fixed != "" && within(path, fixed) {
				continue
			}
			if guards[path] == readOnly {
				fixed = path
			}
			list = append(list, mount{Kind: guards[path], Target: path, Source: path})
		}
	}
	return list, nil
}

// hosted mounts a path of the host at its own place. One that goes through a link
// inside of another given folder comes where the link leads, since nothing can be
// mounted on a link.
func (b *box) hosted(k kind, path string) (mount, error) {
	if !filepath.IsAbs(path) {
		return mount{}, &PathError{path, "is not an absolute path"}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return mount{}, &PathError{path, "cannot be opened: " + cause(err)}
	}
	target := filepath.Clean(path)
	for _, folder := range slices.Concat(b.command.Read, b.command.Write) {
		if rel, err := filepath.Rel(folder, target); err == nil && filepath.IsLocal(rel) && filepath.Join(resolved(folder), rel) != real {
			target = real
			break
		}
	}
	for _, special := range []string{"/proc", "/sys", "/dev", "/run"} {
		if real == "/" || within(real, special) || within(target, special) {
			return mount{}, &PathError{path, "is not for a sandbox"}
		}
	}
	if target == WorkDir {
		return mount{}, &PathError{path, "is where a sandbox has a folder of its own; name one below it"}
	}
	return mount{Kind: k, Target: target, Source: real}, nil
}

// cause is an error without the path that it names.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// below gives where a path lies in a folder, as both are written and as both are
// without links; nothing where it lies elsewhere.
func below(folder, path string) []string {
	var list []string
	for _, pair := range [][2]string{{filepath.Clean(folder), filepath.Clean(path)}, {resolved(folder), resolved(path)}} {
		if within(pair[1], pair[0]) {
			rel, err := filepath.Rel(pair[0], pair[1])
			if err == nil && !slices.Contains(list, rel) {
				list = append(list, rel)
			}
		}
	}
	return list
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

// within reports whether a path is a folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// checkWritable refuses folders in which programs look for what to run or to
// obey: those of the system, and whatever holds the home folder.
func checkWritable(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return &PathError{path, "cannot be opened: " + cause(err)}
	}
	if home, err := os.UserHomeDir(); err == nil {
		if h, err := filepath.EvalSymlinks(home); err == nil && within(h, real) {
			return &PathError{path, "holds the home folder and cannot be writable in a sandbox"}
		}
	}
	for _, system := range append(slices.Clone(systemFolders), "/etc", "/boot", "/var/lib", "/var/spool") {
		if s, err := filepath.EvalSymlinks(system); err == nil && (within(real, s) || within(s, real)) {
			return &PathError{path, "is the system's and cannot be writable in a sandbox"}
		}
	}
	return nil
}
