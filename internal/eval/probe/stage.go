package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"stopgap/models"
	"stopgap/runner"
	"stopgap/template"
	"stopgap/tools"
)

// A stage stands in for the model in the turns of a case's history: it says what
// the format makes of the calls, however many requests the turn takes. The turn
// after them is the model's own.
type stage struct {
	models.Model
	format  *template.Format
	history [][]Exchange
	turn    int    // turns that have ended
	begun   string // the prompt at the beginning of this turn
	said    string // the whole turn, once it is begun
	// asked is the prompt of the model's own first request.
	asked []models.Segment
	own   strings.Builder // what it wrote
}

// ended is told that a turn has its end.
func (s *stage) ended() { s.turn, s.said = s.turn+1, "" }

// Stream implements models.Model.
func (s *stage) Stream(ctx context.Context, req models.Request) iter.Seq2[models.Chunk, error] {
	if s.turn >= len(s.history) {
		if s.asked == nil {
			s.asked = req.Prompt
		}
		return s.Model.Stream(ctx, req)
	}
	return func(yield func(models.Chunk, error) bool) {
		text, err := s.next(req)
		if err != nil {
			yield(models.Chunk{}, err)
			return
		}
		yield(models.Chunk{Text: text, Final: &models.Final{Finish: models.FinishStop}}, nil)
	}
}

// next is what is still to be said of a turn: all of it, or the one value that a
// schema asks for.
func (s *stage) next(req models.Request) (string, error) {
	var b strings.Builder
	for _, seg := range req.Prompt {
		b.WriteString(seg.Text)
	}
	prompt := b.String()
	if s.said == "" {
		think := s.format.Think
		inThink := think.Close != "" && strings.LastIndex(prompt, think.Open) > strings.LastIndex(prompt, think.Close)
		var err error
		if s.said, err = s.format.Write(template.Turn{Calls: s.calls()}, inThink); err != nil {
			return "", err
		}
		s.begun = prompt
		// A tool choice has put the beginning of the call there already.
		if _, rest, ok := overlap(prompt, s.said); ok {
			s.begun = prompt[:len(prompt)-(len(s.said)-len(rest))]
		}
	}
	rest, ok := strings.CutPrefix(s.said, strings.TrimPrefix(prompt, s.begun))
	if !ok {
		return "", fmt.Errorf("the format does not go on with its own words for a call")
	}
	if len(req.Schema) == 0 {
		return rest, nil
	}
	var value json.RawMessage
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&value); err != nil {
		return "", err
	}
	return string(bytes.TrimSpace(value)), nil
}

// overlap looks for the longest end of a text that a turn begins with, and gives
// both parts of the turn. White space alone is no beginning.
func overlap(text, turn string) (written, rest string, ok bool) {
	for n := min(len(text), len(turn)); n > 0; n-- {
		if strings.TrimSpace(turn[:n]) != "" && strings.HasSuffix(text, turn[:n]) {
			return turn[:n], turn[n:], true
		}
	}
	return "", turn, false
}

func (s *stage) calls() []template.Call {
	var out []template.Call
	for _, e := range s.history[s.turn] {
		out = append(out, template.Call{Name: e.Name, Arguments: e.Arguments})
	}
	return out
}

// Chat implements models.Chatter.
func (s *stage) Chat(ctx context.Context, req models.ChatRequest) iter.Seq2[models.ChatChunk, error] {
	if s.turn >= len(s.history) {
		if c, ok := s.Model.(models.Chatter); ok {
			return c.Chat(ctx, req)
		}
	}
	return func(yield func(models.ChatChunk, error) bool) {
		if _, ok := s.Model.(models.Chatter); !ok {
			yield(models.ChatChunk{}, runner.ErrNoChat)
			return
		}
		chunk := models.ChatChunk{Chunk: models.Chunk{Final: &models.Final{Finish: models.FinishStop}}}
		for i, c := range s.calls() {
			chunk.Calls = append(chunk.Calls, models.ToolCall{ID: fmt.Sprintf("history%d_%d", s.turn, i), Name: c.Name, Arguments: c.Arguments})
		}
		yield(chunk, nil)
	}
}

// Render implements models.Renderer.
func (s *stage) Render(ctx context.Context, c models.Conversation) (string, error) {
	r, ok := s.Model.(models.Renderer)
	if !ok {
		return "", runner.ErrNoRenderer
	}
	return r.Render(ctx, c)
}

// Spelling implements models.Speller. A model that tells nothing has an empty one.
func (s *stage) Spelling(ctx context.Context) (*models.Spelling, error) {
	if sp, ok := s.Model.(models.Speller); ok {
		return sp.Spelling(ctx)
	}
	return &models.Spelling{}, nil
}

// A prop is a tool that does nothing but give the responses of the history.
type prop struct {
	spec      tools.Spec
	responses map[string]string // by the arguments
}

func newProp(spec tools.Spec, history [][]Exchange) prop {
	p := prop{spec: spec, responses: map[string]string{}}
	p.spec.SideEffects, p.spec.Capabilities = false, nil
	for _, turn := range history {
		for _, e := range turn {
			if e.Name == spec.Name {
				p.responses[canonical(e.Arguments)] = e.Response
			}
		}
	}
	return p
}

// Spec implements tools.Tool.
func (p prop) Spec() tools.Spec { return p.spec }

// Run implements tools.Tool.
func (p prop) Run(_ context.Context, args json.RawMessage) (string, error) {
	return p.responses[canonical(args)], nil
}

// canonical spells an object the same however it was spelled.
func canonical(object json.RawMessage) string {
	var v any
	_ = json.Unmarshal(object, &v) // the set has read it before
	b, _ := json.Marshal(v)
	return string(b)
}
