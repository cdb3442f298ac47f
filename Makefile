# stopgap: make run needs Go and make; make test also needs what it installs itself.
.DEFAULT_GOAL := help
SHELL := /bin/bash
GO ?= go
BUILD := build
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
ON_OLLAMA = STOPGAP_REQUIRE_OLLAMA=1 STOPGAP_OLLAMA=$(CURDIR)/$(BUILD)/ollama
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command into build/stopgap
	@mkdir -p $(BUILD)
	@# A quarter of a build from nothing goes into tables for debuggers, which -s -w leaves out, and into collecting garbage.
	CGO_ENABLED=0 GOGC=400 $(GO) build -trimpath -gcflags=all=-dwarf=false -ldflags '$(LDFLAGS)' -o $(BUILD)/stopgap ./cmd/stopgap

.PHONY: run
run: build ## ask the built-in model two questions over the sample documents
	@docs/demo/run.sh

.PHONY: demo-ollama
demo-ollama: build ## ask a real Ollama a question over docs/demo/corpus (sets everything up)
	@docs/demo/ollama.sh

.PHONY: test
test: lint jinja sandbox chromium documents ollama tokenizers cross exam ## vet, staticcheck, all tests with -race, on the real Ollama
	$(ON_OLLAMA) STOPGAP_REQUIRE_BWRAP=1 STOPGAP_REQUIRE_CHROMIUM=1 STOPGAP_REQUIRE_POPPLER=1 STOPGAP_COMPARE=200 PYTHONPATH=$(CURDIR)/$(BUILD)/python $(GO) test -race -timeout 80m ./...
	@if [ -f $(BUILD)/libtokenizers.a ]; then set -ex; \
		$(GO) vet $(TAGGED); $(GO) tool staticcheck -tags hftokenizers $(TOKENIZER); $(GO) test -timeout 30m $(TAGGED); \
	else echo "tokenizers: build/libtokenizers.a is not there: SentencePiece, WordPiece and Hugging Face's own ids are not tested"; fi

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'gofmt: the files above are not formatted'; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: ollama
ollama: ## put a real Ollama into build/ (from the PATH, else built from its module)
	@internal/ollamatest/build.sh $(BUILD)

.PHONY: jinja
jinja: ## Python's Jinja2 in build/python, the reference for chat templates
	@PYTHONPATH=$(BUILD)/python python3 -c 'import jinja2' 2>/dev/null \
		|| python3 -m pip install --quiet --disable-pip-version-check --target $(BUILD)/python jinja2==3.1.6 \
		|| { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y python3-jinja2; } \
		|| echo 'jinja: no Python with pip: the goldens are compared, but not made again'

.PHONY: sandbox
sandbox: ## bubblewrap and a Python for the sandbox, if you are root
	@{ command -v bwrap && test -x /usr/bin/python3; } >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y bubblewrap python3; } >/dev/null \
		|| echo 'sandbox: bubblewrap and /usr/bin/python3 are not both there, and only root can install them: their tests will fail'

.PHONY: chromium
chromium: ## Chromium, which web_search asks Bing with, if you are root
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } >/dev/null \
		|| echo 'chromium: there is none, and only root can install it: its tests will fail'

.PHONY: documents
documents: ## pdftotext, which reads PDFs, and catdoc, which reads old Word files, if you are root
	@{ command -v pdftotext && command -v catdoc; } >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y --no-install-recommends poppler-utils catdoc; } >/dev/null \
		|| echo 'documents: pdftotext and catdoc are not both there, and only root can install them: their tests will fail'

.PHONY: bombs
bombs: documents ## files made to hurt their reader, in full size: memory and time of each
	STOPGAP_BOMBS=all $(GO) test -count=1 -run '^Test(Hostile|Truncated|Mutated)$$' -timeout 0 -v ./tools/document | grep -v '^ *\(=== \|--- PASS\)'

PARSERS := PDF HTML CSV Text Zip DOCX PPTX XLSX Number Parse
.PHONY: fuzz-documents
fuzz-documents: ## each parser of files on random bytes (FUZZTIME)
	@set -ex; for p in $(PARSERS); do $(GO) test -run '^$$' -fuzz "^Fuzz$$p\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./tools/document; done

.PHONY: fuzz-research
fuzz-research: ## citations, evidence, outlines and reports of random text (FUZZTIME)
	@set -ex; for p in cite:Find cite:Look outline:Parse article:Tidy; do $(GO) test -run '^$$' -fuzz "^Fuzz$${p#*:}\$$" -fuzztime $(FUZZTIME) ./internal/research/$${p%:*}; done

URLS ?= 50
.PHONY: hostile
hostile: ## addresses that nobody may connect to, each alone and behind a redirect (URLS of each range)
	$(GO) test -count=1 -run 'Hostile|Dialer|Rebinding' -v ./tools/fetch -args -addresses $(URLS)

.PHONY: bench-sandbox
bench-sandbox: sandbox ## what a sandbox costs beside a bare start of the same program
	$(GO) test -run '^$$' -bench Start -benchtime 200x ./tools/sandbox ./cmd/stopgap

TOKENIZER := ./models/tokenizer
TAGGED = -tags hftokenizers -ldflags "-extldflags=-L$(CURDIR)/$(BUILD)" $(TOKENIZER)
.PHONY: tokenizers
tokenizers: ## build Hugging Face's tokenizers into build/ (with Rust's cargo), for the build tag hftokenizers
	@models/tokenizer/build.sh $(BUILD) || echo "tokenizers: not built: only byte-level BPE is read"

.PHONY: bench
bench: build ollama ## figures on the real Ollama: tokens after a halt, time to cancel
	$(ON_OLLAMA) $(GO) test -run '^$$' -bench Halt -benchtime 20x ./internal/endtoend

.PHONY: bench-builtin
bench-builtin: ollama ## the built-in engine beside the real Ollama, tokens a second on one core
	$(ON_OLLAMA) $(GO) test -run '^$$' -bench Builtin -benchtime 20x ./internal/endtoend

.PHONY: eval-builtin
eval-builtin: ## examine the built-in model: 200 questions of each kind in each format (ARGS)
	@$(GO) run ./models/builtin/train/eval $(ARGS)

.PHONY: exam
exam: ## a slice of eval-builtin with floors, as make test asks it
	@$(GO) run ./models/builtin/train/eval -n 40 -formats qwen,react -least 0.9,0.9,0.9

.PHONY: compare
compare: ## four formats on the built-in model, 200 questions, whole and killed (ARGS=-update writes the table of docs/compare.md)
	STOPGAP_COMPARE=200 $(GO) test -count=1 -run '^TestComparison$$' -timeout 60m -v ./internal/endtoend -args $(ARGS)

.PHONY: bench-stopping
bench-stopping: ## what a stop check costs a token, beside a search of the whole text
	@$(GO) run ./internal/stopbench $(ARGS)

DOCUMENTS ?= 200000
.PHONY: bench-corpus
bench-corpus: ## index and search 200 000 documents, by words and by vectors, with SQLite's own beside it (DOCUMENTS)
	STOPGAP_BENCH_DOCUMENTS=$(DOCUMENTS) $(GO) test -run '^$$' -bench 'Index|Open' -benchtime 1x -timeout 0 ./tools/corpus
	STOPGAP_BENCH_DOCUMENTS=$(DOCUMENTS) $(GO) test -run '^$$' -bench 'Search|Hybrid' -benchtime 100x -timeout 0 ./tools/corpus

.PHONY: bm25s
bm25s: ## Python's bm25s in build/python, a second reference for the ranking (large: it needs SciPy)
	@PYTHONPATH=$(BUILD)/python python3 -c 'import bm25s' 2>/dev/null \
		|| python3 -m pip install --quiet --disable-pip-version-check --target $(BUILD)/python bm25s==0.2.14

.PHONY: faults
faults: ## break recorded streams in every way at every byte, and print what became of them
	set -o pipefail; STOPGAP_FAULTS=all $(GO) test -run '^TestEveryFault$$' -timeout 0 -v ./models | grep -v '^ *\(=== \|--- PASS\)'
	STOPGAP_FAULTS=all $(GO) test -run Resumed -timeout 0 ./runner
	STOPGAP_FAULTS=all $(GO) test -run 'BrokenStreams|Signals' -v ./internal/endtoend

PAIRS ?= 1000000
SEED ?= 0
FUZZTIME ?= 60s
.PHONY: fuzz
fuzz: ## a million random patterns and texts against the definition (PAIRS, SEED, FUZZTIME)
	$(GO) test -run '^TestEquivalence$$' -timeout 0 -v ./stopping -pairs $(PAIRS) -seed $(SEED)
	$(GO) test -run '^$$' -fuzz '^FuzzEquivalence$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./stopping

.PHONY: bench-prefill
bench-prefill: ollama ## what reading ahead while a tool runs saves, on the built-in model and the real Ollama
	$(ON_OLLAMA) $(GO) test -run '^$$' -bench Prefill -benchtime 20x ./internal/endtoend

.PHONY: bench-overhead
bench-overhead: ## what a run costs beside the model's own time, with a prompt of 32 000 tokens
	$(GO) test -run '^$$' -bench Overhead -benchtime 20x ./internal/endtoend

.PHONY: bench-batch
bench-batch: ## what a batch costs a token and in memory, 64 rollouts at once, beside bare streams
	$(GO) test -run '^$$' -bench Batch -benchtime 5x ./internal/batch

PAYLOADS ?= 20000
.PHONY: forge
forge: ## texts that try to become structure: 20 000 for each of 8 formats (PAYLOADS)
	$(GO) test -count=1 -timeout 120m -run '^TestForge$$' -v ./internal/forge -args -payloads $(PAYLOADS)

.PHONY: cross
cross: ## compile for Linux, macOS and Windows on amd64 and arm64, without cgo
	@set -e; for t in $(TARGETS); do \
		echo "cross $$t"; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/stopgap; done

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)
