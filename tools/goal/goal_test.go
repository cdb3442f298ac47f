package goal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"stopgap/tools"
	"stopgap/tools/goal"
)

const good = `{"rational":"the table of rivers","evidence":"The Danube passes four capitals.","summary":"Four capitals."}`

// A model answers with one reply after the other; "long" is a prompt that does
// not fit. It keeps what it was asked.
type model struct {
	replies []string
	asked   []string
}

func (m *model) ask(_ context.Context, prompt string, schema json.RawMessage) (string, error) {
	m.asked = append(m.asked, prompt)
	reply := m.replies[min(len(m.asked), len(m.replies))-1]
	switch {
	case !json.Valid(schema):
		return "", errors.New("the schema is no JSON")
	case reply == "long":
		return "", fmt.Errorf("server: %w", goal.ErrTooLong)
	case reply == "down":
		return "", errDown
	}
	return reply, nil
}

var errDown = errors.New("cannot reach the server")

// page is the part of a prompt that is the text.
func page(t *testing.T, prompt string) string {
	t.Helper()
	_, rest, ok := strings.Cut(prompt, "## Page\n")
	text, _, ok2 := strings.Cut(rest, "\n\n## Goal\n")
	if !ok || !ok2 {
		t.Fatalf("no page in %.200q", prompt)
	}
	return text
}

// The ladder: seven tenths three times, then 25 000 characters, each only where
// the reply before was too short or the prompt too long.
func TestLadder(t *testing.T) {
	text := strings.Repeat("ä", 100_000)
	tests := []struct {
		name    string
		replies []string
		lengths []int // characters of the text at each asking
		err     error
	}{
		{"at once", []string{good}, []int{100_000}, nil},
		{"too short once", []string{"", good}, []int{100_000, 70_000}, nil},
		{"white space is short", []string{"  {}\n \t          ", good}, []int{100_000, 70_000}, nil},
		{"too long twice", []string{"long", "long", good}, []int{100_000, 70_000, 49_000}, nil},
		{"the last step", []string{"", "{}", "long", "no", good}, []int{100_000, 70_000, 49_000, 34_300, 25_000}, nil},
		{"in vain", []string{""}, []int{100_000, 70_000, 49_000, 34_300, 25_000}, goal.ErrNoSummary},
		{"never fits", []string{"long"}, []int{100_000, 70_000, 49_000, 34_300, 25_000}, goal.ErrTooLong},
		{"a server that is down", []string{"", "down"}, []int{100_000, 70_000}, errDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &model{replies: tt.replies}
			f, err := goal.Reader{Ask: m.ask, Tokens: 1_000_000}.Read(t.Context(), text, "capitals")
			if !errors.Is(err, tt.err) || err == nil && f.Summary != "Four capitals." {
				t.Errorf("%+v, %v", f, err)
			}
			var lengths []int
			for _, p := range m.asked {
				lengths = append(lengths, utf8.RuneCountInString(page(t, p)))
			}
			if fmt.Sprint(lengths) != fmt.Sprint(tt.lengths) {
				t.Errorf("asked with %v characters, want %v", lengths, tt.lengths)
			}
		})
	}
}

func TestJSONIsAskedForAgain(t *testing.T) {
	tests := []struct {
		name    string
		replies []string
		asked   int
		want    goal.Finding
		err     error
	}{
		{"fenced", []string{"```json\n" + good + "\n```"}, 1, goal.Finding{Rational: "the table of rivers", Evidence: "The Danube passes four capitals.", Summary: "Four capitals."}, nil},
		{"words around", []string{"Here it is: " + good + " Done."}, 1, goal.Finding{Rational: "the table of rivers", Evidence: "The Danube passes four capitals.", Summary: "Four capitals."}, nil},
		{"lists and numbers", []string{`{"evidence":["a","b"],"summary":42,"rational":null}`}, 1, goal.Finding{Evidence: "a\nb", Summary: "42"}, nil},
		{"second time", []string{`{"evidence": "a`, `{"evidence":"a","summary":"b"}`}, 2, goal.Finding{Evidence: "a", Summary: "b"}, nil},
		{"third time", []string{"there is nothing", `{"other":"keys"}`, `{"evidence":"a","summary":"b"}`}, 3, goal.Finding{Evidence: "a", Summary: "b"}, nil},
		{"never", []string{"there is nothing"}, 3, goal.Finding{}, goal.ErrNoSummary},
		{"down meanwhile", []string{"there is nothing", "down"}, 2, goal.Finding{}, errDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &model{replies: tt.replies}
			f, err := goal.Reader{Ask: m.ask}.Read(t.Context(), "a page", "a goal")
			if f != tt.want || !errors.Is(err, tt.err) || len(m.asked) != tt.asked {
				t.Errorf("%+v, %v after %d askings", f, err, len(m.asked))
			}
			for _, p := range m.asked[1:] { // the model is told what was wrong
				if !strings.HasPrefix(p, m.asked[0]) || !strings.Contains(p, "could not be used") {
					t.Errorf("asked again with %q", p)
				}
			}
		})
	}
}

func TestTextIsCutToTheTokens(t *testing.T) {
	text := strings.Repeat("Wörter und 文字. ", 2000)
	for _, tokens := range []int{1, 7, 100, 4096, 1_000_000} {
		m := &model{replies: []string{good}}
		r := goal.Reader{Ask: m.ask, Tokens: tokens}
		if _, err := r.Read(t.Context(), text, "g"); err != nil {
			t.Fatal(err)
		}
		got := page(t, m.asked[0])
		whole := strings.TrimSpace(text)
		if !strings.HasPrefix(whole, got) || !utf8.ValidString(got) || tools.EstimateTokens(got) > tokens {
			t.Errorf("%d tokens: %d of them in %q…", tokens, tools.EstimateTokens(got), got[:min(40, len(got))])
		}
		next := whole[len(got):]
		if _, size := utf8.DecodeRuneInString(next); next != "" && tools.EstimateTokens(got+next[:size]) <= tokens {
			t.Errorf("%d tokens: one more character fits", tokens)
		}
	}
}

// What the model has room for is less than the most that it may read.
func TestTextFitsTheModel(t *testing.T) {
	text := strings.Repeat("word ", 100_000)
	for room, want := range map[int]int{0: 95_000, 8192: 8192*3/4 - goal.Overhead - 1, 1_000_000: 95_000, 100: 1} {
		m := &model{replies: []string{good}}
		r := goal.Reader{Ask: m.ask, Room: func() int { return room }}
		if _, err := r.Read(t.Context(), text, "g"); err != nil {
			t.Fatal(err)
		}
		if got := tools.EstimateTokens(page(t, m.asked[0])); got != want {
			t.Errorf("%d tokens of the text in a context of %d, want %d", got, room, want)
		}
	}
}

func TestReport(t *testing.T) {
	const unread = "The useful information in a.html for user goal G as follows: \n\nEvidence in page: \n" +
		"The provided webpage content could not be accessed. Please check the URL or file format.\n\nSummary: \n" +
		"The webpage content could not be processed, and therefore, no information is available.\n\n"
	tests := []struct{ name, text, goal, reply, want string }{
		{"found", "t", " G ", good, "The useful information in a.html for user goal G as follows: \n\nEvidence in page: \nThe Danube passes four capitals.\n\nSummary: \nFour capitals.\n\n"},
		{"empty page", " \n", "G", good, unread},
		{"no summary", "t", "G", "I cannot do that.", unread},
		{"no goal", "t", "", `{"evidence":"e","summary":"s"}`, "The useful information in a.html for user goal " + goal.DefaultGoal + " as follows: \n\nEvidence in page: \ne\n\nSummary: \ns\n\n"},
	}
	for _, tt := range tests {
		got, err := goal.Reader{Ask: (&model{replies: []string{tt.reply}}).ask}.Report(t.Context(), "a.html", tt.text, tt.goal)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	if _, err := (goal.Reader{Ask: (&model{replies: []string{"down"}}).ask}).Report(t.Context(), "a", "t", "g"); !errors.Is(err, errDown) {
		t.Errorf("a server that is down gives %v", err)
	}
}

// The instructions have no more tokens than Overhead says.
func TestOverhead(t *testing.T) {
	m := &model{replies: []string{"not JSON, and long enough to be read", good}}
	if _, err := (goal.Reader{Ask: m.ask}).Read(t.Context(), "p", "g"); err != nil {
		t.Fatal(err)
	}
	if n := tools.EstimateTokens(m.asked[1]); n > goal.Overhead {
		t.Errorf("%d tokens", n)
	}
}

func ExampleReader() {
	r := goal.Reader{Ask: func(_ context.Context, prompt string, schema json.RawMessage) (string, error) {
		return `{"rational":"first line","evidence":"Opened in 1894.","summary":"The bridge is from 1894."}`, nil
	}}
	text, _ := r.Report(context.Background(), "https://example.com/bridge", "The bridge. Opened in 1894.", "When was it opened?")
	fmt.Print(strings.ReplaceAll(text, ": \n", ":\n"))
	// Output:
	// The useful information in https://example.com/bridge for user goal When was it opened? as follows:
	//
	// Evidence in page:
	// Opened in 1894.
	//
	// Summary:
	// The bridge is from 1894.
}
