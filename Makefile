# Usher's commands for people who work on it. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO ?= go

# A clone may belong to another user, or lie where git is missing: Go would then refuse to build because it cannot stamp the
# revision. The version is stamped below instead, where git can tell it. What the user's own settings say is kept.
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS 2>/dev/null) -buildvcs=false)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
LDFLAGS := -X usher/internal/edge/cli.Version=$(VERSION)

TEST_TIMEOUT := 40m

GOLANGCI_LINT := $(GO) tool -modfile=tools/lint/go.mod golangci-lint
TEMPL := $(GO) tool -modfile=tools/templ/go.mod templ

.PHONY: help
help: ## List these commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: need-go ## Build bin/usher
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/usher ./cmd/usher

.PHONY: demo
demo: $(if $(USHER_DATABASE_URL),,need-postgres) build ## Build, seat the sample school and serve its report (ARGS=--no-serve ends instead)
	bin/usher demo $(ARGS)

.PHONY: test
test: need-go need-postgres need-test-programs ## Run all tests; installs or names what they lack
	$(GO) test -timeout $(TEST_TIMEOUT) ./...

# What depends on who runs it, for whoever has seen the rest pass as somebody else.
.PHONY: test-of-user
test-of-user:
	$(GO) test -vet=off -timeout $(TEST_TIMEOUT) ./internal/base/pg/... ./internal/base/mail ./internal/base/sms ./internal/domain/schema
	$(GO) test -vet=off -timeout $(TEST_TIMEOUT) ./internal/edge/cli \
		-run '^TestStories$$/^(private|demo)$$|^TestServe_Ends$$|^TestDir_Empty$$|^TestWriteWhole|^TestLog_|^TestOpenFile'

.PHONY: race
race: ## Run the tests that start no PostgreSQL with the race detector (needs a C compiler)
	$(GO) test -race -timeout $(TEST_TIMEOUT) $$(tools/packages-without-postgres.sh)

.PHONY: lint
lint: ## Run the linters over the Go code and the scripts
	$(GOLANGCI_LINT) run ./...
	@if command -v shellcheck >/dev/null; then shellcheck tools/*.sh .ci/run; \
	else echo 'shellcheck is not on this machine: the scripts were not checked.' >&2; fi

.PHONY: generate
generate: ## Make the Go code of the page templates again
	$(TEMPL) generate

.PHONY: fresh
fresh: ## Fail if the generated code is not what its templates give
	tools/generated-is-fresh.sh $(MAKE)

.PHONY: fmt
fmt: ## Format the Go code and the page templates
	$(GOLANGCI_LINT) fmt ./...
	$(TEMPL) fmt .

.PHONY: vet
vet:
	$(GO) vet ./...

.PHONY: check
check: fresh vet lint test ## Everything a change must pass: generated code, vet, lint, test

.PHONY: vuln
vuln: ## Look for known vulnerabilities, without the network once the modules are here
	tools/vuln.sh

.PHONY: need-go
need-go:
	@tools/need-go.sh $(GO)

.PHONY: need-postgres
need-postgres:
	@tools/need-postgres.sh

.PHONY: need-test-programs
need-test-programs:
	@tools/need-test-programs.sh

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin
