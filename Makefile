.DEFAULT_GOAL := help
GO ?= go
GOLANGCI_LINT_VERSION ?= v2.15.0
FUZZTIME ?= 30s
BENCH ?= .

.PHONY: help demo test race lint bench fuzz soak tidy verify

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Run a real ADK agent with memory in SQLite; no key and no server needed
	@$(GO) run ./examples/quickstart

test: ## Run all tests, Postgres included
	$(GO) test ./...

race: ## Run all tests with the race detector
	$(GO) test -race ./...

lint: ## Vet, format check and linter
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on the files above"; exit 1; }
	$(GO) vet ./...
	@command -v golangci-lint >/dev/null || $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	PATH="$$PATH:$$($(GO) env GOPATH)/bin" golangci-lint run ./...

bench: ## Run the benchmarks; BENCH=pattern narrows them
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

fuzz: ## Run the property and fuzz tests for longer; FUZZTIME=2m for each
	./scripts/fuzz $(FUZZTIME)

soak: ## Several processes on one Postgres, random kills, every message checked
	$(GO) test ./middleware/soak -run TestSoak -count=1 -timeout 30m -v -args -soak

tidy: ## Check that go.mod is tidy
	$(GO) mod tidy -diff

verify: tidy lint test race ## What CI runs
	CGO_ENABLED=0 $(GO) build ./...
