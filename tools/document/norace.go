//go:build !race

package document

// raceEnabled says that the race detector is built in, whose own memory is
// many times that of the program.
const raceEnabled = false
