package research

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"stopgap/internal/research/bank"
	"stopgap/models"
	"stopgap/runner"
	"stopgap/tools/goal"
)

// A model reads a page in as many pieces as it has, which takes as long as it
// takes.
const readingTime = 30 * time.Minute

const mostGoal = 2_000 // characters

func (s *state) access() verb {
	v := newVerb(accessTool, "Read a page, by its address as it stands in the results of search.",
		`{"type":"object","properties":{"url":{"type":"string","description":"The address of the page."},"goal":{"type":"string","description":"What to learn from it."}},"required":["url"]}`, s.read)
	v.deadline = readingTime
	return v
}

// read reads a page against a goal, and keeps what it found. The same text that
// was read for the same goal before has its summary: nobody is asked again, and
// a run that was killed in between finds what it had kept.
func (s *state) read(ctx context.Context, in accessArguments) (string, error) {
	if most := cmp.Or(s.Limits.Pages, defaultPages); s.pages >= most {
		return "", fmt.Errorf("the limit of %d pages is reached; have the outline written, or end the planning", most)
	}
	aim := cmp.Or(strings.TrimSpace(in.Goal), goal.DefaultGoal)
	if r := []rune(aim); len(r) > mostGoal {
		aim = string(r[:mostGoal])
	}
	page, err := s.page(ctx, strings.TrimSpace(in.URL))
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(page.Text) == "" {
		return "", fmt.Errorf("the page %s has no text", page.Address)
	}
	call := readingKey(page, aim)
	b, err := s.bank.Of(ctx, call)
	if errors.Is(err, bank.ErrNoSummary) {
		b, err = s.learn(ctx, page, aim, call)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("[%d] %s (%s)\nSummary for the goal %q: %s", b.Number, b.Title, b.Source, b.Goal, cmp.Or(b.Summary, b.Evidence)), nil
}

// learn has a page read and keeps what was found.
func (s *state) learn(ctx context.Context, page Page, aim, call string) (bank.Summary, error) {
	f, err := s.summarise(ctx, page, aim)
	if err != nil {
		return bank.Summary{}, err
	}
	b, err := s.bank.Add(ctx, bank.Summary{
		Source: page.Address, Title: cmp.Or(page.Title, page.Address), Goal: aim,
		Rational: f.Rational, Evidence: f.Evidence, Summary: f.Summary,
		Tokens: s.count(f.Rational + f.Evidence + f.Summary), Question: s.Question, Call: call,
	}, page.Text)
	if errors.Is(err, bank.ErrEmpty) {
		return b, errEmptySummary
	}
	return b, err
}

// errEmptySummary says that a page was read in vain.
var errEmptySummary = errors.New("the page was read, but its summary is empty; try another goal or another page")

// readingKey names a reading: of this text, for this goal.
func readingKey(p Page, aim string) string {
	sum := sha256.Sum256([]byte(p.Address + "\x00" + aim + "\x00" + p.Text))
	return hex.EncodeToString(sum[:])
}

// page gets a page from the source that has it.
func (s *state) page(ctx context.Context, address string) (Page, error) {
	if address == "" {
		return Page{}, errors.New("there is no address")
	}
	last := fmt.Errorf("%w: %s", ErrElsewhere, address)
	for _, source := range s.Sources {
		p, err := source.Read(ctx, address)
		if err == nil {
			p.Address = cmp.Or(p.Address, address)
			return p, nil
		}
		if ctx.Err() != nil {
			return Page{}, ctx.Err()
		}
		if !errors.Is(err, ErrElsewhere) {
			return Page{}, err
		}
		last = err
	}
	return Page{}, last
}

// summarise has the model read a page, piece by piece: it is given the page and
// the goal, and nothing else of the research.
func (s *state) summarise(ctx context.Context, p Page, aim string) (goal.Finding, error) {
	r := goal.Reader{
		Ask: s.ask(p.Address, aim), Tokens: cmp.Or(s.Limits.Reading, defaultReading), Count: s.Runner.CountTokens,
		Room: func() int { return s.context },
	}
	most := min(r.Tokens, s.context-s.context/4-goal.Overhead-s.count(aim))
	var all goal.Finding
	for _, text := range s.group(s.pieces(p.Text), most) {
		f, err := r.Read(ctx, p.Title+"\n\n"+text, aim)
		if errors.Is(err, goal.ErrNoSummary) {
			continue // the other pieces may have something
		}
		if err != nil {
			return goal.Finding{}, err
		}
		all.Rational = join(all.Rational, f.Rational)
		all.Evidence = join(all.Evidence, f.Evidence)
		all.Summary = join(all.Summary, f.Summary)
	}
	if all.Evidence == "" && all.Summary == "" {
		return goal.Finding{}, errEmptySummary
	}
	return all, nil
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// pieces cuts a text into pieces of so many characters; what is beyond the last
// one is not read.
func (s *state) pieces(text string) []string {
	size, most := cmp.Or(s.Limits.Piece, defaultPiece), cmp.Or(s.Limits.Pieces, defaultPieces)
	var out []string
	from, n := 0, 0
	for i := range text {
		if n == size {
			if out = append(out, text[from:i]); len(out) == most {
				return out
			}
			from, n = i, 0
		}
		n++
	}
	return append(out, text[from:])
}

// group joins pieces that are read at once: so many tokens at most. A piece
// that has more stands alone.
func (s *state) group(pieces []string, most int) []string {
	var out []string
	now := ""
	for _, p := range pieces {
		if now != "" && s.count(now)+s.count(p) > most {
			out = append(out, now)
			now = ""
		}
		now += p
	}
	return append(out, now)
}

// ask asks the model beside a leg. Its seed follows from what is read, so that
// it is the same in whatever order pages are read.
func (s *state) ask(of ...string) goal.Ask {
	r := *s.Runner
	r.Format, r.Tools, r.Choice, r.Criteria, r.Constrain = s.Scripts.Read.Format, nil, runner.Choice{}, nil, false
	r.Sampling = s.sampling(append([]string{"read"}, of...)...)
	r.Limits = runner.Limits{Tokens: s.context, TurnTokens: min(cmp.Or(r.Limits.TurnTokens, 4096), s.share(5)), Resumes: r.Limits.Resumes}
	return func(ctx context.Context, prompt string, schema json.RawMessage) (string, error) {
		answer, _, err := r.Ask(ctx, prompt, schema)
		if errors.As(err, new(*runner.LimitError)) || errors.As(err, new(*models.OverflowError)) {
			return answer, fmt.Errorf("%w: %w", goal.ErrTooLong, err)
		}
		if err != nil && ctx.Err() == nil {
			s.reading.fail(err)
		}
		return answer, err
	}
}
