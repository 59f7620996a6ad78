# SPDX-License-Identifier: Apache-2.0
#
# make up      a cluster, a virtual node and a first pod, on this machine
# make test    every test, most with the race detector
# make check   what a reviewer need not look for: format, lint, tidy modules
# make help    all targets

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Every program, linter and test is built with the same flags: what they have in common is compiled once, and is found in the cache
# by a clone in another folder too.
GOFLAGS ?= -trimpath
CGO_ENABLED := 0
export GOFLAGS CGO_ENABLED

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
BUILT   ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
# The program of containers is used by a daemon that was built of the same.
SHIM_VERSION := -X github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim.build=$(VERSION)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
GVISOR  := $(shell sed -n 's,^\tgvisor.dev/gvisor ,,p' providers/process/gvisor/go.mod)
LDFLAGS := -s -w -X main.buildVersion=$(VERSION) -X main.buildCommit=$(COMMIT) -X main.buildTime=$(BUILT) -X main.gVisorVersion=$(GVISOR) $(SHIM_VERSION)

GO_SOURCES := $(shell find . -path ./devcluster -prune -o -path ./bin -prune -o \( -name '*.go' -o -name go.mod -o -name go.sum \) -print 2>/dev/null)
CLUSTER_SOURCES := $(shell find devcluster \( -name '*.go' -o -name go.mod -o -name go.sum \) -print 2>/dev/null) hack/build-devcluster.sh
# Modules whose tests run with the race detector, but for WITHOUT_RACE. devcluster is apart: its tests drive the built binary.
TEST_MODULES := . podruntime providerrpc providers providers/process/demo/shell cmd/virtual-kubelet bench deploy test/conformance test/compat/consumer
# The race detector needs a C compiler. RACE_TEST is GO_TEST with it. make test sets GO_TEST for its lanes.
RACE := $(if $(shell command -v gcc || command -v clang),-race)
RACE_GO := $(if $(RACE),CGO_ENABLED=1) go
GO_TEST := go test
RACE_TEST := $(if $(RACE),CGO_ENABLED=1) $(GO_TEST) $(RACE)
NO_RACE := $(if $(RACE),,echo "no C compiler found: the tests run without the race detector; install gcc to have it";)

##@ Try it

.PHONY: up
# It builds what the node needs, and no other: the program with its provider alone, unless that with all of them is there or is released. Pods
# that are not containers on this machine need none of gVisor.
up: ## start a cluster and a virtual node, and run a first pod (PROVIDER=process, cri: containers)
	@node=bin/virtual-kubelet; \
	[[ "$${RELEASE:-}" = http*://* ]] || [ -e "$${RELEASE:-release}/SHA256SUMS" ] || [ -z "$(filter $(UP_PROVIDER),$(UP_ALONE))" ] || $(MAKE) --no-print-directory -q $$node >/dev/null 2>&1 || node=$$node-with-$(UP_PROVIDER); \
	hack/up.sh bin/devcluster $$node $(if $(filter $(UP_PROVIDER),$(WITHOUT_CONTAINERS)),,bin/virtual-kubelet-container bin/runsc)

UP_PROVIDER := $(or $(PROVIDER),process)
WITHOUT_CONTAINERS := mock cri slurm nomad interlink liqo huaweicci plugin
BUILT_IN := $(patsubst cmd/virtual-kubelet/provider_%.go,%,$(wildcard cmd/virtual-kubelet/provider_*.go))
# tensilekube and admiralty have a second cluster here, whose node is of provider process.
UP_ALONE := $(filter-out tensilekube admiralty,$(BUILT_IN))

.PHONY: down
down: ## stop what `make up` started and throw its data away
	@hack/down.sh

##@ Build

.PHONY: build
build: bin/devcluster bin/virtual-kubelet bin/virtual-kubelet-container bin/runsc ## build all programs into bin/

# Each of them is taken from release/ instead, when the files of a release are there.
bin/devcluster: $(CLUSTER_SOURCES)
	@hack/released.sh $@ hack/build-devcluster.sh $@

bin/virtual-kubelet: $(GO_SOURCES)
	@hack/released.sh $@ $(MAKE) --no-print-directory build-node

.PHONY: build-node build-container build-runsc
build-node:
	@cd cmd/virtual-kubelet && ../../hack/go-build.sh ../../bin/virtual-kubelet -tags grpcnotrace -ldflags '$(LDFLAGS)' .
	@hack/check-size.sh bin/virtual-kubelet

bin/virtual-kubelet-with-%: $(GO_SOURCES)
	@cd cmd/virtual-kubelet && ../../hack/go-build.sh ../../$@ -tags 'grpcnotrace $(patsubst %,no_%,$(filter-out $*,$(BUILT_IN)))' -ldflags '$(LDFLAGS)' .

# Provider process finds it beside the binary, and has it for each container.
bin/virtual-kubelet-container: $(GO_SOURCES)
	@hack/released.sh $@ $(MAKE) --no-print-directory build-container

build-container:
	@cd providers && ../hack/go-build.sh ../bin/virtual-kubelet-container -ldflags '-s -w $(SHIM_VERSION)' ./process/supervisor

# gVisor is for Linux on amd64 and arm64; provider process finds it beside the binary.
.PHONY: runsc
runsc: bin/runsc ## build gVisor's runsc into bin/, which provider process makes containers with

bin/runsc: providers/process/gvisor/go.mod $(wildcard providers/process/gvisor/runsc/*.go providers/process/gvisor/podnet/*.go)
	@hack/released.sh $@ $(MAKE) --no-print-directory build-runsc

build-runsc:
	@case $$(go env GOOS GOARCH | xargs) in \
	"linux amd64"|"linux arm64") \
	  cd providers/process/gvisor && ../../../hack/go-build.sh $(CURDIR)/bin/runsc -ldflags '-s -w' ./runsc ;; \
	*) echo "runsc: gVisor is for Linux on amd64 and arm64; provider process has isolation: none here" ;; \
	esac

# What the demos have: the emulators of clouds, and the image of the first pod.
.PHONY: demo-files build-emulate
demo-files: bin/devcluster bin/emulate bin/demo-image.tar ## build what `bin/virtual-kubelet demo` starts

bin/emulate: $(GO_SOURCES)
	@hack/released.sh $@ $(MAKE) --no-print-directory build-emulate

build-emulate:
	@cd providers && ../hack/go-build.sh ../bin/emulate -ldflags '-s -w $(SHIM_VERSION)' ./internal/emulate

# Programs of the image that are links to the first one.
DEMO_TOOLS := base64 cat env exit hostname id ls sleep tar
bin/demo-image.tar: $(wildcard providers/process/demo/*.go providers/process/demo/*/*.go providers/process/demo/shell/go.*)
	@cd providers && go build -o ../.cache/demo-image/demo ./process/demo && go build -C process/demo/shell -o $(CURDIR)/.cache/demo-image/sh . && \
	  go run ./process/demo/pack -name demo -sh ../.cache/demo-image/sh -o ../$@ ../.cache/demo-image/demo $(DEMO_TOOLS)

.PHONY: cell-image
cell-image: ## make the image that machines of provider kip boot, from packages of Debian, into bin/cell
	@hack/cell-image.sh

.PHONY: release
release: ## write binaries and archives of every platform, image, chart, SBOMs and checksums into dist/ (VERSION=v1.2.3, KEY=file: sign, PLATFORMS=linux/amd64: fewer)
	@cd deploy && go run ./release -version='$(VERSION)' -commit='$(COMMIT)' -date='$(BUILT)' $(if $(KEY),-key='$(abspath $(KEY))') $(if $(PLATFORMS),-platforms='$(PLATFORMS)') -o ../dist

# It builds every program for every platform, which takes an hour without a cache, so this is no part of CI.
.PHONY: release-trial
release-trial: ## make a release in a clean clone, try each of its files and write docs/reports/release.md (PLATFORMS=linux/amd64: fewer)
	@hack/release-trial.sh docs/reports/release.md

.PHONY: manual
manual: ## write man pages and Markdown of every command into dist/manual/
	@cd cmd/virtual-kubelet && go test -count=1 -run '^TestManualHasEveryCommand$$' . -manual='$(CURDIR)/dist/manual' >/dev/null

##@ Test

# Packages whose tests have real API servers, containers and schedulers, those that take longest first. What is left of a module is
# one target. They wait for leases, backoffs and containers as much as they compute, so three are at work on two processors.
LONG_PACKAGES := providers/tensilekube providers/process providers/zun providers/azurebatch test/faults/process test/integration providers/slurm examples providers/liqo providers/eci node \
  providers/aci providers/huaweicci providers/admiralty providers/admiralty/agent test/faults test/containerd providers/fargate providers/cri \
  providers/interlink node/nodeutil providers/plugin deploy/release providertest test/streams
LANES ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) * 3 / 2)))
# If no more than REPEATS tests fail in all lanes, each of them is repeated once, and one that passes then is printed as FLAKY.
REPEATS ?= 0
# What is named twice runs where it is named first.
TEST_TARGETS := test-of/providers/tensilekube test-rest/. test-rest/cmd/virtual-kubelet test-newest test-rest/providers test-rest/podruntime \
  $(LONG_PACKAGES:%=test-of/%) $(TEST_MODULES:%=test-rest/%) test-gvisor test-devcluster
.PHONY: test race test-compile $(TEST_TARGETS)
test: build test-compile ## run unit and integration tests, with the race detector where they need no server and no container
	@rm -rf .cache/test && mkdir -p .cache/test
	@$(NO_RACE) failed=0; $(MAKE) --no-print-directory -k -j$(LANES) GO_TEST='$(CURDIR)/.cache/retest lane $(CURDIR)/.cache/test' $(TEST_TARGETS) || failed=1; \
	  .cache/retest repeat .cache/test $(REPEATS) || failed=1; exit $$failed

# Compilers that work beside tests take the time away that the tests wait for, and two of them do the same work twice.
test-compile: build
	@echo "compile the tests"
	@go build -o .cache/retest ./internal/testing/retest
	@for module in $(TEST_MODULES); do (cd $$module && $(RACE_GO) list $(RACE) -test -deps -export ./... >/dev/null); done
	@for package in $(WITHOUT_RACE); do (cd $$package && go list -test -deps -export . >/dev/null); done

# Where the time of tests is that of API servers, containers and schedulers, the race detector makes them take twice as long
# (docs/decisions/0048), so they run without it here, as the programs that are released do, and with it by make race. That of a release
# compresses hundreds of megabytes, which takes ten times as long with it.
WITHOUT_RACE := providers/process providers/cri test/containerd deploy/release examples test/faults/process test/integration test/faults test/streams providers/tensilekube \
  providers/liqo providers/huaweicci providers/admiralty providers/admiralty/agent providers/slurm providers/interlink providers/plugin
MODULE_PATH := github.com/virtual-kubelet/virtual-kubelet
TEST_FLAGS := -vet=off -timeout 60m -parallel 4 # make check vets them

# Its tests wait for leases, tokens and pings, and have half of a processor with eight at a time.
test-of/providers/tensilekube: AT_ONCE := -parallel 8

$(LONG_PACKAGES:%=test-of/%): test-of/%:
	@cd $* && VK_REQUIRE_TESTAPI=1 $(if $(filter $*,$(WITHOUT_RACE)),$(GO_TEST),$(RACE_TEST)) $(TEST_FLAGS) $(AT_ONCE) .

$(TEST_MODULES:%=test-rest/%): test-rest/%:
	@cd $* && packages=$$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | grep -vxE '$(MODULE_PATH)/($(subst $() ,|,$(LONG_PACKAGES)))') && \
	  VK_REQUIRE_TESTAPI=1 $(RACE_TEST) $(TEST_FLAGS) -p 1 $$packages

race: build ## run the tests that make test runs without the race detector with it (an hour; RACE_OF=providers/slurm: of one package)
	@for package in $(or $(RACE_OF),$(WITHOUT_RACE)); do (cd $$package && VK_REQUIRE_TESTAPI=1 $(RACE_TEST) $(TEST_FLAGS) .) || exit 1; done

test-newest:
	@$(MAKE) --no-print-directory newest schedules

test-gvisor:
	@case $$(go env GOOS GOARCH | xargs) in "linux amd64"|"linux arm64") cd providers/process/gvisor && $(GO_TEST) ./... ;; esac

test-devcluster:
	@. hack/goenv.sh && cd devcluster && DEVCLUSTER_BIN=$(CURDIR)/bin/devcluster $(GO_TEST) "$${quick_kubernetes[@]}" -count=1 -timeout 20m ./...

# go.mod asks for the oldest Kubernetes that the library is built with. With the newest, all of it has to build, and what
# touches the API's types and the streams is tested.
NEWEST := -modfile=test/compat/newest.mod
.PHONY: newest
newest: ## build the library with the newest Kubernetes, and test its core
	@go vet $(NEWEST) ./...
	@$(GO_TEST) $(NEWEST) -timeout 20m ./capability ./internal/fanout ./internal/lifecycle ./internal/objects ./node ./node/api ./node/nodeutil

# Packages with tests of the matrix of faults; LONG=1 lets each fault last as long as the matrix says.
FAULTS := ./node/... ./test/faults/... ./test/integration
FAULTS_ENV := VK_REQUIRE_TESTAPI=1 VK_FAULTS_STRICT=1 $(if $(LONG),VK_FAULTS_LONG=1) $(if $(SHARED),VK_FAULTS_SHARED=1)
.PHONY: faults
faults: build ## run every test of the matrix of faults and write docs/reports/faults.md (LONG=1: full length; SHARED=1: nodes of a group, faults-shared.md)
	@mkdir -p .cache
	@$(FAULTS_ENV) go test -json -count=1 -p 1 -timeout $(if $(LONG),300m,30m) -run '^TestFault' $(FAULTS) >.cache/faults.json || true
	@$(FAULTS_ENV) go run ./test/report faults -o docs/reports/faults$(if $(SHARED),-shared).md .cache/faults.json

.PHONY: security
security: build ## run every test of a promise about security and write docs/reports/security.md
	@for module in $(TEST_MODULES) providers/process/gvisor; do (cd $$module && VK_REQUIRE_TESTAPI=1 go test -count=1 -timeout 20m -run '^TestSecurity' ./... >/dev/null); done
	@go run ./test/report security

.PHONY: field
field: build ## run every test of what others published and write docs/reports/field.md
	@for module in $(TEST_MODULES) devcluster; do (cd $$module && VK_REQUIRE_TESTAPI=1 go test -count=1 -timeout 20m -run '^TestPublished' ./... >/dev/null); done
	@go run ./test/report field

SOAK ?= 1h
.PHONY: soak
soak: build ## kill a daemon with kill -9 every five seconds for SOAK=1h under churn, and write docs/reports/soak.md
	@VK_REQUIRE_TESTAPI=1 go test ./test/faults/process -count=1 -timeout 0 -v -run '^TestSoak$$' -soak=$(SOAK) -soak-report=$(CURDIR)/docs/reports/soak.md

# 10,000 pods on 1,000 nodes, for 15 minutes.
.PHONY: soak-replicas
soak-replicas: build ## kill -9 in turn one of three daemons that share 1,000 nodes, for SOAK=15m, and write docs/reports/replicas.md
	@VK_REQUIRE_TESTAPI=1 go test ./test/faults/process -count=1 -timeout 0 -v -run '^TestReplicasSoak$$' -replicas=$(if $(filter command environment,$(origin SOAK)),$(SOAK),15m) -replicas-report=docs/reports/replicas.md

# Kubernetes' own tests of a node: they need root, Linux and a container runtime. See docs/reports/conformance.md.
.PHONY: conformance
# With PROVIDER=process on gVisor, runsc is needed too.
CONFORMANCE_RUNTIME = $(if $(RUNTIME),-runtime=$(RUNTIME))
CONFORMANCE_RUNSC = $(if $(filter process,$(PROVIDER)),$(if $(filter runc,$(RUNTIME)),,bin/runsc))
conformance: build $(CONFORMANCE_RUNSC) bin/conformance/e2e.test bin/conformance/coredns bin/conformance/kubelet ## run Kubernetes' tests of nodes, services, workloads and kubectl against a virtual node and write docs/reports/conformance.md (PROVIDER=process: conformance-process.md, on gVisor, or with RUNTIME=runc; CONFORMANCE_ARGS=-focus=...)
	@go build -C test/conformance -o $(CURDIR)/bin/conformance/run .
	@bin/conformance/run -provider=$(or $(PROVIDER),cri) $(CONFORMANCE_RUNTIME) \
	  -report=docs/reports/conformance$(if $(filter process,$(PROVIDER)),-process$(if $(filter runc,$(RUNTIME)),-runc)).md $(CONFORMANCE_ARGS)

.PHONY: conformance-two-nodes
conformance-two-nodes: build bin/conformance/e2e.test bin/conformance/coredns bin/conformance/kubelet ## run every test called conformance against two virtual nodes and write docs/reports/conformance-two-nodes.md
	@go build -C test/conformance -o $(CURDIR)/bin/conformance/run .
	@bin/conformance/run -nodes=2 -sets=conformance,conformance-serial -report=docs/reports/conformance-two-nodes.md $(CONFORMANCE_ARGS)

.PHONY: conformance-quick
conformance-quick: build $(CONFORMANCE_RUNSC) bin/conformance/e2e.test ## the same for the tests that do not wait long, in a few minutes
	@go build -C test/conformance -o $(CURDIR)/bin/conformance/run .
	@bin/conformance/run -provider=$(or $(PROVIDER),cri) $(CONFORMANCE_RUNTIME) -sets=quick $(CONFORMANCE_ARGS)

.PHONY: conformance-gate
conformance-gate: build $(CONFORMANCE_RUNSC) bin/conformance/e2e.test ## the same for the tests that every change has to pass
	@go build -C test/conformance -o $(CURDIR)/bin/conformance/run .
	@bin/conformance/run -provider=$(or $(PROVIDER),cri) $(CONFORMANCE_RUNTIME) -sets=gate $(CONFORMANCE_ARGS)

bin/conformance/e2e.test: test/conformance/programs/go.mod hack/build-conformance.sh $(wildcard test/conformance/standin/*/*.go)
	@hack/build-conformance.sh

bin/conformance/coredns: test/conformance/coredns/go.mod test/conformance/coredns/main.go hack/build-conformance.sh
	@hack/build-conformance.sh coredns

bin/conformance/kubelet: bench/kubelet/go.mod hack/build-conformance.sh
	@hack/build-conformance.sh kubelet

# interLink's programs take some minutes to build, so this is no part of CI, whose tests have a double of its API server. See docs/reports/interlink.md.
.PHONY: interlink
interlink: bin/devcluster bin/interlink/version ## run the tests of provider interlink on interLink's own programs and write docs/reports/interlink.md
	@VERSION='$(VERSION)' hack/test-interlink.sh docs/reports/interlink.md

# Programs of others are fetched or named by INTERLINK_SRC, INTERLINK_PYTHON and INTERLINK_CASES, see the script. See docs/reports/interlink-plugins.md.
.PHONY: interlink-field
interlink-field: bin/devcluster ## run provider interlink on interLink's own API server and plugins of others and write docs/reports/interlink-plugins.md
	@hack/interlink-field.sh docs/reports/interlink-plugins.md

bin/interlink/version: hack/build-interlink.sh
	@hack/build-interlink.sh

# Liqo's controllers take five minutes to build, so this is no part of CI, whose tests have a controller of their own. See docs/reports/liqo.md.
.PHONY: liqo
liqo: build bin/liqo/liqo-controller-manager ## run the tests of provider liqo with Liqo's own controllers and write docs/reports/liqo.md
	@hack/test-liqo.sh docs/reports/liqo.md

bin/liqo/liqo-controller-manager: hack/build-liqo.sh
	@hack/build-liqo.sh

# Liqo's virtual kubelet takes as long, so this is no part of CI either. Its table is in docs/reports/liqo-figures.md.
.PHONY: bench-liqo
bench-liqo: build bin/liqo/liqo-controller-manager bin/liqo/virtual-kubelet ## measure provider liqo beside Liqo's own virtual kubelet and write docs/reports/liqo-figures.md
	@cd bench && go run . -scenarios=liqo -into=../docs/reports/liqo-figures.md $(BENCH_ARGS)

# The virtual kubelet of azure-aci takes six minutes to build, so this is no part of CI either.
.PHONY: bench-aci
bench-aci: build bin/azure-aci/virtual-kubelet ## count the requests of provider aci beside azure-aci on the same emulator and write docs/reports/aci-figures.md
	@cd bench && go run ./azureaci -bin=../bin -o=../docs/reports/aci-figures.md $(BENCH_ARGS)

bin/azure-aci/virtual-kubelet: hack/build-azure-aci.sh
	@hack/build-azure-aci.sh

# The vendor's client of ECI comes from npm, so this is no part of CI.
.PHONY: eci-client
eci-client: ## let the vendor's client of ECI talk to the emulator of the tests and write docs/reports/eci-client.md
	@hack/eci-client.sh

# The programs of Nomad and interLink take minutes to build, so this is no part of CI either. It needs root and Slurm of Debian.
.PHONY: bench-schedulers
bench-schedulers: build bin/nomad/nomad bin/interlink/version ## measure providers nomad, slurm and interlink and write docs/reports/schedulers-figures.md
	@cd bench && go run . -scenarios=nomad,slurm,interlink -into=../docs/reports/schedulers-figures.md $(BENCH_ARGS)

# Each start boots a machine, so this is no part of CI. It needs QEMU.
.PHONY: bench-cells
bench-cells: build cell-image ## measure provider kip with simulated machines and with machines of QEMU, and write docs/reports/kip-cells.md
	@cd bench && go run . -scenarios=cells-20,cells,cells-qemu -rounds=1 -into=../docs/reports/kip-cells.md $(BENCH_ARGS)

bin/liqo/virtual-kubelet: hack/build-liqo.sh
	@hack/build-liqo.sh virtual-kubelet

# One provider does this in CI, with tokens that are renewed early: the renewal of the others takes eight minutes. It needs root and runc.
.PHONY: remote-workloads
remote-workloads: build ## run workloads with kubectl through every provider for another cluster and write docs/reports/remote-workloads.md (PROVIDER=liqo: one of them)
	@hack/test-workloads.sh docs/reports/remote-workloads.md $(PROVIDER)

# The agent of Nomad takes minutes to build, so this is no part of CI, whose tests have none. See docs/reports/nomad.md.
.PHONY: nomad
nomad: bin/nomad/nomad ## run the tests of provider nomad on an agent of Nomad and write docs/reports/nomad.md
	@VK_CONTRACT_RESULTS=$(CURDIR)/docs/reports/contract VK_CONTRACT_VERSION='$(VERSION)' hack/test-nomad.sh docs/reports/nomad.md

bin/nomad/nomad: hack/build-nomad.sh
	@hack/build-nomad.sh

# It unpacks packages of Debian 13, so this is no part of CI, whose tests have an emulator of their own. See docs/reports/fargate-moto.md.
.PHONY: moto
moto: ## run providers fargate and kip on moto, hold requests to botocore, and write docs/reports/fargate-moto.md and kip-moto.md
	@hack/test-moto.sh $(CURDIR)/docs/reports/fargate-moto.md $(CURDIR)/docs/reports/kip-moto.md

# Each check boots a machine, which takes seconds without KVM, so CI runs the contract on a simulated cloud, and two kills. See docs/reports/kip-qemu.md.
.PHONY: kip-contract
kip-contract: cell-image ## run the contract of providers and 20 kills of a node with machines of QEMU, and write docs/reports/kip-qemu.md
	@hack/test-kip.sh $(CURDIR)/docs/reports/kip-qemu.md

# Azurite comes from npm, so this is no part of CI.
.PHONY: azurite
azurite: ## make the requests for blobs of provider azurebatch at Azurite and write docs/reports/azurite.md
	@hack/test-azurite.sh

# It needs packages of Debian, which the script names, so this is no part of CI.
.PHONY: zun-peers
zun-peers: ## run Zun's own client and the real Keystone beside the emulator of Zun and write docs/reports/zun-peers.md
	@hack/test-zun-peers.sh

# It builds metrics-server, so this is no part of CI.
.PHONY: metrics-server-test
metrics-server-test: build ## run metrics-server on a node: kubectl top and a HorizontalPodAutoscaler (METRICS_SERVER_VERSION=v0.8.0)
	@hack/test-metrics-server.sh

# CI runs these tests too, with the rest; here is the report. It needs root and packages of Debian, which the script names.
.PHONY: slurm
slurm: ## run the tests of provider slurm on Slurm of Debian and write docs/reports/slurm.md
	@VERSION='$(VERSION)' hack/test-slurm.sh docs/reports/slurm.md

# The tests are cloned, and need root, pytest and the Python client of Kubernetes from Debian, so this is no part of CI. See docs/reports/vk-test-set.md.
.PHONY: vk-test-set
vk-test-set: build $(if $(filter nomad,$(or $(PROVIDER),nomad)),bin/nomad/nomad) ## run interLink's vk-test-set on providers process, slurm, nomad and interlink and write docs/reports/vk-test-set.md (PROVIDER=slurm: one of them; VK_TEST_SET=path)
	@hack/test-vk-test-set.sh docs/reports/vk-test-set.md $(or $(PROVIDER),process process-none slurm nomad interlink)

# How many random schedules of users, faults and restarts every `make test` tries, new ones each time. A failing one is never repeated.
SCHEDULES ?= 10000
SEED ?= 0
KIND ?= mixed
.PHONY: schedules
schedules: ## try SCHEDULES=10000 random schedules; SEED=N tries those of N again; a failing one is shrunk; KIND=nouids, second, authority, drain
	@seed=$(SEED); [ "$$seed" != 0 ] || seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	echo "$(SCHEDULES) schedules, seed $$seed: replay with make schedules KIND=$(KIND) SEED=$$seed"; \
	go test ./node -count=1 -timeout 20m -run '^TestRandomSchedules$$' -rapid.checks=$(SCHEDULES) -rapid.seed=$$seed -sim.kind=$(KIND)

.PHONY: unit
unit: ## run the tests that need no API server, with the race detector
	@$(NO_RACE) for module in $(filter-out deploy,$(TEST_MODULES)); do \
	  (cd $$module && $(RACE_TEST) $$(go list ./... | grep -v -e /test/integration -e /test/faults -e /examples)); \
	done

# Rules that no test of their package holds: all of internal/lifecycle, and MUTANTS of each other package, drawn by SEED and tried for MUTANTS_FOR at most.
# What is left of internal/lifecycle are shortcuts, without which the result is the same.
MUTANTS ?= 150
MUTANTS_FOR ?= 15m
MUTANTS_OF ?= node internal/lease internal/replicas node/nodeutil
.PHONY: mutants
mutants: ## make conditions of the core true and false, leave calls out, and name those that no test notices (MUTANTS=150 of each package, SEED=N, MUTANTS_FOR=15m, MUTANTS_OF=node)
	@$(if $(filter file,$(origin MUTANTS_OF)),go run ./internal/testing/mutants -package internal/lifecycle)
	@for package in $(MUTANTS_OF); do \
	  go run ./internal/testing/mutants -package $$package -draw $(MUTANTS) -seed $(SEED) -budget $(MUTANTS_FOR) || exit 1; \
	done

.PHONY: monitoring-test
monitoring-test: ## try the alerts with a real Prometheus, on faults of a node (apt-get install prometheus)
	@VK_REQUIRE_PROMETHEUS=1 go test -count=1 ./test/monitoring
	@cd deploy && go test -count=1 -run 'TestChartMonitorsNodes|TestDashboardsAndAlerts' .

.PHONY: screenshots
screenshots: ## make the picture of /debug/pods for the documentation (apt-get install chromium)
	@VK_SCREENSHOT=$(CURDIR)/docs/pictures/debug-pods.png go test -count=1 -run TestDebugPageInABrowser ./node/api

.PHONY: recording
recording: bin/virtual-kubelet bin/virtual-kubelet-container bin/runsc demo-files ## make the picture of a terminal in the README from a run of the demo
	@hack/record.sh docs/pictures/demo.svg

.PHONY: check
check: ## lint every module, and see that modules and generated files are current
	@hack/lint.sh
	@hack/check-tidy.sh

# What the tests of the contract found is kept for the table of support; a test that fails writes its results too.
.PHONY: contract-results
contract-results: ## run the contract of providers and write docs/reports/contract and the pages from it (needs root and containerd)
	@cd providers && export VK_REQUIRE_CONTAINERD=1 VK_CONTRACT_RESULTS=$(CURDIR)/docs/reports/contract VK_CONTRACT_VERSION='$(VERSION)'; \
	  go test -count=1 -p 1 -timeout 20m -run '^TestContract$$' ./...; \
	  PROCESS_ISOLATION=gvisor go test -count=1 -timeout 20m -run '^TestContract$$' ./process
	@$(MAKE) --no-print-directory generate

.PHONY: generate
generate: ## write the files that are made from code
	@go test ./cli -run 'TestReference|TestMetricsAreDescribed' -update
	@go test ./providertest -run TestCosts -update
	@cd cmd/virtual-kubelet && go test . -run 'TestSupportPage|TestProviderPages' -update
	@cd deploy && go test . -run TestManifests -update

.PHONY: generate-rpc
generate-rpc: ## write what is generated from the protocol of plugins (needs protoc 3.21)
	@hack/generate-rpc.sh

.PHONY: bench
bench: build ## measure pods through their life on a real API server, beside KWOK
	@cd bench && go run . $(BENCH_ARGS)

##@ Other

.PHONY: clean
clean: ## remove what was built
	@rm -rf bin dist

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
