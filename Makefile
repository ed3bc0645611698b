# Targets for people: `make` or `make help` lists them.

GO        ?= go
BIN       := bin
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT    ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS   := -s -w -X platform/internal/version.version=$(VERSION) -X platform/internal/version.commit=$(COMMIT)
# Optimization with a profile: only for what is released or measured, see RELEASE_PGO.
PGO       ?=
GOBUILD    = CGO_ENABLED=0 $(GO) build -trimpath $(PGO) -ldflags '$(LDFLAGS)'
LINTER    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
LINT      := $(GO) run $(LINTER)
LICENSES  := $(GO) run github.com/google/go-licenses@v1.6.0
HELM      := $(GO) run helm.sh/helm/v3/cmd/helm@v3.22.0
NFPM      := $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
VULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4
GRPC_GEN  := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
BUF       := $(GO) run github.com/bufbuild/buf/cmd/buf@v1.75.0
TOOLS     := $(CURDIR)/$(BIN)/tools
SDKS      := test/sdk/services
TS        := $(SDKS)/ts
PY        := $(SDKS)/python
JAVA      := $(SDKS)/java
RUST      := $(SDKS)/rust
PYTHON    ?= python3
PROTOS    := proto/service proto/raftlog proto/node proto/metadata
comma     := ,

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/platform-server and bin/platform, static
	$(GOBUILD) -o $(BIN)/ ./cmd/platform-server ./cmd/platform

.PHONY: quickstart
quickstart: build ## Start one node and a sample service, call it, keep both up until Ctrl-C (ONCE=1: end after the result)
	@exec $(BIN)/platform dev --sample $(if $(ONCE),--once) $(ARGS)

.PHONY: quickstart-events
quickstart-events: build ## A Kafka broker, one node, a subscription and a few records, until Ctrl-C (after make kafka-jars; ONCE=1: end after the result)
	@exec deploy/kafka/quickstart.sh

.PHONY: cluster-local
cluster-local: build ## Run three nodes on this machine without containers until Ctrl-C (ARGS='--nodes 5 --dir data')
	@exec $(BIN)/platform dev --nodes 3 $(ARGS)

# The plugin of Docker where it is installed, else docker-compose.
COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose)
CLUSTER := $(COMPOSE) -p platform -f deploy/docker-compose.yml
CERTS   ?= $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem))
CONTEXT := $(BIN)/image

# What is released or measured is optimized with a CPU profile, which takes about 5 % off the CPU per
# call on one node. Other builds are not: all packages would be compiled once more for it.
RELEASE_PGO := -pgo=$(CURDIR)/deploy/release/server.pgo
image-context release bench bench-report: PGO = $(RELEASE_PGO)

.PHONY: image-context
image-context: build
	@rm -rf $(CONTEXT) && mkdir -p $(CONTEXT)/data && : > $(CONTEXT)/ca-certificates.crt
	@cp $(BIN)/platform-server $(BIN)/platform $(CONTEXT)/
	@$(if $(CERTS),cat $(CERTS) > $(CONTEXT)/ca-certificates.crt)

.PHONY: image
image: image-context ## Make the container image platform:local of the static binaries
	docker build -q -t platform:local -f deploy/Dockerfile.scratch $(CONTEXT)

.PHONY: cluster-up
cluster-up: image ## Start three nodes in containers, with docker compose
	$(CLUSTER) up -d
	@$(BIN)/platform cluster status --wait 1m
	@echo 'Ingress on 8080, 8081 and 8082, admin API on 9070, 9071 and 9072. Services on this machine are http://host.docker.internal:PORT for the nodes, if they listen on 0.0.0.0: platform sample --listen 0.0.0.0:9080'

.PHONY: cluster-down
cluster-down: ## Stop them; VOLUMES=1 deletes their data, too
	$(CLUSTER) down $(if $(VOLUMES),-v)

.PHONY: cluster-test
cluster-test: image-context ## Try the containers: a service on one node, called on another, a node killed (starts an engine if there is none)
	COMPOSE='$(COMPOSE)' deploy/compose-test.sh

# Most tests wait most of the time, for elections, time-outs and processes: three packages on two cores. The longest start first.
PACKAGES ?= $(shell expr 3 "*" $$(getconf _NPROCESSORS_ONLN) / 2)
LONGEST  := ./test/cluster ./test/kafka ./internal/node ./partition ./test/sim ./internal/raftgroup ./test/sdk ./test/enroll ./ingress/kafka

.PHONY: test
test: ## Run all tests, the longer ones in their short form
	@# -count=1: many tests run the server as a process, which the test cache does not see. -vet=off: see make vet.
	@CGO_ENABLED=0 $(GO) build -o $(BIN)/gotest ./test/gotest
	CGO_ENABLED=0 GO='$(GO)' $(BIN)/gotest -count=1 -timeout 20m -vet=off -p $(PACKAGES) $(LONGEST) ./...

.PHONY: sdk-versions
sdk-versions: ## Report the newest release of each SDK beside the one that is tested
	@GO='$(GO)' PYTHON='$(PYTHON)' test/sdk/newest.sh

.PHONY: test-sdks
test-sdks: sdk-deps sdk-versions ## Run the services of every SDK through every variation (SDK_LANGS=Go,Ts,Py,Java,Rust)
	SDK_VARIATIONS=$(or $(SDK_VARIATIONS),all) $(GO) test -timeout 90m -count=1 -v ./test/sdk/...

$(TS)/node_modules: $(TS)/package.json $(TS)/package-lock.json
	cd $(TS) && npm ci --no-audit --no-fund
	@touch $@

test/oidc/node_modules/.package-lock.json: test/oidc/package.json test/oidc/package-lock.json
	cd test/oidc && npm ci --no-audit --no-fund
	@touch $@

.PHONY: oidc-deps
oidc-deps: test/oidc/node_modules/.package-lock.json ## Install the identity provider that logins are tested with (npm)

# Without the scripts of the package, which only report who installs it.
test/cli/node_modules/.package-lock.json: test/cli/package.json test/cli/package-lock.json
	cd test/cli && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: cli-deps
cli-deps: test/cli/node_modules/.package-lock.json ## Install the command line client of restate-server, which is tried against this one (npm)

.PHONY: ts-deps
ts-deps: $(TS)/node_modules ## Install what the TypeScript test services need (npm)

$(PY)/.venv/installed: $(PY)/requirements.txt
	$(PYTHON) -m venv $(PY)/.venv
	$(PY)/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.PHONY: py-deps
py-deps: $(PY)/.venv/installed ## Install what the Python test services need (python3, pip)

$(JAVA)/target/services.jar: $(JAVA)/pom.xml $(shell find $(JAVA)/src -name '*.java' 2>/dev/null)
	cd $(JAVA) && mvn -q -B package

.PHONY: java-deps
java-deps: $(JAVA)/target/services.jar ## Build the Java test services (JDK 17, Maven)

$(RUST)/target/release/services: $(RUST)/Cargo.toml $(RUST)/Cargo.lock $(wildcard $(RUST)/src/*.rs)
	cd $(RUST) && cargo build --quiet --release --locked
	@touch $@

.PHONY: rust-deps
rust-deps: $(RUST)/target/release/services ## Build the Rust test services (cargo)

.PHONY: sdk-deps
sdk-deps: ts-deps py-deps java-deps rust-deps ## Install and build the test services of all SDKs

# The jars of a Kafka broker, from Maven Central.
KAFKA := test/kafka

$(KAFKA)/target/lib: $(KAFKA)/pom.xml
	rm -rf $@
	cd $(KAFKA) && mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DincludeScope=runtime -DoutputDirectory=target/lib
	@touch $@

.PHONY: kafka-jars
kafka-jars: $(KAFKA)/target/lib ## Download a Kafka broker for the tests (JDK 17, Maven)

.PHONY: test-kafka
test-kafka: kafka-jars ## Event subscriptions with real brokers: 100,000 records, kills of servers and brokers
	KAFKA_RECORDS=$${KAFKA_RECORDS:-100000} KAFKA_KILLS=$${KAFKA_KILLS:-10} KAFKA_BROKERS=$${KAFKA_BROKERS:-3} go test ./test/kafka -count 1 -timeout 60m -v

UI := admin/ui/web

# npm writes this file last: an installation that failed is repeated.
UI_DEPS := $(UI)/node_modules/.package-lock.json

$(UI_DEPS): $(UI)/package.json $(UI)/package-lock.json
	cd $(UI) && npm ci --no-audit --no-fund
	@touch $@

.PHONY: ui-deps
ui-deps: $(UI_DEPS) ## Install the npm packages of the web UI

.PHONY: ui
ui: $(UI_DEPS) ## Build the web UI into admin/ui/dist (node, npm)
	cd $(UI) && npm run --silent check && npm run --silent build

.PHONY: ui-unit
ui-unit: $(UI_DEPS) ## Run the unit tests of the web UI
	cd $(UI) && npm test --silent

.PHONY: ui-current
ui-current: ui ## Check that admin/ui/dist is built from the sources
	git diff --exit-code --stat admin/ui/dist

.PHONY: ui-bin
ui-bin:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/ui/ ./cmd/platform-server ./test/ui/service ./test/ui/load ./test/ui/reads

.PHONY: ui-test
ui-test: $(UI_DEPS) ts-deps ui-unit ui-bin ## Test the web UI in a browser against a server (chromium; UI_LONG=1 for the long form)
	PLATFORM_SERVER=$(CURDIR)/$(BIN)/ui/platform-server UI_SERVICE=$(CURDIR)/$(BIN)/ui/service UI_TS_SERVICE=$(CURDIR)/$(TS)/src/main.js node $(UI)/e2e/test.mjs

.PHONY: ui-cost
ui-cost: $(UI_DEPS) ui-bin ## Measure what open pages of the web UI cost the server under load (ROUNDS=12 DURATION=3 PAGES=overview,invocation)
	PLATFORM_SERVER=$(CURDIR)/$(BIN)/ui/platform-server UI_SERVICE=$(CURDIR)/$(BIN)/ui/service UI_LOAD=$(CURDIR)/$(BIN)/ui/load node $(UI)/e2e/cost.mjs

.PHONY: ui-reads
ui-reads: ui-bin ## Measure the reads of the web UI with a million invocations (ARGS='-n 100000 -busy 16 -data folder')
	PLATFORM_SERVER=$(CURDIR)/$(BIN)/ui/platform-server $(BIN)/ui/reads $(ARGS)

.PHONY: ui-shots
ui-shots: $(UI_DEPS) ui-bin ## Write screenshots of the web UI to a temporary folder (SHOTS=folder ONLY=pages THEMES=light,dark WIDTHS=1440,390)
	PLATFORM_SERVER=$(CURDIR)/$(BIN)/ui/platform-server UI_SERVICE=$(CURDIR)/$(BIN)/ui/service node $(UI)/e2e/shots.mjs

.PHONY: chaos
chaos: ## Kill -9 the server and services under load, 200 rounds (ROUNDS=n)
	CHAOS_ROUNDS=$(or $(ROUNDS),200) CHAOS_RESPONSE_TIMEOUT=$${CHAOS_RESPONSE_TIMEOUT:-15s} $(GO) test -timeout 120m -count=1 -v -run 'TestKillRounds|TestAcknowledgedStep' ./test/chaos/...

.PHONY: cluster-faults
cluster-faults: ## Inject all kinds of faults into a cluster of three under load, 300 rounds (ROUNDS=n FAULTS=kill-one,wipe-one), and 20 rolling restarts
	CLUSTER_ROUNDS=$(or $(ROUNDS),300) CLUSTER_ROLLS=20 $(if $(FAULTS),CLUSTER_FAULTS=$(FAULTS)) \
		$(GO) test -timeout 240m -count=1 -v -run 'TestMixedFaults|TestRollingRestarts|TestFreshCluster|TestNormalOperation' ./test/cluster

.PHONY: cluster-upgrades
cluster-upgrades: ## Upgrade and downgrade a cluster under load, 5 times, also from the first release (ROUNDS=n)
	CLUSTER_UPGRADES=$(or $(ROUNDS),5) $(GO) test -timeout 60m -count=1 -v -run TestUpgrades ./test/cluster

.PHONY: cluster-replicas
cluster-replicas: ## Restart, wipe and modify replicas of a gigabyte under sustained writes (STATE_MB=2000, on two partitions)
	CLUSTER_STATE_MB=$(or $(STATE_MB),2000) $(GO) test -timeout 90m -count=1 -v -run 'TestLongLivedWork' ./test/cluster

.PHONY: cluster-reads
cluster-reads: ## Read state, outputs and SQL at nodes that are isolated, suspended or replaced, 40 rounds (ROUNDS=n)
	CLUSTER_READS=$(or $(ROUNDS),40) $(GO) test -timeout 120m -count=1 -v -run 'TestReadsDuringLeaderFaults' ./test/cluster

.PHONY: sizes
sizes: ## Large messages on three nodes with 1 GiB of memory each, with kills
	SIZES_LONG=1 $(GO) test -timeout 30m -count=1 -v ./test/sizes

.PHONY: cluster-plants
cluster-plants: ## Plant defects and require that the checks detect them, and step clocks
	CLUSTER_PLANTS=1 CLUSTER_CLOCK=1 $(GO) test -timeout 120m -count=1 -v -run 'TestProxyDefects|TestServiceDefects|TestPlanted|TestStepped' ./test/cluster

.PHONY: sim
sim: ## Run 10,000 seeds of the simulated cluster (SEEDS=n FIRST=n PARALLEL=n)
	$(GO) test -count=1 -timeout 24h -v -run TestSeeds ./test/sim -seeds=$(or $(SEEDS),10000) -first=$(or $(FIRST),1) -parallel-seeds=$(or $(PARALLEL),2)

.PHONY: rotation
rotation: ## Rotate certificates and switch node TLS off, allow, require on three nodes under load, for 5 minutes (TIME=10m)
	ENROLL_ROTATION=$(or $(TIME),5m) $(GO) test -count=1 -timeout 120m -v -run TestModesAndCertificatesChangeUnderLoad ./test/enroll

.PHONY: crafted
crafted: ## Send 10,000 crafted requests to every listener of a server (CRAFTED=n)
	CRAFTED=$(or $(CRAFTED),10000) $(GO) test -count=1 -timeout 60m -v -run TestServersWithstandCraftedRequests ./test/crafted

.PHONY: fuzz
fuzz: ## Run every fuzz target for a minute, one after the other (TIME=5m)
	test/fuzz/run.sh $(if $(TIME),-t $(TIME)) $(ARGS)

.PHONY: bench
bench: build ## Measure the server (TARGETS=platform,peer STEPS=echo/64 ROUNDS=3; see test/bench/README.md)
	@$(GO) build -o $(BIN)/bench ./test/bench
	@PLATFORM_SERVER=$${PLATFORM_SERVER:-$(CURDIR)/$(BIN)/platform-server} exec $(BIN)/bench \
		$(if $(TARGETS),-targets $(TARGETS)) $(if $(STEPS),-steps $(STEPS)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(ARGS)

.PHONY: bench-security
bench-security: build ## Measure the cost of TLS and tokens on calls, and of the audit log on changes, about 7 minutes (ROUNDS=8)
	@$(GO) build -o $(BIN)/bench ./test/bench
	@PLATFORM_SERVER=$${PLATFORM_SERVER:-$(CURDIR)/$(BIN)/platform-server} $(BIN)/bench \
		-targets platform-secure,platform -steps echo/64 -rounds $(or $(ROUNDS),8) -duration 8s -warmup 2s $(ARGS)
	@PLATFORM_SERVER=$${PLATFORM_SERVER:-$(CURDIR)/$(BIN)/platform-server} $(BIN)/bench \
		-targets platform,platform-unaudited -steps patch/1,patch/8,replace/8 -rounds $(or $(ROUNDS),8) -duration 3s -warmup 1s $(ARGS)

.PHONY: bench-report
bench-report: build ## Write a page of the costs per operation to bin/bench-report.html (with PEER_SERVER=path: compared)
	@$(GO) build -o $(BIN)/bench ./test/bench
	@PLATFORM_SERVER=$${PLATFORM_SERVER:-$(CURDIR)/$(BIN)/platform-server} exec $(BIN)/bench -page $(BIN)/bench-report.html \
		-targets $(or $(TARGETS),platform$(if $(PEER_SERVER),$(comma)peer-p1)) $(if $(STEPS),-steps $(STEPS)) $(if $(ROUNDS),-rounds $(ROUNDS)) $(ARGS)

.PHONY: pgo
pgo: build ## Record the CPU profile that releases are optimized with
	@$(GO) build -o $(BIN)/bench ./test/bench
	@rm -rf $(BIN)/profiles && mkdir -p $(BIN)/profiles
	@PLATFORM_SERVER=$(CURDIR)/$(BIN)/platform-server $(BIN)/bench -profiles $(BIN)/profiles -duration 9s -steps echo/1,echo/64,steps:5/64,fanout:50/4,echo/16@64,counter:1000/64
	@$(GO) tool pprof -proto $(BIN)/profiles/*.pprof | gzip -d | perl -pe 's{(/[!-~]*/)(?=platform-server)}{"/" x length $$1}ge' | gzip -9 -n > deploy/release/server.pgo # without this machine's paths

.PHONY: linter
linter: ## Build bin/tools/golangci-lint
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(LINTER)

.PHONY: lint
lint: ## Run golangci-lint
	$(LINT) run ./...

.PHONY: release-tools
release-tools: ## Build bin/tools/go-licenses and nfpm, for LICENSES=bin/tools/go-licenses NFPM=bin/tools/nfpm
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(lastword $(LICENSES))
	GOBIN=$(TOOLS) $(GO) install $(lastword $(NFPM))

.PHONY: helm-tool
helm-tool: ## Build bin/tools/helm, for HELM=bin/tools/helm
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(lastword $(HELM))

# modernc.org/mathutil has the 3-clause BSD licence with a change that the tool does not recognize.
ALLOWED_LICENSES := Apache-2.0|MIT|BSD-2-Clause|BSD-3-Clause|ISC|MPL-2.0

.PHONY: licenses
licenses: ## Check the licences of the dependencies of both programs and list them in bin/licenses.csv
	@mkdir -p $(BIN)
	@GOROOT=$$($(GO) env GOROOT) $(LICENSES) report ./cmd/platform-server ./cmd/platform --ignore platform > $(BIN)/licenses.csv 2> $(BIN)/licenses.log || \
		{ cat $(BIN)/licenses.log; exit 1; }
	@! grep -v '^modernc.org/mathutil,' $(BIN)/licenses.csv | grep -vE ',($(ALLOWED_LICENSES))$$' || { echo 'these licences are not allowed'; exit 1; }
	@echo "$$(wc -l < $(BIN)/licenses.csv) dependencies, see $(BIN)/licenses.csv"

.PHONY: release
release: licenses ## Build tarballs and Debian packages with checksums in bin/release (ARCHS="amd64 arm64")
	@rm -rf $(BIN)/third_party
	@GOROOT=$$($(GO) env GOROOT) $(LICENSES) save ./cmd/platform-server ./cmd/platform --ignore platform --ignore modernc.org/mathutil \
		--save_path $(BIN)/third_party 2>> $(BIN)/licenses.log
	@mkdir -p $(BIN)/third_party/modernc.org/mathutil && cp "$$($(GO) list -m -f '{{.Dir}}' modernc.org/mathutil)/LICENSE" $(BIN)/third_party/modernc.org/mathutil/
	@VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' PGO='$(PGO)' NFPM='$(NFPM)' ARCHS='$(or $(ARCHS),amd64 arm64)' MAINTAINER='$(or $(MAINTAINER),Platform <root@localhost>)' \
		deploy/release/build.sh

.PHONY: release-check
release-check: ## Check the release in bin/release, and start the server of its Debian package
	@deploy/release/check.sh

.PHONY: helm-check
helm-check: ## Check the Helm chart with several sets of values
	@HELM='$(HELM)' deploy/helm/check.sh

.PHONY: vulncheck
vulncheck: ## Search the dependencies for known vulnerabilities (asks vuln.go.dev)
	$(VULNCHECK) ./cmd/...

.PHONY: vet
vet: ## Check format, go vet and go.mod
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo 'not formatted:'; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff

.PHONY: check
check: vet ## The gate without tests: format, vet, go.mod, lint, generated code
	$(LINT) run ./...
	$(MAKE) proto
	@git diff --exit-code -- proto || { echo 'generated code is not what `make proto` writes'; exit 1; }

# What runs goroutines and is quick enough for the race detector.
RACE := ./ingress ./admin/... ./flowcontrol/... ./metadata/... ./partition/machine/... ./partition/journal ./partition/codec ./partition/store ./invoker/... ./internal/cluster/fabric ./internal/cluster/membership ./internal/httpserver

.PHONY: race
race: ## Run the tests of the packages that the race detector does not slow down too much
	CGO_ENABLED=1 $(GO) test -race -short -count=1 -timeout 20m -vet=off $(RACE)

.PHONY: docs
docs: ## Regenerate the generated documents in docs/
	$(GO) test -count=1 ./cmd/platform -run TestReferencesAreCurrent -update
	$(GO) test -count=1 ./admin -run TestOpenAPIDocumentIsCommitted -update
	$(GO) test -count=1 ./admin/query -run TestTablesAreDocumented -rewrite

.PHONY: proto
proto: ## Generate code from proto/*/*.proto
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS) $(GO) install google.golang.org/protobuf/cmd/protoc-gen-go github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	@GOBIN=$(TOOLS) $(GO) install $(GRPC_GEN)
	$(BUF) generate --template proto/buf.gen.yaml
	$(BUF) generate --template proto/buf.gen.fast.yaml --exclude-path proto/raftlog
	$(BUF) generate --template proto/buf.gen.grpc.yaml --path proto/node

.PHONY: clean
clean: ## Remove what the targets built
	rm -rf $(BIN) $(TS)/node_modules $(PY)/.venv $(JAVA)/target $(RUST)/target
