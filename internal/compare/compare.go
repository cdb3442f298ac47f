// Package compare asks the same questions in several configurations, a prompt
// format with a model each, and tells how they differ and how sure one can be.
//
// A comparison is a folder: a file that says what is compared, and a batch for
// each configuration. Item by item and rollout by rollout the seeds are the
// same everywhere. Read makes a Report of the folder, at any time, also of a
// comparison that is not through.
//
// The package never prints and never opens a model.
package compare
