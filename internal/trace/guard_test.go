package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools"
)

// What the journal keeps is written out field by field in a few places. These
// tests fail when something is new outside that it does not know of.

// methods gives the types of a package that have a method.
func methods(t *testing.T, dir, method string) []string {
	t.Helper()
	var out []string
	for _, name := range sources(t, dir) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == method {
				of := f.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				out = append(out, of.(*ast.Ident).Name)
			}
		}
	}
	return out
}

// sources are the files of a package, without its tests.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func TestEveryEventIsKnown(t *testing.T) {
	all := methods(t, "../../runner", "Kind")
	if len(all) != len(events) || len(all) < 10 {
		t.Errorf("the runner has the events %v, the journal knows %d", all, len(events))
	}
}

func TestEveryErrorIsKnown(t *testing.T) {
	all := methods(t, "../../models", "Error")
	for _, name := range all {
		if ast.IsExported(name) && typed[name] == nil {
			t.Errorf("models.%s does not come back from a journal", name)
		}
	}
	if len(all) < 10 {
		t.Errorf("only %v", all)
	}
}

func TestEveryAbilityIsKnown(t *testing.T) {
	found := map[string]bool{}
	for _, name := range sources(t, "../../runner") {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Model\.\(models\.(\w+)\)`).FindAllSubmatch(b, -1) {
			found[string(m[1])] = true
		}
	}
	if want := map[string]bool{"Chatter": true, "Renderer": true, "Speller": true}; !reflect.DeepEqual(found, want) {
		t.Errorf("the runner asks models for %v, the journal keeps %v", found, want)
	}
}

// TestEveryFieldIsKept fills every field and asks for it back.
func TestEveryFieldIsKept(t *testing.T) {
	r := runner.Runner{}
	fill(reflect.ValueOf(&r).Elem(), parts)
	fields, err := plainFields(&r)
	if err != nil {
		t.Fatal(err)
	}
	h := Header{Runner: fields, Format: Format{Name: "qwen", Text: string(about(t, "qwen").Text)}}
	back, _, err := h.Revive()
	if err != nil {
		t.Fatal(err)
	}
	back.Format = nil
	if !reflect.DeepEqual(*back, r) {
		t.Errorf("%+v\nbecame %+v", r, *back)
	}

	var c models.ChatChunk
	fill(reflect.ValueOf(&c).Elem(), nil)
	var again chunk
	through(t, newChatChunk(c), &again)
	if got := again.chatChunk(); !reflect.DeepEqual(got, c) {
		t.Errorf("%+v\nbecame %+v", c, got)
	}

	var task runner.Task
	fill(reflect.ValueOf(&task).Elem(), map[string]bool{"Ledger": true})
	var kept Task
	through(t, Task{task.Question, task.System, task.Date, task.Values, task.Texts}, &kept)
	if got := (runner.Task{Question: kept.Question, System: kept.System, Date: kept.Date, Values: kept.Values, Texts: kept.Texts}); !reflect.DeepEqual(got, task) {
		t.Errorf("%+v\nbecame %+v", task, got)
	}
	for kind, n := range map[reflect.Type]int{
		reflect.TypeFor[models.Request](): 8, reflect.TypeFor[models.ChatRequest](): 5, reflect.TypeFor[models.Segment](): 2,
		reflect.TypeFor[models.Message](): 6, reflect.TypeFor[models.ToolCall](): 3, reflect.TypeFor[models.Spelling](): 5,
		reflect.TypeFor[tools.Options](): 7, reflect.TypeFor[runner.Task](): 6, reflect.TypeFor[models.Chunk](): 5,
	} {
		if kind.NumField() != n {
			t.Errorf("%v has %d fields, and the journal knows %d", kind, kind.NumField(), n)
		}
	}
}

func through(t *testing.T, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fill puts something into everything, but for some fields of the top.
func fill(v reflect.Value, but map[string]bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !but[f.Name] {
				fill(v.Field(i), nil)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), nil)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.ValueOf(json.RawMessage(`{ "a": 1}`)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), nil)
		fill(v.Index(1), nil)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value, nil)
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.String:
		v.SetString("text <b>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.7)
	case reflect.Uint8:
		v.SetUint(65)
	}
}

// Errors come back with their types, their texts and what they wrap.
func TestFailures(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, err := range []error{
		nil, context.Canceled, context.DeadlineExceeded, errors.New("odd"), fmt.Errorf("asking: %w", context.Canceled),
		&models.RefError{Ref: "x", Reason: "y", Kinds: models.Kinds()}, &models.UnreachableError{Server: "ollama", URL: "http://x", Err: refused},
		&models.UnreachableError{Server: "ollama", URL: "http://x", Err: &net.DNSError{Err: "no such host", Name: "x"}},
		&models.UnreachableError{Server: "ollama", URL: "http://x"},
		&models.NotFoundError{Server: "a", URL: "b", Model: "c", Available: []string{"d"}}, &models.LoadingError{Waited: time.Minute},
		&models.OverflowError{PromptTokens: models.Known(5)}, &models.CutError{Bytes: 1, Tokens: 2, Err: errors.New("gone")}, &models.CutError{},
		&models.StallError{Phase: models.StallBetweenTokens, Limit: time.Second}, &models.ServerError{Server: "x", Status: 500, Message: "m"},
		fmt.Errorf("request: %w", &models.ServerError{Server: "x"}), &models.ProtocolError{Server: "x", Reason: "r", Excerpt: "e"},
	} {
		var f *failure
		through(t, newFailure(err), &f)
		back := f.err()
		if err == nil || back == nil {
			if back != err {
				t.Errorf("%v became %v", err, back)
			}
			continue
		}
		if back.Error() != err.Error() {
			t.Errorf("%q became %q", err, back)
		}
		for _, s := range []error{context.Canceled, context.DeadlineExceeded} {
			if errors.Is(err, s) != errors.Is(back, s) {
				t.Errorf("%v is no longer %v", err, s)
			}
		}
		if reflect.TypeOf(err).Kind() == reflect.Pointer && typed[reflect.TypeOf(err).Elem().Name()] != nil && reflect.TypeOf(back) != reflect.TypeOf(err) {
			t.Errorf("%T became %T", err, back)
		}
		if e := (*models.ServerError)(nil); errors.As(err, &e) != errors.As(back, &e) {
			t.Errorf("%v has lost its type", err)
		}
		if a, ok := err.(*models.UnreachableError); ok && a.Err != nil && back.(*models.UnreachableError).Reason() != a.Reason() {
			t.Errorf("the reason is %q, was %q", back.(*models.UnreachableError).Reason(), a.Reason())
		}
	}
}
