// Package sample has documents to try stopgap with, and questions about them.
//
// The documents tell facts that somebody made up, about four subjects that
// name each other: the Ysmeril islands, the city of Vastorel, the valley of
// Ambrelle and the plateau of Zhalur. Nobody can know the answers, so an answer
// that is right was looked up. They are short and plain, because the built-in
// model is small; some are in Chinese. A document's id is the name of its file.
package sample

import (
	"embed"
	"io/fs"
)

//go:embed corpus
var files embed.FS

// Documents gives the folder of the documents, one Markdown file each.
func Documents() fs.FS {
	sub, err := fs.Sub(files, "corpus")
	if err != nil {
		panic(err) // the name is a constant
	}
	return sub
}
