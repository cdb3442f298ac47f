// Package research answers a question with a cited report: a planner searches,
// reads pages for a goal and has an outline written, a writer fetches what the
// outline cites and writes section by section, and the question is answered
// from the report. It is ASearcherWeaver.
//
// A phase is a format and a set of tools, and the loop is runner's. What was
// read is kept outside of the prompt, numbered, in a bank. The package never
// prints, and knows neither corpora nor the web: it is given sources.
package research
