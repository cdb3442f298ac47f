package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"regexp"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// damage writes a copy of a file with other bytes in it: damage FROM TO OLD NEW.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: damage FROM TO OLD NEW")
	}
	b := []byte(ts.ReadFile(args[0]))
	changed := bytes.Replace(b, []byte(args[2]), []byte(args[3]), 1)
	if bytes.Equal(b, changed) {
		ts.Fatalf("%s does not have %s", args[0], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), changed, 0o600))
}

// cut writes a copy of a file without its end: cut FROM TO BYTES leaves out so
// many.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: cut FROM TO BYTES")
	}
	b := ts.ReadFile(args[0])
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b[:max(0, len(b)-n)]), 0o600))
}

// reframe writes a copy of a journal in which something else stands, with
// checksums that fit: reframe FROM TO EXPRESSION NEW.
func reframe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: reframe FROM TO EXPRESSION NEW")
	}
	expression := regexp.MustCompile(args[2])
	var out []byte
	for line := range bytes.Lines([]byte(ts.ReadFile(args[0]))) {
		body := expression.ReplaceAll(bytes.TrimSuffix(line[18:], []byte("\n")), []byte(args[3]))
		out = fmt.Appendf(out, "%08x %08x %s\n", len(body), crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)), body)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out, 0o600))
}
