package research

import (
	"context"
	"errors"
)

// A Source is where pages are found and read: the user's documents, or the web.
// It is safe for concurrent use.
type Source interface {
	// Search gives what was found for some queries, as a model reads it. What is
	// to be read stands in it by its address. It gives nothing where pages can only
	// be read.
	Search(ctx context.Context, queries []string) (string, error)
	// Read gives a page by its address. ErrElsewhere says that the address is
	// none of this source.
	Read(ctx context.Context, address string) (Page, error)
}

// A Page is a text to read.
type Page struct {
	Address string // where it is in the end
	Title   string
	Text    string
}

// ErrElsewhere says that a source has nothing at an address.
var ErrElsewhere = errors.New("there is no such page")
