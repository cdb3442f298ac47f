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

// TestNumbers: numbers as their cells mean them. The days are Excel's: 45000 is
// the 15th of March 2023, 4 years and a day less where a file counts from 1904.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		v, format string
		epoch     float64
		want      string
	}{
		{"1234.5", "", 0, "1234.5"},
		{"0.1", "General", 0, "0.1"},
		{"0.30000000000000004", "0.00", 0, "0.3"},
		{"1E+25", "", 0, "1e+25"},
		{"0.255", "0.0%", 0, "25.5%"},
		{"45000", "yyyy-mm-dd", 0, "2023-03-15"},
		{"45000", "[$-409]d-mmm-yy;@", 0, "2023-03-15"},
		{"45000.25", "m/d/yy h:mm", 0, "2023-03-15 06:00"},
		{"0.75", "h:mm AM/PM", 0, "18:00"},
		{"0.999999999", "h:mm:ss", 0, "00:00"},
		{"1.5", "[h]:mm:ss", 0, "36:00:00"},
		{"-0.5", "[h]:mm", 0, "-12:00:00"},
		{"1", "yyyy-mm-dd", 0, "1900-01-01"},
		{"61", "yyyy-mm-dd", 0, "1900-03-01"},
		{"7", `0 "days"`, 0, "7"},
		{"7", `[Red]0\m`, 0, "7"},
		{"-1", "yyyy-mm-dd", 0, "-1"},
		{"1e300", "yyyy", 0, "1e+300"},
		{"x", "0.00", 0, "x"},
		{"43538", "yyyy-mm-dd", 1462, "2023-03-15"},
		{"0", "yyyy-mm-dd", 1462, "1904-01-01"},
		{"0.75", "h:mm", 1462, "18:00"},
		{"43538.75", "h:mm", 1462, "2023-03-15 18:00"},
	} {
		b := workbook{epoch: tt.epoch}
		if got := b.number(tt.v, tt.format); got != tt.want {
			t.Errorf("%s as %q from %v: %q, not %q", tt.v, tt.format, tt.epoch, got, tt.want)
		}
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
