#!/usr/bin/env bash
# The main job with nothing else installed: the built-in model answers questions
# over the sample documents. The answers go to standard output.
set -euo pipefail
cd "$(dirname "$0")/../.."
export STOPGAP_CONFIG= # the demonstration is the same for everybody
[ $# -gt 0 ] || set -- "Where was the designer of Kesper Bridge born?" "Who is the captain of the Grey Petrel?"
TIMEFORMAT="took %R s"
for question; do
	printf '\n$ build/stopgap run --model builtin "%s"\n' "$question" >&2
	time build/stopgap run --model builtin "$question"
done
