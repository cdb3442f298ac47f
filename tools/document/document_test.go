package document

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, content, kind, title, markdown string }{
		{"notes.md", "# Voss\r\n\r\nA comet.\r\n", "md", "Voss", "# Voss\n\nA comet.\n"},
		{"a.csv", "year;who\n1947;Voss | Co\n", "csv", "a", "| year | who |\n| --- | --- |\n| 1947 | Voss \\| Co |\n"},
		{"page", "<html><title>T</title><p>One.", "html", "T", "One.\n"},
		{"latin.txt", "Gr\xfc\xdfe aus K\xf6ln, wo es sch\xf6n ist und die B\xe4ume bl\xfchen.", "txt", "latin", "Grüße aus Köln, wo es schön ist und die Bäume blühen."},
		{"wide.txt", "\xff\xfeh\x00i\x00", "txt", "wide", "hi"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Parse(context.Background(), tt.name, strings.NewReader(tt.content), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d.Type != tt.kind || d.Title != tt.title || d.Markdown != tt.markdown {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// thorough says that bombs have their full size and their full time.
var thorough = os.Getenv("STOPGAP_BOMBS") == "all"

// n gives a size that is full only where the test is thorough.
func n(full, slice int) int {
	if thorough {
		return full
	}
	return slice
}

// wantClear wants of an error that it is one of ours, and one sentence.
func wantClear(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("no *Error: %v", err)
	}
	if s := e.Error(); e.Name == "" || e.Reason == "" || e.Cause == nil || strings.ContainsAny(s, "\n\r") || len(s) > 500 || strings.Contains(s, "goroutine") {
		t.Errorf("no clear sentence: %q", s)
	}
}
