package fetch

import (
	"fmt"
	"net/http"
)

// A RefusedError says that an address is not one that may be asked for.
type RefusedError struct {
	Host   string // as it was spelled; may be empty
	Reason string
}

func (e *RefusedError) Error() string {
	if e.Host == "" {
		return "refused: " + e.Reason
	}
	return fmt.Sprintf("refused: %s: %s", e.Host, e.Reason)
}

// A StatusError says that a server answered with something else than a page.
type StatusError struct {
	Host   string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s answered %d %s", e.Host, e.Status, http.StatusText(e.Status))
}

// A TypeError says that what came is nothing to read.
type TypeError struct{ Host, Type string }

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s sent %s, which is nothing that can be read as text", e.Host, e.Type)
}

// A LimitError says that a fetch went over one of its bounds.
type LimitError struct {
	Host string
	What string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the page of %s was left: %s", e.Host, e.What)
}
