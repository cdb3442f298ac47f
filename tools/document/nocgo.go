//go:build !cgo

package document

// threadStacks is nothing: Go's own threads have small stacks.
const threadStacks = 0
