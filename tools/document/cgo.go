//go:build cgo

package document

// threadStacks is what the stacks of threads count for the kernel where the C
// library makes them, 8 MiB each, although nothing is written there. The
// command is built without.
const threadStacks = 128 << 20
