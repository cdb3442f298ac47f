package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stopgap/internal/conformance"
	"stopgap/template"
)

// The table of docs/formats.md stands between these lines.
const (
	tableBegins = "<!-- stopgap format list --markdown -->\n"
	tableEnds   = "<!-- end -->\n"
)

// TestFormatsPage: the documentation lists the formats that there are. -update
// writes the table anew.
func TestFormatsPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "formats.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(b), tableBegins)
	table, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no lines %q and %q", page, tableBegins, tableEnds)
	}
	code, want, errs := stopgap(t, strings.NewReader(""), "format", "list", "--markdown")
	if code != 0 {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+tableBegins+want+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table of %s is\n%s\nnot\n%s\n(go test ./cmd/stopgap -run FormatsPage -update writes it)", page, table, want)
	}
}

// TestNewFormats: whatever format one starts from, the file works as that one
// does.
func TestNewFormats(t *testing.T) {
	for _, name := range template.Names() {
		src, err := template.Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		from, err := template.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for way, text := range map[string]string{"copied": copied(name, string(src)), "extending": extending(name)} {
			f, err := template.Compile("own.tmpl", []byte(text))
			if err != nil {
				t.Errorf("%s, %s: %v", name, way, err)
				continue
			}
			own, base := f.Head, from.Head
			own.Extends, base.Extends = "", ""
			own.Recognise, base.Recognise = nil, nil // it is never taken over
			if !reflect.DeepEqual(own, base) {
				t.Errorf("%s, %s: the head is\n%+v\nnot\n%+v", name, way, own, base)
			}
			if conformance.Unplayable(f) != "" {
				continue
			}
			got, err := conformance.Play(f)
			if err != nil {
				t.Fatal(err)
			}
			if want, err := conformance.Play(from); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: it plays\n%v\nnot\n%v", name, way, got, want)
			}
		}
	}
}

// TestHeadKeys: every key of a head is explained, those inside of others too,
// and each example is one.
func TestHeadKeys(t *testing.T) {
	var keys []string
	head := reflect.TypeFor[template.Head]()
	for i := range head.NumField() {
		field := head.Field(i)
		key := field.Tag.Get("yaml")
		keys = append(keys, key)
		n := slices.IndexFunc(headKeys, func(k struct{ key, help, example string }) bool { return k.key == key })
		if n < 0 {
			t.Errorf("%s is not explained", key)
			continue
		}
		for _, inner := range innerKeys(field.Type) {
			if !strings.Contains(headKeys[n].help, inner) {
				t.Errorf("%s does not tell of %s", key, inner)
			}
		}
	}
	for _, k := range headKeys {
		if !slices.Contains(keys, k.key) {
			t.Errorf("there is no key %s", k.key)
		}
		src := k.key + ": " + k.example + "\n"
		if k.key != "extends" && k.key != "opening" { // those stand alone
			src = "extends: qwen\n" + src
		}
		if _, err := template.Compile("own.tmpl", []byte(src)); err != nil {
			t.Errorf("the example of %s: %v", k.key, err)
		}
	}
}

// innerKeys are the keys of a group, or of each of a list.
func innerKeys(t reflect.Type) []string {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for i := range t.NumField() {
		keys = append(keys, t.Field(i).Tag.Get("yaml"))
		keys = append(keys, innerKeys(t.Field(i).Type)...)
	}
	return keys
}
