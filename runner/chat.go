package runner

import (
	"cmp"
	"encoding/json"
	"strings"

	"stopgap/models"
	"stopgap/stopping"
	"stopgap/template"
)

// The format chat leaves prompt and parser to the server. The conversation is
// a list of messages; the ledger has the same as segments, for those who read
// along: between them stands nothing, because only the server knows what does.

// openChat begins a conversation, or asks the next question of one.
func (s *state) openChat(task Task) error {
	l, from := s.ledger, len(s.ledger.segments)
	if from == 0 && task.System != "" {
		l.messages = append(l.messages, models.Message{Role: models.RoleSystem, Content: task.System})
		l.add(s, Segment{Source: template.FromTemplate, Text: task.System})
	}
	s.answerOpen()
	s.say(models.Message{Role: models.RoleUser}, task.Question, template.FromUser)
	l.format = s.Format
	return s.started(task, from)
}

// answerOpen answers the calls of a run that ended before they were made, or
// while its tools ran: chat endpoints refuse a conversation in which a call has
// no answer.
func (s *state) answerOpen() {
	n := len(s.ledger.messages)
	if n == 0 {
		return
	}
	for _, c := range s.ledger.messages[n-1].Calls {
		s.say(models.Message{Role: models.RoleTool, Name: c.Name, CallID: c.ID}, "Error: the run was ended before the tool had finished.", template.FromRunner)
	}
}

// say appends a message with a text of someone else's than the model's.
func (s *state) say(m models.Message, text string, from template.Source) {
	segments := s.ledger.secure([]template.Part{{Text: text, Source: from}}, s.reserved())
	m.Content = segments[0].Text
	s.ledger.messages = append(s.ledger.messages, m)
	s.ledger.add(s, segments...)
}

// resumeChat appends the results of the last message's calls, and a note.
func (s *state) resumeChat(c template.Continuation) {
	asked := s.ledger.messages[len(s.ledger.messages)-1].Calls
	for i, res := range c.Results {
		s.say(models.Message{Role: models.RoleTool, Name: asked[i].Name, CallID: asked[i].ID}, res.Content, template.FromTool)
	}
	if c.Note != "" {
		s.say(models.Message{Role: models.RoleUser}, c.Note, template.FromRunner)
	}
}

// converse is generate for a chat endpoint.
func (s *state) converse() (template.Turn, error) {
	limit, err := s.turnTokens()
	if err != nil {
		return template.Turn{}, err
	}
	s.turn++
	t := &talk{generation: generation{state: s, event: Stopped{Turn: s.turn, Means: template.MeansEnd, Usage: noUsage}}}
	t.matcher = s.sets[false].Matcher()
	req := models.ChatRequest{
		Conversation: models.Conversation{Messages: s.ledger.messages}, ToolChoice: s.toolChoice(),
		MaxTokens: limit, Sampling: s.sampling(), Session: s.Session,
	}
	for _, tool := range s.described() {
		req.Tools = append(req.Tools, models.ToolSpec{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters})
	}
	err = t.stream(req)
	if closing := t.close(); err == nil {
		err = closing
	}
	turn := t.parsed()
	s.total(&t.generation)
	if err == nil {
		err = s.emit(t.stopped(turn))
	}
	return turn, err
}

// toolChoice is the run's at its first turn, and then the model's own.
func (s *state) toolChoice() models.ToolChoice {
	switch {
	case s.forced != "":
		return models.ToolChoice{Mode: models.ChooseNone}
	case s.chosen:
		return models.ToolChoice{}
	}
	s.chosen = true
	return models.ToolChoice{Mode: models.ChoiceMode(s.Choice.Mode), Name: s.Choice.Tool}
}

// A talk is one answer of a chat endpoint. Its kept text is the content; what
// was thought and called stands beside it.
type talk struct {
	generation
	receipt receipt
	matcher *stopping.Matcher
	think   strings.Builder
	calls   []models.ToolCall
	size    int             // bytes of it all
	shown   strings.Builder // all of it, in the order of the events
}

func (t *talk) stream(req models.ChatRequest) error {
	t.event.Requests++
	most := req.MaxTokens * longestToken
	for chunk, err := range t.Model.(models.Chatter).Chat(t.ctx, req) { // begin has checked it
		if err == nil && t.size > most {
			err = &models.ProtocolError{Server: t.server(), Reason: "much more text than tokens were asked for"}
		}
		if err != nil {
			t.broken = true
			return err
		}
		if err := t.receipt.note(t.state, chunk.Chunk); err != nil {
			return err
		}
		if err := t.take(chunk); err != nil {
			return err
		}
		if t.stop != nil {
			return nil
		}
		t.receipt.final = chunk.Final
	}
	if t.receipt.final == nil {
		t.broken = true
		return &models.CutError{Bytes: t.receipt.draft.text.Len(), Tokens: t.receipt.pieces}
	}
	return nil
}

// take yields what a chunk has.
func (t *talk) take(chunk models.ChatChunk) error {
	for _, c := range chunk.Calls {
		t.calls = append(t.calls, c)
		t.size += len(c.Name) + len(c.Arguments)
		if err := t.show(template.SpanCall, callText(c)); err != nil {
			return err
		}
	}
	if chunk.Thinking != "" {
		t.think.WriteString(chunk.Thinking)
		t.size += len(chunk.Thinking)
		t.receipt.pieces++
		if err := t.show(template.SpanThink, chunk.Thinking); err != nil {
			return err
		}
	}
	if chunk.Text == "" {
		return nil
	}
	t.size += len(chunk.Text)
	t.receipt.pieces++
	t.receipt.draft.add(chunk.Text, nil)
	step, err := t.matcher.Write(chunk.Text, 1)
	t.stop = step.Stop
	if shown := t.show(template.SpanText, step.Emit); err == nil {
		err = shown
	}
	for _, d := range step.Notified() {
		if err == nil {
			err = t.emit(Noticed{Turn: t.turn, Criterion: d.Criterion.Name, MatchStart: d.MatchStart, MatchEnd: d.MatchEnd})
		}
	}
	return err
}

func (t *talk) show(kind template.SpanKind, text string) error {
	if text == "" {
		return nil
	}
	t.shown.WriteString(text)
	return t.spans([]template.Span{{Kind: kind, Text: text}})
}

// callText is how a call stands in the ledger: the server's own spelling is
// not known.
func callText(c models.ToolCall) string { return c.Name + " " + string(c.Arguments) + "\n" }

// close gives out what is held, and appends the answer to the conversation.
func (t *talk) close() error {
	var err error
	keep := t.receipt.draft.text.Len()
	if t.stop != nil {
		keep = t.stop.KeepEnd
	} else {
		held := t.matcher.Close().Emit
		n := torn(held)
		keep, err = keep-n, t.show(template.SpanText, held[:len(held)-n])
	}
	t.finish = t.receipt.final
	t.account(&t.receipt)
	t.kept.WriteString(t.receipt.draft.text.String()[:keep])
	l := t.ledger
	l.messages = append(l.messages, models.Message{
		Role: models.RoleAssistant, Content: t.kept.String(), Thinking: t.think.String(), Calls: t.calls,
	})
	l.add(t.state, Segment{Source: template.FromModel, Turn: t.turn, Text: t.shown.String()})
	return err
}

// parsed is what the server read, as a turn of this run.
func (t *talk) parsed() template.Turn {
	turn := template.Turn{Think: strings.TrimSpace(t.think.String()), Text: strings.TrimSpace(t.kept.String())}
	end := t.kept.Len()
	for _, c := range t.calls {
		arguments := c.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		} else if !json.Valid(arguments) {
			arguments, _ = json.Marshal(string(arguments)) // a text is no object: the tool's schema says so
		}
		turn.Calls = append(turn.Calls, template.Call{Name: c.Name, Arguments: arguments, Start: end, End: end})
	}
	switch {
	case t.finishes():
		turn.Answer = cmp.Or(turn.Text, turn.Think)
		turn.Answered, turn.Calls = turn.Answer != "", nil
	case len(turn.Calls) == 0:
		turn.Answer, turn.Answered = turn.Text, turn.Text != ""
		if !turn.Answered {
			turn.Problems = append(turn.Problems, template.Problem{Kind: template.NoCallNoAnswer, Message: "neither a call nor an answer"})
		}
	}
	t.judge(&turn)
	return turn
}
