package document

import (
	"context"
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
