#!/usr/bin/env bash
# The main job on a real Ollama: a question, a real folder of documents and a
# server of a scripted model file. Without a C++ compiler the same script runs
# in process, and the output says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
question=${1:-"Who ground the mirror of the telescope that found Comet Voss?"}
work=build/demo
mkdir -p "$work"

ask() { build/stopgap run --model "$1" --corpus docs/demo/corpus --index "$work/corpus.db" --date 2026-01-02 "$question"; }

if ! internal/ollamatest/build.sh build; then
	echo "no Ollama here: the scripted model runs in process instead" >&2
	ask script:docs/demo/model.yaml
	exit
fi

export OLLAMA_MODELS=$PWD/$work/models
echo "starting Ollama with the scripted model docs/demo/model.yaml" >&2
${GO:-go} run ./internal/automaton/cmd docs/demo/model.yaml "$work/model.gguf" >&2
printf 'FROM %s\n' "$PWD/$work/model.gguf" >"$work/Modelfile"
server=
trap '[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; } || true' EXIT
for _ in 1 2 3 4 5; do # a port may be taken
	export OLLAMA_HOST=127.0.0.1:$((20000 + RANDOM % 20000))
	HOME=$PWD/$work build/ollama serve >"$work/ollama.log" 2>&1 &
	server=$!
	for _ in $(seq 150); do
		kill -0 "$server" 2>/dev/null || break
		if build/ollama list >/dev/null 2>&1; then break 2; fi
		sleep 0.2
	done
	kill "$server" 2>/dev/null || true
	wait "$server" 2>/dev/null || true
	server=
done
if [ -z "$server" ]; then
	echo "Ollama did not start; its log is $work/ollama.log" >&2
	exit 1
fi
build/ollama create demo -f "$work/Modelfile" >"$work/create.log" 2>&1 || { cat "$work/create.log" >&2; exit 1; }
ask ollama:demo
