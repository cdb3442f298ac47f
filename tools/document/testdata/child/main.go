// Command child is nothing but the parsing process, for tests that measure it
// without the race detector.
package main

import "stopgap/tools/document"

func main() { document.Child() }
