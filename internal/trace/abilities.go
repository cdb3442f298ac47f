package trace

import "stopgap/models"

// abilities are the optional interfaces that the runner asks of a model.
type abilities struct{ chat, render, spell bool }

func abilitiesOf(m models.Model) abilities {
	_, chat := m.(models.Chatter)
	_, render := m.(models.Renderer)
	_, spell := m.(models.Speller)
	return abilities{chat, render, spell}
}

// assemble gives a model these abilities and no others: the runner asks for
// them by type.
func assemble(m models.Model, a abilities, c models.Chatter, r models.Renderer, s models.Speller) models.Model {
	type (
		model    = models.Model
		chatter  = models.Chatter
		renderer = models.Renderer
		speller  = models.Speller
	)
	switch a {
	case abilities{chat: true}:
		return struct {
			model
			chatter
		}{m, c}
	case abilities{render: true}:
		return struct {
			model
			renderer
		}{m, r}
	case abilities{spell: true}:
		return struct {
			model
			speller
		}{m, s}
	case abilities{chat: true, render: true}:
		return struct {
			model
			chatter
			renderer
		}{m, c, r}
	case abilities{chat: true, spell: true}:
		return struct {
			model
			chatter
			speller
		}{m, c, s}
	case abilities{render: true, spell: true}:
		return struct {
			model
			renderer
			speller
		}{m, r, s}
	case abilities{chat: true, render: true, spell: true}:
		return struct {
			model
			chatter
			renderer
			speller
		}{m, c, r, s}
	}
	return m
}
