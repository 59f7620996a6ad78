# SPDX-License-Identifier: Apache-2.0
#
# make up      a cluster, a virtual node and a first pod, on this machine
# make test    every test, with the race detector
# make check   what a reviewer need not look for: format, lint, tidy modules
# make help    all targets

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILT   ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.buildVersion=$(VERSION) -X main.buildTime=$(BUILT)

GO_SOURCES := $(shell find . -path ./devcluster -prune -o -path ./bin -prune -o \( -name '*.go' -o -name go.mod -o -name go.sum \) -print 2>/dev/null)
CLUSTER_SOURCES := $(shell find devcluster \( -name '*.go' -o -name go.mod -o -name go.sum \) -print 2>/dev/null) hack/build-devcluster.sh
# Modules whose tests run with the race detector. devcluster is apart: its tests drive the built binary.
TEST_MODULES := . providers cmd/virtual-kubelet bench
# The race detector needs a C compiler.
RACE := $(if $(shell command -v gcc || command -v clang),-race)
NO_RACE := $(if $(RACE),,echo "no C compiler found: the tests run without the race detector; install gcc to have it";)

##@ Try it

.PHONY: up
up: build ## start a cluster and a virtual node, and run a first pod (PROVIDER=mock)
	@hack/up.sh

.PHONY: down
down: ## stop what `make up` started and throw its data away
	@hack/down.sh

##@ Build

.PHONY: build
build: bin/devcluster bin/virtual-kubelet ## build both programs into bin/

bin/devcluster: $(CLUSTER_SOURCES)
	@hack/build-devcluster.sh $@

bin/virtual-kubelet: $(GO_SOURCES)
	@echo "virtual-kubelet: building $@ (the first build takes a minute or two)"
	@cd cmd/virtual-kubelet && CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '$(LDFLAGS)' -o ../../$@ .

##@ Test

.PHONY: test
test: build ## run unit and integration tests with the race detector
	@$(NO_RACE) for module in $(TEST_MODULES); do \
	  echo "test $$module"; \
	  (cd $$module && VK_REQUIRE_TESTAPI=1 go test $(RACE) -timeout 20m ./...); \
	done
	@echo "test devcluster"
	@cd devcluster && DEVCLUSTER_BIN=$(CURDIR)/bin/devcluster go test -count=1 -timeout 20m ./...

.PHONY: unit
unit: ## run the tests that need no API server, with the race detector
	@$(NO_RACE) for module in $(TEST_MODULES); do \
	  (cd $$module && go test $(RACE) $$(go list ./... | grep -v -e /test/integration -e /examples)); \
	done

.PHONY: check
check: ## lint every module, and see that modules and generated files are current
	@hack/lint.sh
	@hack/check-tidy.sh

.PHONY: generate
generate: ## write the files that are made from code
	@go test ./cli -run TestReference -update

.PHONY: bench
bench: build ## measure pods through their life on a real API server
	@cd bench && go run . $(BENCH_ARGS)

##@ Other

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
