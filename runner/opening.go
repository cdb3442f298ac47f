package runner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"stopgap/models"
	"stopgap/template"
)

// ErrNoRenderer says that the model's server cannot render a conversation by
// the model's chat template, which the format server needs.
var ErrNoRenderer = errors.New("the server does not render chat templates")

// ErrNoChat says that the model has no chat endpoint, which the format chat needs.
var ErrNoChat = errors.New("the model has no chat endpoint")

// settle makes the format of the run of one whose opening comes from the
// server: the rendered text tells which of the shipped formats goes on.
func (s *state) settle(task Task) error {
	chat, begun := s.Format.Opening == template.OpenChat, s.ledger.format
	if begun != nil && chat != (begun.Opening == template.OpenChat) {
		return ErrLedger
	}
	switch s.Format.Opening {
	case template.OpenChat:
		if _, ok := s.Model.(models.Chatter); !ok {
			return ErrNoChat
		}
		return nil
	case template.OpenOwn:
		s.takeOver(s.Format)
		return nil
	}
	if begun != nil { // the conversation has its opening
		s.takeOver(begun)
		return nil
	}
	renderer, ok := s.Model.(models.Renderer)
	if !ok {
		return ErrNoRenderer
	}
	// The question never passes through the server's template: what stands for
	// it is letters and digits that no text contains.
	mark := rand.Text()
	c := models.Conversation{Messages: s.messages(task, mark)}
	reserved, err := s.anyReserved()
	if err != nil {
		return err
	}
	for _, t := range s.describe(reserved) {
		c.Tools = append(c.Tools, models.ToolSpec{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
	}
	rendered, err := renderer.Render(s.ctx, c)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(rendered, mark)
	if !found || strings.Contains(after, mark) {
		return fmt.Errorf("the model's chat template does not print the question once")
	}
	format, err := template.Recognise(rendered)
	if err != nil {
		return err
	}
	s.rendered = []template.Part{
		{Text: before, Source: template.FromTemplate},
		{Text: task.Question, Source: template.FromUser},
		{Text: after, Source: template.FromTemplate},
	}
	s.takeOver(format)
	return nil
}

// takeOver goes on with a format, and with the caller's word on what counts in it.
func (s *state) takeOver(format *template.Format) {
	r := *s.Runner
	r.Format = format.WithCallsInThink(r.CallsInThink.or(format.Think.Calls))
	s.Runner = &r
}

// messages are the system message, if there is one, and the question.
func (s *state) messages(task Task, question string) []models.Message {
	var out []models.Message
	if task.System != "" {
		out = append(out, models.Message{Role: models.RoleSystem, Content: task.System})
	}
	return append(out, models.Message{Role: models.RoleUser, Content: question})
}
